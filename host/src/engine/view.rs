//! A look at a query from outside, whether it runs or not: what its log says, and its state after any retained batch.
//!
//! The checkpoint is read, never written or locked, so a running query neither waits nor notices. What is seen is what some
//! moment's log holds: whole batches. The state is rebuilt from a snapshot and the log in a folder of its own, as a start of
//! the query would. A query that runs also removes what it no longer needs; when that overtakes a look, it looks again.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::checkpoint::{Check, Checkpoint, CheckpointError, Metadata, SnapshotName};
use super::commit::{Commit, SourceCommit};
use super::error::QueryError;
use super::history::{History, Moment};
use super::rebuild::{self, Prefer};
use crate::disk::Disk;
use crate::log::LogError;
use crate::record::Schema;
use crate::state::{RocksStore, Store};

/// Looks that may be overtaken before it is given up: each time, a query has taken a snapshot and removed what it replaced
/// within the time of one look.
const LOOKS_MAX: usize = 5;

/// A query, seen from outside.
#[derive(Debug)]
pub struct QueryView {
    checkpoint: Checkpoint,
    history: History,
}

/// State after a batch.
pub struct StateView {
    /// The state, in its folder.
    pub store: Arc<dyn Store>,
    /// The last batch in it; None: nothing has been committed.
    pub batch_id: Option<u64>,
    /// The steps; none: nothing has been committed.
    pub steps: Vec<StepView>,
}

/// A step whose state is looked at.
pub struct StepView {
    /// Its name.
    pub name: String,
    /// Schema of its grouping key.
    pub key: Schema,
}

impl QueryView {
    /// Reads the checkpoint's metadata and log.
    ///
    /// # Errors
    /// `CHECKPOINT_NOT_FOUND`, a damaged or newer checkpoint or log.
    pub fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, QueryError> {
        let checkpoint = Checkpoint::look_at(disk, path)?;
        let history = again_if_overtaken(|| History::view(&checkpoint))?;
        Ok(Self { checkpoint, history })
    }

    /// What is fixed for the checkpoint's life.
    pub fn metadata(&self) -> &Metadata {
        self.checkpoint.metadata()
    }

    /// The retained past, as of the last look.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The checkpoint.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The snapshots that there are, oldest first.
    ///
    /// # Errors
    /// A failing disk.
    pub fn snapshots(&self) -> Result<Vec<SnapshotName>, QueryError> {
        Ok(self.checkpoint.snapshots().list()?)
    }

    /// What was last read of each source, as far as retained batches tell.
    ///
    /// # Errors
    /// A log that cannot be read.
    pub fn sources(&self) -> Result<Vec<SourceCommit>, QueryError> {
        let mut last: Vec<SourceCommit> = Vec::new();
        for header in self.history.headers_after(None) {
            for source in header?.sources {
                last.retain(|before| (before.role, &before.name) != (source.role, &source.name));
                last.push(source);
            }
        }
        last.sort_by(|a, b| (a.role, &a.name).cmp(&(b.role, &b.name)));
        Ok(last)
    }

    /// The state after a retained batch, or the newest, rebuilt in `scratch`, which is removed if it is there. On the file
    /// system of the checkpoint, its large files are linked rather than copied.
    ///
    /// # Errors
    /// `STDS_COMMITTED_BATCH_UNAVAILABLE`, `SNAPSHOT_MISSING`, a failing disk.
    pub fn state(&mut self, batch: Option<u64>, scratch: &Path) -> Result<StateView, QueryError> {
        again_if_overtaken(|| {
            // What was removed since the last look must not be missed, and what was added may be asked for.
            self.history = History::view(&self.checkpoint)?;
            let moment = self.moment(batch)?;
            let base = rebuild::base(&self.checkpoint, &self.history, moment, Prefer::Newest, Check::Bytes, scratch)?;
            match batch {
                Some(batch) if rebuild::refuse_gap(&base.store, &self.history).is_err() => Err(self.unavailable(batch)),
                _ => self.view_of(base.store, moment),
            }
        })
    }

    fn view_of(&self, store: RocksStore, moment: Moment) -> Result<StateView, QueryError> {
        rebuild::apply_up_to(&store, &self.history, moment)?;
        let steps = self.steps(moment)?;
        Ok(StateView { store: Arc::new(store), batch_id: moment.batch_id, steps })
    }

    /// The batches after one retained batch, up to another, with their changes; those that a rollback took back later are
    /// left out if `to` is not one of them.
    ///
    /// # Errors
    /// `STDS_COMMITTED_BATCH_UNAVAILABLE`.
    pub fn commits(
        &self,
        from: u64,
        to: u64,
    ) -> Result<impl Iterator<Item = Result<Commit, QueryError>> + '_, QueryError> {
        self.moment(Some(from))?;
        let moment = self.moment(Some(to))?;
        Ok(self.history.commits_between(from.checked_sub(1), moment))
    }

    fn moment(&self, batch: Option<u64>) -> Result<Moment, QueryError> {
        match batch {
            None => Ok(self.history.now()),
            Some(batch) => self.history.after_batch(batch).ok_or_else(|| self.unavailable(batch)),
        }
    }

    fn steps(&self, moment: Moment) -> Result<Vec<StepView>, QueryError> {
        let last = self.history.last.as_ref().filter(|_| moment.batch_id.is_some());
        let steps = last.into_iter().flat_map(|last| &last.steps);
        steps.map(|step| Ok(StepView { name: step.name.clone(), key: Schema::parse(&step.key)? })).collect()
    }

    /// Spark's name and meaning.
    fn unavailable(&self, batch: u64) -> QueryError {
        let retained = match (self.history.batches.first(), self.history.batches.last()) {
            (Some(first), Some(last)) => {
                format!("its log holds the batches {} to {}", first.batch_id, last.batch_id)
            }
            _ => "nothing has been committed yet".to_owned(),
        };
        QueryError::mismatch(
            "STDS_COMMITTED_BATCH_UNAVAILABLE",
            format!(
                "the state after batch {batch} is not retained by this checkpoint: {retained}, and the state can be rebuilt \
                 from the oldest snapshot on. How much is kept is set by retention.batches."
            ),
        )
    }
}

fn again_if_overtaken<T>(mut look: impl FnMut() -> Result<T, QueryError>) -> Result<T, QueryError> {
    let mut looks = 1;
    loop {
        match look() {
            Err(error) if looks < LOOKS_MAX && is_overtaken(&error) => looks += 1,
            outcome => return outcome,
        }
    }
}

/// Whether a running query may have caused this error.
fn is_overtaken(error: &QueryError) -> bool {
    let is_gone = |source: &io::Error| source.kind() == io::ErrorKind::NotFound;
    match error {
        QueryError::LogFile(LogError::Read { source, .. }) => is_gone(source),
        QueryError::LogFile(LogError::MissingSegment { .. }) => true,
        QueryError::Checkpoint(CheckpointError::Disk { source, .. }) => is_gone(source),
        QueryError::Mismatch { code, .. } => matches!(*code, "LOG_BEHIND_SNAPSHOT" | "SNAPSHOT_MISSING"),
        _ => false,
    }
}
