//! Going back to an earlier batch: the query then goes on from that batch's state, position and time, and the batches
//! after it no longer count.
//!
//! The steps: the state at the batch becomes a snapshot of the next generation, durably; one synced record in the log makes
//! the rollback happen; then sinks take back what the batches published. The last step is done again, by each start of the
//! query and by the same rollback given again, until the sink's ledger shows the new generation. Batch ids are never used
//! twice: the next batch takes the id after the highest ever committed.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::checkpoint::{Check, Checkpoint, SnapshotName};
use super::commit::{CommitHeader, SinkRole, StagedAt};
use super::error::QueryError;
use super::faults;
use super::head::Head;
use super::history::{History, Moment, Retained};
use super::publish::ledger_of;
use super::rebuild::{self, Prefer};
use super::sink::{Sink, Trace, Undo, Withdrawal};
use crate::disk::Disk;
use crate::state::{Applied, Store};

/// Version of the record below. A newer one is refused.
pub const ROLLBACK_FORMAT: u32 = 1;

/// The record of a rollback.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rollback {
    /// [`ROLLBACK_FORMAT`].
    pub format: u32,
    /// Version of the host that wrote it.
    pub written_by: String,
    /// The generation that begins with it.
    pub generation: u32,
    /// The batch that the query stands after.
    pub to: u64,
    /// The last batch before the rollback; those from `to` up to it are taken back.
    pub last_batch: u64,
    /// What becomes of what they published.
    pub published: PublishedRows,
    /// Where the query stands.
    pub head: Head,
    /// The batch `to`: its record need not be retained as long as this one.
    pub batch: CommitHeader,
}

/// What becomes of rows that were published by batches that are taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublishedRows {
    /// Sinks take them back; one that cannot is a reason not to roll back.
    Withdraw,
    /// They stay where they are.
    Keep,
}

/// Whether to do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Say what would happen, and change nothing.
    DryRun,
    /// Do it.
    Perform,
}

/// Opens the sink that a record of the log names; None: it is none that can be opened by its name.
pub type OpenSink<'a> = &'a dyn Fn(&str) -> Option<Box<dyn Sink>>;

/// What a rollback did or would do.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RolledBack {
    /// The batch that the query stands after.
    pub to: u64,
    /// The generation that begins.
    pub generation: u32,
    /// The batches that are taken back.
    pub superseded: Vec<u64>,
    /// The id that the next batch takes.
    pub next_batch: u64,
    /// What they published.
    pub sinks: Vec<SinkRolledBack>,
    /// What is read again, by source.
    pub sources: Vec<SourceRolledBack>,
}

/// What a rollback does to one sink.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SinkRolledBack {
    /// What it is for.
    pub role: SinkRole,
    /// The sink, for people.
    pub sink: String,
    /// What becomes of its rows.
    pub published: PublishedRows,
    /// Batches that gave it rows.
    pub batches: Vec<u64>,
    /// Rows that they gave it.
    pub rows: u64,
    /// Where these rows are to be seen, e.g. files.
    pub places: Vec<String>,
}

/// What a rollback does to one source.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceRolledBack {
    /// The source, for people.
    pub source: String,
    /// Rows that come again.
    pub rows: u64,
}

/// Takes the query back to a batch.
///
/// # Errors
/// `ROLLBACK_BATCH_UNAVAILABLE`, `ROLLBACK_NOTHING_TO_DO`, `ROLLBACK_SINK_CANNOT_FOLLOW`: nothing was changed then.
/// `CHECKPOINT_IN_USE` while the query runs; a checkpoint or sink that cannot be read or written.
pub fn roll_back(
    disk: Arc<dyn Disk>,
    path: &Path,
    to: u64,
    published: PublishedRows,
    mode: Mode,
    open_sink: OpenSink<'_>,
) -> Result<RolledBack, QueryError> {
    let (checkpoint, log, history) = match mode {
        Mode::DryRun => {
            let checkpoint = Checkpoint::open_existing(disk, path)?;
            let history = History::view(&checkpoint)?;
            (checkpoint, None, history)
        }
        Mode::Perform => {
            let checkpoint = Checkpoint::open_stopped(disk, path)?;
            let (log, history) = History::open(&checkpoint)?;
            (checkpoint, Some(log), history)
        }
    };
    let rollback = match history.rollbacks.last().filter(|_| history.ends_with_rollback()) {
        Some(last) if last.to == to => last.clone(),
        _ => plan(&history, to, published)?,
    };
    let query_id = &checkpoint.metadata().query_id;
    let mut undoing = Undoing::of(&history, &rollback, query_id, open_sink)?;
    if let Some(mut log) = log {
        if rollback.generation > history.head.generation {
            undoing.refuse_if_sinks_cannot_follow(&rollback)?;
            let name = SnapshotName { generation: rollback.generation, batch_id: rollback.last_batch };
            snapshot(&checkpoint, &history, to, name)?;
            faults::point("rollback.snapshot-taken");
            rollback.append(&mut log)?;
            faults::point("rollback.recorded");
        }
        undoing.withdraw(query_id, &history, &rollback)?;
        faults::point("rollback.withdrawn");
        // Of no use to the query any more, they must not count among those that are kept for it.
        let base = |name: SnapshotName| {
            name.generation == rollback.generation && name.batch_id == rollback.last_batch
                || name.generation < rollback.generation
                    && name.batch_id <= rollback.to
                    && history.leads_to(rebuild::named(name), history.now())
        };
        checkpoint.snapshots().remove_all_but(base)?;
    } else {
        undoing.refuse_if_sinks_cannot_follow(&rollback)?;
    }
    Ok(undoing.report)
}

