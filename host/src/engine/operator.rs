//! What processes the rows of a batch: a sandboxed component ([`crate::runtime`]) or native code.
//!
//! An operator is opened once per worker and batch, so nothing leaks from batch to batch except through state. It gets
//! the worker's [`Session`] and returns it when the batch ends; an operator that fails drops it, and with it every
//! write of the batch.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;

use super::output::Output;
use crate::record::Schema;
use crate::state::{Session, VariableSpec};

/// When a processor's timers and TTL move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TimeMode {
    /// No timers.
    None,
    /// Timers and TTL follow the batch's processing time.
    ProcessingTime,
    /// Timers follow the watermark; late rows are dropped.
    EventTime,
}

/// What a row that is emitted means to a sink with keys. Every other sink writes the rows as they are in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputMode {
    /// Emitted rows are final.
    Append,
    /// An emitted row replaces the one before of its key.
    Update,
}

/// What a processor is told about the query that it runs in.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryInfo {
    /// Stable over restarts; made with the checkpoint.
    pub query_id: String,
    /// New with every start.
    pub run_id: String,
    /// The step within the query, from 0.
    pub step: u8,
    /// When timers and TTL move.
    pub time_mode: TimeMode,
    /// What emitted rows mean.
    pub output_mode: OutputMode,
    /// Grouping key columns, as the input has them.
    pub key: Schema,
    /// All columns of the input.
    pub input: Schema,
    /// All columns of the initial state, if one was given.
    pub initial_state: Option<Schema>,
    /// The user's settings, sorted by name.
    pub parameters: Vec<(String, String)>,
    /// Seed of everything random in this query.
    pub seed: u64,
}

/// What a processor answered to `init`: what it gives and wants.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorPlan {
    /// Schema of the rows that it emits.
    pub output: Schema,
    /// The input columns that rows shall carry, in this order, with the types wanted.
    pub columns: Schema,
    /// The same for rows of the initial state; set exactly if the query has one.
    pub initial_state: Option<Schema>,
    /// The key as wanted: the query's columns and types, NOT NULL where a NULL is a bad row.
    pub key: Schema,
    /// State variables in order of declaration.
    pub variables: Vec<VariableSpec>,
    /// Variables of an earlier version that are to be dropped.
    pub dropped_variables: Vec<String>,
    /// Indexes into `variables` of the value states to read ahead for every key.
    pub prefetch: Vec<u16>,
}

/// The clock of a batch, in milliseconds since the epoch, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TimerValues {
    /// Fixed when the batch is planned.
    pub processing_time_ms: i64,
    /// 0 until there is a watermark.
    pub watermark_ms: i64,
}

/// One worker's share of one batch.
pub struct Task {
    /// The query.
    pub query: Arc<QueryInfo>,
    /// What `init` must answer again.
    pub plan: Arc<OperatorPlan>,
    /// The batch.
    pub batch_id: u64,
    /// Its clock.
    pub time: TimerValues,
    /// The worker's key groups.
    pub key_groups: Range<u16>,
    /// The worker's view of the state.
    pub session: Session,
    /// Where emitted rows go.
    pub output: Output,
    /// Where the fuel burnt is noted, where it is metered, of an operator that fails or is dropped before it closes.
    pub fuel: Arc<OnceLock<u64>>,
}

/// Rows of one worker, grouped: groups are sorted by (hash, key row), a group's rows keep the order of the input.
#[derive(Debug, Default)]
pub struct GroupedRows {
    /// The rows, group after group, with exactly the wanted columns: [`Self::BATCH_ROWS`] in each batch but the last.
    pub batches: Vec<RecordBatch>,
    /// The groups.
    pub groups: Vec<Group>,
    /// Packed key rows; [`Group::key`] points here.
    pub keys: Vec<u8>,
}

impl GroupedRows {
    /// Rows of a batch: few enough for the bounds of a batch's size, many enough that batches cost nothing.
    pub const BATCH_ROWS: usize = 8192;

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.groups.last().map_or(0, |group| group.rows.end)
    }

    /// Where a row stands: its batch, and its number there.
    #[inline]
    #[must_use]
    pub fn place(row: usize) -> (usize, usize) {
        (row / Self::BATCH_ROWS, row % Self::BATCH_ROWS)
    }
}

