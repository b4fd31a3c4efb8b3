//! The host as a native test sees it: the contract of `wit/world.wit` over plain maps, byte for byte.
//!
//! Written to be compared with, not to be fast. Breaches of the contract that a host answers with a trap are faults
//! here.

mod chunks;
mod state;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::codec::{read_u32, read_u64};
use crate::contract::{ApplyFault, Cursor, Group, Level, Page, Part, TimeMode, TimerPage, TimerValues, Variable};
use crate::error::{Error, Result, code};
use crate::ops::{Code, HEAD_BYTES};
pub(crate) use chunks::{Groups, Limits};
pub(crate) use state::{Key, Kind, State, Stored};

/// A name has at most so many characters.
const NAME_CHARACTERS_MAX: usize = 300;

/// Which export is being called.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Init,
    InitialState,
    Input,
    Timer,
    Close,
}

/// The host of one batch.
#[derive(Clone)]
pub(crate) struct Host(Rc<RefCell<Batch>>);

pub(crate) struct Batch {
    pub(crate) state: State,
    pub(crate) output: Vec<Vec<u8>>,
    phase: Phase,
    time_mode: TimeMode,
    time: TimerValues,
    limits: Limits,
    variables: Vec<Declared>,
    dropped: Vec<String>,
    groups: Groups,
    cursors: BTreeMap<Cursor, Read>,
    cursors_opened: Cursor,
}

struct Declared {
    name: String,
    kind: Kind,
    ttl_ms: Option<u64>,
}

/// What an open read has left.
enum Read {
    Rows(Vec<Vec<Vec<u8>>>),
    Timers(Vec<i64>),
}

impl Host {
    pub(crate) fn new(state: State, time_mode: TimeMode, time: TimerValues, limits: Limits) -> Self {
        Self(Rc::new(RefCell::new(Batch {
            state,
            output: Vec::new(),
            phase: Phase::Init,
            time_mode,
            time,
            limits,
            variables: Vec::new(),
            dropped: Vec::new(),
            groups: Groups::default(),
            cursors: BTreeMap::new(),
            cursors_opened: 0,
        })))
    }

    /// Opens a phase with what it feeds to the processor.
    pub(crate) fn open(&self, phase: Phase, groups: Vec<(Key, Vec<Vec<u8>>)>) {
        let mut batch = self.0.borrow_mut();
        batch.phase = phase;
        batch.groups = Groups::new(groups);
        batch.cursors.clear();
    }

    pub(crate) fn with<R>(&self, look: impl FnOnce(&mut Batch) -> R) -> R {
        look(&mut self.0.borrow_mut())
    }

    // --- the imports of a component

    pub(crate) fn next_chunk(&self) -> Option<Vec<u8>> {
        let batch = &mut *self.0.borrow_mut();
        let Batch { groups, state, variables, limits, time, .. } = batch;
        let values: Vec<_> = (0..).zip(variables.iter()).filter(|(_, declared)| declared.kind == Kind::Value).collect();
        groups.next_chunk(limits, &values.iter().map(|(variable, _)| *variable).collect::<Vec<_>>(), |key, at| {
            let (_, declared) = values.get(at)?;
            state.value(&declared.name, key, time.processing_time_ms).map(<[u8]>::to_vec)
        })
    }

    pub(crate) fn value_state(&self, name: &str, _value: &str, ttl_ms: Option<u64>) -> Result<Variable> {
        self.with(|batch| batch.declare(name, Kind::Value, ttl_ms))
    }

    pub(crate) fn list_state(&self, name: &str, _element: &str, ttl_ms: Option<u64>) -> Result<Variable> {
        self.with(|batch| batch.declare(name, Kind::List, ttl_ms))
    }

    pub(crate) fn map_state(&self, name: &str, _key: &str, _value: &str, ttl_ms: Option<u64>) -> Result<Variable> {
        self.with(|batch| batch.declare(name, Kind::Map, ttl_ms))
    }

