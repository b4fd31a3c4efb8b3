//! Rows of one stream on their way into a slice: decoded, or rejected with what they were.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};

use super::csv_reader::{CsvDialect, CsvHeader, CsvReader};
use super::framing::{EXCERPT_BYTES_MAX, ROW_BYTES_MAX, RawRow, RowEnd};
use super::json_reader::JsonReader;
use super::scalar::is_scalar;
use super::table::{ROW_TOO_LONG, RowFault, Table};
use crate::connect::map_keys::{DUPLICATE_MAP_KEY, MapKeys, without_rows};
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
pub(crate) struct Columns {
    /// As the source has them.
    pub all: SchemaRef,
    /// As they are wanted.
    pub wanted: SchemaRef,
}

/// Decodes the rows of one stream.
#[derive(Debug)]
pub(crate) struct TextDecoder {
    origin: Arc<str>,
    columns: Columns,
    format: RowFormat,
    table: Table,
    /// Bytes of text in the table.
    table_bytes: u64,
    /// Where rows may still turn out to be bad once they are in the table.
    doubts: Option<Doubts>,
}

/// The good rows of a table with their texts, until their MAPs have been checked.
#[derive(Debug)]
struct Doubts {
    map_keys: MapKeys,
    texts: Vec<u8>,
    /// Number of the row and end of its text.
    rows: Vec<(u64, usize)>,
}

#[derive(Debug)]
enum RowFormat {
    Json(JsonReader),
    /// Its header is still to come.
    CsvAbove(CsvDialect),
    Csv(CsvReader),
}

impl RowFormat {
    /// Whether a blank row has fields nevertheless: a blank may be what stands between them.
    fn has_fields(&self, blank: &[u8]) -> bool {
        match self {
            Self::Json(_) => false,
            Self::CsvAbove(dialect) => blank.contains(&dialect.delimiter),
            Self::Csv(reader) => blank.contains(&reader.delimiter()),
        }
    }
}

impl TextDecoder {
    /// At the start of a stream; `origin` names it in rejected rows. None: a type is not canonical.
    pub(crate) fn new(format: &TextFormat, columns: Columns, origin: Arc<str>) -> Option<Self> {
        let table = Table::new(Arc::clone(&columns.wanted))?;
        let format = match format {
            TextFormat::JsonLines => RowFormat::Json(JsonReader::default()),
            TextFormat::Csv(dialect) if dialect.header == CsvHeader::FirstRow => RowFormat::CsvAbove(dialect.clone()),
            TextFormat::Csv(dialect) => {
                RowFormat::Csv(CsvReader::by_position(dialect, columns.all.fields(), columns.wanted.fields()))
            }
        };
        let map_keys = MapKeys::of(&columns.wanted).ok()?;
        let doubts = map_keys.map(|map_keys| Doubts { map_keys, texts: Vec::new(), rows: Vec::new() });
        Some(Self { origin, columns, format, table, table_bytes: 0, doubts })
    }

    /// Takes the row that names the columns, with its line end.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read_header(&mut self, row: RawRow<'_>) -> Result<(), String> {
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
    pub(crate) fn read(&mut self, row: RawRow<'_>, number: u64, slice: &mut Slice) -> Result<bool, ArrowError> {
        let content = if number == 1 { without_mark(row.content()) } else { row.content() };
        if is_blank(content) && !self.format.has_fields(content) {
            return Ok(false);
        }
        let result = match &mut self.format {
            _ if row.is_cut() => Err(too_long(row)),
            RowFormat::Json(reader) => reader.read(content, &mut self.table),
            RowFormat::Csv(reader) => reader.read(content, &mut self.table),
            RowFormat::CsvAbove(_) => Err(RowFault::malformed("the header is missing")),
        };
        match (result, &mut self.doubts) {
            (Ok(()), None) => {}
            (Ok(()), Some(doubts)) => doubts.keep(number, content),
            (Err(fault), _) => slice.rejected.push(self.rejected(content, number, fault)),
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
    pub(crate) fn flush(&mut self, slice: &mut Slice) -> Result<(), ArrowError> {
        self.table_bytes = 0;
        let Some(batch) = self.table.take()? else { return Ok(()) };
        match self.doubts.take() {
            None => slice.batches.push(batch),
            Some(doubts) => slice.batches.extend(self.check(batch, doubts, &mut slice.rejected)?),
        }
        Ok(())
    }

    /// Leaves out the rows whose MAPs have a key twice.
    fn check(
        &mut self,
        batch: RecordBatch,
        doubts: Doubts,
        rejected: &mut Vec<RejectedRow>,
    ) -> Result<Option<RecordBatch>, ArrowError> {
        let bad = doubts.map_keys.bad_rows(&batch).map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
        for row in &bad {
            let (number, text) = doubts.row(row.row);
            let reason = format!("column `{}`: {}", row.column, row.problem);
            rejected.push(self.rejected(text, number, RowFault { code: DUPLICATE_MAP_KEY, reason }));
        }
        self.doubts = Some(doubts.emptied());
        if bad.is_empty() {
            return Ok(Some(batch));
        }
        // Rows of this stream stand at the end; they are told in order.
        let other = rejected.iter().rposition(|row| *row.origin != *self.origin);
        if let Some(own) = rejected.get_mut(other.map_or(0, |other| other + 1)..) {
            own.sort_by_key(|row| row.row);
        }
        let good = without_rows(&batch, bad.iter().map(|row| row.row))?;
        Ok((good.num_rows() > 0).then_some(good))
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

impl Doubts {
    fn keep(&mut self, number: u64, content: &[u8]) {
        self.texts.extend_from_slice(content.get(..EXCERPT_BYTES_MAX).unwrap_or(content));
        self.rows.push((number, self.texts.len()));
    }

    /// Number and text of a row of the batch.
    fn row(&self, row: usize) -> (u64, &[u8]) {
        let start = row.checked_sub(1).and_then(|before| self.rows.get(before)).map_or(0, |(_, end)| *end);
        let (number, end) = self.rows.get(row).copied().unwrap_or_default();
        (number, self.texts.get(start..end).unwrap_or_default())
    }

    fn emptied(mut self) -> Self {
        self.texts.clear();
        self.rows.clear();
        self
    }
}

fn too_long(row: RawRow<'_>) -> RowFault {
    RowFault {
        code: ROW_TOO_LONG,
        reason: format!("the row has {} bytes; at most {ROW_BYTES_MAX} are read", row.stream_bytes),
    }
}

/// Whether a row is nothing but blanks: it does not count.
pub(crate) fn is_blank(row: &[u8]) -> bool {
    row.iter().all(u8::is_ascii_whitespace)
}

/// Drops the byte order mark that some programs put in front of UTF-8.
pub(crate) fn without_mark(row: &[u8]) -> &[u8] {
    row.strip_prefix(b"\xef\xbb\xbf").unwrap_or(row)
}
