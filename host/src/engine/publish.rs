//! After the commit: sinks take the staged output, the state store takes the changes. All of it can be done again.

use std::sync::Arc;

use super::checkpoint::Checkpoint;
use super::commit::{Commit, SinkCommit, SinkRole, StagedAt};
use super::error::QueryError;
use super::faults;
use super::query::{Outlet, Query};
use super::setup::PendingStep;
use super::sink::{Ledger, Publication, Staged};
use crate::clock::Stopwatch;
use crate::log::RecordRef;
use crate::state::{Applied, Changes, Store};

/// Publishes a batch that has just been committed, and moves the query behind it. Gives the milliseconds that the state
/// store took.
pub(super) fn publish(query: &mut Query, commit: &Commit, at: RecordRef) -> Result<f64, QueryError> {
    for outlet in std::iter::once(&mut query.output).chain(&mut query.quarantine).chain(&mut query.dead_letters) {
        publish_to(&query.checkpoint, outlet, &query.query_id, commit)?;
    }
    let watch = Stopwatch::start();
    apply(query.store.as_ref(), commit)?;
    let apply_ms = watch.elapsed().as_secs_f64() * 1e3;
    for step in &mut query.steps {
        let due = Arc::make_mut(&mut step.due);
        for changes in &commit.changes {
            due.apply(changes)?;
        }
        due.refresh(query.store.as_ref())?;
        step.pending = PendingStep::default();
    }
    query.head.commit(&commit.header);
    query.pending_meta = Changes::default();
    query.keep_snapshots(commit, at)?;
    Ok(apply_ms)
}

/// Gives one batch to one sink. A batch without output is noted in the ledger with the next that has some.
pub(super) fn publish_to(
    checkpoint: &Checkpoint,
    outlet: &mut Outlet,
    query_id: &str,
    commit: &Commit,
) -> Result<(), QueryError> {
    let Some((index, part)) = part_of(commit, outlet.role) else { return Ok(()) };
    let staged = match &part.staged {
        StagedAt::Nowhere => return Ok(()),
        StagedAt::File(name) => Staged::File(checkpoint.staged_path(name)?),
        StagedAt::Record => {
            let bytes = commit.output.iter().find(|(at, _)| usize::from(*at) == index).map(|(_, bytes)| bytes.clone());
            Staged::Inline(bytes.unwrap_or_default())
        }
    };
    faults::point("publish.before-sink");
    let entry = ledger_entry(query_id, commit, part);
    outlet
        .sink
        .publish(&Publication { entry: &entry, staged: &staged })
        .map_err(|source| QueryError::Sink { sink_name: outlet.sink.describe(), source })?;
    faults::point("publish.after-sink");
    Ok(())
}

/// Gives one batch to the state store.
pub(super) fn apply(store: &dyn Store, commit: &Commit) -> Result<(), QueryError> {
    faults::point("apply.before");
    let applied = Applied { batch: Some(commit.header.batch_id), generation: commit.header.generation };
    store.apply(&commit.changes, applied)?;
    faults::point("apply.after");
    Ok(())
}

/// What a batch gave to the sink of a role, with its index among the batch's sinks.
pub(super) fn part_of(commit: &Commit, role: SinkRole) -> Option<(usize, &SinkCommit)> {
    commit.header.sinks.iter().enumerate().find(|(_, part)| part.role == role)
}

/// What a ledger says once the batch is published.
pub(super) fn ledger_entry(query_id: &str, commit: &Commit, part: &SinkCommit) -> Ledger {
    ledger_of(query_id, commit.header.generation, commit.header.batch_id, part)
}

/// What a ledger says once a batch is published.
pub(super) fn ledger_of(query_id: &str, generation: u32, batch_id: u64, part: &SinkCommit) -> Ledger {
    Ledger { query_id: query_id.to_owned(), generation, batch_id, digest: part.digest.clone() }
}
