//! A look at a query that is not running: what its log says, and its state as of the last committed batch.
//!
//! The checkpoint is read, never written, and no query can begin to run on it meanwhile. The state is rebuilt from a
//! snapshot and the log, as a start of the query would, in a folder of its own.

use std::path::Path;
use std::sync::Arc;

use super::checkpoint::{Checkpoint, Metadata, SnapshotName};
use super::commit::{SourceCommit, SourceRole};
use super::error::QueryError;
use super::history::History;
use super::recovery::apply_again;
use crate::disk::Disk;
use crate::record::Schema;
use crate::state::{RocksStore, Store};

/// A query that is not running.
#[derive(Debug)]
pub struct StoppedQuery {
    checkpoint: Checkpoint,
    history: History,
}

impl StoppedQuery {
    /// Reads the checkpoint's metadata and log.
    ///
    /// # Errors
    /// `CHECKPOINT_NOT_FOUND`, `CHECKPOINT_IN_USE` while the query runs, a damaged or newer checkpoint or log.
    pub fn open(disk: Arc<dyn Disk>, checkpoint: &Path) -> Result<Self, QueryError> {
        let checkpoint = Checkpoint::open_existing(disk, checkpoint)?;
        let history = History::view(&checkpoint, None)?;
        Ok(Self { checkpoint, history })
    }

    /// What is fixed for the checkpoint's life.
    pub fn metadata(&self) -> &Metadata {
        self.checkpoint.metadata()
    }

    /// The retained past.
    pub fn history(&self) -> &History {
        &self.history
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
        let (mut input, mut initial_state) = (None, None);
        for header in self.history.headers_after(None) {
            for source in header?.sources {
                match source.role {
                    SourceRole::Input => input = Some(source),
                    SourceRole::InitialState => initial_state = Some(source),
                }
            }
        }
        Ok(input.into_iter().chain(initial_state).collect())
    }

    /// Schema of the grouping key. None: nothing has been committed.
    ///
    /// # Errors
    /// A record that this version cannot have written.
    pub fn key(&self) -> Result<Option<Schema>, QueryError> {
        let step = self.history.last.as_ref().and_then(|last| last.steps.first());
        Ok(step.map(|step| Schema::parse(&step.key)).transpose()?)
    }

    /// The state after the last committed batch, rebuilt in `scratch`, a folder that must not exist. On the file system
    /// of the checkpoint, its large files are linked rather than copied.
    ///
    /// # Errors
    /// `SNAPSHOT_MISSING`, a failing disk.
    pub fn state(&self, scratch: &Path) -> Result<Arc<dyn Store>, QueryError> {
        let snapshots = self.checkpoint.snapshots();
        let generation = self.history.head.generation;
        let newest_first = snapshots.list()?.into_iter().rev().filter(|name| name.generation == generation);
        snapshots.restore_first(newest_first, scratch)?;
        let store = RocksStore::open(scratch, &Default::default())?;
        apply_again(&store, &self.history)?;
        Ok(Arc::new(store))
    }
}
