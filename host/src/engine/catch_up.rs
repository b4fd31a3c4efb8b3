//! A sink that lags behind the log is brought up to it, from staged bytes, without running the processor.

use super::checkpoint::Checkpoint;
use super::commit::{SinkRole, StagedAt};
use super::error::QueryError;
use super::history::History;
use super::publish::publish_to;
use super::query::Outlet;
use super::rollback::withdrawal;
use super::sink::{Ledger, Published, SinkError};

/// How the last run ended, as far as the state store can tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastRun {
    /// Everything committed was published.
    Clean,
    /// The last batch may not have been published.
    Cut,
}

/// Takes the sink for the query and publishes what it lacks of what was given to it; answers with the number of batches.
/// What went to a sink before this one stays there.
///
/// # Errors
/// `SINK_DIVERGED`, `SINK_PENDING`, `SINK_OF_ANOTHER_QUERY`, a sink that cannot be written.
pub(super) fn catch_up(
    checkpoint: &Checkpoint,
    outlet: &mut Outlet,
    query_id: &str,
    history: &History,
    last_run: LastRun,
) -> Result<u64, QueryError> {
    let sink_name = outlet.sink.describe();
    let failed = |source| QueryError::Sink { sink_name: sink_name.clone(), source };
    outlet.sink.open(query_id, outlet.layout.schema()).map_err(failed)?;
    refuse_pending(history, outlet.role, &sink_name, last_run)?;
    for rollback in &history.rollbacks {
        let withdrawal = withdrawal(query_id, history, rollback, outlet.role, &sink_name);
        outlet.sink.withdraw(&withdrawal).map_err(failed)?;
    }
    let from = match outlet.sink.published().map_err(failed)? {
        Published::UpTo(ledger) => {
            check(&ledger, history, outlet.role).map_err(failed)?;
            Some(ledger.batch_id)
        }
        Published::Nothing => {
            nothing_is_missing(history, outlet.role, &sink_name).map_err(failed)?;
            None
        }
        // Such a sink may see the last batch twice, never an earlier one: no batch commits while one is unpublished.
        Published::Unknown => match last_run {
            LastRun::Clean => return Ok(0),
            LastRun::Cut => history.head.last_batch.and_then(|last| last.checked_sub(1)),
        },
    };
    let mut count = 0;
    for commit in history.commits_for(outlet.role, &sink_name, from) {
        publish_to(checkpoint, outlet, query_id, &commit?)?;
        count += 1;
    }
    Ok(count)
}

/// A query goes on with another sink, or with none, only if the one before has everything. Only the last batch may be
/// missing there, since no batch commits while one is unpublished.
///
/// # Errors
/// `SINK_PENDING`.
pub(super) fn refuse_pending(
    history: &History,
    role: SinkRole,
    now: &str,
    last_run: LastRun,
) -> Result<(), QueryError> {
    let Some(last) = history.last.as_ref().filter(|_| last_run == LastRun::Cut) else { return Ok(()) };
    match last.sink(role) {
        // What the query gave that this one was forked from is not missed.
        Some(_) if history.forked_after >= Some(last.batch_id) => Ok(()),
        Some(part) if part.sink != now && part.staged != StagedAt::Nowhere => {
            Err(QueryError::SinkPending { batch_id: last.batch_id, before: part.sink.clone(), now: now.to_owned() })
        }
        _ => Ok(()),
    }
}

/// A ledger must not be ahead of the log, nor speak of other bytes than it.
fn check(ledger: &Ledger, history: &History, role: SinkRole) -> Result<(), SinkError> {
    let head = (history.head.generation, history.head.last_batch);
    if (ledger.generation, Some(ledger.batch_id)) > head {
        return Err(diverged(format!(
            "it has batch {} of generation {}, but the log of this checkpoint ends at batch {} of generation {}. Is this \
             an older copy of the checkpoint? Use the newest one, or another sink.",
            ledger.batch_id,
            ledger.generation,
            head.1.map_or_else(|| "(none)".to_owned(), |batch| batch.to_string()),
            head.0,
        )));
    }
    let recorded = history.output_digest(ledger.batch_id, role);
    if recorded.is_some_and(|digest| digest != ledger.digest) {
        return Err(diverged(format!(
            "its batch {} holds other rows than the log says; another copy of this checkpoint may have written to it. Use \
             another sink, or the other copy.",
            ledger.batch_id
        )));
    }
    Ok(())
}

/// A sink without a ledger must be one that nothing has been published to.
fn nothing_is_missing(history: &History, role: SinkRole, sink: &str) -> Result<(), SinkError> {
    match history.rows_before_retention(role, sink) {
        0 => Ok(()),
        rows => Err(diverged(format!(
            "its ledger is gone, but {rows} rows were published to it in batches that the log no longer holds. Restore the \
             folder with its hidden files, or use another sink."
        ))),
    }
}

fn diverged(message: String) -> SinkError {
    SinkError { code: "SINK_DIVERGED", message, source: None }
}
