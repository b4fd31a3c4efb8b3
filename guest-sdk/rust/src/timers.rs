//! Timers of the group in hand, and the times of the batch.
//!
//! The rules of a timer that fires (`wit/README.md`, "Timers") live here: its deletion is queued before its handler
//! runs, while the handler's list still shows it; a due timer that a handler deletes does not fire in this phase.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use crate::contract::{Group, TimeMode, TimerPage, TimerValues};
use crate::error::{Error, Result, code};
use crate::ops::Code;
use crate::session::{PendingWrites, Session};

/// Ops on timers name no variable.
const NO_VARIABLE: u32 = 0;

/// Timers of the grouping key whose handler runs, and the only clock there is.
///
/// A timer is identified by its expiry, in milliseconds since the epoch. It fires once, in the first batch whose time
/// (processing time or watermark, by the query's time mode) is not before its expiry. One registered in the past
/// fires in this batch, or in the next if it was registered by a timer's handler.
pub struct Timers {
    session: Rc<Session>,
    time: Cell<TimerValues>,
    pending: PendingWrites,
    firing: Cell<Option<i64>>,
    /// Those that handlers of the group in hand deleted in the timer phase.
    deleted: RefCell<BTreeSet<i64>>,
}

impl Timers {
    pub(crate) fn new(session: Rc<Session>) -> Self {
        Self {
            session,
            time: Cell::default(),
            pending: PendingWrites::default(),
            firing: Cell::new(None),
            deleted: RefCell::default(),
        }
    }

    /// The time of the batch, milliseconds since the epoch.
    pub fn processing_time_ms(&self) -> i64 {
        self.time.get().processing_time_ms
    }

    /// The watermark, milliseconds since the epoch; 0 until there is one.
    pub fn watermark_ms(&self) -> i64 {
        self.time.get().watermark_ms
    }

    /// Registers a timer; no effect if there is one at `expiry_ms`.
    pub fn register(&self, expiry_ms: i64) -> Result<()> {
        self.write("register_timer", Code::TimerRegister, expiry_ms)
    }

    /// Deletes a timer; no effect if there is none at `expiry_ms`. If it is due in this batch, it does not fire.
    pub fn delete(&self, expiry_ms: i64) -> Result<()> {
        self.write("delete_timer", Code::TimerDelete, expiry_ms)?;
        // Outside of the timer phase none was handed out, so the host looks at its own list.
        if self.firing.get().is_some() {
            self.deleted.borrow_mut().insert(expiry_ms);
        }
        Ok(())
    }

    /// The timers, earliest first, as they are now; the one that fires is among them. What is written while the
    /// iterator is read does not show in it.
    pub fn list(&self) -> Result<TimerIter<'_>> {
        let group = self.group("list_timers")?;
        self.pending.apply(&self.session, group)?;
        let first = self.session.host.list_timers(group)?;
        let firing = self.firing.get().filter(|expiry_ms| !self.deleted.borrow().contains(expiry_ms));
        Ok(TimerIter { timers: self, page: first, at: 0, firing })
    }

    fn write(&self, operation: &'static str, code: Code, expiry_ms: i64) -> Result<()> {
        let group = self.group(operation)?;
        self.session.write(operation, code, NO_VARIABLE, |bytes| {
            bytes.extend_from_slice(&expiry_ms.to_le_bytes());
            Ok(())
        })?;
        self.pending.note(&self.session, group);
        Ok(())
    }

    fn group(&self, operation: &'static str) -> Result<Group> {
        if self.session.time_mode == TimeMode::None {
            return Err(Error::new(
                code::INVALID_TIME_MODE,
                format!("`{operation}` needs a query with time mode processing-time or event-time; this one has none"),
            ));
        }
        self.session.group(operation)
    }

    // --- for the timer phase

    pub(crate) fn set_time(&self, time: TimerValues) {
        self.time.set(time);
    }

    /// A new group: nothing of it was deleted yet.
    pub(crate) fn begin_group(&self) {
        self.deleted.borrow_mut().clear();
    }

    /// Prepares the firing of a timer; false if a handler of its group deleted it in this phase.
    pub(crate) fn begin_firing(&self, expiry_ms: i64) -> Result<bool> {
        if self.deleted.borrow().contains(&expiry_ms) {
            return Ok(false);
        }
        self.write("delete_timer", Code::TimerDelete, expiry_ms)?;
        self.firing.set(Some(expiry_ms));
        Ok(true)
    }

    pub(crate) fn end_firing(&self) {
        self.firing.set(None);
    }
}

/// Expiries of timers, earliest first; ends after an error.
pub struct TimerIter<'a> {
    timers: &'a Timers,
    page: TimerPage,
    at: usize,
    /// The timer that fires, until its turn: its deletion is applied already, so the host may not list it.
    firing: Option<i64>,
}

impl Iterator for TimerIter<'_> {
    type Item = Result<i64>;

    fn next(&mut self) -> Option<Result<i64>> {
        let listed = match self.peek() {
            Ok(listed) => listed,
            Err(error) => {
                self.page = TimerPage { expiries_ms: Vec::new(), rest: None };
                self.firing = None;
                return Some(Err(error));
            }
        };
        let next = match (self.firing, listed) {
            (Some(firing), Some(listed)) => firing.min(listed),
            (firing, listed) => firing.or(listed)?,
        };
        // Registered anew, the timer that fires is listed too; it is one timer.
        if self.firing == Some(next) {
            self.firing = None;
        }
        if listed == Some(next) {
            self.at += 1;
        }
        Some(Ok(next))
    }
}

impl TimerIter<'_> {
    fn peek(&mut self) -> Result<Option<i64>> {
        loop {
            if let Some(expiry_ms) = self.page.expiries_ms.get(self.at) {
                return Ok(Some(*expiry_ms));
            }
            let Some(rest) = self.page.rest else { return Ok(None) };
            self.page = self.timers.session.host.next_timers(rest)?;
            self.at = 0;
        }
    }
}
