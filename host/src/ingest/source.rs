//! The rows of the log as a source of the engine, in the process that runs the query.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::block::BlockReader;
use super::durable_end::DurableEnd;
use super::error::IngestError;
use super::format::corrupt;
use crate::connect::{ReadError, bad_row_code, check_projection, without_rows};
use crate::disk::Disk;
use crate::engine::source::{Outlook, ReadLimits, RejectedRow, Slice, Source, SourceError, SourceRange};
use crate::record::{BadRow, CastError, RowDecoder, RowEncoder, RowLayout, Schema, cast_batch, row_to_json};

/// For people, and the origin of rejected rows.
const NAME: &str = "ingest";

/// Key of the bookkeeping: the row behind all committed ones.
const POSITION: &[u8] = b"position";

/// Rows of one record batch: many enough that a batch costs nothing per row, few enough to stay in the cache.
const BATCH_ROWS_MAX: usize = 16 << 10;

/// Bytes of one record batch, unless one row is larger.
const BATCH_BYTES_MAX: usize = 16 << 20;

/// Reads the rows of an ingest log that are durable. It never writes.
#[derive(Debug)]
pub struct IngestSource {
    schema: Schema,
    wanted: Schema,
    durable: DurableEnd,
    blocks: BlockReader,
    /// Of a second reading of committed rows, which leaves the first where it is.
    again: BlockReader,
    position: u64,
}

/// Rows from `first`, up to but not including `end`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct IngestRange {
    first: u64,
    end: u64,
    /// XXH3-128 of the packed rows, in hex.
    digest: String,
}

impl IngestSource {
    /// Reads the log of this query in `dir`, which need not exist before the first row is durable. Rows written under another
    /// schema are read as rows of this one.
    pub fn new(disk: Arc<dyn Disk>, dir: &Path, query_id: &str, schema: Schema, durable: DurableEnd) -> Self {
        let blocks = BlockReader::new(disk, dir, query_id);
        let again = blocks.another();
        Self { wanted: schema.clone(), schema, durable, blocks, again, position: 0 }
    }
}

/// The rows that a committed range of an [`IngestSource`] has, from the first up to but not including the end.
///
/// # Errors
/// `SOURCE_POSITION_INVALID`: it is no such range.
pub fn rows_of(range: &SourceRange) -> Result<Range<u64>, SourceError> {
    let range = IngestRange::of(range)?;
    Ok(range.first..range.end)
}

impl Source for IngestSource {
    fn describe(&self) -> String {
        NAME.to_owned()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn project(&mut self, columns: &Schema) -> Result<(), SourceError> {
        check_projection(&self.schema, columns, NAME)?;
        self.wanted = columns.clone();
        Ok(())
    }

    fn restore(&mut self, bookkeeping: Vec<(Vec<u8>, Vec<u8>)>, last: Option<&SourceRange>) -> Result<(), SourceError> {
        let noted = bookkeeping.into_iter().find(|(key, _)| key == POSITION);
        self.position = match (noted, last) {
            (Some((_, position)), _) => position_of(&position)?,
            (None, Some(last)) => IngestRange::of(last)?.end,
            (None, None) => 0,
        };
        Ok(())
    }

    fn next(&mut self, limits: &ReadLimits) -> Result<Option<Slice>, SourceError> {
        let durable = self.durable.get();
        if self.position >= durable {
            return Ok(None);
        }
        let mut reading = Reading::new(&self.wanted);
        let end = reading.read(&mut self.blocks, self.position..durable, limits)?;
        let mut slice = reading.slice(self.position..end)?;
        // Batches without rows may go on until the query's log no longer holds the last one with some.
        slice.bookkeeping.push((POSITION.to_vec(), Some(end.to_string().into_bytes())));
        self.position = end;
        Ok(Some(slice))
    }

    fn outlook(&self) -> Outlook {
        Outlook::Growing
    }

    fn read_again(&mut self, range: &SourceRange) -> Result<Slice, SourceError> {
        read_exactly(&mut self.again, &self.wanted, range)
    }

    fn verify(&self, range: &SourceRange) -> Result<(), SourceError> {
        read_exactly(&mut self.blocks.another(), &self.schema, range).map(drop)
    }
}

fn read_exactly(blocks: &mut BlockReader, wanted: &Schema, range: &SourceRange) -> Result<Slice, SourceError> {
    const ALL: ReadLimits = ReadLimits { files_max: None, rows_max: u64::MAX, bytes_max: u64::MAX };
    let rows = rows_of(range)?;
    let mut reading = Reading::new(wanted);
    reading.read(blocks, rows.clone(), &ALL)?;
    let slice = reading.slice(rows.clone())?;
    if slice.range != *range {
        return Err(IngestError::RowsChanged { first: rows.start, end: rows.end }.into());
    }
    Ok(slice)
}

/// Rows on their way into a slice.
struct Reading<'a> {
    wanted: &'a Schema,
    slice: Slice,
    digest: Xxh3,
    /// The rows of the next batch, and the number of the first of them.
    batch: Option<(RowLayout, RowDecoder, u64)>,
}

