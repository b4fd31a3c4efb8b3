//! The log of a query: the only truth about what has been committed.
//!
//! Its one job is to keep records in order, so that one whose append returned is read after any crash, whole, and one
//! whose append did not is read whole or not at all. It stands in segments `log-<20 digits>.tlog` of one folder, read
//! and written through [`crate::disk`]; the bytes are described in `format.rs`, opening in `recovery.rs`. Another process
//! reads it while it is written by `follow.rs`.
//!
//! Invariants:
//! - One sync makes a group of records durable, and no byte of the next group is written before. So damage is told from
//!   a tail that was never finished: behind the latter there is nothing of a later group. The tail is cut; damage is
//!   `LOG_CORRUPT`, and nothing is changed.
//! - After a write or sync that failed, nothing more is written (`LOG_POISONED`).
//! - Nothing is written in place.
//!
//! It knows nothing of batches: a record is a kind, a header and sections of bytes.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::disk::{Disk, create_dir_durably};

mod error;
mod folder;
mod follow;
mod format;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod record;
mod recovery;
mod scan;
#[cfg(test)]
mod tests;
mod writer;

use folder::Folder;
use recovery::Recovered;
use writer::SegmentWriter;

pub use error::LogError;
pub use follow::{LogFollower, RecordStream, SegmentStart};
pub use record::{Content, NewRecord, NewSection, Part, Piece, Record, RecordRef, Section};

/// A segment that has grown to this is followed by a new one. The last segment is copied at each start, and segments are
/// removed whole: both want it small; a record larger than this is still in one segment.
const SEGMENT_BYTES: u64 = 64 << 20;

/// When a record must be durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When the append returns; this costs one sync.
    Synced,
    /// With the next that is synced. Until then a crash takes it, even one of the process alone.
    WithNext,
}

/// A log open for reading and writing, by one process at a time (the checkpoint's lock sees to that).
pub struct QueryLog {
    folder: Folder,
    /// Numbers of the segments, ascending; the last is the writer's.
    segments: Vec<u64>,
    writer: SegmentWriter,
    next_sequence: u64,
    segment_bytes: u64,
    poisoned: bool,
}

impl QueryLog {
    /// Opens the log of this query in `dir`, which is created if it is missing, and gives the records in it, in order.
    /// An unfinished tail is cut. Costs the reading and writing of the last segment and a few syncs.
    ///
    /// # Errors
    /// `LOG_CORRUPT`, `LOG_VERSION_UNSUPPORTED`, `LOG_FOREIGN`, `LOG_READ_FAILED`; nothing was changed then.
    /// `LOG_WRITE_FAILED`; nothing was lost then.
    pub fn open(disk: Arc<dyn Disk>, dir: &Path, query_id: &str) -> Result<(Self, Vec<RecordRef>), LogError> {
        let folder = Folder::new(disk, dir, query_id);
        create_dir_durably(folder.disk.as_ref(), dir).map_err(|source| folder.write_error(source))?;
        let Recovered { records, segments, writer, next_sequence } = recovery::recover(&folder)?;
        let log = Self { folder, segments, writer, next_sequence, segment_bytes: SEGMENT_BYTES, poisoned: false };
        Ok((log, records))
    }

    /// Sets the size in bytes from which on a segment is followed by a new one, instead of 64 MiB.
    #[must_use]
    pub fn with_segment_bytes(self, segment_bytes: u64) -> Self {
        Self { segment_bytes, ..self }
    }

    /// Appends a record. One of any size is written in pieces of bounded memory.
    ///
    /// # Errors
    /// `LOG_WRITE_FAILED`; `LOG_SECTION_FAILED` when a reader of the record fails; `LOG_POISONED` ever after. Whether
    /// the record is in the log is not known until it is opened again.
    pub fn append(&mut self, record: NewRecord<'_>, durability: Durability) -> Result<RecordRef, LogError> {
        self.write(|log| {
            if log.writer.end >= log.segment_bytes && !log.writer.group_is_open() {
                log.start_segment()?;
            }
            let sequence = log.next_sequence;
            let written = log.writer.record(&log.folder, record, sequence)?;
            log.next_sequence += 1;
            match durability {
                Durability::Synced => log.commit()?,
                Durability::WithNext => log.writer.flush().map_err(|source| log.folder.write_error(source))?,
            }
            Ok(written)
        })
    }