    pub(crate) fn delete_if_exists(&self, name: &str) -> Result<()> {
        self.with(|batch| {
            batch.only_in_init("deleteIfExists")?;
            if batch.variables.iter().any(|declared| declared.name == name) {
                return Err(duplicate(name));
            }
            batch.dropped.push(name.to_owned());
            batch.state.drop_variable(name);
            Ok(())
        })
    }

    pub(crate) fn exists(&self, variable: Variable, group: Group) -> Result<bool> {
        self.with(|batch| {
            let now = batch.time.processing_time_ms;
            let (name, kind, key) = batch.resolve(variable, None, group)?;
            Ok(match kind {
                Kind::Value => batch.state.value(&name, &key, now).is_some(),
                Kind::List => batch.state.list(&name, &key, now).next().is_some(),
                Kind::Map => batch.state.map(&name, &key, now).next().is_some(),
            })
        })
    }

    pub(crate) fn get_value(&self, variable: Variable, group: Group) -> Result<Option<Vec<u8>>> {
        self.with(|batch| {
            let (name, _, key) = batch.resolve(variable, Some(Kind::Value), group)?;
            Ok(batch.state.value(&name, &key, batch.time.processing_time_ms).map(<[u8]>::to_vec))
        })
    }

    pub(crate) fn get_list(&self, variable: Variable, group: Group) -> Result<Page> {
        self.with(|batch| {
            let (name, _, key) = batch.resolve(variable, Some(Kind::List), group)?;
            let rows =
                batch.state.list(&name, &key, batch.time.processing_time_ms).map(|row| vec![row.to_vec()]).collect();
            Ok(batch.page(rows))
        })
    }

    pub(crate) fn get_map_value(&self, variable: Variable, group: Group, map_key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.with(|batch| {
            let (name, _, key) = batch.resolve(variable, Some(Kind::Map), group)?;
            let mut entries = batch.state.map(&name, &key, batch.time.processing_time_ms);
            Ok(entries.find(|(entry, _)| *entry == map_key).map(|(_, value)| value.to_vec()))
        })
    }

    pub(crate) fn contains_key(&self, variable: Variable, group: Group, map_key: &[u8]) -> Result<bool> {
        Ok(self.get_map_value(variable, group, map_key)?.is_some())
    }

    pub(crate) fn get_map(&self, variable: Variable, group: Group, part: Part) -> Result<Page> {
        self.with(|batch| {
            let (name, _, key) = batch.resolve(variable, Some(Kind::Map), group)?;
            let entries = batch.state.map(&name, &key, batch.time.processing_time_ms);
            let rows = entries
                .map(|(key, value)| match part {
                    Part::Keys => vec![key.to_vec()],
                    Part::Values => vec![value.to_vec()],
                    Part::Entries => vec![key.to_vec(), value.to_vec()],
                })
                .collect();
            Ok(batch.page(rows))
        })
    }

    pub(crate) fn next_page(&self, cursor: Cursor) -> Result<Page> {
        self.with(|batch| match batch.cursors.remove(&cursor) {
            Some(Read::Rows(rows)) => Ok(batch.page(rows)),
            _ => Err(broken("a cursor that is not open")),
        })
    }

    pub(crate) fn list_timers(&self, group: Group) -> Result<TimerPage> {
        self.with(|batch| {
            let key = batch.groups.key(group).ok_or_else(|| broken("a group that is not in the chunk"))?.clone();
            let expiries_ms = batch.state.timers(&key).collect();
            Ok(batch.timer_page(expiries_ms))
        })
    }

    pub(crate) fn next_timers(&self, cursor: Cursor) -> Result<TimerPage> {
        self.with(|batch| match batch.cursors.remove(&cursor) {
            Some(Read::Timers(expiries_ms)) => Ok(batch.timer_page(expiries_ms)),
            _ => Err(broken("a cursor that is not open")),
        })
    }

