//! What all that a processor holds shares: the chunk in hand, the pending ops, the known values of the group in hand.
//!
//! Invariants: ops are applied before the next chunk is pulled; a read that may miss a pending write applies it
//! first; what is known of a group's values is forgotten when the group or the chunk changes. A fault of `apply`
//! fails the call even if the author drops the error, since the ops after it are gone.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use crate::Host;
use crate::contract::{Group, TimeMode, Variable};
use crate::error::{Error, Result, code};
use crate::feed::{Feed, Prefetched};
use crate::ops::{Code, Ops, Place};
use crate::panic;

/// Shared by the handles that `init` gave out.
pub(crate) struct Session {
    pub(crate) host: Host,
    pub(crate) time_mode: TimeMode,
    work: RefCell<Work>,
}

struct Work {
    feed: Feed,
    ops: Ops,
    /// By variable; those that are no value states stay unknown.
    values: Vec<Known>,
    /// The first fault of `apply` in this call.
    fault: Option<Error>,
}

/// What is known of a value state of the group in hand without asking.
enum Known {
    Unknown,
    Absent,
    /// In the chunk.
    Prefetched(Range<usize>),
    /// Written by this processor; if applied since, the host knows it.
    Written(Place),
    /// Asked before.
    Fetched(Vec<u8>),
}

impl Session {
    pub(crate) fn new(host: Host, time_mode: TimeMode) -> Rc<Self> {
        let work = Work { feed: Feed::default(), ops: Ops::new(), values: Vec::new(), fault: None };
        Rc::new(Self { host, time_mode, work: RefCell::new(work) })
    }

    /// The group in hand; an error where there is none (`init`, `close`).
    #[inline]
    pub(crate) fn group(&self, operation: &'static str) -> Result<Group> {
        self.work.borrow().feed.group().ok_or_else(|| no_group(operation))
    }

    pub(crate) fn group_in_hand(&self) -> Option<Group> {
        self.work.borrow().feed.group()
    }

    // --- walking the input of a call

    /// Goes to the next group of the call, past the rows of the one in hand that nobody read. False at the end of the
    /// phase.
    pub(crate) fn next_group(&self) -> Result<bool> {
        loop {
            let continues = {
                let mut work = self.work.borrow_mut();
                let continues = work.feed.group_continues();
                if work.feed.has_groups() {
                    work.enter_group()?;
                    if !work.feed.group_is_continued() {
                        return Ok(true);
                    }
                    // The rest of a group whose handler stopped reading.
                    continue;
                }
                continues
            };
            if !self.pull()? {
                if continues {
                    return Err(cut_short());
                }
                self.work.borrow_mut().leave_group();
                return Ok(false);
            }
        }
    }

    /// Reads the key of the group in hand.
    pub(crate) fn key<K>(&self, read: impl FnOnce(&[u8]) -> Result<K>) -> Result<K> {
        read(self.work.borrow().feed.key()?)
    }

