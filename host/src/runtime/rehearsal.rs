//! `init` on a throw-away instance, to see what a component answers and takes before any query runs it.

use super::instance::{Answer, Instance};
use super::processor::Processor;
use super::random::Place;
use crate::engine::operator::{OperatorError, QueryInfo, TimerValues};
use crate::state::VariableSpec;

/// What `init` answered, as it stands, and what it took. Schemas are DDL as the guest wrote it, bounded by
/// `limits.host_call_bytes`.
#[derive(Debug, Clone, PartialEq)]
pub struct Rehearsed {
    /// Columns of emitted rows.
    pub output: String,
    /// Input columns that it wants; None: all.
    pub columns: Option<String>,
    /// Columns of the initial state that it wants; None: all.
    pub initial_state: Option<String>,
    /// The grouping key as it wants it; None: as it is.
    pub key: Option<String>,
    /// State variables in order of declaration.
    pub variables: Vec<VariableSpec>,
    /// State variables of earlier versions that it drops.
    pub dropped_variables: Vec<String>,
    /// Fuel burnt by instantiation and `init`, where it is metered.
    pub fuel: Option<u64>,
    /// Linear memory and tables, in bytes.
    pub memory_bytes: u64,
}

impl Processor {
    /// Runs `init` once, without checking the answer against the query.
    ///
    /// # Errors
    /// What `init` failed with, a trap, a limit.
    pub fn rehearse(&self, query: &QueryInfo) -> Result<Rehearsed, OperatorError> {
        let place = Place { query_seed: query.seed, batch_id: 0, step: query.step, key_group: 0 };
        let time = TimerValues { processing_time_ms: 0, watermark_ms: 0 };
        let (mut instance, Answer { plan, variables, dropped }) = Instance::ask(&self.ready, query, place, time)?;
        let (fuel, memory_bytes) = instance.used();
        Ok(Rehearsed {
            output: plan.output,
            columns: plan.columns,
            initial_state: plan.initial_state,
            key: plan.key,
            variables,
            dropped_variables: dropped,
            fuel,
            memory_bytes,
        })
    }
}
