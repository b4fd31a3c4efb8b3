//! Reads a log record by record while another process writes it. It never writes.
//!
//! The writer tells the reader by other means up to where the log is durable; the reader reads no further, as bytes that
//! were never synced may vanish. So what it meets before that point is whole, or damaged.

use std::path::Path;
use std::sync::Arc;

use super::error::LogError;
use super::folder::{Folder, SegmentReader};
use super::format::{FrameKind, Pieces, RecordEnd, SEGMENT_HEADER_BYTES};
use super::record::{Part, Record};
use crate::disk::Disk;

/// Finds the segments of a log that another process writes.
#[derive(Debug, Clone)]
pub struct LogFollower {
    folder: Folder,
}

/// A segment of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentStart {
    /// Its number, which is in its name.
    pub segment: u64,
    /// Of its first record, which need not be there yet.
    pub sequence: u64,
}

impl LogFollower {
    /// Of the log of this query in `dir`, which need not exist yet.
    pub fn new(disk: Arc<dyn Disk>, dir: &Path, query_id: &str) -> Self {
        Self { folder: Folder::new(disk, dir, query_id) }
    }

    /// The segments that stand there now, in the order of their records. One that a recovery has replaced is left out.
    ///
    /// # Errors
    /// `LOG_CORRUPT`, `LOG_VERSION_UNSUPPORTED`, `LOG_FOREIGN`, `LOG_READ_FAILED`.
    pub fn segments(&self) -> Result<Vec<SegmentStart>, LogError> {
        let mut starts: Vec<SegmentStart> = Vec::new();
        for segment in self.folder.list()?.segments.into_iter().rev() {
            let sequence = match self.folder.open(segment) {
                Ok(reader) => reader.header.first_sequence,
                // The writer removed it since the folder was read.
                Err(LogError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if starts.last().is_none_or(|later| sequence < later.sequence) {
                starts.push(SegmentStart { segment, sequence });
            }
        }
        starts.reverse();
        Ok(starts)
    }

    /// Reads a segment from its first record on.
    ///
    /// # Errors
    /// As [`LogFollower::segments`]; `LOG_READ_FAILED` when it is gone.
    pub fn open(&self, segment: u64) -> Result<RecordStream, LogError> {
        let mut reader = self.folder.open(segment)?;
        reader.seek(SEGMENT_HEADER_BYTES as u64)?;
        Ok(RecordStream { next_sequence: reader.header.first_sequence, reader })
    }
}

/// Reads the records of one segment, one after the other.
pub struct RecordStream {
    reader: SegmentReader,
    next_sequence: u64,
}

impl RecordStream {
    /// Reads the next record. None: it is not there, or not as it was written; see [`RecordStream::missing`].
    ///
    /// # Errors
    /// `LOG_READ_FAILED`.
    pub fn next_record(&mut self) -> Result<Option<Record>, LogError> {
        let start = self.reader.at;
        self.reader.refresh()?;
        let record = self.read()?;
        match record {
            Some(_) => self.next_sequence += 1,
            None => self.reader.seek(start)?,
        }
        Ok(record)
    }

    /// The error of a reader that knows that the next record was durable, when it is not there.
    pub fn missing(&self) -> LogError {
        self.reader.corrupt("a record that was durable is not there as it was written")
    }

    fn read(&mut self) -> Result<Option<Record>, LogError> {
        let mut record = Record::default();
        let mut pieces = Pieces::default();
        let mut payload = Vec::new();
        let mut begun = false;
        while let Some(frame) = self.reader.frame()? {
            if !self.reader.payload(&frame, &mut payload)? {
                return Ok(None);
            }
            match (frame.kind, Part::of(frame.part)) {
                (FrameKind::Commit, _) if !begun => continue,
                _ if frame.sequence != self.next_sequence => return Ok(None),
                (FrameKind::Piece, Some(part)) => {
                    begun = true;
                    pieces.add(payload.len(), frame.payload_crc);
                    record.add(part, frame.begins, &payload);
                }
                (FrameKind::End, _) => {
                    let Some(end) = RecordEnd::decode(&payload) else { return Ok(None) };
                    record.kind = end.kind;
                    return Ok((pieces.end(end.kind) == end).then_some(record));
                }
                _ => return Ok(None),
            }
        }
        Ok(None)
    }
}
