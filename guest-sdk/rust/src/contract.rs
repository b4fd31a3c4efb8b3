//! The words of `wit/world.wit` as plain Rust, the same for a component and for a native test.

use crate::error::{Error, USER_CODE};

/// Number of a state variable.
pub(crate) type Variable = u32;
/// A grouping key of the chunk in hand.
pub(crate) type Group = u32;
/// An open read.
pub(crate) type Cursor = u32;

/// When timers and TTL move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeMode {
    /// No timers, no TTL.
    None,
    /// Both follow the processing time of the batch.
    ProcessingTime,
    /// Timers follow the watermark; no TTL.
    EventTime,
}

/// What emitted rows mean to a sink with keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputMode {
    /// Emitted rows are final.
    Append,
    /// An emitted row replaces the one before of its key.
    Update,
}

/// The only clock a processor has; fixed for the batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimerValues {
    /// Time of the batch, milliseconds since the epoch, UTC.
    pub processing_time_ms: i64,
    /// The watermark, milliseconds since the epoch; 0 until there is one.
    pub watermark_ms: i64,
}

/// What a processor is told about its query.
#[derive(Clone, Debug)]
pub struct Query {
    /// The same over restarts.
    pub query_id: String,
    /// Of this start of the query.
    pub run_id: String,
    /// Number of the batch.
    pub batch_id: u64,
    /// When timers and TTL move.
    pub time_mode: TimeMode,
    /// What emitted rows mean.
    pub output_mode: OutputMode,
    /// Columns of the grouping key, in DDL.
    pub key: String,
    /// Columns of the source, in DDL.
    pub input: String,
    /// Columns of the initial state, in DDL.
    pub initial_state: Option<String>,
    /// Settings of the query, sorted by name.
    pub parameters: Vec<(String, String)>,
}

/// What a processor gives and wants: the answer of `init`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Columns of emitted rows, in DDL.
    pub output: String,
    /// The input columns that rows shall carry, in DDL.
    pub columns: String,
    /// The same for rows of the initial state.
    pub initial_state: Option<String>,
    /// The grouping key as wanted, in DDL.
    pub key: String,
}

/// Why an export gave up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The group whose handler failed.
    pub of: Option<u32>,
    /// Stable code.
    pub code: String,
    /// What happened.
    pub message: String,
}

impl Failure {
    pub(crate) fn new(error: &Error, group_in_hand: Option<Group>) -> Self {
        let code = if error.code().is_empty() { USER_CODE } else { error.code() };
        Self { of: error.group().or(group_in_hand), code: code.to_owned(), message: error.message().to_owned() }
    }
}

/// Which half of a map's entries a read gives.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Keys,
    Values,
    Entries,
}

/// Rows of a list or map, each with its length.
pub(crate) struct Page {
    pub(crate) rows: Vec<u8>,
    pub(crate) rest: Option<Cursor>,
}

/// Expiries of timers.
pub(crate) struct TimerPage {
    pub(crate) expiries_ms: Vec<i64>,
    pub(crate) rest: Option<Cursor>,
}

/// An op that the host refused: which one, and why. Those before it have been applied, the rest is gone.
pub(crate) struct ApplyFault {
    pub(crate) op: u32,
    pub(crate) error: Error,
}

/// How much a log message matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Finer than debugging.
    Trace,
    /// For debugging.
    Debug,
    /// Worth knowing.
    Info,
    /// Something is odd.
    Warn,
    /// Something went wrong.
    Error,
}
