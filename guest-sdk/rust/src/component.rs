//! The host as a component sees it: the imports of `wit/world.wit`. Exists on `wasm32` only; the native twin is
//! [`crate::memory`].

use crate::contract::{ApplyFault, Cursor, Group, Level, Page, Part, TimerPage, Variable};
use crate::contract::{Failure, OutputMode, Plan, Query, TimeMode, TimerValues};
use crate::error::{Error, Result};
use crate::instance::Instance;
use crate::panic;
use crate::processor::{StatefulProcessor, StatefulProcessorWithInitialState};
use bindings::exports::tidemill::processor::handler as export;
use bindings::tidemill::processor as wit;

#[doc(hidden)]
#[allow(
    unsafe_code,
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    clippy::restriction,
    reason = "generated"
)]
pub mod bindings {
    wit_bindgen::generate!({
        world: "stateful-processor",
        path: "../../wit",
        pub_export_macro: true,
        export_macro_name: "export_world",
        default_bindings_module: "::tidemill::component::bindings",
    });
}

/// The host. All of its state is on its side.
pub(crate) struct Host;

impl Host {
    pub(crate) fn next_chunk(&self) -> Option<Vec<u8>> {
        wit::input::next()
    }

    pub(crate) fn value_state(&self, name: &str, value: &str, ttl_ms: Option<u64>) -> Result<Variable> {
        wit::state::get_value_state(name, value, ttl_ms).map_err(fault)
    }

    pub(crate) fn list_state(&self, name: &str, element: &str, ttl_ms: Option<u64>) -> Result<Variable> {
        wit::state::get_list_state(name, element, ttl_ms).map_err(fault)
    }

    pub(crate) fn map_state(&self, name: &str, key: &str, value: &str, ttl_ms: Option<u64>) -> Result<Variable> {
        wit::state::get_map_state(name, key, value, ttl_ms).map_err(fault)
    }

    pub(crate) fn delete_if_exists(&self, name: &str) -> Result<()> {
        wit::state::delete_if_exists(name).map_err(fault)
    }

    pub(crate) fn exists(&self, variable: Variable, group: Group) -> Result<bool> {
        wit::state::exists(variable, group).map_err(fault)
    }

    pub(crate) fn get_value(&self, variable: Variable, group: Group) -> Result<Option<Vec<u8>>> {
        wit::state::get_value(variable, group).map_err(fault)
    }

    pub(crate) fn get_list(&self, variable: Variable, group: Group) -> Result<Page> {
        wit::state::get_list(variable, group).map(Into::into).map_err(fault)
    }

    pub(crate) fn get_map_value(&self, variable: Variable, group: Group, key: &[u8]) -> Result<Option<Vec<u8>>> {
        wit::state::get_map_value(variable, group, key).map_err(fault)
    }

    pub(crate) fn contains_key(&self, variable: Variable, group: Group, key: &[u8]) -> Result<bool> {
        wit::state::contains_key(variable, group, key).map_err(fault)
    }

    pub(crate) fn get_map(&self, variable: Variable, group: Group, part: Part) -> Result<Page> {
        let part = match part {
            Part::Keys => wit::state::Part::Keys,
            Part::Values => wit::state::Part::Values,
            Part::Entries => wit::state::Part::Entries,
        };
        wit::state::get_map(variable, group, part).map(Into::into).map_err(fault)
    }

    pub(crate) fn next_page(&self, cursor: Cursor) -> Result<Page> {
        wit::state::next_page(cursor).map(Into::into).map_err(fault)
    }

    pub(crate) fn list_timers(&self, group: Group) -> Result<TimerPage> {
        wit::timers::list_timers(group).map(Into::into).map_err(fault)
    }

    pub(crate) fn next_timers(&self, cursor: Cursor) -> Result<TimerPage> {
        wit::timers::next_timers(cursor).map(Into::into).map_err(fault)
    }