    /// Reads the next row of the group in hand, pulling further chunks as needed.
    #[inline]
    pub(crate) fn next_row<T>(&self, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<Option<T>> {
        loop {
            {
                let mut work = self.work.borrow_mut();
                if let Some(row) = work.feed.next_row()? {
                    return read(row).map(Some);
                }
                if !work.feed.group_continues() {
                    return Ok(None);
                }
            }
            self.pull_rest_of_group()?;
        }
    }

    #[cold]
    fn pull_rest_of_group(&self) -> Result<()> {
        if !self.pull()? {
            return Err(cut_short());
        }
        let mut work = self.work.borrow_mut();
        work.enter_group()?;
        if work.feed.group_is_continued() { Ok(()) } else { Err(cut_short()) }
    }

    /// Pulls the next chunk. What is pending is applied first, since the groups of the chunk in hand end here.
    fn pull(&self) -> Result<bool> {
        self.apply()?;
        let Some(chunk) = self.host.next_chunk() else { return Ok(false) };
        let mut work = self.work.borrow_mut();
        work.forget_values();
        work.feed.load(chunk)?;
        Ok(true)
    }

    // --- writing

    /// Adds an op for the group in hand.
    #[inline]
    pub(crate) fn write(
        &self,
        operation: &'static str,
        code: Code,
        variable: Variable,
        payload: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<Place> {
        if self.work.borrow().ops.is_full() {
            self.apply()?;
        }
        let work = &mut *self.work.borrow_mut();
        let group = work.feed.group().ok_or_else(|| no_group(operation))?;
        work.ops.push(code, variable, group, payload)
    }

    /// Applies what is pending.
    pub(crate) fn apply(&self) -> Result<()> {
        let mut work = self.work.borrow_mut();
        if let Some(fault) = &work.fault {
            return Err(fault.repeated());
        }
        if work.ops.is_empty() {
            return Ok(());
        }
        let applied = self.host.apply(work.ops.bytes());
        let result = applied.map_err(|fault| {
            let error = fault.error.of_group(work.ops.group_of(fault.op));
            work.fault = Some(error.repeated());
            error
        });
        work.ops.clear();
        result
    }

    /// Called when a handler returned without an error: raises a fault whose error the author dropped.
    pub(crate) fn check(&self) -> Result<()> {
        if self.work.borrow().fault.is_some() { self.apply() } else { Ok(()) }
    }

    /// Reads the payload of an op that is still pending.
    #[inline]
    pub(crate) fn payload<R>(&self, place: Place, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.work.borrow().ops.payload(place).map(read)
    }

    /// Which pending ops these are; changes when they are applied.
    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        self.work.borrow().ops.generation()
    }

    // --- value states

    /// Reads a value, from what is known or from the host.
    #[inline]
    pub(crate) fn read_value<T>(&self, variable: Variable, read: impl FnOnce(&[u8]) -> Result<T>) -> Result<Option<T>> {
        let group = self.group("valueState.get")?;
        {
            let work = self.work.borrow();
            match work.values.get(variable as usize) {
                Some(Known::Absent) => return Ok(None),
                Some(Known::Prefetched(range)) => return read(work.feed.bytes(range.clone())?).map(Some),
                Some(Known::Fetched(bytes)) => return read(bytes).map(Some),
                Some(Known::Written(place)) => {
                    if let Some(bytes) = work.ops.payload(*place) {
                        return read(bytes).map(Some);
                    }
                }
                Some(Known::Unknown) | None => {}
            }
        }
        let Some(bytes) = self.host.get_value(variable, group)? else {
            self.work.borrow_mut().learn(variable, Known::Absent);
            return Ok(None);
        };
        let value = read(&bytes)?;
        self.work.borrow_mut().learn(variable, Known::Fetched(bytes));
        Ok(Some(value))
    }

    /// Whether there is a value.
    pub(crate) fn value_exists(&self, variable: Variable) -> Result<bool> {
        let group = self.group("valueState.exists")?;
        match self.work.borrow().values.get(variable as usize) {
            Some(Known::Absent) => return Ok(false),
            Some(Known::Prefetched(_) | Known::Fetched(_) | Known::Written(_)) => return Ok(true),
            Some(Known::Unknown) | None => {}
        }
        self.host.exists(variable, group)
    }

    /// Writes a value.
    #[inline]
    pub(crate) fn put_value(&self, variable: Variable, payload: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
        let place = self.write("valueState.update", Code::ValuePut, variable, payload)?;
        self.work.borrow_mut().learn(variable, Known::Written(place));
        Ok(())
    }

    /// Removes a value.
    pub(crate) fn clear_value(&self, variable: Variable) -> Result<()> {
        self.write("valueState.clear", Code::Clear, variable, |_| Ok(()))?;
        self.work.borrow_mut().learn(variable, Known::Absent);
        Ok(())
    }
}

impl Work {
    #[inline]
    fn enter_group(&mut self) -> Result<()> {
        let Self { feed, values, .. } = self;
        for known in values.iter_mut() {
            *known = Known::Unknown;
        }
        feed.enter_group(|variable, prefetched| {
            let known = match prefetched {
                Prefetched::Absent => Known::Absent,
                Prefetched::Present(range) => Known::Prefetched(range),
            };
            learn(values, variable, known);
        })?;
        panic::set_group(feed.group());
        Ok(())
    }

