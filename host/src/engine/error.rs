//! Why a query could not go on.

use std::path::PathBuf;

use super::checkpoint::CheckpointError;
use super::operator::OperatorError;
use super::output::OutputError;
use super::sink::SinkError;
use super::source::SourceError;
use crate::log::LogError;
use crate::record::{RowFault, SchemaError};
use crate::state::StateError;

/// Why a query could not go on.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The settings do not fit each other, the input or the processor.
    #[error("{message}")]
    Settings {
        /// Stable code.
        code: &'static str,
        /// What happened and what to do.
        message: String,
    },
    /// The checkpoint belongs to another query or other settings.
    #[error("{message}")]
    Mismatch {
        /// Stable code.
        code: &'static str,
        /// What happened and what to do.
        message: String,
    },
    /// Rows that do not fit the schema, under the policy `fail`.
    #[error(
        "batch {batch_id}: {rejected} row(s) do not fit the schema; the first is row {row} of {origin}: {reason}. Nothing \
         of the batch was committed. Mend the input, or set bad_rows to skip or quarantine.\n    {text}"
    )]
    BadRows {
        /// The batch.
        batch_id: u64,
        /// How many.
        rejected: usize,
        /// Code of the first one.
        code: String,
        /// Where it stands.
        origin: String,
        /// Row within it, from 1.
        row: u64,
        /// What is wrong.
        reason: String,
        /// The row.
        text: String,
    },
    /// The script of times ends before the input does.
    #[error("the clock file has no entry for batch {batch_id}, but there is something to process; add a line to it")]
    ClockExhausted {
        /// The batch.
        batch_id: u64,
    },
    /// In a query of several steps or sources, a failure of one.
    #[error("{part}: {source}")]
    InPart {
        /// The step or source.
        part: String,
        /// The failure.
        source: Box<QueryError>,
    },
    /// The processor failed, trapped, or does not fit.
    #[error("batch {batch_id}, key groups {}..{}: {source}", key_groups.start, key_groups.end)]
    Operator {
        /// The batch.
        batch_id: u64,
        /// The worker's key groups.
        key_groups: std::ops::Range<u16>,
        /// The failure.
        source: OperatorError,
    },
    /// The processor does not fit the query.
    #[error(transparent)]
    Unfit(OperatorError),
    /// Reading failed.
    #[error("{source_name}: {source}")]
    Source {
        /// Which source.
        source_name: String,
        /// The failure.
        source: SourceError,
    },
    /// Publishing failed.
    #[error("{sink_name}: {source}")]
    Sink {
        /// Which sink.
        sink_name: String,
        /// The failure.
        source: SinkError,
    },
    /// Output of the last run may not be published yet, and the sink is another one now.
    #[error(
        "batch {batch_id} may not be published to {before} yet, and the sink is {now} now. Start the query once with the \
         sink that it had, let it end, and then change the sink."
    )]
    SinkPending {
        /// The batch.
        batch_id: u64,
        /// The sink in the log.
        before: String,
        /// The sink now.
        now: String,
    },
    /// The log is not readable.
    #[error("the log of {}: {message}", checkpoint.display())]
    Log {
        /// Stable code.
        code: &'static str,
        /// The checkpoint.
        checkpoint: PathBuf,
        /// What happened and what to do.
        message: String,
    },
    /// Staging failed, e.g. a full disk.
    #[error(
        "batch {batch_id}: its output could not be staged in {}: {source}. Nothing of the batch was committed; free some \
         space and start again.",
        path.display()
    )]
    Staging {
        /// The batch.
        batch_id: u64,
        /// Where.
        path: PathBuf,
        /// The failure.
        source: std::io::Error,
    },
    /// See [`LogError`].
    #[error(transparent)]
    LogFile(#[from] LogError),
    /// See [`StateError`].
    #[error(transparent)]
    State(#[from] StateError),
    /// See [`CheckpointError`].
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// See [`SchemaError`].
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// See [`OutputError`].
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A row of the host's own making does not fit its schema: a defect.
    #[error("rows of batch {batch_id} cannot be read back: {source}")]
    Rows {
        /// The batch.
        batch_id: u64,
        /// The fault.
        source: RowFault,
    },
    /// Under the policy `dead-letter`: the poison of a batch was not found, or is too much.
    #[error(
        "batch {batch_id}: {problem}. Nothing of the batch was committed. Poison: {known}. It failed so: {failure}"
    )]
    PoisonSearch {
        /// Stable code.
        code: &'static str,
        /// The batch.
        batch_id: u64,
        /// What happened and what to do.
        problem: String,
        /// Rows and timers that were found.
        known: String,
        /// The failure that was searched.
        failure: String,
    },
    /// A worker thread panicked: a defect of the host.
    #[error("batch {batch_id}: a worker of the host panicked: {message}. Nothing of the batch was committed.")]
    WorkerPanicked {
        /// The batch.
        batch_id: u64,
        /// What it said.
        message: String,
    },
    /// An earlier failure left the query in a state from which only a restart recovers.
    #[error("the query failed earlier and must be started again before it can go on")]
    Poisoned,
}

