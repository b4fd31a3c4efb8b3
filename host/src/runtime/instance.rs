//! One instance of a component: made for one worker and one batch ([`Blank`]), asked for its plan ([`Instance`]), led
//! through the phases ([`OpenInstance`]), dropped.
//!
//! An instance that trapped or failed is never called again.

use std::sync::{Arc, OnceLock};

use wasmtime::{AsContextMut, Store, StoreContextMut};

use super::ahead::Ahead;
use super::bindings::StatefulProcessor;
use super::bindings::exports::tidemill::processor::handler::{self, Guest};
use super::bindings::tidemill::processor::types::Failure;
use super::convert;
use super::failure::{Refusal, at_key, guest_failure, out_of_memory, report, trap};
use super::host::{Batch, BatchPhase, Host, Stage, fuel_used, refill};
use super::processor::Ready;
use super::random::Place;
use crate::engine::operator::{Closed, GroupedRows, OperatorError, OperatorPlan, QueryInfo, Task, TimerValues, Worker};
use crate::record::RowLayout;
use crate::state::VariableSpec;

/// An instance of which no export has been called.
pub(super) struct Blank {
    store: Store<Host>,
    exports: StatefulProcessor,
}

impl Blank {
    /// Instantiates a component.
    pub(super) fn make(ready: &Ready, host: Host) -> Result<Self, OperatorError> {
        let mut store = Store::new(&ready.sandbox.engine, host);
        store.limiter(|host| &mut host.limiter);
        store.set_hostcall_fuel(ready.limits.host_call_bytes);
        let instantiated = refill(&mut store.as_context_mut()).and_then(|()| ready.component.instantiate(&mut store));
        let exports = instantiated.map_err(|error| report(error, "instantiation", store.data(), &ready.limits))?;
        Ok(Self { store, exports })
    }

    /// Whether it has called an import already.
    pub(super) fn has_asked(&self) -> bool {
        self.store.data().has_asked()
    }
}

/// What `init` answered and declared.
pub(super) struct Answer {
    pub(super) plan: handler::Plan,
    pub(super) variables: Vec<VariableSpec>,
    pub(super) dropped: Vec<String>,
}

/// An instance whose `init` has answered.
pub(super) struct Instance {
    store: Store<Host>,
    exports: StatefulProcessor,
    ready: Arc<Ready>,
}

impl Instance {
    /// Takes an instance that was made ahead, or makes one, and runs `init`; the answer is its plan, checked against the
    /// query.
    pub(super) fn start(
        ready: &Arc<Ready>,
        query: &QueryInfo,
        place: Place,
        time: TimerValues,
    ) -> Result<(Self, OperatorPlan), OperatorError> {
        let (instance, Answer { plan, variables, dropped }) = Self::ask(ready, query, place, time)?;
        let plan = convert::plan(query, plan, variables, dropped, &ready.limits)?;
        Ok((instance, plan))
    }

    /// As [`Instance::start`], with the answer as it is.
    pub(super) fn ask(
        ready: &Arc<Ready>,
        query: &QueryInfo,
        place: Place,
        time: TimerValues,
    ) -> Result<(Self, Answer), OperatorError> {
        let told = convert::query(query, place, time)?;
        let host = Host::new(ready, query, place, time);
        let Blank { store, exports } = match ready.ahead.take() {
            Some(mut blank) => {
                host.replace(blank.store.data_mut());
                blank
            }
            None => Blank::make(ready, host)?,
        };
        let mut instance = Self { store, exports, ready: Arc::clone(ready) };

        let plan = instance.call("init", |handler, store| handler.call_init(store, &told))?;
        let (variables, dropped) = match std::mem::replace(&mut instance.store.data_mut().stage, Stage::Planned) {
            Stage::Init(declarations) => declarations.into_parts(),
            _ => (Vec::new(), Vec::new()),
        };
        Ok((instance, Answer { plan, variables, dropped }))
    }

    /// Fuel, where it is metered, and memory that it has used so far.
    pub(super) fn used(&mut self) -> (Option<u64>, u64) {
        (fuel_used(&mut self.store.as_context_mut()), self.store.data().limiter.bytes() as u64)
    }

    /// Opens the batch of a task for an instance whose plan is `now`.
    pub(super) fn open(mut self, task: Task, now: &OperatorPlan) -> Result<OpenInstance, OperatorError> {
        if let Some(difference) = convert::difference(&task.plan, now) {
            let message = format!(
                "init answers otherwise than when the query was planned: {difference}; what it answers may depend on \
                 settings, modes and schemas, not on batch, time or seed"
            );
            return Err(trap("init", "PLAN_CHANGED", message, String::new(), self.store.data()));
        }
        let batch = Batch::new(now, task.query.time_mode, task.session, task.output, self.ready.limits.open_cursors)
            .map_err(unfit)?;
        self.store.data_mut().stage = Stage::Batch(Box::new(batch));
        let initial_state = now.initial_state.as_ref().map(RowLayout::new);
        let columns = RowLayout::new(&now.columns);
        Ok(OpenInstance { instance: Some(self), time: task.time, columns, initial_state, fuel: task.fuel })
    }

