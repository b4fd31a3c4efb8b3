//! The log as its one writer has it: opened, appended to, trimmed. Single-threaded; who waits for what is `ingest_log.rs`.

use std::path::Path;
use std::sync::Arc;

use super::backlog::Backlog;
use super::dedup::{Bounds, Dedup, Known};
use super::error::IngestError;
use super::format::{ROWS, RowsHeader, SNAPSHOT, SnapshotHeader, content, corrupt, decode, encode, record};
use super::ingest_log::{Accepted, IngestSettings};
use super::parse::Rows;
use crate::disk::Disk;
use crate::log::{Durability, QueryLog, RecordRef};
use crate::record::Schema;

/// What the log adds to the header and the rows of a request, about.
const RECORD_EXTRA_BYTES: u64 = 160;

#[derive(Debug)]
pub(super) struct Writer {
    log: QueryLog,
    schema: String,
    settings: IngestSettings,
    known: Known,
    backlog: Backlog,
    /// Where segments begin: their snapshot, and the row behind it. Never empty.
    segments: Vec<(RecordRef, u64)>,
    /// Of rows behind the last snapshot.
    segment_bytes: u64,
    next_row: u64,
    /// Rows before this one are consumed.
    consumed: u64,
    /// When the last request was taken: time does not go back.
    at_ms: i64,
}

/// Seeds the checksums of the log, so that no segment of the query's own log passes for one of these.
pub(super) fn log_id(query_id: &str) -> String {
    format!("ingest {query_id}")
}

impl Writer {
    pub(super) fn open(
        disk: Arc<dyn Disk>,
        dir: &Path,
        query_id: &str,
        schema: &Schema,
        settings: IngestSettings,
    ) -> Result<Self, IngestError> {
        let (log, records) = QueryLog::open(disk, dir, &log_id(query_id))?;
        let mut writer = Self {
            // It is this module that begins segments, each with a snapshot.
            log: log.with_segment_bytes(u64::MAX),
            schema: schema.to_string(),
            settings,
            known: Known::default(),
            backlog: Backlog::default(),
            segments: Vec::new(),
            segment_bytes: 0,
            next_row: 0,
            consumed: 0,
            at_ms: i64::MIN,
        };
        let last_schema = writer.replay(&records)?;
        let ends_with_snapshot = records.last().is_some_and(|last| last.kind == SNAPSHOT);
        if !ends_with_snapshot || last_schema.as_deref() != Some(&writer.schema) {
            if !ends_with_snapshot {
                writer.log.roll()?;
            }
            writer.snapshot()?;
            writer.log.sync()?;
        }
        Ok(writer)
    }

    /// Learns what stands in the log; gives the schema of its last rows.
    fn replay(&mut self, records: &[RecordRef]) -> Result<Option<String>, IngestError> {
        let reader = self.log.reader();
        let last_snapshot = records.iter().rposition(|record| record.kind == SNAPSHOT);
        let mut schema = None;
        for (index, at) in records.iter().enumerate() {
            match at.kind {
                SNAPSHOT => {
                    let header: SnapshotHeader = decode(&reader.read_header(at)?)?;
                    if index > 0 && header.next_row < self.next_row {
                        return Err(corrupt("a snapshot tells of fewer rows than there are"));
                    }
                    self.backlog.begin(header.next_row);
                    if Some(index) == last_snapshot {
                        self.known = decode(&content(reader.read(at)?)?)?;
                        self.segment_bytes = 0;
                    }
                    self.next_row = header.next_row;
                    // A new end for what came before, whose records are not looked at one by one.
                    self.backlog.add(self.next_row, 0);
                    self.segments.push((*at, header.next_row));
                    schema = Some(header.schema);
                }
                ROWS if self.segments.is_empty() => return Err(corrupt("its first record is no snapshot")),
                ROWS if last_snapshot.is_some_and(|last| last < index) => {
                    let header: RowsHeader = decode(&reader.read_header(at)?)?;
                    if header.first_row != self.next_row {
                        return Err(corrupt("the rows of a request are not those that come next"));
                    }
                    self.take(&header, at)?;
                }
                ROWS => self.backlog.add(self.next_row, at.bytes + RECORD_EXTRA_BYTES),
                _ => return Err(corrupt("a record has a kind that this version does not know")),
            }
        }
        Ok(schema)
    }

