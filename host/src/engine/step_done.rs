//! What one step did in a batch: its workers' parts, put together in range order.

use super::commit::WorkerCommit;
use super::dead_letters::StepLetters;
use super::metrics::Counted;
use super::output::Output;
use super::pipeline::Done;
use crate::state::Changes;

/// What one step did in a batch.
#[derive(Debug, Default)]
pub(super) struct StepDone {
    /// Rows that its workers were given.
    pub(super) rows_in: u64,
    /// Rows dropped because they came too late.
    pub(super) late: u64,
    /// Latest event time among the rows of each batch of its input, late ones included, in microseconds.
    pub(super) event_time_max_us: Vec<Option<i64>>,
    /// The workers that had something to do.
    pub(super) workers: Vec<WorkerCommit>,
    /// State changes of each.
    pub(super) changes: Vec<Changes>,
    /// Counts and times of all.
    pub(super) counted: Counted,
    /// What they emitted, until it is handed over or staged.
    pub(super) outputs: Vec<Output>,
    /// Rows emitted.
    pub(super) rows_out: u64,
    /// Those of them that the next step does not take.
    pub(super) rows_refused: u64,
    /// XXH3-128 of the packed emitted rows, in hex.
    pub(super) output_digest: String,
    /// What it did not process.
    pub(super) dead: StepLetters,
}

impl StepDone {
    /// Of the workers' parts; what was routed and what became of the output is not known yet.
    pub(super) fn of(workers: Vec<Done>) -> Self {
        let mut done = Self::default();
        for worker in workers {
            done.workers.push(WorkerCommit {
                key_groups: worker.key_groups,
                input_digest: worker.input_digest.map(|digest| format!("{digest:032x}")),
            });
            done.changes.push(worker.changes);
            done.counted.add(&worker.counted);
            done.outputs.extend(worker.output);
        }
        done
    }
}