impl<'a> Reading<'a> {
    fn new(wanted: &'a Schema) -> Self {
        Self { wanted, slice: Slice::default(), digest: Xxh3::new(), batch: None }
    }

    /// Reads rows until a limit is reached, at least one; gives the row behind the last.
    fn read(&mut self, blocks: &mut BlockReader, rows: Range<u64>, limits: &ReadLimits) -> Result<u64, IngestError> {
        let mut next = rows.start;
        let rows_end = rows.end.min(rows.start.saturating_add(limits.rows_max.max(1)));
        while next < rows_end && self.slice.bytes < limits.bytes_max.max(1) {
            let block = blocks.block_at(next)?;
            let layout = block.layout.clone();
            while next < rows_end
                && self.slice.bytes < limits.bytes_max.max(1)
                && let Some(row) = block.next_row()?
            {
                self.push(&layout, next, row)?;
                next += 1;
            }
        }
        self.flush()?;
        Ok(next)
    }

    fn push(&mut self, layout: &RowLayout, number: u64, row: &[u8]) -> Result<(), IngestError> {
        let is_full = |decoder: &RowDecoder| decoder.rows() >= BATCH_ROWS_MAX || decoder.bytes() >= BATCH_BYTES_MAX;
        let goes_on = |batch: &(RowLayout, RowDecoder, u64)| batch.0.schema() == layout.schema() && !is_full(&batch.1);
        if !self.batch.as_ref().is_some_and(goes_on) {
            self.flush()?;
        }
        let (_, decoder, _) = self.batch.get_or_insert_with(|| (layout.clone(), RowDecoder::new(layout), number));
        decoder.push(row).map_err(|fault| corrupt(format!("row {number}: {fault}")))?;
        self.digest.update(&(row.len() as u64).to_le_bytes());
        self.digest.update(row);
        self.slice.bytes += row.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), IngestError> {
        let Some((layout, decoder, first)) = self.batch.take() else { return Ok(()) };
        let batch = decoder.finish().map_err(|fault| corrupt(format!("a row from {first} on: {fault}")))?;
        let fitting = match cast_batch(&batch, self.wanted) {
            Err(CastError::BadRows(bad)) => {
                for bad in &bad {
                    self.slice.rejected.push(rejected(&layout, &batch, bad, first)?);
                }
                let good = without_rows(&batch, bad.iter().map(|bad| bad.row));
                cast_batch(&good.map_err(|error| corrupt(error.to_string()))?, self.wanted)
            }
            fitting => fitting,
        };
        let fitting = fitting.map_err(|error| IngestError::SchemaChanged { row: first, reason: error.to_string() })?;
        if fitting.num_rows() > 0 {
            self.slice.batches.push(fitting);
        }
        Ok(())
    }

    fn slice(self, rows: Range<u64>) -> Result<Slice, SourceError> {
        let digest = format!("{:032x}", self.digest.digest128());
        let range = IngestRange { first: rows.start, end: rows.end, digest };
        Ok(Slice { range: range.to_source_range()?, ..self.slice })
    }
}

/// A row that is fit for the query's input, but not for what the processor wants of it.
fn rejected(layout: &RowLayout, batch: &RecordBatch, bad: &BadRow, first: u64) -> Result<RejectedRow, IngestError> {
    let mut row = Vec::new();
    let encoder = RowEncoder::new(layout, &batch.slice(bad.row, 1)).map_err(|error| corrupt(error.to_string()))?;
    encoder.encode(0, &mut row);
    Ok(RejectedRow {
        origin: NAME.to_owned(),
        row: first + bad.row as u64 + 1,
        code: bad_row_code(bad).to_owned(),
        reason: format!("column `{}`: {}", bad.column, bad.problem),
        text: row_to_json(layout, &row).map_err(|fault| corrupt(fault.to_string()))?.to_string(),
    })
}

impl IngestRange {
    fn of(range: &SourceRange) -> Result<Self, SourceError> {
        match serde_json::from_value(range.at.clone()) {
            Ok(Self { first, end, digest }) if first <= end => Ok(Self { first, end, digest }),
            Ok(_) => Err(position_error("a range ends before it begins")),
            Err(error) => Err(position_error(error)),
        }
    }

    fn to_source_range(&self) -> Result<SourceRange, SourceError> {
        Ok(SourceRange { at: serde_json::to_value(self).map_err(position_error)?, inline: None })
    }
}

fn position_of(bytes: &[u8]) -> Result<u64, SourceError> {
    let text = std::str::from_utf8(bytes).map_err(position_error)?;
    text.parse().map_err(position_error)
}

fn position_error(reason: impl ToString) -> SourceError {
    ReadError::position(NAME, reason).into()
}

impl From<IngestError> for SourceError {
    fn from(error: IngestError) -> Self {
        Self { code: error.code(), message: error.to_string(), source: Some(Box::new(error)) }
    }
}
