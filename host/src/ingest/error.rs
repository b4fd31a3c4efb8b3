//! What can go wrong with rows on their way in.

use std::sync::Arc;

use crate::log::LogError;

/// Why the body of a request is no rows of the query. Nothing of it was taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// A row that does not fit the schema.
    #[error("row {row}: {reason}. No row of the request was taken; mend the row and send all of them again")]
    Row {
        /// Its number in the body, from 1; in JSON Lines that of its line.
        row: u64,
        /// What is wrong, as a code: `MALFORMED_ROW`, `WRONG_TYPE`, `NULL_IN_NOT_NULL_COLUMN`, `ROW_TOO_LONG`,
        /// `DUPLICATE_MAP_KEY`.
        row_code: String,
        /// What is wrong, in words.
        reason: String,
    },
    /// The columns do not fit, whatever the rows.
    #[error("the columns do not fit the query's input, which is {wanted}: {reason}")]
    Schema {
        /// The query's input, as DDL.
        wanted: String,
        /// What does not fit.
        reason: String,
    },
    /// Not an Arrow IPC stream.
    #[error("the body is no Arrow IPC stream that can be read: {reason}")]
    Body {
        /// What is wrong.
        reason: String,
    },
    /// More rows than a request may have.
    #[error("the request has more than {rows_max} rows; send them in several")]
    TooManyRows {
        /// The limit.
        rows_max: u64,
    },
    /// More bytes than a request may have.
    #[error(
        "the request has {bytes} bytes, or becomes as many in the log; at most {bytes_max} are taken, send several"
    )]
    TooManyBytes {
        /// As far as they were counted.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
}

impl ParseError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Row { .. } => "INGEST_ROW_INVALID",
            Self::Schema { .. } => "INGEST_SCHEMA_MISMATCH",
            Self::Body { .. } => "INGEST_BODY_INVALID",
            Self::TooManyRows { .. } => "INGEST_TOO_MANY_ROWS",
            Self::TooManyBytes { .. } => "INGEST_TOO_MANY_BYTES",
        }
    }
}

/// Why rows were not taken. Unless it is [`IngestError::Log`], nothing of the request is in the log.
#[derive(Debug, Clone, thiserror::Error)]
pub enum IngestError {
    /// A producer left numbers out.
    #[error("producer {producer} sent sequence {sequence}, and {expected} is next; send what lies between first")]
    SequenceGap {
        /// Its id.
        producer: String,
        /// As sent.
        sequence: u64,
        /// As it must be.
        expected: u64,
    },
    /// A repetition of a request whose answer is no longer known.
    #[error(
        "sequence {sequence} of producer {producer} was taken long ago, and its answer is no longer kept; go on with {expected}"
    )]
    SequenceOld {
        /// Its id.
        producer: String,
        /// As sent.
        sequence: u64,
        /// The next one.
        expected: u64,
    },
    /// Another instance of the producer has begun since.
    #[error("producer {producer} has begun epoch {current}, so one in epoch {epoch} may no longer send; stop it")]
    Fenced {
        /// Its id.
        producer: String,
        /// As sent.
        epoch: u64,
        /// Its epoch.
        current: u64,
    },
    /// A key that came with other rows before.
    #[error("the idempotency key was used for other rows within the last 24 hours; use a new key for new rows")]
    KeyReused,
    /// A name that is empty or too long.
    #[error("{what} must have 1 to {bytes_max} bytes, and has {bytes}")]
    NameInvalid {
        /// Which.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// No more producers can be told apart.
    #[error(
        "{producers_max} producers have sent rows to this query in the last 7 days, and that is all that are kept apart; use \
         the id of one of them"
    )]
    ProducersFull {
        /// The limit.
        producers_max: usize,
    },
    /// No more keys can be remembered.
    #[error(
        "{keys_max} idempotency keys came in the last 24 hours, and that is all that are kept; use a producer id instead"
    )]
    KeysFull {
        /// The limit.
        keys_max: usize,
    },
    /// The query does not keep up.
    #[error(
        "{unread_bytes} bytes of rows wait for the query, and at most {bytes_max} may; try again once it has read some"
    )]
    BacklogFull {
        /// Bytes that wait.
        unread_bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// Rows that are wanted again were removed.
    #[error(
        "row {row} is no longer in the ingest log, which {}; start the query from a newer checkpoint",
        oldest.map_or("is empty".to_owned(), |oldest| format!("begins with row {oldest}"))
    )]
    RowsGone {
        /// The row that is wanted.
        row: u64,
        /// The oldest that is there.
        oldest: Option<u64>,
    },
    /// Committed rows are others than they were.
    #[error(
        "the rows {first} to {end} of the ingest log are not those that were committed; restore the log from a copy"
    )]
    RowsChanged {
        /// The first of them.
        first: u64,
        /// The row behind the last.
        end: u64,
    },
    /// Rows were written under a schema that does not fit the one of today.
    #[error("the ingest log from row {row} on was written under another schema, which does not fit: {reason}")]
    SchemaChanged {
        /// The first such row.
        row: u64,
        /// What does not fit.
        reason: String,
    },
    /// The log's records are not what this module writes.
    #[error("the ingest log is damaged: {defect}. Nothing was changed; restore it from a copy")]
    Corrupt {
        /// What is wrong.
        defect: String,
    },
    /// The log could not be written, so whether the request is in it is known when it is opened again; or it cannot be read.
    #[error(transparent)]
    Log(Arc<LogError>),
}

impl IngestError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::SequenceGap { .. } => "PRODUCER_SEQUENCE_GAP",
            Self::SequenceOld { .. } => "PRODUCER_SEQUENCE_OLD",
            Self::Fenced { .. } => "PRODUCER_FENCED",
            Self::KeyReused => "IDEMPOTENCY_KEY_REUSED",
            Self::NameInvalid { .. } => "INGEST_NAME_INVALID",
            Self::ProducersFull { .. } => "INGEST_PRODUCERS_FULL",
            Self::KeysFull { .. } => "INGEST_KEYS_FULL",
            Self::BacklogFull { .. } => "INGEST_BACKLOG_FULL",
            Self::RowsGone { .. } => "INGEST_ROWS_GONE",
            Self::RowsChanged { .. } => "INGEST_ROWS_CHANGED",
            Self::SchemaChanged { .. } => "INGEST_SCHEMA_CHANGED",
            Self::Corrupt { .. } => "INGEST_LOG_CORRUPT",
            Self::Log(error) => error.code(),
        }
    }
}

impl From<LogError> for IngestError {
    fn from(error: LogError) -> Self {
        Self::Log(Arc::new(error))
    }
}
