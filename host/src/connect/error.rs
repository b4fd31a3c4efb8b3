//! What can go wrong with sources and sinks, with the code and the words for a person.

use std::io;
use std::path::{Path, PathBuf};

use super::text::InferError;
use crate::engine::sink::SinkError;
use crate::engine::source::SourceError;
use crate::record::{CastError, SchemaError};

/// Why rows cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is nothing at the path.
    #[error("there is no file or directory {}; check source.path", path.display())]
    NotFound {
        /// As given.
        path: PathBuf,
    },
    /// The system or a decompressor says no.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file or directory.
        path: PathBuf,
        /// The failure.
        source: io::Error,
    },
    /// A Parquet file that is none, or a damaged one.
    #[error("{} is not a readable Parquet file: {problem}", path.display())]
    NotParquet {
        /// The file.
        path: PathBuf,
        /// As the reader tells it.
        problem: String,
    },
    /// A name that cannot be kept in the checkpoint.
    #[error("the file name {} is not UTF-8; rename the file", path.display())]
    NameNotUnicode {
        /// The file.
        path: PathBuf,
    },
    /// An entry of a directory that has no rows to give.
    #[error("{} is a link to nothing, or no regular file; remove it, or hide it behind a name that begins with a dot", path.display())]
    NotAFile {
        /// The entry.
        path: PathBuf,
    },
    /// A compressed file ends in the middle.
    #[error(
        "{} ends in the middle of its compressed data, after {rows} whole rows. Nothing of the batch was committed; put \
         the whole file in its place",
        path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Rows before the place where it ends.
        rows: u64,
    },
    /// A file in use is not what it was.
    #[error(
        "{} has changed since a batch named it: {detail}. {row} rows of it are committed; put the file back as it was, or \
         begin with a new checkpoint. Files must be complete when they appear, and new rows come in new files",
        path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
        /// Rows of it that are committed.
        row: u64,
        /// What differs.
        detail: String,
    },
    /// A file in use is gone.
    #[error("{} is gone, but is still needed from row {row} on; put it back as it was", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// The first row that is needed, from 1.
        row: u64,
    },
    /// A file whose columns do not fit the schema.
    #[error("{} does not fit the schema: {reason}", path.display())]
    FileSchema {
        /// The file, or `stdin`.
        path: PathBuf,
        /// What does not fit.
        reason: String,
    },
    /// A schema that the format cannot hold.
    #[error(
        "column `{column}` is nested, which CSV cannot hold; use JSON Lines or Parquet, or leave it out of source.schema"
    )]
    Nested {
        /// The column.
        column: String,
    },
    /// No schema was given and none was found.
    #[error(
        "no schema was given and none can be seen in {place}: {reason}. Set source.schema, e.g. \"user STRING, n BIGINT\""
    )]
    NoSchema {
        /// The file, directory or stream.
        place: String,
        /// Why.
        reason: String,
    },
    /// A column that the source lacks.
    #[error("the source {place} cannot give what the processor wants: {reason}")]
    Projection {
        /// The source.
        place: String,
        /// Which column.
        reason: String,
    },
    /// The checkpoint's words about the position make no sense.
    #[error("the checkpoint does not hold a position of {place} that this version can read: {reason}")]
    Position {
        /// The source.
        place: String,
        /// What is wrong.
        reason: String,
    },
    /// The committed prefix is to be skipped, but another one came.
    #[error(
        "stdin does not begin with the {rows} rows that are committed ({detail}); nothing was processed. Give the same \
         input from its start, or run without source.skip_committed to treat it as a continuation"
    )]
    PrefixMismatch {
        /// Committed rows.
        rows: u64,
        /// What differs.
        detail: &'static str,
    },
    /// Settings that do not go together.
    #[error("source.{setting}: {reason}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// What to do.
        reason: String,
    },
    /// Arrow refused what was made for it.
    #[error("rows of {place} could not be put into a batch: {problem}. This is a defect of tidemill; please report it")]
    Defect {
        /// The source.
        place: String,
        /// As Arrow tells it.
        problem: String,
    },
}