impl QueryError {
    /// The stable code of this error.
    pub fn code(&self) -> &str {
        match self {
            Self::Settings { code, .. }
            | Self::Mismatch { code, .. }
            | Self::Log { code, .. }
            | Self::PoisonSearch { code, .. } => code,
            Self::BadRows { code, .. } => code,
            Self::ClockExhausted { .. } => "CLOCK_EXHAUSTED",
            Self::InPart { source, .. } => source.code(),
            Self::Operator { source, .. } | Self::Unfit(source) => source.code(),
            Self::Source { source, .. } => source.code,
            Self::Sink { source, .. } => source.code,
            Self::SinkPending { .. } => "SINK_PENDING",
            Self::Staging { .. } => "STAGING_FAILED",
            Self::LogFile(error) => error.code(),
            Self::State(error) => error.code(),
            Self::Checkpoint(error) => error.code(),
            Self::Schema(error) => error.code(),
            Self::Output(error) => error.code(),
            Self::Rows { .. } => "HOST_DEFECT",
            Self::WorkerPanicked { .. } => "HOST_DEFECT",
            Self::Poisoned => "QUERY_POISONED",
        }
    }

    /// The batch that failed, if one did.
    pub fn batch(&self) -> Option<u64> {
        match self {
            Self::InPart { source, .. } => source.batch(),
            Self::BadRows { batch_id, .. }
            | Self::ClockExhausted { batch_id }
            | Self::Operator { batch_id, .. }
            | Self::Staging { batch_id, .. }
            | Self::Rows { batch_id, .. }
            | Self::PoisonSearch { batch_id, .. }
            | Self::WorkerPanicked { batch_id, .. } => Some(*batch_id),
            _ => None,
        }
    }

    /// Whether stored state was found damaged, at whatever depth.
    pub(super) fn is_damage_to_state(&self) -> bool {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(self);
        while let Some(error) = cause {
            let state = error.downcast_ref::<StateError>().or_else(|| match error.downcast_ref::<Self>() {
                Some(Self::State(state)) => Some(state),
                _ => None,
            });
            if let Some(StateError::Corrupt { .. }) = state {
                return true;
            }
            cause = error.source();
        }
        false
    }

    pub(super) fn settings(code: &'static str, message: impl Into<String>) -> Self {
        Self::Settings { code, message: message.into() }
    }

    pub(super) fn mismatch(code: &'static str, message: impl Into<String>) -> Self {
        Self::Mismatch { code, message: message.into() }
    }

    pub(super) fn malformed_record(error: serde_json::Error) -> Self {
        Self::Log {
            code: "LOG_CORRUPT",
            checkpoint: PathBuf::new(),
            message: format!("a record's checksum holds but its header does not parse: {error}. Nothing was changed."),
        }
    }

    pub(super) fn newer_log(what: String) -> Self {
        Self::Log {
            code: "LOG_VERSION_UNSUPPORTED",
            checkpoint: PathBuf::new(),
            message: format!(
                "it holds {what}, which this version does not know. Use the version that wrote it, or a newer one."
            ),
        }
    }
}
