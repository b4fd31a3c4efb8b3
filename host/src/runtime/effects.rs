//! What a guest does: the ops of `effects.apply`, checked and applied in order.
//!
//! Framing is strict: what no SDK would write traps. Rows are validated against their schema before they are stored or
//! emitted, so nothing downstream needs to doubt them.

use super::failure::Refusal;
use super::host::{Batch, BatchPhase, Variable};
use crate::engine::operator::TimeMode;
use crate::engine::output;
use crate::record::{PackedRows, validate_key};
use crate::state::{GroupId, VariableKind};

const VALUE_PUT: u32 = 1;
const CLEAR: u32 = 2;
const LIST_PUT: u32 = 3;
const LIST_APPEND: u32 = 4;
const MAP_PUT: u32 = 5;
const MAP_REMOVE: u32 = 6;
const TIMER_REGISTER: u32 = 7;
const TIMER_DELETE: u32 = 8;
const EMIT: u32 = 9;

const HEAD_BYTES: usize = 16;

/// Why ops were not all applied.
#[derive(Debug)]
pub(super) struct Stopped {
    /// The op, from 0. Those before it have been applied.
    pub(super) op: u32,
    /// What was wrong with it.
    pub(super) refusal: Refusal,
}

/// Applies ops until the first that is refused.
pub(super) fn apply(batch: &mut Batch, ops: &[u8]) -> Result<(), Stopped> {
    let mut rest = ops;
    let mut number = 0;
    while !rest.is_empty() {
        let stopped = |refusal| Stopped { op: number, refusal: in_op(number, refusal) };
        let op = Op::read(&mut rest).map_err(stopped)?;
        op.apply(batch).map_err(stopped)?;
        number += 1;
    }
    Ok(())
}

struct Op<'a> {
    code: u32,
    variable: u32,
    group: u32,
    payload: &'a [u8],
}

impl<'a> Op<'a> {
    fn read(rest: &mut &'a [u8]) -> Result<Self, Refusal> {
        let (head, after) =
            rest.split_first_chunk::<HEAD_BYTES>().ok_or_else(|| Refusal::violation("the head of an op is cut off"))?;
        let [code, variable, group, length] = words(head);
        if !length.is_multiple_of(8) {
            return Err(Refusal::violation(format!("a payload of {length} bytes; it must be a multiple of 8")));
        }
        let (payload, after) = after.split_at_checked(length as usize).ok_or_else(|| {
            Refusal::violation(format!("a payload of {length} bytes, of which {} are there", after.len()))
        })?;
        *rest = after;
        Ok(Self { code, variable, group, payload })
    }

    fn apply(&self, batch: &mut Batch) -> Result<(), Refusal> {
        let group = batch.group(self.group)?;
        match self.code {
            VALUE_PUT => self.value_put(batch, group),
            CLEAR => self.clear(batch, group),
            LIST_PUT | LIST_APPEND => self.list_write(batch, group),
            MAP_PUT => self.map_put(batch, group),
            MAP_REMOVE => self.map_remove(batch, group),
            TIMER_REGISTER | TIMER_DELETE => self.timer(batch, group),
            EMIT => self.emit(batch),
            code => Err(Refusal::violation(format!("op code {code} is unknown"))),
        }
    }

    fn value_put(&self, batch: &mut Batch, group: GroupId) -> Result<(), Refusal> {
        let (index, variable) = batch.variable(self.variable, VariableKind::Value)?;
        variable.check_value(self.payload)?;
        Ok(batch.session.put_value(index, group, self.payload)?)
    }

    fn clear(&self, batch: &mut Batch, group: GroupId) -> Result<(), Refusal> {
        if !self.payload.is_empty() {
            return Err(Refusal::violation("clear has a payload"));
        }
        let index = batch.any_variable(self.variable)?;
        Ok(batch.session.clear(index, group)?)
    }

    fn list_write(&self, batch: &mut Batch, group: GroupId) -> Result<(), Refusal> {
        let (index, variable) = batch.variable(self.variable, VariableKind::List)?;
        if self.payload.is_empty() {
            return Err(Refusal::fault(
                "ILLEGAL_STATE_STORE_VALUE.EMPTY_LIST_VALUE",
                format!("list state {:?} cannot take an empty list; use clear to remove it", variable.name),
            ));
        }
        for row in PackedRows::new(self.payload) {
            variable.check_value(row.map_err(|error| Refusal::violation(error.to_string()))?)?;
        }
        let mut rows = PackedRows::new(self.payload).filter_map(Result::ok);
        match self.code {
            LIST_PUT => batch.session.list_put(index, group, &mut rows)?,
            _ => batch.session.list_append(index, group, &mut rows)?,
        }
        Ok(())
    }