    /// Makes every record durable that waits for the next.
    ///
    /// # Errors
    /// `LOG_WRITE_FAILED`, `LOG_POISONED`.
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.write(|log| if log.writer.group_is_open() { log.commit() } else { Ok(()) })
    }

    /// Begins a new segment, so that all records so far can be removed once they are not needed.
    ///
    /// # Errors
    /// `LOG_WRITE_FAILED`, `LOG_POISONED`.
    pub fn roll(&mut self) -> Result<(), LogError> {
        self.sync()?;
        self.write(Self::start_segment)
    }

    /// Removes the segments before the one that holds this record, durably. Records of the same segment stay.
    ///
    /// # Errors
    /// `LOG_WRITE_FAILED`; some may be gone then, the oldest first. The log can still be written.
    pub fn remove_segments_before(&mut self, record: &RecordRef) -> Result<(), LogError> {
        while let Some(oldest) = self.segments.first().copied().filter(|oldest| *oldest < record.segment) {
            recovery::remove(&self.folder, [oldest])?;
            self.segments.remove(0);
        }
        Ok(())
    }

    /// Reads records, also while the log is written.
    pub fn reader(&self) -> LogReader {
        LogReader { folder: self.folder.clone() }
    }

    /// Reads a record into memory.
    ///
    /// # Errors
    /// As [`LogReader::read`].
    pub fn read(&self, record: &RecordRef) -> Result<Record, LogError> {
        self.folder.read(record)
    }

    fn write<T>(&mut self, step: impl FnOnce(&mut Self) -> Result<T, LogError>) -> Result<T, LogError> {
        if self.poisoned {
            return Err(LogError::Poisoned { dir: self.folder.dir.clone() });
        }
        let done = step(self);
        self.poisoned = done.is_err();
        done
    }

    fn commit(&mut self) -> Result<(), LogError> {
        let last = self.next_sequence - 1;
        self.writer.commit(last).and_then(|()| self.writer.sync()).map_err(|source| self.folder.write_error(source))
    }

    /// Does nothing if the segment at hand is empty.
    fn start_segment(&mut self) -> Result<(), LogError> {
        if self.writer.is_empty() {
            return Ok(());
        }
        let number = self.writer.number + 1;
        self.writer = recovery::start(&self.folder, number, self.next_sequence)?;
        self.segments.push(number);
        Ok(())
    }
}

impl std::fmt::Debug for QueryLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueryLog")
            .field("folder", &self.folder)
            .field("segments", &self.segments)
            .field("next_sequence", &self.next_sequence)
            .field("poisoned", &self.poisoned)
            .finish_non_exhaustive()
    }
}

/// Reads the records of a log. It never writes.
#[derive(Debug, Clone)]
pub struct LogReader {
    folder: Folder,
}

impl LogReader {
    /// Reads a record into memory.
    ///
    /// # Errors
    /// `LOG_CORRUPT` when it is not as it was written, `LOG_READ_FAILED`.
    pub fn read(&self, record: &RecordRef) -> Result<Record, LogError> {
        self.folder.read(record)
    }

    /// Reads the header of a record alone.
    ///
    /// # Errors
    /// As [`LogReader::read`].
    pub fn read_header(&self, record: &RecordRef) -> Result<Vec<u8>, LogError> {
        self.folder.read_header(record)
    }

    /// Reads a record of any size piece by piece, until `visit` breaks.
    ///
    /// # Errors
    /// As [`LogReader::read`]; some pieces may have been visited then, each as it was written.
    pub fn read_pieces(
        &self,
        record: &RecordRef,
        visit: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        self.folder.read_pieces(record, visit)
    }
}

/// A log as it stands on the disk, for inspection while no process writes it. Nothing is ever changed.
#[derive(Debug)]
pub struct LogView {
    /// Reads the records.
    pub reader: LogReader,
    /// Those that are committed, in order.
    pub records: Vec<RecordRef>,
    /// Bytes behind them that a crash left, and that the next start will cut.
    pub unfinished_bytes: u64,
}

impl LogView {
    /// Reads what is committed.
    ///
    /// # Errors
    /// As [`QueryLog::open`], and `LOG_READ_FAILED` when `dir` is missing.
    pub fn open(disk: Arc<dyn Disk>, dir: &Path, query_id: &str) -> Result<Self, LogError> {
        let folder = Folder::new(disk, dir, query_id);
        let survey = recovery::survey(&folder)?;
        Ok(Self { reader: LogReader { folder }, records: survey.records, unfinished_bytes: survey.unfinished_bytes })
    }
}
