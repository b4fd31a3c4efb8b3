//! What can go wrong with results, with the code and the words for a person.

use std::io;
use std::path::{Path, PathBuf};

use super::position::Position;
use crate::engine::sink::SinkError;

/// Why results could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The text of a position that is none.
    #[error(
        "that is no position; give one as it stands beside a row, e.g. `0-41-7`, or none to begin with the oldest row"
    )]
    PositionInvalid,
    /// Rows behind the position were removed.
    #[error(
        "rows that follow position {position} have been removed; {}. Read without a position to go on with the oldest row \
         that is left, and count the rows between as missed",
        match oldest { Some(oldest) => format!("the oldest that is left is {oldest}"), None => "none is left".to_owned() }
    )]
    PositionExpired {
        /// As given.
        position: Position,
        /// The oldest entry that is left.
        oldest: Option<Position>,
    },
    /// No entry ever had this position.
    #[error(
        "no row of these results has position {position}; it may be of another query. Give one as it stands beside a row, or \
         none to begin with the oldest row"
    )]
    PositionUnknown {
        /// As given.
        position: Position,
    },
    /// Bytes that are not what the sink writes.
    #[error(
        "the results are damaged: {name} at byte {offset}: {defect}. Nothing was changed; restore them from a backup"
    )]
    Corrupt {
        /// The segment.
        name: String,
        /// Where in it.
        offset: u64,
        /// What is wrong there.
        defect: &'static str,
    },
    /// A segment of a newer version of this program.
    #[error(
        "{name} has format version {version}, this program reads up to {supported}: use a newer version of tidemill"
    )]
    VersionUnsupported {
        /// The segment.
        name: String,
        /// Its version.
        version: u32,
        /// The newest that this program reads.
        supported: u32,
    },
    /// The system does not let it be read.
    #[error("the results cannot be read ({name}): {source}")]
    Unreadable {
        /// The segment, or the folder.
        name: String,
        /// The failure.
        source: io::Error,
    },
    /// The system does not let a segment be removed.
    #[error("{name} of the results cannot be removed: {source}")]
    Remove {
        /// The segment.
        name: String,
        /// The failure.
        source: io::Error,
    },
    /// The results of another query.
    #[error(
        "{} belongs to query {owner}, not to {query_id}: a query takes only results of its own. Move the folder away, or \
         restore the checkpoint that wrote to it",
        folder.display()
    )]
    OfAnotherQuery {
        /// The results.
        folder: PathBuf,
        /// The query that wrote them.
        owner: String,
        /// This query.
        query_id: String,
    },
    /// The results hold something that the log does not.
    #[error("{} has diverged from the query: {detail}", folder.display())]
    Diverged {
        /// The results.
        folder: PathBuf,
        /// What differs, and what to do.
        detail: String,
    },
    /// A row that is too long for a consumer.
    #[error(
        "a row is longer than {max} bytes as JSON, which is the most that results hold; emit less in one row. Nothing of the \
         batch was committed"
    )]
    RowTooLong {
        /// The bound.
        max: usize,
    },
    /// The system says no.
    #[error("the results in {} cannot be written: {source}. Mend the cause (a full disk?) and start the query again", folder.display())]
    Write {
        /// The results.
        folder: PathBuf,
        /// The failure.
        source: io::Error,
    },
    /// The results were not opened, or an earlier write failed, so that what is durable is unknown until they are opened again.
    #[error("the results in {} take nothing more, because an earlier write failed; start the query again", folder.display())]
    Poisoned {
        /// The results.
        folder: PathBuf,
    },
}

impl ResultsError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::PositionInvalid => "RESULTS_POSITION_INVALID",
            Self::PositionExpired { .. } => "RESULTS_POSITION_EXPIRED",
            Self::PositionUnknown { .. } => "RESULTS_POSITION_UNKNOWN",
            Self::Corrupt { .. } => "RESULTS_CORRUPT",
            Self::VersionUnsupported { .. } => "RESULTS_VERSION_UNSUPPORTED",
            Self::Unreadable { .. } => "RESULTS_UNREADABLE",
            Self::Remove { .. } => "RESULTS_TRIM_FAILED",
            Self::RowTooLong { .. } => "RESULTS_ROW_TOO_LONG",
            Self::OfAnotherQuery { .. } => "SINK_OF_ANOTHER_QUERY",
            Self::Diverged { .. } => "SINK_DIVERGED",
            Self::Write { .. } | Self::Poisoned { .. } => "SINK_WRITE_FAILED",
        }
    }

    pub(super) fn corrupt(name: &str, offset: u64, defect: &'static str) -> Self {
        Self::Corrupt { name: name.to_owned(), offset, defect }
    }

    pub(super) fn unreadable(name: &str, source: io::Error) -> Self {
        Self::Unreadable { name: name.to_owned(), source }
    }

    pub(super) fn diverged(folder: &Path, detail: impl Into<String>) -> Self {
        Self::Diverged { folder: folder.to_owned(), detail: detail.into() }
    }
}

impl From<ResultsError> for SinkError {
    fn from(error: ResultsError) -> Self {
        Self { code: error.code(), message: error.to_string(), source: Some(Box::new(error)) }
    }
}