impl ReadError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "SOURCE_NOT_FOUND",
            Self::Unreadable { .. } | Self::NotParquet { .. } | Self::NameNotUnicode { .. } => "SOURCE_UNREADABLE",
            Self::NotAFile { .. } => "SOURCE_NOT_A_FILE",
            Self::Truncated { .. } => "SOURCE_FILE_TRUNCATED",
            Self::Changed { .. } => "SOURCE_FILE_CHANGED",
            Self::Missing { .. } => "SOURCE_FILE_MISSING",
            Self::FileSchema { .. } | Self::Projection { .. } => "SOURCE_SCHEMA_MISMATCH",
            Self::Nested { .. } => "SOURCE_SCHEMA_UNSUPPORTED",
            Self::NoSchema { .. } => "SOURCE_SCHEMA_REQUIRED",
            Self::Position { .. } => "SOURCE_POSITION_INVALID",
            Self::PrefixMismatch { .. } => "STDIN_PREFIX_MISMATCH",
            Self::Setting { .. } => "SOURCE_SETTING_INVALID",
            Self::Defect { .. } => "SOURCE_DEFECT",
        }
    }

    pub(super) fn unreadable(path: &Path, source: io::Error) -> Self {
        Self::Unreadable { path: path.to_owned(), source }
    }

    pub(super) fn file_schema(path: &Path, reason: impl Into<String>) -> Self {
        Self::FileSchema { path: path.to_owned(), reason: reason.into() }
    }

    pub(super) fn projection(place: &str, error: &SchemaError) -> Self {
        Self::Projection { place: place.to_owned(), reason: error.to_string() }
    }

    pub(super) fn cast(path: &Path, error: &CastError) -> Self {
        match error {
            CastError::Schema(_) | CastError::DoesNotWiden { .. } => Self::file_schema(path, error.to_string()),
            _ => Self::NotParquet { path: path.to_owned(), problem: error.to_string() },
        }
    }

    pub(super) fn defect(place: &str, problem: impl ToString) -> Self {
        Self::Defect { place: place.to_owned(), problem: problem.to_string() }
    }

    pub(super) fn no_schema(place: &str, error: &InferError) -> Self {
        Self::NoSchema { place: place.to_owned(), reason: error.to_string() }
    }

    pub(crate) fn position(place: &str, reason: impl ToString) -> Self {
        Self::Position { place: place.to_owned(), reason: reason.to_string() }
    }
}

impl From<ReadError> for SourceError {
    fn from(error: ReadError) -> Self {
        Self { code: error.code(), message: error.to_string(), source: Some(Box::new(error)) }
    }
}

/// Why rows cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The ledger names another query.
    #[error(
        "{} belongs to query {owner}, not to {query_id}: its ledger says so. Use another directory, or the checkpoint \
         that wrote to this one",
        path.display()
    )]
    OfAnotherQuery {
        /// The directory.
        path: PathBuf,
        /// The query in the ledger.
        owner: String,
        /// This query.
        query_id: String,
    },
    /// Files that no query wrote.
    #[error(
        "{} holds {found}, but no ledger of a query; a sink takes only an empty directory, so that nothing is mixed up. \
         Use another one",
        path.display()
    )]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of the files.
        found: String,
    },
    /// The sink holds something that the log does not.
    #[error("{} has diverged from the query: {detail}", path.display())]
    Diverged {
        /// The directory or file.
        path: PathBuf,
        /// What differs, and what to do.
        detail: String,
    },
    /// The ledger is no ledger.
    #[error("the ledger {} cannot be understood: {problem}. Restore it, or use another directory", path.display())]
    Ledger {
        /// The ledger.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The system says no.
    #[error("{place} cannot be written: {source}")]
    Failed {
        /// The file or stream.
        place: String,
        /// The failure.
        source: io::Error,
    },
    /// Nobody reads any more.
    #[error("the reader of {place} has gone away; the batch in hand will be written again by the next start")]
    Closed {
        /// The stream.
        place: String,
    },
    /// A type that the format has no form for.
    #[error("column `{column}` cannot be written as {format}: {reason}")]
    Unsupported {
        /// The column.
        column: String,
        /// The format.
        format: &'static str,
        /// Why, and what to do.
        reason: &'static str,
    },
    /// Settings that do not go together.
    #[error("sink.{setting}: {reason}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// What to do.
        reason: String,
    },
    /// The writer of the format refused the rows.
    #[error("rows for {place} could not be encoded: {problem}. This is a defect of tidemill; please report it")]
    Defect {
        /// The sink.
        place: String,
        /// As the writer tells it.
        problem: String,
    },
}

impl WriteError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::OfAnotherQuery { .. } => "SINK_OF_ANOTHER_QUERY",
            Self::NotEmpty { .. } => "SINK_NOT_EMPTY",
            Self::Diverged { .. } => "SINK_DIVERGED",
            Self::Ledger { .. } => "SINK_LEDGER_DAMAGED",
            Self::Failed { .. } => "SINK_WRITE_FAILED",
            Self::Closed { .. } => "SINK_CLOSED",
            Self::Unsupported { .. } => "SINK_SCHEMA_UNSUPPORTED",
            Self::Setting { .. } => "SINK_SETTING_INVALID",
            Self::Defect { .. } => "SINK_DEFECT",
        }
    }

    pub(super) fn failed(path: &Path, source: io::Error) -> Self {
        Self::Failed { place: path.display().to_string(), source }
    }

    pub(super) fn diverged(path: &Path, detail: impl Into<String>) -> Self {
        Self::Diverged { path: path.to_owned(), detail: detail.into() }
    }

    pub(super) fn defect(place: &str, problem: impl ToString) -> Self {
        Self::Defect { place: place.to_owned(), problem: problem.to_string() }
    }
}

impl From<WriteError> for SinkError {
    fn from(error: WriteError) -> Self {
        Self { code: error.code(), message: error.to_string(), source: Some(Box::new(error)) }
    }
}