/// The rows of one grouping key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Hash of the key row.
    pub hash: u64,
    /// The packed key row within [`GroupedRows::keys`].
    pub key: Range<usize>,
    /// The numbers of its rows, see [`GroupedRows::place`]; at least one.
    pub rows: Range<usize>,
}

/// A processor, ready to run.
pub trait Operator: Send + Sync {
    /// What exactly runs: `sha256:` and the digest of a component, or the name of a native operator.
    fn identity(&self) -> String;

    /// The program itself, if it is one that can be kept beside the batches that it ran, and loaded again. Its name is
    /// [`Operator::identity`].
    fn artifact(&self) -> Option<&[u8]> {
        None
    }

    /// Runs `init` on a throw-away instance: what the processor gives and wants in this query.
    ///
    /// # Errors
    /// What `init` failed with, or an answer that does not fit the query.
    fn plan(&self, query: &QueryInfo) -> Result<OperatorPlan, OperatorError>;

    /// Makes the instance that serves one worker for one batch, and runs its `init`.
    ///
    /// # Errors
    /// As [`Operator::plan`]; `PLAN_CHANGED` when `init` answers otherwise than the plan says.
    fn open(&self, task: Task) -> Result<Box<dyn Worker>, OperatorError>;
}

/// An open operator: the calls of one batch, in this order, each at most once except `close`.
pub trait Worker {
    /// Hands over the rows of the initial state. Only in bootstrap batches, where neither input nor timers follow.
    ///
    /// # Errors
    /// The processor's failure, a trap, a limit.
    fn initial_state(&mut self, rows: GroupedRows) -> Result<(), OperatorError>;

    /// Hands over the input rows.
    ///
    /// # Errors
    /// The processor's failure, a trap, a limit.
    fn input_rows(&mut self, rows: GroupedRows) -> Result<(), OperatorError>;

    /// Fires every timer with an expiry at or before `threshold_ms`.
    ///
    /// # Errors
    /// The processor's failure, a trap, a limit.
    fn expired_timers(&mut self, threshold_ms: i64) -> Result<(), OperatorError>;

    /// Ends the batch for this worker and gives back what it wrote.
    ///
    /// # Errors
    /// The processor's failure, a trap, a limit.
    fn close(self: Box<Self>) -> Result<Closed, OperatorError>;
}

/// What a worker leaves behind.
pub struct Closed {
    /// State with the batch's writes.
    pub session: Session,
    /// Emitted rows.
    pub output: Output,
    /// XXH3-128 over the packed chunks that the processor was sent, in order.
    pub input_digest: u128,
    /// Fuel burnt, where it is metered.
    pub fuel: Option<u64>,
    /// Memory that the sandbox gave the processor, at its most; 0 for native code.
    pub sandbox_bytes: u64,
}

/// Why a processor could not go on. Three kinds that are never mixed up: what the processor itself answered, a trap of
/// the sandbox, and a fault of the host.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// An export answered with a failure: an exception or error of the author's code.
    #[error("the processor failed in {export}{at}: [{guest_code}] {}{}", hanging(message), indented(stack))]
    Guest {
        /// The export, e.g. `handle-input-rows`.
        export: &'static str,
        /// The fault's code, or one of the author's own, else `TRANSFORM_WITH_STATE_USER_FUNCTION_ERROR`; bounded.
        guest_code: String,
        /// From the guest, bounded.
        message: String,
        /// As the language prints it; may be empty.
        stack: String,
        /// The grouping key.
        at: AtKey,
    },
    /// The sandbox stopped the processor: a panic, an endless loop, memory, broken contract.
    #[error("the processor trapped in {export}{at}: {message}{}{}", indented(&log_tail.join("\n")), indented(backtrace))]
    Trap {
        /// Stable code: `GUEST_TRAP`, `GUEST_DEADLINE`, `GUEST_FUEL`, `GUEST_MEMORY`, `GUEST_STACK_OVERFLOW`,
        /// `GUEST_RESOURCES_EXCEEDED`,
        /// `CONTRACT_VIOLATION`, `INPUT_NOT_DRAINED`, `PLAN_CHANGED` or the name of a limit.
        code: &'static str,
        /// The export, e.g. `handle-input-rows`.
        export: &'static str,
        /// What happened and what to do.
        message: String,
        /// The last lines that the processor logged or printed.
        log_tail: Vec<String>,
        /// Wasm frames, innermost first; may be empty.
        backtrace: Box<str>,
        /// The grouping key.
        at: AtKey,
    },
    /// The component or its answer does not fit the query.
    #[error("{message}")]
    Unfit {
        /// Stable code.
        code: &'static str,
        /// What happened and what to do.
        message: String,
    },
    /// The host itself failed.
    #[error("the host failed while it ran the processor: {0}")]
    Host(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// What a processor was handed when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handler {
    /// Rows of the input or of the initial state.
    Rows,
    /// Due timers.
    Timers,
}