    pub(crate) fn apply(&self, ops: &[u8]) -> Result<(), ApplyFault> {
        self.with(|batch| {
            let (mut at, mut op) = (0, 0);
            while at < ops.len() {
                at = batch.apply_op(ops, at).map_err(|error| ApplyFault { op, error })?;
                op += 1;
            }
            Ok(())
        })
    }
}

impl Batch {
    fn declare(&mut self, name: &str, kind: Kind, ttl_ms: Option<u64>) -> Result<Variable> {
        self.only_in_init("getState")?;
        check_name(name)?;
        if self.variables.iter().any(|declared| declared.name == name)
            || self.dropped.iter().any(|dropped| dropped == name)
        {
            return Err(duplicate(name));
        }
        if ttl_ms.is_some() && self.time_mode != TimeMode::ProcessingTime {
            return Err(Error::new(
                "STATEFUL_PROCESSOR_INCORRECT_TIME_MODE_TO_ASSIGN_TTL",
                format!("`{name}` has a TTL, which needs time mode processing-time"),
            ));
        }
        self.state.declare(name, kind)?;
        self.variables.push(Declared { name: name.to_owned(), kind, ttl_ms });
        Ok((self.variables.len() - 1) as Variable)
    }

    fn only_in_init(&self, operation: &str) -> Result<()> {
        if self.phase == Phase::Init {
            return Ok(());
        }
        Err(Error::new(
            code::INVALID_HANDLE_STATE,
            format!("`{operation}` in phase {:?}: it works in init only", self.phase),
        ))
    }

    fn resolve(&self, variable: Variable, wanted: Option<Kind>, group: Group) -> Result<(String, Kind, Key)> {
        let declared = self.variables.get(variable as usize).ok_or_else(|| broken("an unknown variable"))?;
        if wanted.is_some_and(|kind| kind != declared.kind) {
            return Err(broken("a variable of another kind"));
        }
        let key = self.groups.key(group).ok_or_else(|| broken("a group that is not in the chunk"))?;
        Ok((declared.name.clone(), declared.kind, key.clone()))
    }

    /// The first rows of a read; the rest stays open. An item (a row, or an entry of two) is never cut.
    fn page(&mut self, mut items: Vec<Vec<Vec<u8>>>) -> Page {
        let rest = items.split_off(items.len().min(self.limits.rows_per_page));
        let mut rows = Vec::new();
        for row in items.iter().flatten() {
            chunks::push_row(row, 0, &mut rows);
        }
        let rest = if rest.is_empty() { None } else { Some(self.open_cursor(Read::Rows(rest))) };
        Page { rows, rest }
    }

    fn timer_page(&mut self, mut expiries_ms: Vec<i64>) -> TimerPage {
        let rest = expiries_ms.split_off(expiries_ms.len().min(self.limits.rows_per_page));
        let rest = if rest.is_empty() { None } else { Some(self.open_cursor(Read::Timers(rest))) };
        TimerPage { expiries_ms, rest }
    }

    fn open_cursor(&mut self, read: Read) -> Cursor {
        self.cursors_opened += 1;
        self.cursors.insert(self.cursors_opened, read);
        self.cursors_opened
    }

    /// Applies the op at `at` and answers where the next one begins.
    fn apply_op(&mut self, ops: &[u8], at: usize) -> Result<usize> {
        let [op, variable, group, length] =
            [read_u32(ops, at)?, read_u32(ops, at + 4)?, read_u32(ops, at + 8)?, read_u32(ops, at + 12)?];
        let start = at + HEAD_BYTES;
        let end = start + length as usize;
        let payload = ops.get(start..end).ok_or_else(|| broken("an op longer than the ops"))?;
        if op == Code::TimerRegister as u32 || op == Code::TimerDelete as u32 || op == Code::Emit as u32 {
            self.apply_plain(op, group, payload)?;
        } else {
            self.apply_to_variable(op, variable, group, payload)?;
        }
        Ok(end)
    }

