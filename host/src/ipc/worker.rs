//! What a server and the worker of a tenant say to each other.
//!
//! ```text
//! server ── Component, Component, Open ──▶ worker       Opened, then Batch after each batch,
//!        ── Rows ───────────────────────▶               Line now and then,
//!        ── Close ──────────────────────▶               and Closed, once for each Open
//! ```
//! The worker believes what the server says. The server believes nothing: [`Report::check`] holds the bounds of what it
//! stores and shows, and it is wrong about nobody but its own tenant.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::IpcError;

/// In a tenant's folder, what its worker writes: a folder for each query.
pub const QUERIES: &str = "queries";
/// In a tenant's folder, what its worker reads and the server writes: a folder for each query.
pub const INGEST: &str = "ingest";

/// Where the parts of a query lie, in its tenant's folder; the worker's working directory is that folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryFolders {
    /// Rows that were ingested.
    pub ingest: PathBuf,
    /// Log and state.
    pub checkpoint: PathBuf,
    /// Rows that were emitted.
    pub results: PathBuf,
}

impl QueryFolders {
    /// Of a query.
    pub fn of(query: &str) -> Self {
        let own = Path::new(QUERIES).join(query);
        Self { ingest: Path::new(INGEST).join(query), checkpoint: own.join("checkpoint"), results: own.join("results") }
    }
}

/// Longest progress report of a batch, in bytes of JSON.
pub const PROGRESS_BYTES_MAX: usize = 64 << 10;
/// Longest text of a failure or of a line of a log, in bytes.
pub const TEXT_BYTES_MAX: usize = 16 << 10;
/// Longest schema of emitted rows, in bytes of DDL.
pub const SCHEMA_BYTES_MAX: usize = 256 << 10;
/// Longest code of a failure, in bytes. Processors may make up codes of their own.
pub const CODE_BYTES_MAX: usize = 256;

/// What the server says. A query is named by its id, which is also that of its folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// A component of the query that is opened next. Comes with two descriptors of sealed memory: the component, and its
    /// native code, for which the server vouches.
    Component {
        /// SHA-256 of the component, in hex.
        digest: String,
    },
    /// Runs a query until it is told otherwise, fails, or has had nothing to do for a while.
    Open(Open),
    /// More rows of a query are durable.
    Rows {
        /// Which query.
        query: String,
        /// The row behind the last one.
        end: u64,
    },
    /// Ends a query after the batch in hand.
    Close {
        /// Which query.
        query: String,
    },
}

/// A query to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// Its id.
    pub query: String,
    /// What the tenant wrote about it, in JSON.
    pub document: String,
    /// The component of each step, by digest.
    pub components: Vec<String>,
    /// The row behind the last one that is durable.
    pub end: u64,
    /// It is closed when it has had nothing to do for so long.
    pub unload_after_ms: u64,
}

/// What the worker says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// A query is open.
    Opened {
        /// Which query.
        query: String,
        /// Schema of the rows that it emits, in DDL.
        output_schema: String,
        /// How far it has come.
        input: Input,
    },
    /// A batch was committed and its rows are in the results.
    Batch {
        /// Which query.
        query: String,
        /// What it did: a JSON object, as `run --progress` writes it.
        progress: String,
        /// How far the query has come.
        input: Input,
    },
    /// A query is closed, and its folder free.
    Closed {
        /// Which query.
        query: String,
        /// Why.
        end: End,
    },
    /// A line of a log.
    Line(Line),
}

/// How far a query has come in its input, in numbers of rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Every row before this one is committed.
    pub consumed: u64,
    /// Rows before this one are needed by no batch that is kept.
    pub needed: u64,
}

/// Why a query was closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// It was told to.
    Asked,
    /// It had nothing to do.
    Idle {
        /// The rows that it knew of; if there are more by now, it is to be opened again.
        end: u64,
        /// When it will have something to do, in milliseconds since the epoch. None: only rows can bring that.
        wake_at_ms: Option<i64>,
    },
    /// It could not be opened, or go on.
    Failed(Failure),
}

/// Why a query could not go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Stable code.
    pub code: String,
    /// What happened, where, and what to do.
    pub message: String,
    /// The batch that failed, if one did.
    pub batch: Option<u64>,
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// Whose query; None: the worker's own.
    pub query: Option<String>,
    /// From 0, errors, to 4, traces.
    pub level: u8,
    /// Whether the processor wrote it.
    pub of_processor: bool,
    /// The batch that it ran in.
    pub batch: Option<u64>,
    /// The text, without control characters.
    pub text: String,
}

impl Report {
    /// Whether it is within bounds, and can be shown as it is.
    ///
    /// # Errors
    /// [`IpcError::Malformed`]: the worker is not what the server started, and is to be killed.
    pub fn check(&self) -> Result<(), IpcError> {
        match self {
            Self::Opened { output_schema, .. } => bounded("a schema", output_schema, SCHEMA_BYTES_MAX),
            Self::Batch { progress, .. } => {
                bounded("a progress report", progress, PROGRESS_BYTES_MAX)?;
                let object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(progress);
                object.map(drop).map_err(|_| IpcError::Malformed("a progress report that is no JSON object".to_owned()))
            }
            Self::Closed { end: End::Failed(Failure { code, message, .. }), .. } => {
                bounded("a code", code, CODE_BYTES_MAX)?;
                bounded("a failure", message, TEXT_BYTES_MAX)
            }
            Self::Closed { .. } => Ok(()),
            Self::Line(Line { text, .. }) => {
                bounded("a line", text, TEXT_BYTES_MAX)?;
                match text.chars().any(|c| c.is_control() && c != '\t') {
                    true => Err(IpcError::Malformed("a line with control characters".to_owned())),
                    false => Ok(()),
                }
            }
        }
    }
}

fn bounded(what: &str, text: &str, bytes_max: usize) -> Result<(), IpcError> {
    match text.len() > bytes_max {
        true => Err(IpcError::Malformed(format!("{what} of {} bytes, at most {bytes_max} are taken", text.len()))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(progress: &str) -> Report {
        Report::Batch { query: "q".to_owned(), progress: progress.to_owned(), input: Input::default() }
    }

    fn line(text: &str) -> Report {
        Report::Line(Line { query: None, level: 2, of_processor: true, batch: None, text: text.to_owned() })
    }

    #[test]
    fn what_a_worker_of_ours_says_is_taken() {
        for report in [batch(r#"{"batchId": 1}"#), line("tabs\tand words")] {
            report.check().unwrap();
        }
    }

    #[test]
    fn what_would_break_an_answer_or_a_log_is_refused() {
        let long = format!(r#"{{"a": "{}"}}"#, "a".repeat(PROGRESS_BYTES_MAX));
        let failure = |code: &str, message: &str| {
            let failure = Failure { code: code.to_owned(), message: message.to_owned(), batch: None };
            Report::Closed { query: "q".to_owned(), end: End::Failed(failure) }
        };
        let refused = [
            batch("no json"),
            batch("[1]"),
            batch(r#"{"a": 1} {"b": 2}"#),
            batch(&long),
            line("two\nlines"),
            line(&"a".repeat(TEXT_BYTES_MAX + 1)),
            failure(&"A".repeat(CODE_BYTES_MAX + 1), ""),
            failure("A", &"a".repeat(TEXT_BYTES_MAX + 1)),
        ];
        for report in refused {
            assert_eq!(report.check().unwrap_err().code(), "IPC_PROTOCOL_VIOLATED", "{report:?}");
        }
    }
}
