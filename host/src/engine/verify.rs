//! A checkpoint, read whole: every record of the log, every file that a record names, every snapshot against its manifest and
//! against the state that the log leads to, every record of the state.
//!
//! The checkpoint is read, never written; the query must not run meanwhile.

use std::path::Path;
use std::sync::Arc;

use super::checkpoint::{Check, Checkpoint, SnapshotName};
use super::commit::Commit;
use super::error::QueryError;
use super::history::{History, Moment};
use super::rebuild::{self, Prefer, named};
use crate::disk::Disk;
use crate::state::{Changes, Checked, RocksStore, Store, check_store, digest_store};

/// What is wrong with a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// Stable code.
    pub code: String,
    /// What is wrong, and where.
    pub message: String,
}

/// What was read, and what of it is not as it should be.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verified {
    /// Batches in the log.
    pub batches: usize,
    /// Rollbacks in the log.
    pub rollbacks: usize,
    /// Snapshots.
    pub snapshots: usize,
    /// Rows of the state: values, elements and entries.
    pub rows: u64,
    /// Timers of the state.
    pub timers: u64,
    /// What is wrong. Empty: nothing.
    pub findings: Vec<Finding>,
}

/// Reads a checkpoint whole. `scratch` is an empty folder for states.
///
/// # Errors
/// `CHECKPOINT_NOT_FOUND`, `CHECKPOINT_IN_USE` while the query runs; a log whose frames cannot be read at all.
pub fn verify(disk: Arc<dyn Disk>, path: &Path, scratch: &Path) -> Result<Verified, QueryError> {
    let checkpoint = Checkpoint::open_existing(disk, path)?;
    let history = History::view(&checkpoint)?;
    let mut verified =
        Verified { batches: history.batches.len(), rollbacks: history.rollbacks.len(), ..Verified::default() };
    for retained in &history.batches {
        match history.commit(retained) {
            Ok(commit) => verified.findings.extend(wrong_with(&checkpoint, &commit)?),
            Err(error) => verified.findings.push(Finding::of(&error)),
        }
    }
    verified.check_snapshots(&checkpoint, &history, scratch)?;
    // What the log cannot give any more was told above.
    let state = rebuild_newest(&checkpoint, &history, &scratch.join("newest"));
    match state.and_then(|store| Ok(check_store(&store, checkpoint.metadata().key_groups)?)) {
        Ok(Checked { rows, timers }) => (verified.rows, verified.timers) = (rows, timers),
        Err(error) => verified.findings.push(Finding::of(&error)),
    }
    Ok(verified)
}

impl Finding {
    fn of(error: &QueryError) -> Self {
        Self { code: error.code().to_owned(), message: error.to_string() }
    }
}

/// A batch against its own digests, and the files that it names.
fn wrong_with(checkpoint: &Checkpoint, commit: &Commit) -> Result<Vec<Finding>, QueryError> {
    let batch_id = commit.header.batch_id;
    let mut findings = Vec::new();
    let mut changes = commit.changes.as_slice();
    for step in &commit.header.steps {
        let (of_step, rest) = changes.split_at_checked(step.workers.len()).unwrap_or((changes, &[]));
        changes = rest;
        if Changes::digest(of_step) != step.state_digest {
            findings.push(damaged(format!(
                "batch {batch_id}: the state changes of step {:?} are not those that it committed",
                step.name
            )));
        }
        // A processor that is no component has none to keep.
        if step.processor.starts_with("sha256:") && checkpoint.program(&step.processor)?.is_none() {
            findings.push(damaged(format!("batch {batch_id}: the component {} is not kept", step.processor)));
        }
    }
    for name in commit.header.staged_files() {
        let path = checkpoint.staged_path(name)?;
        if !checkpoint.disk().exists(&path).is_ok_and(|exists| exists) {
            findings.push(damaged(format!("batch {batch_id}: its output {} is missing", path.display())));
        }
    }
    Ok(findings)
}

fn damaged(message: String) -> Finding {
    Finding { code: "CHECKPOINT_DAMAGED".to_owned(), message }
}

impl Verified {
    /// Each snapshot against its manifest, and against the one before with the batches in between.
    fn check_snapshots(
        &mut self,
        checkpoint: &Checkpoint,
        history: &History,
        scratch: &Path,
    ) -> Result<(), QueryError> {
        let names = checkpoint.snapshots().list()?;
        self.snapshots = names.len();
        for name in names {
            let moment = match moment_of(checkpoint, history, name, &scratch.join("snapshot")) {
                Ok(Some(moment)) => moment,
                // On a branch that was taken back there is nothing to compare with.
                Ok(None) => continue,
                Err(error) => {
                    self.findings.push(Finding::of(&error));
                    continue;
                }
            };
            match self.differs(checkpoint, history, (name, moment), scratch) {
                Ok(false) => {}
                Ok(true) => self.findings.push(damaged(format!(
                    "snapshot {name} is not the state that the snapshot before it and the log lead to"
                ))),
                Err(error) => self.findings.push(Finding::of(&error)),
            }
        }
        Ok(())
    }

    fn differs(
        &self,
        checkpoint: &Checkpoint,
        history: &History,
        (name, moment): (SnapshotName, Moment),
        scratch: &Path,
    ) -> Result<bool, QueryError> {
        let Some(base) = older_base(checkpoint, history, name, moment, &scratch.join("older"))? else {
            return Ok(false);
        };
        let snapshot = RocksStore::open(&scratch.join("snapshot"), &Default::default())?;
        for store in [&base, &snapshot] {
            rebuild::apply_up_to(store, history, moment)?;
        }
        Ok(digest_store(&base)? != digest_store(&snapshot)?)
    }
}

/// Restores a snapshot and tells the first moment at which it is whole. None: no retained batches lead from it to now.
fn moment_of(
    checkpoint: &Checkpoint,
    history: &History,
    name: SnapshotName,
    into: &Path,
) -> Result<Option<Moment>, QueryError> {
    checkpoint.snapshots().restore(name, into, Check::Bytes)?;
    if !history.leads_to(named(name), history.now()) {
        return Ok(None);
    }
    let store = RocksStore::open(into, &Default::default())?;
    let held = store.applying()?.map_or_else(|| store.applied(), Ok)?;
    let moment = Moment { generation: held.generation, batch_id: held.batch };
    Ok(history.leads_to(moment, history.now()).then_some(moment))
}

/// The state at the same moment without this snapshot. None: the log does not reach back so far.
fn older_base(
    checkpoint: &Checkpoint,
    history: &History,
    name: SnapshotName,
    moment: Moment,
    into: &Path,
) -> Result<Option<RocksStore>, QueryError> {
    let before = Moment { batch_id: name.batch_id.checked_sub(1), ..moment };
    let base = rebuild::base(checkpoint, history, before, Prefer::Newest, Check::Bytes, into)?.store;
    Ok(rebuild::refuse_gap(&base, history).is_ok().then_some(base))
}

fn rebuild_newest(checkpoint: &Checkpoint, history: &History, into: &Path) -> Result<RocksStore, QueryError> {
    let store = rebuild::base(checkpoint, history, history.now(), Prefer::Newest, Check::Bytes, into)?.store;
    rebuild::apply_up_to(&store, history, history.now())?;
    Ok(store)
}
