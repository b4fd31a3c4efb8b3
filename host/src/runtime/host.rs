//! What the host keeps beside a guest: the data of its store. Host functions see nothing else.

use std::collections::BTreeMap;
use std::fmt;

use wasmtime::StoreContextMut;

use super::chunk::Feed;
use super::declarations::Declarations;
use super::engine::Metering;
use super::failure::Refusal;
use super::limits::{Limiter, Limits};
use super::logging::{Log, Origin};
use super::processor::Ready;
use super::random::Place;
use super::wasi::Wasi;
use crate::engine::operator::{OperatorPlan, QueryInfo, Suspect, TimeMode, TimerValues};
use crate::engine::output::Output;
use crate::record::{RowLayout, SchemaError, key_layout, row_to_json};
use crate::state::{Cursor, GroupId, Session, VariableKind};

/// The data of one instance's store.
pub(super) struct Host {
    pub(super) limiter: Limiter,
    pub(super) meter: Meter,
    pub(super) log: Log,
    pub(super) stage: Stage,
    wasi: Wasi,
    /// It has called an import.
    asked: bool,
}

/// What the instance is for at the moment.
pub(super) enum Stage {
    /// `init` makes variables.
    Init(Declarations),
    /// `init` has answered; the batch is not open yet.
    Planned,
    /// The phases of a batch.
    Batch(Box<Batch>),
    /// The batch is in the hands of a host function. Guests cannot call anything meanwhile.
    Lent,
}

/// A batch while a guest works on it.
pub(super) struct Batch {
    pub(super) phase: BatchPhase,
    pub(super) time_mode: TimeMode,
    pub(super) session: Session,
    pub(super) output: Output,
    /// Layout of emitted rows.
    pub(super) output_row: RowLayout,
    pub(super) variables: Vec<Variable>,
    pub(super) feed: Feed,
    pub(super) cursors: Cursors,
    /// Layout of grouping keys.
    key: RowLayout,
}

/// The export that the guest is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchPhase {
    InitialState,
    InputRows,
    ExpiredTimers,
    Close,
}

impl BatchPhase {
    /// The export's name.
    pub(super) fn export(self) -> &'static str {
        match self {
            Self::InitialState => "handle-initial-state",
            Self::InputRows => "handle-input-rows",
            Self::ExpiredTimers => "handle-expired-timer",
            Self::Close => "close",
        }
    }
}

/// A state variable, made ready for checking rows.
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) kind: VariableKind,
    /// Layout of a map's keys.
    pub(super) key: Option<RowLayout>,
    pub(super) value: RowLayout,
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} state {:?}", self.kind.name(), self.name)
    }
}

impl Batch {
    pub(super) fn new(
        plan: &OperatorPlan,
        time_mode: TimeMode,
        session: Session,
        output: Output,
        open_cursors_max: usize,
    ) -> Result<Self, SchemaError> {
        let variable = |spec: &crate::state::VariableSpec| {
            Ok(Variable {
                name: spec.name.clone(),
                kind: spec.kind,
                key: spec.key.as_ref().map(key_layout).transpose()?,
                value: RowLayout::new(&spec.value),
            })
        };
        Ok(Self {
            phase: BatchPhase::InputRows,
            time_mode,
            session,
            output,
            output_row: RowLayout::new(&plan.output),
            variables: plan.variables.iter().map(variable).collect::<Result<_, SchemaError>>()?,
            feed: Feed::new(plan.prefetch.clone()),
            cursors: Cursors::new(open_cursors_max),
            key: key_layout(&plan.key)?,
        })
    }

    /// The group of an id that the guest names.
    pub(super) fn group(&self, id: u32) -> Result<GroupId, Refusal> {
        let unknown = || Refusal::violation(format!("group {id} is not in the chunk in hand"));
        self.feed.group(id).ok_or_else(unknown)
    }

    /// The variable of a number that the guest names, which must be of this kind.
    pub(super) fn variable(&self, number: u32, kind: VariableKind) -> Result<(usize, &Variable), Refusal> {
        let index = self.any_variable(number)?;
        match self.variables.get(index) {
            Some(variable) if variable.kind == kind => Ok((index, variable)),
            Some(variable) => Err(Refusal::violation(format!("{variable} was used as {} state", kind.name()))),
            None => Err(no_variable(number)),
        }
    }

    /// The variable of a number that the guest names, of any kind.
    pub(super) fn any_variable(&self, number: u32) -> Result<usize, Refusal> {
        let index = number as usize;
        if index < self.variables.len() { Ok(index) } else { Err(no_variable(number)) }
    }

    /// A grouping key for a report.
    fn suspect(&self, group: GroupId) -> Suspect {
        Suspect { key: self.session.key(group).row.to_vec(), shown: self.key_json(group) }
    }

