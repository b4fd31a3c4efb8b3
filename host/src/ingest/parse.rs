//! The body of a request to rows of the query, checked to the last value: what is taken never fails later.

use std::sync::Arc;

use arrow_array::RecordBatch;
use xxhash_rust::xxh3::xxh3_128;

use super::error::ParseError;
use crate::connect::{Columns, DUPLICATE_MAP_KEY, RowCutter, TextDecoder, TextFormat, bad_row_code};
use crate::engine::source::Slice;
use crate::record::{BadRow, CastError, EncodeError, RowEncoder, RowLayout, Schema, cast_batch, push_row};

mod arrow_layout;
mod arrow_stream;

/// How the rows of a request are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFormat {
    /// One JSON object per line; blank lines do not count.
    JsonLines,
    /// An Arrow IPC stream without compression, dictionaries, views or runs. Columns that the query has not are left out.
    ArrowStream,
}

/// Bounds of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyLimits {
    /// Rows.
    pub rows_max: u64,
    /// Bytes of the body. In the log its rows may take four times as many.
    pub bytes_max: u64,
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self { rows_max: 100_000, bytes_max: 16 << 20 }
    }
}

impl BodyLimits {
    pub(super) fn packed_bytes_max(&self) -> u64 {
        self.bytes_max.saturating_mul(4)
    }
}

/// Rows of a request: packed, so equal rows are equal bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    packed: Vec<u8>,
    count: u64,
    digest: u128,
}

impl Rows {
    fn new(packed: Vec<u8>, count: u64) -> Self {
        let digest = xxh3_128(&packed);
        Self { packed, count, digest }
    }

    /// How many they are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// A list as [`PackedRows`](crate::record::PackedRows) reads it.
    pub(super) fn packed(&self) -> &[u8] {
        &self.packed
    }

    /// XXH3-128 of the list.
    pub(super) fn digest(&self) -> u128 {
        self.digest
    }
}

/// Reads the body of a request as rows of this schema.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn parse(format: BodyFormat, body: &[u8], schema: &Schema, limits: &BodyLimits) -> Result<Rows, ParseError> {
    let bytes = body.len() as u64;
    if bytes > limits.bytes_max {
        return Err(ParseError::TooManyBytes { bytes, bytes_max: limits.bytes_max });
    }
    let mut packer = Packer { layout: RowLayout::new(schema), limits: *limits, packed: Vec::new(), count: 0 };
    match format {
        BodyFormat::JsonLines => read_json_lines(body, &mut packer)?,
        BodyFormat::ArrowStream => read_arrow_stream(body, &mut packer)?,
    }
    Ok(Rows::new(packer.packed, packer.count))
}

fn read_json_lines(body: &[u8], packer: &mut Packer) -> Result<(), ParseError> {
    let format = TextFormat::JsonLines;
    let columns = Arc::clone(packer.layout.arrow_schema());
    let columns = Columns { all: Arc::clone(&columns), wanted: columns };
    let defect = |problem: &dyn ToString| ParseError::Body { reason: problem.to_string() };
    let mut decoder = TextDecoder::new(&format, columns, "body".into())
        .ok_or_else(|| packer.schema_error("a column has a type that JSON Lines cannot hold"))?;
    let mut cutter = RowCutter::new(format.row_end());
    cutter.push(body);
    cutter.finish();
    let (mut slice, mut line, mut rows) = (Slice::default(), 0, 0);
    while let Some(row) = cutter.next_row() {
        line += 1;
        rows += u64::from(decoder.read(row, line, &mut slice).map_err(|error| defect(&error))?);
        packer.check_rows(rows)?;
        packer.take(&mut slice)?;
    }
    decoder.flush(&mut slice).map_err(|error| defect(&error))?;
    packer.take(&mut slice)
}

fn read_arrow_stream(body: &[u8], packer: &mut Packer) -> Result<(), ParseError> {
    let schema = packer.layout.schema().clone();
    for batch in arrow_stream::batches(body, packer.limits.rows_max)? {
        let batch = batch?;
        packer.check_rows(packer.count + batch.num_rows() as u64)?;
        let batch = cast_batch(&batch, &schema).map_err(|error| match error {
            CastError::BadRows(bad) => packer.bad_row(&bad, None),
            error => packer.schema_error(&error.to_string()),
        })?;
        packer.pack(&batch)?;
    }
    Ok(())
}

/// Gathers rows.
struct Packer {
    layout: RowLayout,
    limits: BodyLimits,
    packed: Vec<u8>,
    count: u64,
}

impl Packer {
    fn check_rows(&self, rows: u64) -> Result<(), ParseError> {
        let rows_max = self.limits.rows_max;
        if rows > rows_max { Err(ParseError::TooManyRows { rows_max }) } else { Ok(()) }
    }

    fn take(&mut self, slice: &mut Slice) -> Result<(), ParseError> {
        if let Some(bad) = slice.rejected.first() {
            let (row, row_code, reason) = (bad.row, bad.code.clone(), bad.reason.clone());
            return Err(ParseError::Row { row, row_code, reason });
        }
        slice.batches.drain(..).try_for_each(|batch| self.pack(&batch))
    }

    fn pack(&mut self, batch: &RecordBatch) -> Result<(), ParseError> {
        let encoder = RowEncoder::new(&self.layout, batch).map_err(|error| match error {
            EncodeError::BadRows(bad) => self.bad_row(&bad, Some(DUPLICATE_MAP_KEY)),
            error => ParseError::Body { reason: error.to_string() },
        })?;
        let mut packed = Vec::new();
        for row in 0..encoder.rows() {
            packed.clear();
            encoder.encode(row, &mut packed);
            push_row(&mut self.packed, &packed);
            let (bytes, bytes_max) = (self.packed.len() as u64, self.limits.packed_bytes_max());
            if bytes > bytes_max {
                return Err(ParseError::TooManyBytes { bytes, bytes_max });
            }
        }
        self.count += encoder.rows() as u64;
        Ok(())
    }

    fn bad_row(&self, bad: &[BadRow], code: Option<&'static str>) -> ParseError {
        let Some(first) = bad.first() else { return ParseError::Body { reason: "a row does not fit".to_owned() } };
        ParseError::Row {
            row: self.count + first.row as u64 + 1,
            row_code: code.unwrap_or_else(|| bad_row_code(first)).to_owned(),
            reason: format!("column `{}`: {}", first.column, first.problem),
        }
    }

    fn schema_error(&self, reason: &str) -> ParseError {
        ParseError::Schema { wanted: self.layout.schema().to_string(), reason: reason.to_owned() }
    }
}
