//! Snapshots of the state store, taken in the background, and what of the past may go once they stand.
//!
//! A snapshot is named after a batch that it certainly contains; the marker inside says exactly how far it goes, and
//! changes applied twice change nothing. At least two are kept, one of them at or before the oldest retained batch, with
//! the log from there on; damaged ones do not count. A snapshot that fails costs nothing but a longer restart: it is reported and tried again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::checkpoint::{Checkpoint, SnapshotFolder, SnapshotName};
use super::error::QueryError;
use super::head::Head;
use super::history::Retained;
use super::settings::Retention;
use crate::clock::Stopwatch;
use crate::log::QueryLog;
use crate::state::RocksStore;

/// One may be damaged.
const SNAPSHOTS_MIN: usize = 2;

/// Older ones that are kept so that one stands a little before the oldest retained batch, whatever batch that is. More
/// would keep less of the log, and more files that the state has long replaced.
const SNAPSHOTS_BETWEEN: u64 = 4;

/// Takes snapshots of one store. Dropped, it waits for the one in hand: whoever opens the checkpoint next must not meet it.
pub(super) struct Snapshots {
    store: Arc<RocksStore>,
    folder: SnapshotFolder,
    retention: Retention,
    /// Oldest first.
    batches: VecDeque<Retained>,
    batches_since: u64,
    bytes_since: u64,
    running: Option<JoinHandle<Result<Done, QueryError>>>,
    taken: Taken,
}

/// What a snapshot that is being taken ends with.
struct Done {
    batch_id: u64,
    took_ms: f64,
}

/// Snapshots that were finished, for progress reports.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Taken {
    /// How long taking them took, in all.
    pub(super) took_ms: f64,
    /// The last batch that the newest snapshot surely holds.
    pub(super) last_batch: Option<u64>,
}

impl Snapshots {
    /// For a store that has been recovered up to `snapshot_batch` from a snapshot (newer ones are damaged), and from there on
    /// with `batches`, those of the log.
    pub(super) fn new(
        store: Arc<RocksStore>,
        folder: SnapshotFolder,
        retention: Retention,
        snapshot_batch: Option<u64>,
        batches: Vec<Retained>,
    ) -> Self {
        let since = batches.iter().filter(|batch| Some(batch.batch_id) > snapshot_batch);
        let (batches_since, bytes_since) =
            since.fold((0, 0), |(count, bytes), batch| (count + 1, bytes + batch.record.bytes));
        let taken = Taken { took_ms: 0.0, last_batch: snapshot_batch };
        Self { store, folder, retention, batches: batches.into(), batches_since, bytes_since, running: None, taken }
    }

    /// After every published batch.
    ///
    /// # Errors
    /// A failing log.
    pub(super) fn after_batch(
        &mut self,
        checkpoint: &Checkpoint,
        log: &mut QueryLog,
        head: &Head,
        batch: Retained,
    ) -> Result<(), QueryError> {
        self.batches_since += 1;
        self.bytes_since += batch.record.bytes;
        self.batches.push_back(batch);
        if self.running.as_ref().is_some_and(JoinHandle::is_finished) {
            self.wait();
            self.forget(checkpoint, log)?;
        }
        let due =
            self.batches_since >= self.retention.snapshot_batches || self.bytes_since >= self.retention.snapshot_bytes;
        if due && self.running.is_none() {
            self.start(log, head)?;
        }
        Ok(())
    }

    /// Batches that are kept, oldest first.
    pub(super) fn retained(&self) -> impl Iterator<Item = &Retained> {
        self.batches.iter()
    }

    /// The snapshots finished since the last call.
    pub(super) fn taken(&mut self) -> Taken {
        let last_batch = self.taken.last_batch;
        std::mem::replace(&mut self.taken, Taken { took_ms: 0.0, last_batch })
    }

    /// Waits for the snapshot in hand.
    ///
    /// # Errors
    /// A failing log.
    pub(super) fn settle(&mut self, checkpoint: &Checkpoint, log: &mut QueryLog) -> Result<(), QueryError> {
        if self.running.is_some() {
            self.wait();
            self.forget(checkpoint, log)?;
        }
        Ok(())
    }

    /// At a clean stop: the next start then has nothing to apply.
    ///
    /// # Errors
    /// A failing log.
    pub(super) fn finish(mut self, checkpoint: &Checkpoint, log: &mut QueryLog, head: &Head) -> Result<(), QueryError> {
        self.wait();
        if self.batches_since > 0 {
            self.start(log, head)?;
            self.wait();
        }
        self.forget(checkpoint, log)
    }

    fn start(&mut self, log: &mut QueryLog, head: &Head) -> Result<(), QueryError> {
        let Some(batch_id) = head.last_batch else { return Ok(()) };
        // What comes before the snapshot can then be removed as whole segments, and the next start has none to copy.
        log.roll()?;
        let name = SnapshotName { generation: head.generation, batch_id };
        let (store, folder) = (Arc::clone(&self.store), self.folder.clone());
        (self.batches_since, self.bytes_since) = (0, 0);
        self.running = Some(std::thread::spawn(move || {
            let watch = Stopwatch::start();
            folder.take(name, |path| store.snapshot(path).map_err(QueryError::from))?;
            Ok(Done { batch_id, took_ms: watch.elapsed().as_secs_f64() * 1e3 })
        }));
        Ok(())
    }

    /// Waits for the snapshot that is being taken, if there is one.
    fn wait(&mut self) {
        let failure = match self.running.take().map(JoinHandle::join) {
            None => return,
            Some(Ok(Ok(Done { batch_id, took_ms }))) => {
                self.taken = Taken { took_ms: self.taken.took_ms + took_ms, last_batch: Some(batch_id) };
                return;
            }
            Some(Ok(Err(error))) => error.to_string(),
            Some(Err(_)) => "the thread that took it panicked".to_owned(),
        };
        tracing::warn!(
            code = "SNAPSHOT_FAILED",
            "a snapshot of the state could not be taken and is tried again later: {failure}"
        );
    }

    /// Removes old snapshots, and what only they needed.
    fn forget(&mut self, checkpoint: &Checkpoint, log: &mut QueryLog) -> Result<(), QueryError> {
        let newest = self.batches.back().map_or(0, |batch| batch.batch_id);
        let oldest_retained = newest.saturating_sub(self.retention.batches);
        let gap = self.retention.batches / SNAPSHOTS_BETWEEN;
        let Some(oldest) = self.folder.retain(SNAPSHOTS_MIN, oldest_retained, gap)? else { return Ok(()) };
        while self.batches.len() > 1 && self.batches.front().is_some_and(|batch| batch.batch_id < oldest.batch_id) {
            self.batches.pop_front();
        }
        if let Some(first) = self.batches.front() {
            log.remove_segments_before(&first.record)?;
        }
        let staged: Vec<String> = self.batches.iter().flat_map(|batch| batch.staged.iter().cloned()).collect();
        checkpoint.keep_staged(&staged)?;
        let processors: Vec<&str> =
            self.batches.iter().flat_map(|batch| batch.processors.iter().map(String::as_str)).collect();
        Ok(checkpoint.retain_programs(&processors)?)
    }
}

impl Drop for Snapshots {
    fn drop(&mut self) {
        self.wait();
    }
}