    /// A grouping key as JSON, for people.
    pub(super) fn key_json(&self, group: GroupId) -> String {
        match row_to_json(&self.key, self.session.key(group).row) {
            Ok(key) => key.to_string(),
            Err(fault) => format!("(a key that cannot be shown: {fault})"),
        }
    }
}

fn no_variable(number: u32) -> Refusal {
    Refusal::violation(format!("there is no state variable {number}"))
}

impl Host {
    /// Of an instance that runs in a batch at this place and time.
    pub(super) fn new(ready: &Ready, query: &QueryInfo, place: Place, time: TimerValues) -> Self {
        let origin = Origin {
            query_id: query.query_id.clone(),
            step: query.step,
            batch_id: place.batch_id,
            key_group: place.key_group,
        };
        let stage = Stage::Init(Declarations::new(query.time_mode, ready.limits.schema_bytes));
        Self::at(ready, origin, place, time.processing_time_ms, stage)
    }

    /// Of an instance that waits for its batch.
    pub(super) fn of_no_batch(ready: &Ready) -> Self {
        let origin = Origin { query_id: String::new(), step: 0, batch_id: 0, key_group: 0 };
        let place = Place { query_seed: 0, batch_id: 0, step: 0, key_group: 0 };
        Self::at(ready, origin, place, 0, Stage::Planned)
    }

    fn at(ready: &Ready, origin: Origin, place: Place, time_ms: i64, stage: Stage) -> Self {
        let limits = &ready.limits;
        let log = Log::new(origin, limits);
        Self {
            limiter: Limiter::new(limits),
            meter: Meter::new(ready.sandbox.metering(), limits),
            wasi: Wasi::new(time_ms, place, log.clone(), limits.wasi_resources),
            log,
            stage,
            asked: false,
        }
    }

    /// Takes the place of another, except for what the instance has used so far.
    pub(super) fn replace(self, before: &mut Self) {
        let Self { limiter, meter, .. } = std::mem::replace(before, self);
        (before.limiter, before.meter) = (limiter, meter);
    }

    /// Whether the instance has called an import.
    pub(super) fn has_asked(&self) -> bool {
        self.asked
    }

    /// The virtual WASI, of which the guest wants something.
    pub(super) fn wasi(&mut self) -> &mut Wasi {
        self.asked = true;
        &mut self.wasi
    }

    /// The batch, in a phase that has groups.
    pub(super) fn batch(&mut self, operation: &str) -> Result<&mut Batch, Refusal> {
        self.asked = true;
        match &mut self.stage {
            Stage::Batch(batch) if batch.phase != BatchPhase::Close => Ok(batch),
            Stage::Batch(_) => Err(Refusal::wrong_phase(operation, "close")),
            Stage::Init(_) | Stage::Planned => Err(Refusal::wrong_phase(operation, "init")),
            Stage::Lent => Err(Refusal::violation("a call within a call")),
        }
    }

    /// As [`Host::batch`], and takes it out, so that it can be changed while guest memory is read.
    /// [`Host::give_back`] must follow.
    pub(super) fn lend(&mut self, operation: &str) -> Result<Box<Batch>, Refusal> {
        self.batch(operation)?;
        match std::mem::replace(&mut self.stage, Stage::Lent) {
            Stage::Batch(batch) => Ok(batch),
            _ => Err(Refusal::wrong_phase(operation, "init")),
        }
    }

    /// The other half of [`Host::lend`].
    pub(super) fn give_back(&mut self, batch: Box<Batch>) {
        self.stage = Stage::Batch(batch);
    }

    /// What `init` declares into.
    pub(super) fn declarations(&mut self, operation: &str) -> Result<&mut Declarations, Refusal> {
        match &mut self.stage {
            Stage::Init(declarations) => Ok(declarations),
            Stage::Batch(batch) => Err(Refusal::wrong_phase(operation, batch.phase.export())),
            Stage::Planned | Stage::Lent => Err(Refusal::wrong_phase(operation, "init")),
        }
    }

    /// The grouping key of a group that the guest names.
    pub(super) fn key_of(&self, id: u32) -> Option<Suspect> {
        let Stage::Batch(batch) = &self.stage else { return None };
        batch.feed.group(id).map(|group| batch.suspect(group))
    }

    /// The grouping keys that the guest has in hand.
    pub(super) fn keys_in_hand(&self) -> Vec<Suspect> {
        let Stage::Batch(batch) = &self.stage else { return Vec::new() };
        batch.feed.groups().map(|group| batch.suspect(group)).collect()
    }
}

/// Reads with further pages to come.
pub(super) struct Cursors {
    open: BTreeMap<u32, OpenCursor>,
    next_id: u32,
    open_max: usize,
}

/// One read.
pub(super) struct OpenCursor {
    /// The guest's id of the group.
    pub(super) group: u32,
    pub(super) rest: Rest,
}

/// What a read has not yet answered.
pub(super) enum Rest {
    Rows(Cursor),
    Timers(Vec<i64>),
}