/// At which grouping key a processor failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AtKey {
    /// It had none in hand.
    NoKey,
    /// At this one.
    Key(Box<Suspect>),
    /// It had several in hand and did not say at which of them.
    OneOf(Box<[Suspect]>),
    /// It had several in hand, and fails at none of them alone.
    NoneAlone(Box<[Suspect]>),
}

/// A grouping key that a processor had in hand when it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    /// The packed key row.
    pub key: Vec<u8>,
    /// As JSON, bounded.
    pub shown: String,
}

impl OperatorError {
    /// The stable code of this error.
    pub fn code(&self) -> &str {
        match self {
            Self::Guest { guest_code, .. } => guest_code,
            Self::Trap { code, .. } | Self::Unfit { code, .. } => code,
            Self::Host(_) => "HOST_ERROR",
        }
    }

    /// At which key the processor failed; None where it is not the processor that did.
    pub(super) fn at(&self) -> Option<&AtKey> {
        match self {
            Self::Guest { at, .. } | Self::Trap { at, .. } => Some(at),
            Self::Unfit { .. } | Self::Host(_) => None,
        }
    }

    /// The same failure, at this key.
    pub(super) fn set_at(&mut self, key: AtKey) {
        if let Self::Guest { at, .. } | Self::Trap { at, .. } = self {
            *at = key;
        }
    }

    /// In which handler a processor failed through what it was given there, so that it may fail at it again; None: in
    /// another function, or of something outside.
    pub(super) fn handler(&self) -> Option<Handler> {
        match self {
            // A wall clock stopped it: on a quiet machine it may have come to its end.
            Self::Trap { code: "GUEST_DEADLINE", .. } => None,
            Self::Guest { export, .. } | Self::Trap { export, .. } => match *export {
                "handle-input-rows" | "handle-initial-state" => Some(Handler::Rows),
                "handle-expired-timer" => Some(Handler::Timers),
                _ => None,
            },
            Self::Unfit { .. } | Self::Host(_) => None,
        }
    }

    /// What a processor said, or how the sandbox stopped it.
    pub(super) fn message(&self) -> String {
        match self {
            Self::Guest { message, .. } | Self::Trap { message, .. } | Self::Unfit { message, .. } => message.clone(),
            Self::Host(source) => source.to_string(),
        }
    }

    /// Whether a processor failed in the same way: with this code, in this export.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Guest { export, guest_code, .. }, Self::Guest { export: in_other, guest_code: code, .. }) => {
                (export, guest_code) == (in_other, code)
            }
            (Self::Trap { export, code, .. }, Self::Trap { export: in_other, code: other, .. }) => {
                (export, code) == (in_other, other)
            }
            _ => false,
        }
    }
}

/// Keys that are named when any of several may be the cause.
const SUSPECTS_SHOWN: usize = 3;

impl fmt::Display for AtKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (suspects, of_them) = match self {
            Self::NoKey => return Ok(()),
            Self::Key(key) => return write!(f, " at key {}", key.shown),
            Self::OneOf(suspects) => (suspects, "one of which may be the cause"),
            Self::NoneAlone(suspects) => (suspects, "none of which fails alone"),
        };
        let shown: Vec<&str> = suspects.iter().take(SUSPECTS_SHOWN).map(|suspect| suspect.shown.as_str()).collect();
        let more = if suspects.len() > SUSPECTS_SHOWN { ", ..." } else { "" };
        write!(f, " with {} keys in hand, {of_them} ({}{more})", suspects.len(), shown.join(", "))
    }
}

/// Further lines are set in, so that they cannot pass for lines of the host.
fn hanging(text: &str) -> String {
    text.replace('\n', "\n    ")
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("\n    {line}")).collect()
}
