//! Where rows come from.

use arrow_array::RecordBatch;

use crate::record::Schema;

/// How much one batch may read. A batch stops at the first bound that it reaches, at a row boundary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ReadLimits {
    /// Files begun in a batch; None: any number.
    pub files_max: Option<u64>,
    /// Rows in a batch.
    pub rows_max: u64,
    /// Bytes of input, decompressed, in a batch.
    pub bytes_max: u64,
}

/// What a batch took from a source. The range is all that a later read of the same rows needs.
#[derive(Debug, Default)]
pub struct Slice {
    /// Where the rows stand, in the source's own words; goes into the commit record.
    pub range: SourceRange,
    /// The rows, in order, with the columns of [`Source::schema`] in canonical Arrow types.
    pub batches: Vec<RecordBatch>,
    /// Rows that could not be read as the schema says, in order.
    pub rejected: Vec<RejectedRow>,
    /// What the source wants kept in the checkpoint, put with the batch's commit: (key, value), None deletes.
    pub bookkeeping: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Bytes of input, decompressed.
    pub bytes: u64,
}

impl Slice {
    /// Rows read, rejected ones not counted.
    pub fn rows(&self) -> u64 {
        self.batches.iter().map(|batch| batch.num_rows() as u64).sum()
    }
}

/// Where the rows of a slice stand.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SourceRange {
    /// In the source's own words, e.g. files with fingerprints and first and end rows.
    pub at: serde_json::Value,
    /// The bytes themselves, for a source that cannot be read again.
    #[serde(skip)]
    pub inline: Option<Vec<u8>>,
}

/// A row that does not fit the schema.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RejectedRow {
    /// File or stream, for people.
    pub origin: String,
    /// Row within it, from 1.
    pub row: u64,
    /// Stable code, e.g. `MALFORMED_ROW`, `NULL_IN_NOT_NULL_COLUMN`.
    pub code: String,
    /// What is wrong.
    pub reason: String,
    /// The row as it was read, lossily as text, cut at 64 KiB.
    pub text: String,
}

/// What may follow behind the position of a source that has no rows now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// Nothing, ever: a single file, a stream that has ended.
    Ended,
    /// A stream that is still open: `available-now` waits for its end.
    Open,
    /// A directory: files may come at any time, and `available-now` does not wait for them.
    Growing,
}

/// A sequence of rows with a position, readable again.
pub trait Source: Send {
    /// What this source is, for people: a path or `stdin`.
    fn describe(&self) -> String;

    /// All columns that it has.
    fn schema(&self) -> &Schema;

    /// Restricts what is read to these columns of [`Source::schema`] (same names and types, any order). A column may be
    /// NOT NULL here that is nullable there: its NULLs are then rejected rows. Called before the first read; between
    /// reads of committed ranges, it may be called anew.
    ///
    /// # Errors
    /// A column that the source lacks.
    fn project(&mut self, columns: &Schema) -> Result<(), SourceError>;

    /// Sets the position behind everything that was committed. `bookkeeping` are all the pairs that this source had
    /// put with committed batches, `last` the newest committed range.
    ///
    /// # Errors
    /// Committed input that has changed or vanished in a way that matters.
    fn restore(&mut self, bookkeeping: Vec<(Vec<u8>, Vec<u8>)>, last: Option<&SourceRange>) -> Result<(), SourceError>;

    /// Reads the next rows behind the position and moves it. None: there are none now. The caller either commits the
    /// slice or drops this source and opens it anew.
    ///
    /// # Errors
    /// Input that cannot be read.
    fn next(&mut self, limits: &ReadLimits) -> Result<Option<Slice>, SourceError>;

    /// What may follow behind the position.
    fn outlook(&self) -> Outlook;

    /// Reads a committed range again, bytes for bytes the same rows; does not move the position.
    ///
    /// # Errors
    /// `SOURCE_FILE_CHANGED` or `SOURCE_FILE_MISSING` when that is no longer possible.
    fn read_again(&mut self, range: &SourceRange) -> Result<Slice, SourceError>;

    /// Reads a committed range again whatever has become of it: the rows of the same numbers, as they are now.
    ///
    /// # Errors
    /// `SOURCE_FILE_MISSING`, input that cannot be read.
    fn read_changed(&mut self, range: &SourceRange) -> Result<Slice, SourceError> {
        self.read_again(range)
    }

    /// Whether a committed range still has the fingerprints of its record, without reading rows.
    ///
    /// # Errors
    /// As [`Source::read_again`].
    fn verify(&self, range: &SourceRange) -> Result<(), SourceError>;
}

/// Why rows could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SourceError {
    /// Stable code, e.g. `SOURCE_FILE_CHANGED`.
    pub code: &'static str,
    /// What happened, where, and what to do.
    pub message: String,
    /// The failure below.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}