impl Cursors {
    fn new(open_max: usize) -> Self {
        Self { open: BTreeMap::new(), next_id: 0, open_max }
    }

    /// Keeps a read. When there are too many, the oldest of another group goes: handlers of that group have most likely
    /// ended and left it half read.
    pub(super) fn keep(&mut self, cursor: OpenCursor) -> Result<u32, Refusal> {
        if self.open.len() >= self.open_max {
            let left = self.open.iter().find(|(_, open)| open.group != cursor.group).map(|(id, _)| *id);
            let limit = || {
                let max = self.open_max;
                let message =
                    format!("more than {max} lists or maps are being read at once; raise limits.sandbox.open_cursors");
                Refusal::trap("OPEN_CURSORS_EXCEEDED", message)
            };
            self.open.remove(&left.ok_or_else(limit)?);
        }
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        self.open.insert(id, cursor);
        Ok(id)
    }

    /// Takes a read that is to go on.
    pub(super) fn take(&mut self, id: u32) -> Result<OpenCursor, Refusal> {
        let closed = || {
            let message = "the read has ended: with its last page, its group or its chunk, or because too many were begun after it";
            Refusal::fault("CURSOR_NOT_OPEN", message)
        };
        self.open.remove(&id).ok_or_else(closed)
    }

    /// Puts a read back that has more pages.
    pub(super) fn put_back(&mut self, id: u32, cursor: OpenCursor) {
        self.open.insert(id, cursor);
    }

    /// Ends all reads but those of one group.
    pub(super) fn end_all_but(&mut self, group: Option<u32>) {
        self.open.retain(|_, cursor| Some(cursor.group) == group);
    }
}

/// How much a guest may still run and call before the next chunk.
pub(super) struct Meter {
    metering: Metering,
    chunk_epochs: u64,
    chunk_fuel: u64,
    chunk_host_calls: u32,
    host_calls_left: u32,
    /// Fuel given out and not yet known to be used.
    fuel_given: u64,
    fuel_used: u64,
}

/// Fuel of a call of a host function, and of 8 bytes that it handles: about what the guest would burn in that time.
const HOST_CALL_FUEL: u64 = 100;

impl Meter {
    pub(super) fn new(metering: Metering, limits: &Limits) -> Self {
        Self {
            metering,
            chunk_epochs: limits.chunk_epochs(),
            chunk_fuel: limits.chunk_fuel,
            chunk_host_calls: limits.chunk_host_calls,
            host_calls_left: limits.chunk_host_calls,
            fuel_given: 0,
            fuel_used: 0,
        }
    }
}

/// Starts the time, fuel and calls of a chunk anew.
pub(super) fn refill(store: &mut StoreContextMut<'_, Host>) -> wasmtime::Result<()> {
    let meter = &mut store.data_mut().meter;
    meter.host_calls_left = meter.chunk_host_calls;
    let (epochs, fuel) = (meter.chunk_epochs, meter.chunk_fuel);
    match meter.metering {
        Metering::Epoch => store.set_epoch_deadline(epochs),
        Metering::Fuel => {
            settle_fuel(store)?;
            store.set_fuel(fuel)?;
            store.data_mut().meter.fuel_given = fuel;
        }
    }
    Ok(())
}

/// Fuel used so far; None when it is not metered.
pub(super) fn fuel_used(store: &mut StoreContextMut<'_, Host>) -> Option<u64> {
    match store.data().meter.metering {
        Metering::Epoch => None,
        Metering::Fuel => {
            settle_fuel(store).ok()?;
            Some(store.data().meter.fuel_used)
        }
    }
}

fn settle_fuel(store: &mut StoreContextMut<'_, Host>) -> wasmtime::Result<()> {
    let left = store.get_fuel()?;
    let meter = &mut store.data_mut().meter;
    meter.fuel_used = meter.fuel_used.saturating_add(meter.fuel_given.saturating_sub(left));
    meter.fuel_given = left;
    Ok(())
}

/// Charges the guest for a call of a host function that handles so many bytes.
pub(super) fn charge(store: &mut StoreContextMut<'_, Host>, bytes: usize) -> wasmtime::Result<()> {
    let host = store.data_mut();
    host.asked = true;
    let meter = &mut host.meter;
    let Some(left) = meter.host_calls_left.checked_sub(1) else {
        let max = meter.chunk_host_calls;
        let message =
            format!("one chunk of rows took more than {max} calls of the host; raise limits.sandbox.chunk_host_calls");
        return Err(Refusal::trap("HOST_CALLS_EXCEEDED", message).into_trap());
    };
    meter.host_calls_left = left;
    if meter.metering == Metering::Fuel {
        let cost = HOST_CALL_FUEL + bytes as u64 / 8;
        let fuel = store.get_fuel()?.checked_sub(cost).ok_or(wasmtime::Trap::OutOfFuel)?;
        store.set_fuel(fuel)?;
    }
    Ok(())
}