    /// Puts a request into the log, to be made durable by [`Writer::sync`], or tells why not.
    pub(super) fn stage(&mut self, rows: &Rows, dedup: Dedup, now_ms: i64) -> Result<Accepted, IngestError> {
        let now_ms = now_ms.max(self.at_ms);
        let bounds = Bounds { producers_max: self.settings.producers_max, keys_max: self.settings.keys_max };
        if let Some(answer) = self.known.check(&dedup, rows.digest(), now_ms, bounds)? {
            return Ok(answer);
        }
        let (unread_bytes, bytes_max) = (self.unread_bytes(), self.settings.backlog_bytes_max);
        if unread_bytes > 0 && unread_bytes.saturating_add(rows.packed().len() as u64) > bytes_max {
            return Err(IngestError::BacklogFull { unread_bytes, bytes_max });
        }
        let header =
            RowsHeader { first_row: self.next_row, rows: rows.count(), at_ms: now_ms, dedup, digest: rows.digest() };
        let bytes = encode(&header)?;
        let at = self.log.append(record(ROWS, &bytes, rows.packed()), Durability::WithNext)?;
        self.take(&header, &at)?;
        Ok(Accepted { first_row: header.first_row, rows: header.rows, end: self.next_row, repeated: false })
    }

    /// Makes durable what was staged.
    pub(super) fn sync(&mut self) -> Result<(), IngestError> {
        self.log.sync()?;
        Ok(())
    }

    /// Begins a new segment if this one has grown.
    pub(super) fn roll_if_grown(&mut self) -> Result<(), IngestError> {
        if self.segment_bytes >= self.settings.segment_bytes {
            self.log.roll()?;
            self.snapshot()?;
        }
        Ok(())
    }

    /// Takes note that the rows before this one are consumed.
    pub(super) fn consumed(&mut self, row: u64) {
        self.consumed = self.consumed.max(row.min(self.next_row));
        self.backlog.forget_before(self.consumed);
    }

    /// Removes the segments that hold only rows before this one.
    pub(super) fn trim(&mut self, before_row: u64) -> Result<(), IngestError> {
        let behind = self.segments.partition_point(|(_, first_row)| *first_row <= before_row);
        let Some(kept) = behind.checked_sub(1) else { return Ok(()) };
        if let Some((first, _)) = self.segments.get(kept).copied() {
            self.log.remove_segments_before(&first)?;
            self.segments.drain(..kept);
        }
        Ok(())
    }

    pub(super) fn next_row(&self) -> u64 {
        self.next_row
    }

    /// The oldest row that is still there.
    pub(super) fn first_row(&self) -> u64 {
        self.segments.first().map_or(self.next_row, |(_, row)| *row)
    }

    pub(super) fn unread_bytes(&self) -> u64 {
        self.backlog.bytes_from(self.consumed)
    }

    fn snapshot(&mut self) -> Result<(), IngestError> {
        let header = encode(&SnapshotHeader { next_row: self.next_row, schema: self.schema.clone() })?;
        let known = encode(&self.known)?;
        let at = self.log.append(record(SNAPSHOT, &header, &known), Durability::WithNext)?;
        self.backlog.begin(self.next_row);
        self.segments.push((at, self.next_row));
        self.segment_bytes = 0;
        Ok(())
    }

    fn take(&mut self, request: &RowsHeader, at: &RecordRef) -> Result<(), IngestError> {
        let end = request.first_row.checked_add(request.rows);
        self.next_row = end.ok_or_else(|| corrupt("a request has more rows than can be counted"))?;
        self.known.learn(request);
        self.at_ms = self.at_ms.max(request.at_ms);
        self.backlog.add(self.next_row, at.bytes + RECORD_EXTRA_BYTES);
        self.segment_bytes += at.bytes + RECORD_EXTRA_BYTES;
        Ok(())
    }
}