/// Makes the state after a batch a snapshot of the next generation, durably.
fn snapshot(checkpoint: &Checkpoint, history: &History, to: u64, name: SnapshotName) -> Result<(), QueryError> {
    let moment = history.after_batch(to).ok_or_else(|| unavailable(history, to))?;
    let scratch = checkpoint.tmp_dir().join("rollback");
    let base = rebuild::base(checkpoint, history, moment, Prefer::Newest, Check::Bytes, &scratch)?;
    rebuild::apply_up_to(&base.store, history, moment)?;
    let arrived = Applied { batch: Some(name.batch_id), generation: name.generation };
    base.store.apply(&[], arrived)?;
    checkpoint.snapshots().take(name, |dir| base.store.snapshot(dir).map_err(QueryError::from))
}

/// What the record will say.
fn plan(history: &History, to: u64, published: PublishedRows) -> Result<Rollback, QueryError> {
    let leads_here = history.after_batch(to).is_some_and(|moment| history.leads_to(moment, history.now()));
    let (head, batch) = if leads_here { history.head_after(to)? } else { return Err(unavailable(history, to)) };
    let (Some(batch), Some(last_batch)) = (batch, history.head.last_batch) else {
        return Err(unavailable(history, to));
    };
    if history.retained_between(Some(to), history.now()).next().is_none() {
        return Err(QueryError::mismatch(
            "ROLLBACK_NOTHING_TO_DO",
            format!("the query stands after batch {to} already; nothing was changed"),
        ));
    }
    let generation = history.head.generation + 1;
    let now = history.head.clone();
    let rows = if published == PublishedRows::Keep { &now } else { &head };
    let head = Head {
        last_batch: Some(last_batch),
        generation,
        // No later batch is earlier than one before it, also than one that was taken back.
        last_time_ms: now.last_time_ms,
        rows_published: rows.rows_published.clone(),
        ..head
    };
    let written_by = env!("CARGO_PKG_VERSION").to_owned();
    Ok(Rollback { format: ROLLBACK_FORMAT, written_by, generation, to, last_batch, published, head, batch })
}

fn unavailable(history: &History, to: u64) -> QueryError {
    let there: Vec<u64> = history.retained_between(None, history.now()).map(|retained| retained.batch_id).collect();
    let shown = match (there.first(), there.last()) {
        (Some(first), Some(last)) => format!("a batch from {first} to {last}"),
        _ => "none: nothing was committed yet".to_owned(),
    };
    QueryError::mismatch(
        "ROLLBACK_BATCH_UNAVAILABLE",
        format!(
            "batch {to} is not retained, was never committed, or was taken back itself; the query can go back to {shown}. \
             Nothing was changed."
        ),
    )
}

/// What a rollback takes back, with the sinks that have it.
struct Undoing {
    report: RolledBack,
    /// As in the report. None: the sink cannot be opened by its name.
    sinks: Vec<Option<Box<dyn Sink>>>,
    /// Why sinks cannot follow.
    reasons: Vec<String>,
}

