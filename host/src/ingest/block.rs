//! Finds the rows of a log by their numbers, request by request, while another process appends to it.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::error::IngestError;
use super::format::{ROWS, RowsHeader, SNAPSHOT, SnapshotHeader, content, corrupt, decode};
use super::writer::log_id;
use crate::disk::Disk;
use crate::log::{LogFollower, Record, RecordStream};
use crate::record::{PackedRows, RowLayout, Schema};

/// The rows of one request, read one after the other.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) layout: RowLayout,
    rows: Range<u64>,
    packed: Vec<u8>,
    /// The row that is read next, and where it stands.
    next: u64,
    at: usize,
}

impl Block {
    /// Goes to a row of the block.
    fn seek(&mut self, row: u64) -> Result<(), IngestError> {
        if row < self.next {
            (self.next, self.at) = (self.rows.start, 0);
        }
        while self.next < row {
            self.next_row()?;
        }
        Ok(())
    }

    /// Reads the next row. None: the block has no more.
    pub(super) fn next_row(&mut self) -> Result<Option<&[u8]>, IngestError> {
        if self.next >= self.rows.end {
            return Ok(None);
        }
        let rest = self.packed.get(self.at..).unwrap_or_default();
        let row = PackedRows::new(rest).next().ok_or_else(|| corrupt("a request has fewer rows than it says"))?;
        let row = row.map_err(|error| corrupt(format!("row {}: {error}", self.next)))?;
        self.next += 1;
        // Behind the head of 8 bytes.
        self.at += 8 + row.len();
        Ok(Some(row))
    }
}

/// Reads blocks in order, and goes to any row that is durable.
pub(super) struct BlockReader {
    log: LogFollower,
    open: Option<Open>,
    block: Option<Block>,
}

/// A segment between two records.
struct Open {
    stream: RecordStream,
    layout: RowLayout,
    next_row: u64,
}

impl BlockReader {
    pub(super) fn new(disk: Arc<dyn Disk>, dir: &Path, query_id: &str) -> Self {
        Self { log: LogFollower::new(disk, dir, &log_id(query_id)), open: None, block: None }
    }

    /// Another reader of the same log.
    pub(super) fn another(&self) -> Self {
        Self { log: self.log.clone(), open: None, block: None }
    }

    /// The block that has this row, which is durable, standing at the row.
    pub(super) fn block_at(&mut self, row: u64) -> Result<&mut Block, IngestError> {
        let block = match self.block.take() {
            Some(block) if block.rows.contains(&row) => block,
            _ => self.find(row)?,
        };
        let block = self.block.insert(block);
        block.seek(row)?;
        Ok(block)
    }

    fn find(&mut self, row: u64) -> Result<Block, IngestError> {
        // What is open goes on only if it stands before the row, and may have ended or been replaced.
        if let Some(mut open) = self.open.take().filter(|open| open.next_row <= row)
            && let Some(block) = open.find(row)?
        {
            self.open = Some(open);
            return Ok(block);
        }
        let mut open = self.open_segment_of(row)?;
        let block = open.find(row)?.ok_or_else(|| open.stream.missing())?;
        self.open = Some(open);
        Ok(block)
    }

    fn open_segment_of(&self, row: u64) -> Result<Open, IngestError> {
        let mut oldest = None;
        for start in self.log.segments()?.into_iter().rev() {
            let mut stream = self.log.open(start.segment)?;
            // A segment that was just begun has no record yet, and so no row that is durable.
            let Some(first) = stream.next_record()? else { continue };
            let open = Open::behind_snapshot(stream, &first)?;
            if open.next_row <= row {
                return Ok(open);
            }
            oldest = Some(open.next_row);
        }
        Err(IngestError::RowsGone { row, oldest })
    }
}

impl Open {
    fn behind_snapshot(stream: RecordStream, record: &Record) -> Result<Self, IngestError> {
        if record.kind != SNAPSHOT {
            return Err(corrupt("the first record of a segment is no snapshot"));
        }
        let header: SnapshotHeader = decode(&record.header)?;
        Ok(Self { stream, layout: layout_of(&header)?, next_row: header.next_row })
    }

    /// None: this segment does not have the row, or not yet.
    fn find(&mut self, row: u64) -> Result<Option<Block>, IngestError> {
        while let Some(record) = self.stream.next_record()? {
            match record.kind {
                SNAPSHOT => {
                    let header: SnapshotHeader = decode(&record.header)?;
                    self.layout = layout_of(&header)?;
                }
                ROWS => {
                    let header: RowsHeader = decode(&record.header)?;
                    let end = header.first_row.checked_add(header.rows);
                    let rows = match end {
                        Some(end) if header.first_row == self.next_row => header.first_row..end,
                        _ => return Err(corrupt("the rows of a request are not those that come next")),
                    };
                    self.next_row = rows.end;
                    if rows.contains(&row) {
                        let (layout, next) = (self.layout.clone(), rows.start);
                        return Ok(Some(Block { layout, rows, packed: content(record)?, next, at: 0 }));
                    }
                }
                _ => return Err(corrupt("a record has a kind that this version does not know")),
            }
        }
        Ok(None)
    }
}

fn layout_of(header: &SnapshotHeader) -> Result<RowLayout, IngestError> {
    let schema = Schema::parse(&header.schema);
    Ok(RowLayout::new(&schema.map_err(|error| corrupt(format!("the schema of a snapshot: {error}")))?))
}

impl std::fmt::Debug for BlockReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockReader").field("log", &self.log).finish_non_exhaustive()
    }
}