    /// Calls an export and sorts out how it ended.
    fn call<T>(
        &mut self,
        export: &'static str,
        call: impl FnOnce(&Guest, StoreContextMut<'_, Host>) -> wasmtime::Result<Result<T, Failure>>,
    ) -> Result<T, OperatorError> {
        let handler = self.exports.tidemill_processor_handler();
        let mut store = self.store.as_context_mut();
        let answered = refill(&mut store).and_then(|()| call(handler, store));
        let host = self.store.data();
        match answered {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(failure)) => {
                if let Some(lacking) = host.limiter.machine_lacks() {
                    return Err(out_of_memory(lacking));
                }
                let Failure { of, code, message, stack } = failure;
                host.log.finish();
                let at = at_key(of.and_then(|group| host.key_of(group)), host);
                Err(guest_failure(export, &code, &message, &stack, at))
            }
            Err(error) => Err(report(error, export, host, &self.ready.limits)),
        }
    }

    fn batch(&mut self) -> Result<&mut Batch, OperatorError> {
        match &mut self.store.data_mut().stage {
            Stage::Batch(batch) => Ok(batch),
            _ => Err(OperatorError::Host("the batch is not open".into())),
        }
    }
}

fn unfit(error: crate::record::SchemaError) -> OperatorError {
    OperatorError::Unfit { code: error.code(), message: error.to_string() }
}

/// A failure of the host before or after the guest ran; a limit of the state counts as the processor's.
fn outside_of_guest(refusal: Refusal, export: &'static str, instance: &Instance) -> OperatorError {
    report(refusal.into_trap(), export, instance.store.data(), &instance.ready.limits)
}

/// An instance in a batch. Gone after the first error.
pub(super) struct OpenInstance {
    instance: Option<Instance>,
    time: TimerValues,
    columns: RowLayout,
    initial_state: Option<RowLayout>,
    /// Where the fuel of one that is not closed is noted.
    fuel: Arc<OnceLock<u64>>,
}

impl OpenInstance {
    /// Runs a phase: opens the feed, and calls the export until the feed has nothing more.
    fn run(
        &mut self,
        phase: BatchPhase,
        open: impl FnOnce(&mut Batch) -> Result<(), Refusal>,
    ) -> Result<(), OperatorError> {
        // Put back only when all went well.
        let mut instance = self.instance.take().ok_or_else(gone)?;
        let export = phase.export();
        let time = convert::timer_values(self.time);

        let batch = instance.batch()?;
        batch.phase = phase;
        if let Err(refusal) = open(batch) {
            return Err(outside_of_guest(refusal, export, &instance));
        }
        loop {
            let Batch { feed, session, .. } = instance.batch()?;
            match feed.begin_call(session) {
                Ok(true) => {}
                Ok(false) => break,
                Err(refusal) => return Err(outside_of_guest(refusal, export, &instance)),
            }
            let answered = instance.call(export, |handler, store| match phase {
                BatchPhase::InitialState => handler.call_handle_initial_state(store, time),
                BatchPhase::InputRows => handler.call_handle_input_rows(store, time),
                BatchPhase::ExpiredTimers => handler.call_handle_expired_timer(store, time),
                BatchPhase::Close => handler.call_close(store),
            });
            if let Err(error) = answered {
                self.note_fuel(&mut instance);
                return Err(error);
            }
            if !instance.batch()?.feed.drained() {
                let message = "it answered before input.next had answered none; an SDK must pull all chunks".to_owned();
                return Err(trap(export, "INPUT_NOT_DRAINED", message, String::new(), instance.store.data()));
            }
        }
        self.instance = Some(instance);
        Ok(())
    }

    fn note_fuel(&self, instance: &mut Instance) {
        if let Some(fuel) = fuel_used(&mut instance.store.as_context_mut()) {
            self.fuel.get_or_init(|| fuel);
        }
    }
}

impl Drop for OpenInstance {
    fn drop(&mut self) {
        if let Some(mut instance) = self.instance.take() {
            self.note_fuel(&mut instance);
        }
    }
}

fn gone() -> OperatorError {
    OperatorError::Host("this worker has failed before and cannot go on".into())
}

impl Worker for OpenInstance {
    fn initial_state(&mut self, rows: GroupedRows) -> Result<(), OperatorError> {
        let Some(layout) = self.initial_state.clone() else {
            return Err(OperatorError::Host("rows of an initial state in a query without one".into()));
        };
        self.run(BatchPhase::InitialState, |batch| batch.feed.open_rows(rows, &layout))
    }

    fn input_rows(&mut self, rows: GroupedRows) -> Result<(), OperatorError> {
        let layout = self.columns.clone();
        self.run(BatchPhase::InputRows, |batch| batch.feed.open_rows(rows, &layout))
    }

    fn expired_timers(&mut self, threshold_ms: i64) -> Result<(), OperatorError> {
        self.run(BatchPhase::ExpiredTimers, |batch| {
            batch.session.open_due(threshold_ms)?;
            batch.feed.open_timers();
            Ok(())
        })
    }

    fn close(mut self: Box<Self>) -> Result<Closed, OperatorError> {
        let mut instance = self.instance.take().ok_or_else(gone)?;
        instance.batch()?.phase = BatchPhase::Close;
        instance.call(BatchPhase::Close.export(), |handler, store| handler.call_close(store))?;
        let fuel = fuel_used(&mut instance.store.as_context_mut());
        let Instance { store, ready, .. } = instance;
        let host = store.into_data();
        Ahead::wish(&ready);
        host.log.finish();
        let sandbox_bytes = host.limiter.bytes() as u64;
        match host.stage {
            Stage::Batch(batch) => {
                let input_digest = batch.feed.digest();
                Ok(Closed { session: batch.session, output: batch.output, input_digest, fuel, sandbox_bytes })
            }
            _ => Err(OperatorError::Host("the batch is not open".into())),
        }
    }
}
