//! The state at a moment of a query's past, rebuilt from a snapshot and the log: for the start of a query, for looking at
//! one, for a rollback.
//!
//! A snapshot is a base for a moment if nothing in it came later or was taken back. Its name says what it contains at least;
//! the marks inside say how far it really goes.

use std::path::Path;

use super::checkpoint::{Check, Checkpoint, Restored, SnapshotName};
use super::error::QueryError;
use super::history::{History, Moment};
use super::publish;
use crate::state::{Applied, RocksStore, Store};

/// Which of several snapshots is the base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefer {
    /// The one from which the least is left to apply.
    Newest,
    /// The one from which the most can be seen.
    Oldest,
}

/// A store to apply batches to.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) store: RocksStore,
    /// None: it is empty.
    pub(super) snapshot: Option<SnapshotName>,
    /// Snapshots that would have come before it and are damaged.
    pub(super) damaged: Vec<SnapshotName>,
}

/// Makes `into`, which is removed if it is there, a base for a moment: a snapshot that is not damaged, or nothing. Damaged
/// ones are reported as warnings.
///
/// # Errors
/// `LOG_BEHIND_SNAPSHOT`, `CHECKPOINT_VERSION_UNSUPPORTED`, a failing disk.
pub(super) fn base(
    checkpoint: &Checkpoint,
    history: &History,
    moment: Moment,
    prefer: Prefer,
    check: Check,
    into: &Path,
) -> Result<Base, QueryError> {
    let snapshots = checkpoint.snapshots();
    let mut names = snapshots.list()?;
    for name in &names {
        refuse_behind(history, named(*name))?;
    }
    names.retain(|name| history.leads_to(named(*name), moment));
    if prefer == Prefer::Newest {
        names.reverse();
    }
    let Restored { found, damaged } = snapshots.restore_first(names, into, check, |dir| {
        let store = RocksStore::open(dir, &Default::default())?;
        let applied = reached(store.applied()?);
        refuse_behind(history, applied)?;
        let applying = store.applying()?.map(reached);
        let fits = [Some(applied), applying].into_iter().flatten().all(|held| history.leads_to(held, moment));
        Ok::<_, QueryError>(fits.then_some(store))
    })?;
    match found {
        Some((name, store)) => Ok(Base { store, snapshot: Some(name), damaged }),
        None => Ok(Base { store: RocksStore::open(into, &Default::default())?, snapshot: None, damaged }),
    }
}

/// Applies the batches that a base lacks, up to a moment; answers with their number.
///
/// # Errors
/// `SNAPSHOT_MISSING`, a failing store.
pub(super) fn apply_up_to(store: &dyn Store, history: &History, moment: Moment) -> Result<u64, QueryError> {
    refuse_gap(store, history)?;
    let mut count = 0;
    for commit in history.commits_between(store.applied()?.batch, moment) {
        publish::apply(store, &commit?)?;
        count += 1;
    }
    // After a rollback the state is that of an earlier batch, but stands behind those that were taken back.
    let arrived = Applied { batch: moment.batch_id, generation: moment.generation };
    if store.applied()? != arrived {
        store.apply(&[], arrived)?;
    }
    Ok(count)
}

/// Refuses a store that ends before the log begins.
///
/// # Errors
/// `SNAPSHOT_MISSING`, a failing store.
pub(super) fn refuse_gap(store: &dyn Store, history: &History) -> Result<(), QueryError> {
    let applied = store.applied()?.batch;
    let oldest = history.batches.first().map(|retained| retained.batch_id);
    let next = applied.map_or(0, |batch| batch + 1);
    if oldest.is_some_and(|oldest| oldest > next) {
        return Err(QueryError::mismatch(
            "SNAPSHOT_MISSING",
            format!(
                "the state can be rebuilt up to batch {} only, but the log begins after that; snapshots of this checkpoint \
                 are missing or damaged. Restore them from a copy of the checkpoint.",
                shown(applied)
            ),
        ));
    }
    Ok(())
}

/// Refuses a log that ends before a snapshot does.
fn refuse_behind(history: &History, held: Moment) -> Result<(), QueryError> {
    let last = history.now().batch_id;
    if held.batch_id <= last {
        return Ok(());
    }
    Err(QueryError::mismatch(
        "LOG_BEHIND_SNAPSHOT",
        format!(
            "the log ends at batch {}, but a snapshot holds the state of batch {}: a part of the log of this checkpoint \
             is missing. Nothing was changed; restore it from a copy of the checkpoint.",
            shown(last),
            shown(held.batch_id)
        ),
    ))
}

fn shown(batch: Option<u64>) -> String {
    batch.map_or_else(|| "(none)".to_owned(), |batch| batch.to_string())
}

/// What a snapshot contains at least.
pub(super) fn named(name: SnapshotName) -> Moment {
    Moment { generation: name.generation, batch_id: Some(name.batch_id) }
}

fn reached(applied: Applied) -> Moment {
    Moment { generation: applied.generation, batch_id: applied.batch }
}