    pub(crate) fn apply(&self, ops: &[u8]) -> Result<(), ApplyFault> {
        wit::effects::apply(ops)
            .map_err(|fault| ApplyFault { op: fault.op, error: Error::new(fault.code, fault.message) })
    }
}

/// Hands a message to the log of the host.
pub fn log(level: Level, message: &str) {
    use wit::logging::Level as L;
    let level = match level {
        Level::Trace => L::Trace,
        Level::Debug => L::Debug,
        Level::Info => L::Info,
        Level::Warn => L::Warn,
        Level::Error => L::Error,
    };
    wit::logging::log(level, message);
}

// No `From`: generated faults are `std::error::Error`s, whose conversion would lose the code.
fn fault(fault: wit::types::Fault) -> Error {
    Error::new(fault.code, fault.message)
}

impl From<wit::state::Page> for Page {
    fn from(page: wit::state::Page) -> Self {
        Self { rows: page.rows, rest: page.rest }
    }
}

impl From<wit::timers::TimerPage> for TimerPage {
    fn from(page: wit::timers::TimerPage) -> Self {
        Self { expiries_ms: page.expiries_ms, rest: page.rest }
    }
}

impl From<export::Query> for Query {
    fn from(query: export::Query) -> Self {
        Self {
            query_id: query.query_id,
            run_id: query.run_id,
            batch_id: query.batch_id,
            time_mode: match query.time_mode {
                wit::types::TimeMode::None => TimeMode::None,
                wit::types::TimeMode::ProcessingTime => TimeMode::ProcessingTime,
                wit::types::TimeMode::EventTime => TimeMode::EventTime,
            },
            output_mode: match query.output_mode {
                wit::types::OutputMode::Append => OutputMode::Append,
                wit::types::OutputMode::Update => OutputMode::Update,
            },
            key: query.key,
            input: query.input,
            initial_state: query.initial_state,
            parameters: query.parameters,
        }
    }
}

impl From<Plan> for export::Plan {
    fn from(plan: Plan) -> Self {
        Self {
            output: plan.output,
            columns: Some(plan.columns),
            initial_state: plan.initial_state,
            key: Some(plan.key),
            // The host knows best which values are worth sending along.
            prefetch: None,
        }
    }
}

impl From<wit::types::TimerValues> for TimerValues {
    fn from(time: wit::types::TimerValues) -> Self {
        Self { processing_time_ms: time.processing_time_ms, watermark_ms: time.watermark_ms }
    }
}

impl From<Failure> for wit::types::Failure {
    fn from(failure: Failure) -> Self {
        Self { of: failure.of, code: failure.code, message: failure.message, stack: String::new() }
    }
}

/// `init` of a processor that takes no initial state.
#[doc(hidden)]
pub fn init<P: StatefulProcessor>(query: export::Query) -> Result<(Instance<P>, export::Plan), export::Failure> {
    panic::install_hook();
    started(Instance::init(Host, query.into()))
}

/// `init` of a processor that takes an initial state.
#[doc(hidden)]
pub fn init_with_initial_state<P: StatefulProcessorWithInitialState>(
    query: export::Query,
) -> Result<(Instance<P>, export::Plan), export::Failure> {
    panic::install_hook();
    started(Instance::init_with_initial_state(Host, query.into()))
}

fn started<P: StatefulProcessor>(
    made: Result<(Instance<P>, Plan), Failure>,
) -> Result<(Instance<P>, export::Plan), export::Failure> {
    match made {
        Ok((instance, plan)) => Ok((instance, plan.into())),
        Err(failure) => Err(failure.into()),
    }
}

/// A phase was called before `init`, or after one that failed.
#[doc(hidden)]
#[cold]
pub fn not_initialised() -> export::Failure {
    Failure::new(&Error::new("STATE_STORE_HANDLE_NOT_INITIALIZED", "`init` has not made the processor"), None).into()
}
