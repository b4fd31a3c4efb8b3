//! Rows of one stream on their way into a slice: decoded, or rejected with what they were.

use std::sync::Arc;

use arrow_schema::{ArrowError, SchemaRef};

use super::csv_reader::{CsvDialect, CsvHeader, CsvReader};
use super::framing::{EXCERPT_BYTES_MAX, ROW_BYTES_MAX, RawRow, RowEnd};
use super::json_reader::JsonReader;
use super::scalar::is_scalar;
use super::table::{ROW_TOO_LONG, RowFault, Table};
use crate::engine::source::{RejectedRow, Slice};

/// Rows of one record batch: many enough that a batch costs nothing per row, few enough to stay in the cache.
const BATCH_ROWS_MAX: usize = 16 << 10;

/// Bytes of text of one record batch. Keeps the 32-bit offsets of Arrow's arrays from overflowing by far.
const BATCH_BYTES_MAX: u64 = 16 << 20;

/// A text format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextFormat {
    /// One JSON object per line.
    JsonLines,
    /// Comma-separated values.
    Csv(CsvDialect),
}

impl TextFormat {
    /// Where rows end.
    pub fn row_end(&self) -> RowEnd {
        match self {
            Self::JsonLines => RowEnd::LineFeed,
            Self::Csv(dialect) => RowEnd::LineFeedOutsideQuotes { delimiter: dialect.delimiter },
        }
    }

    /// Whether the first row of a stream names the columns.
    pub fn has_header(&self) -> bool {
        matches!(self, Self::Csv(CsvDialect { header: CsvHeader::FirstRow, .. }))
    }

    /// The first column that the format cannot hold.
    pub fn unsupported_column<'s>(&self, schema: &'s arrow_schema::Schema) -> Option<&'s str> {
        let mut fields = schema.fields().iter();
        let nested = fields.find(|field| !is_scalar(field.data_type()));
        nested.filter(|_| matches!(self, Self::Csv(_))).map(|field| field.name().as_str())
    }
}

/// The columns of a source: all of them, and those that are read.
#[derive(Debug, Clone)]
pub struct Columns {
    /// As the source has them.
    pub all: SchemaRef,
    /// As they are wanted.
    pub wanted: SchemaRef,
}

/// Decodes the rows of one stream.
#[derive(Debug)]
pub struct TextDecoder {
    origin: Arc<str>,
    columns: Columns,
    format: RowFormat,
    table: Table,
    /// Bytes of text in the table.
    table_bytes: u64,
}

#[derive(Debug)]
enum RowFormat {
    Json(JsonReader),
    /// Its header is still to come.
    CsvAbove(CsvDialect),
    Csv(CsvReader),
}

impl TextDecoder {
    /// At the start of a stream; `origin` names it in rejected rows. None: a type is not canonical.
    pub fn new(format: &TextFormat, columns: Columns, origin: Arc<str>) -> Option<Self> {
        let table = Table::new(Arc::clone(&columns.wanted))?;
        let format = match format {
            TextFormat::JsonLines => RowFormat::Json(JsonReader::default()),
            TextFormat::Csv(dialect) if dialect.header == CsvHeader::FirstRow => RowFormat::CsvAbove(dialect.clone()),
            TextFormat::Csv(dialect) => {
                RowFormat::Csv(CsvReader::by_position(dialect, columns.all.fields(), columns.wanted.fields()))
            }
        };
        Some(Self { origin, columns, format, table, table_bytes: 0 })
    }

    /// Takes the row that names the columns, with its line end.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read_header(&mut self, row: RawRow<'_>) -> Result<(), String> {
        if row.is_cut() {
            return Err(too_long(row).reason);
        }
        if let RowFormat::CsvAbove(dialect) = &self.format {
            let header = without_mark(row.content());
            self.format = RowFormat::Csv(CsvReader::below_header(dialect, header, self.columns.wanted.fields())?);
        }
        Ok(())
    }

    /// Takes the row with this number, from 1. Returns whether it counts: a blank one does not.
    ///
    /// # Errors
    /// Arrow's, which would be a defect.
    pub fn read(&mut self, row: RawRow<'_>, number: u64, slice: &mut Slice) -> Result<bool, ArrowError> {
        let content = if number == 1 { without_mark(row.content()) } else { row.content() };
        if content.iter().all(u8::is_ascii_whitespace) {
            return Ok(false);
        }
        let result = match &mut self.format {
            _ if row.is_cut() => Err(too_long(row)),
            RowFormat::Json(reader) => reader.read(content, &mut self.table),
            RowFormat::Csv(reader) => reader.read(content, &mut self.table),
            RowFormat::CsvAbove(_) => Err(RowFault::malformed("the header is missing")),
        };
        if let Err(fault) = result {
            slice.rejected.push(self.rejected(content, number, fault));
        }
        self.table_bytes += row.bytes.len() as u64;
        if self.table.rows() >= BATCH_ROWS_MAX || self.table_bytes >= BATCH_BYTES_MAX {
            self.flush(slice)?;
        }
        Ok(true)
    }

    /// Hands over the rows that were decoded.
    ///
    /// # Errors
    /// Arrow's, which would be a defect.
    pub fn flush(&mut self, slice: &mut Slice) -> Result<(), ArrowError> {
        self.table_bytes = 0;
        slice.batches.extend(self.table.take()?);
        Ok(())
    }

    fn rejected(&self, content: &[u8], row: u64, fault: RowFault) -> RejectedRow {
        let text = content.get(..EXCERPT_BYTES_MAX).unwrap_or(content);
        RejectedRow {
            origin: self.origin.to_string(),
            row,
            code: fault.code.to_owned(),
            reason: fault.reason,
            text: String::from_utf8_lossy(text).into_owned(),
        }
    }
}

fn too_long(row: RawRow<'_>) -> RowFault {
    RowFault {
        code: ROW_TOO_LONG,
        reason: format!("the row has {} bytes; at most {ROW_BYTES_MAX} are read", row.stream_bytes),
    }
}

/// Drops the byte order mark that some programs put in front of UTF-8.
pub fn without_mark(row: &[u8]) -> &[u8] {
    row.strip_prefix(b"\xef\xbb\xbf").unwrap_or(row)
}