    fn apply_plain(&mut self, op: u32, group: Group, payload: &[u8]) -> Result<()> {
        let key = self.groups.key(group).ok_or_else(|| broken("a group that is not in the chunk"))?.clone();
        if op == Code::Emit as u32 {
            if self.phase == Phase::InitialState {
                return Err(Error::new(code::INVALID_HANDLE_STATE, "`emit` in handle_initial_state"));
            }
            self.output.push(payload.to_vec());
            return Ok(());
        }
        let expiry_ms = read_u64(payload, 0)?.cast_signed();
        if op == Code::TimerRegister as u32 {
            self.state.register_timer(key, expiry_ms);
        } else {
            self.state.delete_timer(&key, expiry_ms);
        }
        Ok(())
    }

    fn apply_to_variable(&mut self, op: u32, variable: Variable, group: Group, payload: &[u8]) -> Result<()> {
        let wanted = match op {
            op if op == Code::ValuePut as u32 => Some(Kind::Value),
            op if op == Code::ListPut as u32 || op == Code::ListAppend as u32 => Some(Kind::List),
            op if op == Code::MapPut as u32 || op == Code::MapRemove as u32 => Some(Kind::Map),
            op if op == Code::Clear as u32 => None,
            _ => return Err(broken("an unknown op")),
        };
        let (name, _, key) = self.resolve(variable, wanted, group)?;
        let ttl_ms = self.variables.get(variable as usize).and_then(|declared| declared.ttl_ms);
        let now = self.time.processing_time_ms;
        let expiry_ms = ttl_ms.map(|ttl_ms| now.saturating_add_unsigned(ttl_ms));
        let stored = |row: &[u8]| Stored { row: row.to_vec(), expiry_ms };
        match wanted {
            None => self.state.clear(&name, &key),
            Some(Kind::Value) => self.state.put_value(&name, key, stored(payload)),
            Some(Kind::List) => {
                let mut elements = chunks::rows(payload)?.into_iter().map(stored).collect();
                if op == Code::ListPut as u32 {
                    self.state.clear(&name, &key);
                }
                self.state.append(&name, key, &mut elements);
            }
            Some(Kind::Map) if op == Code::MapRemove as u32 => self.state.remove_entry(&name, &key, payload),
            Some(Kind::Map) => {
                let key_length = read_u32(payload, 0)? as usize;
                let halves = payload.get(8..).and_then(|rest| rest.split_at_checked(key_length));
                let (entry, value) = halves.ok_or_else(|| broken("a map key longer than its op"))?;
                self.state.put_entry(&name, key, entry.to_vec(), stored(value));
            }
        }
        Ok(())
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.starts_with('$') {
        return Err(Error::new(
            "STATE_STORE_CANNOT_CREATE_COLUMN_FAMILY_WITH_RESERVED_CHARS",
            format!("`{name}` begins with `$`"),
        ));
    }
    let valid = !name.is_empty()
        && name.trim() == name
        && name != "default"
        && name.chars().count() <= NAME_CHARACTERS_MAX
        && !name.chars().any(char::is_control);
    if valid {
        Ok(())
    } else {
        Err(Error::new(
            "STATE_STORE_CANNOT_USE_COLUMN_FAMILY_WITH_INVALID_NAME",
            format!("`{name}` is no name of a state variable"),
        ))
    }
}

fn duplicate(name: &str) -> Error {
    Error::new(
        "STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED",
        format!("`{name}` is declared twice, or declared and deleted"),
    )
}

fn broken(what: &str) -> Error {
    Error::new("CONTRACT_BROKEN", what)
}

thread_local! {
    static LOG: RefCell<Vec<(Level, String)>> = const { RefCell::new(Vec::new()) };
}

/// Keeps a message for the test that runs on this thread.
pub(crate) fn log(level: Level, message: &str) {
    LOG.with_borrow_mut(|log| log.push((level, message.to_owned())));
}

/// The messages since the last call.
pub(crate) fn take_log() -> Vec<(Level, String)> {
    LOG.take()
}
