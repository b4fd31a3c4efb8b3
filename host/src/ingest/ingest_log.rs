//! The log as many threads append to it at once: whoever comes first writes for all who wait, with one sync.

use std::path::Path;
use std::sync::mpsc::{Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::dedup::Dedup;
use super::durable_end::DurableEnd;
use super::error::IngestError;
use super::format::corrupt;
use super::parse::Rows;
use super::writer::Writer;
use crate::clock::Clock;
use crate::disk::Disk;
use crate::record::Schema;

/// Bounds of one log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IngestSettings {
    /// Bytes of rows after which a new segment begins. Segments are removed whole.
    pub segment_bytes: u64,
    /// Bytes of rows that may wait for the query. A single request is taken whatever its size when none waits.
    pub backlog_bytes_max: u64,
    /// Producers that are told apart. One that was idle for 7 days makes room for another.
    pub producers_max: usize,
    /// Idempotency keys that are remembered, each for 24 hours.
    pub keys_max: usize,
}

impl Default for IngestSettings {
    fn default() -> Self {
        Self { segment_bytes: 16 << 20, backlog_bytes_max: 1 << 30, producers_max: 1_000, keys_max: 100_000 }
    }
}

/// The answer to a request that is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// Number of its first row in the log.
    pub first_row: u64,
    /// How many it has.
    pub rows: u64,
    /// The row behind its last.
    pub end: u64,
    /// It was there before, and this is the answer of then.
    pub repeated: bool,
}

/// A log open for writing, by one process at a time (the lock of the data folder sees to that) and any number of threads.
#[derive(Debug)]
pub struct IngestLog {
    clock: Arc<dyn Clock>,
    waiting: Mutex<Vec<Request>>,
    writer: Mutex<Writer>,
    durable: DurableEnd,
}

#[derive(Debug)]
struct Request {
    rows: Rows,
    dedup: Dedup,
    answer: Sender<Result<Accepted, IngestError>>,
}

impl IngestLog {
    /// Opens the log of this query in `dir`, which is created if it is missing. What a crash left unfinished is cut.
    /// Another schema than before holds for the rows to come.
    ///
    /// # Errors
    /// `LOG_CORRUPT`, `INGEST_LOG_CORRUPT`, `LOG_VERSION_UNSUPPORTED`, `LOG_FOREIGN`, `LOG_READ_FAILED`; nothing was
    /// changed then. `LOG_WRITE_FAILED`; nothing was lost then.
    pub fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        query_id: &str,
        schema: &Schema,
        settings: IngestSettings,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, IngestError> {
        let writer = Writer::open(disk, dir, query_id, schema, settings)?;
        let durable = DurableEnd::at(writer.next_row());
        Ok(Self { clock, waiting: Mutex::default(), writer: Mutex::new(writer), durable })
    }

    /// Appends the rows of a request, which were parsed with this log's schema, and returns once they are durable. Blocks:
    /// for one sync, or two if one is under way.
    ///
    /// # Errors
    /// Why it was refused, and nothing of it is there. `LOG_WRITE_FAILED`, `LOG_POISONED` ever after: whether it is there
    /// is known when the log is opened again.
    pub fn append(&self, rows: Rows, dedup: Dedup) -> Result<Accepted, IngestError> {
        let (answer, answered) = channel();
        lock(&self.waiting).push(Request { rows, dedup, answer });
        let mut writer = lock(&self.writer);
        // While this thread waited, another may have written for it.
        let mut found = answered.try_recv();
        if matches!(found, Err(TryRecvError::Empty)) {
            self.write_all_waiting(&mut writer);
            found = answered.try_recv();
        }
        found.unwrap_or_else(|_| Err(corrupt("a thread that wrote for others has failed")))
    }

    /// The row behind the last one that is durable.
    pub fn end(&self) -> u64 {
        self.durable.get()
    }

    /// The oldest row that is still there.
    pub fn first_row(&self) -> u64 {
        lock(&self.writer).first_row()
    }

    /// Takes note that the query has committed the rows before this one.
    pub fn consumed(&self, row: u64) {
        lock(&self.writer).consumed(row);
    }

    /// Bytes of rows that are not consumed: what [`IngestSettings::backlog_bytes_max`] bounds. May be too large by the part
    /// of a segment, never too small.
    pub fn unread_bytes(&self) -> u64 {
        lock(&self.writer).unread_bytes()
    }

    /// Removes the segments that hold only rows before this one.
    ///
    /// # Errors
    /// `LOG_WRITE_FAILED`; some may be gone then. The log can still be written.
    pub fn trim(&self, before_row: u64) -> Result<(), IngestError> {
        lock(&self.writer).trim(before_row)
    }

    /// Requests that wait for a thread to write them.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        lock(&self.waiting).len()
    }

    fn write_all_waiting(&self, writer: &mut Writer) {
        let requests = std::mem::take(&mut *lock(&self.waiting));
        let now_ms = self.clock.now_ms(0).unwrap_or_default();
        let ready = writer.roll_if_grown();
        let staged = requests.into_iter().map(|Request { rows, dedup, answer }| {
            (answer, ready.clone().and_then(|()| writer.stage(&rows, dedup, now_ms)))
        });
        let staged: Vec<_> = staged.collect();
        let synced = writer.sync();
        if synced.is_ok() {
            self.durable.set(writer.next_row());
        }
        for (answer, staged) in staged {
            let accepted = staged.and_then(|accepted| synced.clone().map(|()| accepted));
            // A thread that is gone has nothing to be told.
            drop(answer.send(accepted));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