    fn leave_group(&mut self) {
        self.feed.leave_group();
        self.forget_values();
        panic::set_group(None);
    }

    fn forget_values(&mut self) {
        self.values.clear();
    }

    #[inline]
    fn learn(&mut self, variable: Variable, known: Known) {
        learn(&mut self.values, variable, known);
    }
}

#[inline]
fn learn(values: &mut Vec<Known>, variable: Variable, known: Known) {
    let at = variable as usize;
    if at >= values.len() {
        values.resize_with(at + 1, || Known::Unknown);
    }
    if let Some(slot) = values.get_mut(at) {
        *slot = known;
    }
}

/// Whether a variable has pending writes of the group in hand.
#[derive(Default)]
pub(crate) struct PendingWrites {
    /// Generation of the ops and group of the last write; generation 0 is none.
    last: Cell<(u32, Group)>,
}

impl PendingWrites {
    #[inline]
    pub(crate) fn note(&self, session: &Session, group: Group) {
        self.last.set((session.generation(), group));
    }

    /// Applies them, so that a read sees them.
    pub(crate) fn apply(&self, session: &Session, group: Group) -> Result<()> {
        if self.last.get() == (session.generation(), group) { session.apply() } else { Ok(()) }
    }
}

#[cold]
fn no_group(operation: &str) -> Error {
    Error::new(
        code::INVALID_HANDLE_STATE,
        format!(
            "`{operation}` needs a grouping key: it works in handle_input_rows, handle_expired_timer and handle_initial_state, not in init or close"
        ),
    )
}

#[cold]
fn cut_short() -> Error {
    Error::new("CONTRACT_BROKEN", "the host announced more rows of a group than it sent")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::TimerValues;
    use crate::memory::{Limits, Phase, State};
    use crate::row::to_packed;

    /// A session over two groups of one row each, in the phase where emitting is a fault.
    fn session() -> Rc<Session> {
        let limits = Limits { groups_per_chunk: 8, rows_per_chunk: 8, rows_per_page: 8 };
        let host = Host::new(State::default(), TimeMode::None, TimerValues::default(), limits);
        let row = |n: i64| {
            let mut bytes = Vec::new();
            to_packed(&n, &mut bytes).unwrap();
            bytes
        };
        host.open(Phase::InitialState, vec![(row(1), vec![row(10)]), (row(2), vec![row(20)])]);
        Session::new(host, TimeMode::None)
    }

    fn emit(session: &Session) {
        session.write("emit", Code::Emit, 0, |bytes| to_packed(&1i64, bytes)).unwrap();
    }

    #[test]
    fn a_fault_names_the_group_of_its_op_and_fails_the_call_even_if_it_is_dropped() {
        let session = session();
        assert!(session.next_group().unwrap());
        let first = session.group_in_hand();
        emit(&session);
        assert!(session.next_group().unwrap());
        assert_ne!(session.group_in_hand(), first);
        let fault = session.apply().unwrap_err();
        assert_eq!((fault.code(), fault.group()), (code::INVALID_HANDLE_STATE, first));
        let again = session.check().unwrap_err();
        assert_eq!((again.code(), again.group()), (fault.code(), first));
    }

    #[test]
    fn without_a_group_state_is_out_of_reach() {
        let session = session();
        assert_eq!(session.group("valueState.get").unwrap_err().code(), code::INVALID_HANDLE_STATE);
        while session.next_group().unwrap() {}
        assert_eq!(session.group("valueState.get").unwrap_err().code(), code::INVALID_HANDLE_STATE);
    }
}