impl Undoing {
    fn of(history: &History, rollback: &Rollback, query_id: &str, open_sink: OpenSink<'_>) -> Result<Self, QueryError> {
        let superseded: Vec<&Retained> = history.retained_between(Some(rollback.to), before(rollback)).collect();
        let mut undoing = Self {
            report: RolledBack {
                to: rollback.to,
                generation: rollback.generation,
                superseded: superseded.iter().map(|retained| retained.batch_id).collect(),
                next_batch: rollback.head.next_batch(),
                sinks: given(&superseded, history.forked_after, rollback.published),
                sources: taken(history, &superseded)?,
            },
            sinks: Vec::new(),
            reasons: Vec::new(),
        };
        for part in &mut undoing.report.sinks {
            let sink = open_sink(&part.sink);
            let traced = sink.as_ref().map_or(Ok(None), |sink| sink.trace(query_id, &part.batches));
            match traced {
                Ok(Some(Trace { places, missing })) => {
                    part.places = places;
                    if !missing.is_empty() {
                        let missing = missing.join(", ");
                        undoing.reasons.push(format!("consumers have taken {missing} away from {}", part.sink));
                    }
                }
                Ok(None) => undoing.reasons.push(format!("{} cannot take back what it has published", part.sink)),
                Err(error) => undoing.reasons.push(format!("{}: {error}", part.sink)),
            }
            undoing.sinks.push(sink);
        }
        Ok(undoing)
    }

    fn refuse_if_sinks_cannot_follow(&self, rollback: &Rollback) -> Result<(), QueryError> {
        if rollback.published == PublishedRows::Keep || self.reasons.is_empty() {
            return Ok(());
        }
        Err(QueryError::mismatch(
            "ROLLBACK_SINK_CANNOT_FOLLOW",
            format!(
                "rows of batches after {} cannot be taken back: {}. Nothing was changed. Roll back with --keep-published to \
                 leave all rows where they are; the same input then gives rows again, under new batch ids.",
                rollback.to,
                self.reasons.join("; ")
            ),
        ))
    }

    fn withdraw(&mut self, query_id: &str, history: &History, rollback: &Rollback) -> Result<(), QueryError> {
        for (part, sink) in self.report.sinks.iter().zip(&mut self.sinks) {
            if let Some(sink) = sink {
                let withdrawal = withdrawal(query_id, history, rollback, part.role, &part.sink);
                let failed = |source| QueryError::Sink { sink_name: part.sink.clone(), source };
                sink.withdraw(&withdrawal).map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// What a sink is told about a rollback that has happened.
pub(super) fn withdrawal(
    query_id: &str,
    history: &History,
    rollback: &Rollback,
    role: SinkRole,
    sink: &str,
) -> Withdrawal {
    let parts = history.retained_between(None, before(rollback)).filter_map(|retained| {
        let part = retained.sinks().iter().find(|part| part.role == role && part.sink == sink)?;
        Some((retained, part))
    });
    let (kept, superseded): (Vec<_>, Vec<_>) = parts.partition(|(retained, _)| retained.batch_id <= rollback.to);
    let undo = (rollback.published == PublishedRows::Withdraw).then(|| Undo {
        batches: superseded
            .iter()
            .filter(|(_, part)| part.staged != StagedAt::Nowhere)
            .map(|(retained, part)| ledger_of(query_id, retained.generation, retained.batch_id, part))
            .collect(),
        published: kept
            .last()
            .map(|(retained, part)| ledger_of(query_id, rollback.generation, retained.batch_id, part)),
    });
    Withdrawal { query_id: query_id.to_owned(), generation: rollback.generation, last_batch: rollback.last_batch, undo }
}

/// The moment that a rollback left.
fn before(rollback: &Rollback) -> Moment {
    Moment { generation: rollback.generation - 1, batch_id: Some(rollback.last_batch) }
}

/// What batches gave to sinks.
fn given(superseded: &[&Retained], forked_after: Option<u64>, published: PublishedRows) -> Vec<SinkRolledBack> {
    let mut sinks: Vec<SinkRolledBack> = Vec::new();
    // What was published before a fork is not the query's to take back.
    for retained in superseded.iter().filter(|retained| Some(retained.batch_id) > forked_after) {
        for part in retained.sinks().iter().filter(|part| part.staged != StagedAt::Nowhere) {
            let known = sinks.iter_mut().find(|known| known.role == part.role && known.sink == part.sink);
            match known {
                Some(known) => {
                    known.batches.push(retained.batch_id);
                    known.rows += part.rows;
                }
                None => sinks.push(SinkRolledBack {
                    role: part.role,
                    sink: part.sink.clone(),
                    published,
                    batches: vec![retained.batch_id],
                    rows: part.rows,
                    places: Vec::new(),
                }),
            }
        }
    }
    sinks
}

/// What batches took from sources.
fn taken(history: &History, superseded: &[&Retained]) -> Result<Vec<SourceRolledBack>, QueryError> {
    let mut sources: Vec<SourceRolledBack> = Vec::new();
    for retained in superseded {
        for part in history.header(retained)?.sources {
            let rows = part.rows + part.rejected;
            match sources.iter_mut().find(|known| known.source == part.source) {
                Some(known) => known.rows += rows,
                None => sources.push(SourceRolledBack { source: part.source, rows }),
            }
        }
    }
    Ok(sources)
}