    fn map_put(&self, batch: &mut Batch, group: GroupId) -> Result<(), Refusal> {
        let (index, variable) = batch.variable(self.variable, VariableKind::Map)?;
        let (head, rows) =
            self.payload.split_first_chunk::<8>().ok_or_else(|| Refusal::violation("map put without a key"))?;
        let length = u64::from_le_bytes(*head);
        let key_and_value = u32::try_from(length).ok().and_then(|length| rows.split_at_checked(length as usize));
        let Some((key, row)) = key_and_value.filter(|(key, _)| key.len().is_multiple_of(8)) else {
            return Err(Refusal::violation(format!("map put with a key of {length} bytes in {}", rows.len())));
        };
        variable.check_key(key)?;
        variable.check_value(row)?;
        Ok(batch.session.map_put(index, group, key, row)?)
    }

    fn map_remove(&self, batch: &mut Batch, group: GroupId) -> Result<(), Refusal> {
        let (index, variable) = batch.variable(self.variable, VariableKind::Map)?;
        variable.check_key(self.payload)?;
        Ok(batch.session.map_remove(index, group, self.payload)?)
    }

    fn timer(&self, batch: &mut Batch, group: GroupId) -> Result<(), Refusal> {
        self.check_no_variable()?;
        let expiry_ms: [u8; 8] = self
            .payload
            .try_into()
            .map_err(|_| Refusal::violation(format!("a timer of {} bytes; it has 8", self.payload.len())))?;
        let expiry_ms = i64::from_le_bytes(expiry_ms);
        batch.use_timers()?;
        match self.code {
            TIMER_REGISTER => batch.session.register_timer(group, expiry_ms)?,
            _ => batch.session.delete_timer(group, expiry_ms)?,
        }
        Ok(())
    }

    fn emit(&self, batch: &mut Batch) -> Result<(), Refusal> {
        self.check_no_variable()?;
        let phase = match batch.phase {
            BatchPhase::InputRows => output::Phase::Input,
            BatchPhase::ExpiredTimers => output::Phase::Timers,
            BatchPhase::InitialState | BatchPhase::Close => {
                return Err(Refusal::wrong_phase("emit", batch.phase.export()));
            }
        };
        batch.output_row.validate(self.payload).map_err(|fault| Refusal::bad_row(&fault, &"emitted row"))?;
        Ok(batch.output.push(phase, self.payload)?)
    }

    fn check_no_variable(&self) -> Result<(), Refusal> {
        match self.variable {
            0 => Ok(()),
            variable => Err(Refusal::violation(format!("op code {} has no variable, {variable} is given", self.code))),
        }
    }
}

impl Variable {
    /// Checks a value, a list's element or a map's value.
    fn check_value(&self, row: &[u8]) -> Result<(), Refusal> {
        self.value.validate(row).map_err(|fault| Refusal::bad_row(&fault, self))
    }

    /// Checks the key of an entry.
    pub(super) fn check_key(&self, row: &[u8]) -> Result<(), Refusal> {
        let key = self.key.as_ref().ok_or_else(|| Refusal::violation(format!("{self} has no keys")))?;
        validate_key(key, row).map_err(|fault| Refusal::bad_row(&fault, &format_args!("key of {self}")))
    }
}

impl Batch {
    /// Timers need a time mode that moves them.
    pub(super) fn use_timers(&mut self) -> Result<(), Refusal> {
        self.feed.use_timers();
        match self.time_mode {
            TimeMode::None => Err(Refusal::fault(
                "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_TIME_MODE",
                "timers need a query in time mode processing-time or event-time; this one has none",
            )),
            TimeMode::ProcessingTime | TimeMode::EventTime => Ok(()),
        }
    }
}

/// Names the op in what only the maker of an SDK will read; a fault has its number apart.
fn in_op(number: u32, refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Trap(mut violation) => {
            violation.message = format!("op {number} of effects.apply: {}", violation.message);
            Refusal::Trap(violation)
        }
        other => other,
    }
}

fn words(head: &[u8; HEAD_BYTES]) -> [u32; 4] {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *head;
    [[a, b, c, d], [e, f, g, h], [i, j, k, l], [m, n, o, p]].map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests;
