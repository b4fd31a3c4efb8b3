//! What a person decides about a query, apart from the processor, the source and the sink.

use std::collections::BTreeMap;

use super::error::QueryError;
use super::operator::{OutputMode, TimeMode};
use super::output::OutputLimits;
use super::source::ReadLimits;
use crate::state::StateLimits;

/// Settings of one query.
#[derive(Debug, Clone, PartialEq)]
pub struct QuerySettings {
    /// For people; kept in the checkpoint, and a checkpoint of another name is refused.
    pub name: Option<String>,
    /// What rows pass through, in order; at least one.
    pub steps: Vec<StepSettings>,
    /// Where rows come from; at least one.
    pub sources: Vec<InputSettings>,
    /// Sources of the checkpoint that are given up for good.
    pub dropped_sources: Vec<String>,
    /// How several sources make one watermark; fixed for a checkpoint's life.
    pub watermark_policy: WatermarkPolicy,
    /// When batches run.
    pub trigger: Trigger,
    /// Worker threads; each owns a range of key groups.
    pub workers: u16,
    /// Key groups of a new checkpoint; an existing one keeps its own.
    pub key_groups: u16,
    /// How much one batch reads.
    pub read: ReadLimits,
    /// What becomes of malformed rows.
    pub bad_rows: BadRows,
    /// What becomes of rows and timers at which a processor fails.
    pub poison: PoisonPolicy,
    /// Seed of a new checkpoint; None: a random one.
    pub seed: Option<u64>,
    /// Least time between two batches without rows.
    pub min_batch_interval_ms: u64,
    /// TTL alone runs a batch at most this often.
    pub ttl_sweep_ms: u64,
    /// When snapshots are taken and how long batches are kept.
    pub retention: Retention,
}

impl QuerySettings {
    /// Says which step an error is of, where there are several.
    pub(super) fn in_step(&self, step: &str, error: QueryError) -> QueryError {
        match self.steps.len() {
            1 => error,
            _ => QueryError::InPart { part: format!("step {step}"), source: Box::new(error) },
        }
    }
}

/// Settings of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct StepSettings {
    /// Unique in the query, and fixed for a checkpoint's life.
    pub name: String,
    /// Names of the grouping key columns, in order.
    pub key: Vec<String>,
    /// When timers and TTL move.
    pub time_mode: TimeMode,
    /// What emitted rows mean.
    pub output_mode: OutputMode,
    /// The TIMESTAMP column of the emitted rows that holds their event time, by which they are late or not in the next step.
    /// None: the rows have none.
    pub output_event_time: Option<String>,
    /// How much one worker may emit in a batch.
    pub output: OutputLimits,
    /// How much one worker may write in a batch.
    pub state: StateLimits,
    /// The author's settings, sorted by name.
    pub parameters: BTreeMap<String, String>,
}

/// The name of the step of a query that has one only, and gives it none.
pub const ONLY_STEP: &str = "main";

/// Settings of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputSettings {
    /// Unique in the query; its position in the checkpoint goes by it.
    pub name: String,
    /// Its event time, if its rows have one.
    pub watermark: Option<WatermarkSettings>,
    /// Without rows for so long, by the batches' processing time, it no longer holds the watermark back, in milliseconds.
    pub idle_timeout_ms: Option<u64>,
}

/// How the event times of several sources make one watermark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WatermarkPolicy {
    /// It is that of the slowest source: no row is late because another source is ahead.
    #[default]
    Min,
    /// It is that of the fastest.
    Max,
}

impl std::fmt::Display for WatermarkPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Min => "min",
            Self::Max => "max",
        })
    }
}

/// The name of the source of a query that has one only, and gives it none.
pub const ONLY_SOURCE: &str = "input";

/// Event time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatermarkSettings {
    /// A TIMESTAMP column of the source.
    pub column: String,
    /// How far behind the latest event time a row may come.
    pub delay_ms: u64,
    /// A row that is further ahead of its batch's processing time does not move the watermark; None: every row does.
    pub max_future_ms: Option<u64>,
}

/// When batches run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// Process what is there, then end.
    AvailableNow,
    /// One batch per interval, in milliseconds.
    Interval(u64),
    /// A batch as soon as there are rows or a timer is due.
    Continuous,
}

/// What becomes of rows that do not fit the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BadRows {
    /// The batch fails; nothing of it is committed.
    Fail,
    /// They are counted and left out.
    Skip,
    /// They are published, with the reason, to a directory of their own.
    Quarantine,
}

/// What becomes of rows and timers at which a processor fails each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoisonPolicy {
    /// Of these themselves.
    pub on_poison: OnPoison,
    /// Of later rows of their keys.
    pub after_poison: AfterPoison,
    /// Bounds of the search for them.
    pub limits: PoisonLimits,
}

impl PoisonPolicy {
    /// Whether keys are held.
    pub(super) fn holds(&self) -> bool {
        (self.on_poison, self.after_poison) == (OnPoison::DeadLetter, AfterPoison::Hold)
    }
}

/// What becomes of rows and timers at which a processor fails each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnPoison {
    /// The batch fails; nothing of it is committed.
    #[default]
    Fail,
    /// They are published, with the reason, to a directory of their own, and left out.
    DeadLetter,
}

/// What becomes of the rows of a key that follow a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AfterPoison {
    /// They are processed.
    #[default]
    Continue,
    /// They are dead letters too, until the key is released. Its timers fire.
    Hold,
}

/// Bounds of the search for poison, by batch and step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PoisonLimits {
    /// Dead letters of a batch, all steps together; held rows do not count.
    #[serde(rename = "dead_letters")]
    pub dead_letters_max: u64,
    /// Runs of a processor.
    #[serde(rename = "attempts")]
    pub attempts_max: u64,
    /// Fuel of these runs, where it is metered.
    #[serde(rename = "fuel")]
    pub fuel_max: u64,
    /// Time that they take, in milliseconds.
    #[serde(rename = "time_ms")]
    pub time_max_ms: u64,
}

impl Default for PoisonLimits {
    /// A thousand dead letters, and for each of them the runs that find it where the processor tells no key. A hundred
    /// chunks that burn all of their fuel.
    fn default() -> Self {
        Self { dead_letters_max: 1_000, attempts_max: 20_000, fuel_max: 1_000_000_000_000, time_max_ms: 5 * 60 * 1000 }
    }
}

/// How much of the past a checkpoint keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// A snapshot at least every so many batches.
    pub snapshot_batches: u64,
    /// And at least after so many bytes of log.
    pub snapshot_bytes: u64,
    /// Batches that can be replayed.
    pub batches: u64,
}

impl Default for Retention {
    /// 100 batches, as in the model we follow; a restart replays at most 64 MiB of log.
    fn default() -> Self {
        Self { snapshot_batches: 100, snapshot_bytes: 64 << 20, batches: 100 }
    }
}
