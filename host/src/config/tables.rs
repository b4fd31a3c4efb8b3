//! The tables of a query file, as people write them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};

use crate::connect::{Format, SourceSettings};
use crate::engine::operator::{OutputMode, TimeMode};
use crate::engine::settings::{
    AfterPoison, BadRows, OnPoison, PoisonLimits, Retention, Trigger, WatermarkPolicy, WatermarkSettings,
};
use crate::record::Schema;
use crate::runtime::{Limits as SandboxLimits, Metering};
use crate::state::StateLimits;

/// `[processor]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessorConfig {
    /// The component, a `.wasm` file.
    pub component: PathBuf,
    /// Settings that the processor's author reads by name.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
}

/// `[[step]]`: a processor with what is its own.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepConfig {
    /// Unique in the query.
    #[serde(default)]
    pub name: String,
    /// The component, a `.wasm` file.
    pub component: PathBuf,
    /// The columns that rows are grouped by.
    pub key: Vec<String>,
    /// When timers and TTL move.
    #[serde(default = "time_mode_none")]
    pub time_mode: TimeMode,
    /// What emitted rows mean to a sink with keys.
    #[serde(default = "output_mode_append")]
    pub output_mode: OutputMode,
    /// The TIMESTAMP column of the emitted rows that the next step takes for their event time.
    pub output_event_time: Option<String>,
    /// Settings that the processor's author reads by name.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// State to begin with.
    pub initial_state: Option<SourceSettings>,
    /// How much it may use; else what `[limits]` says.
    #[serde(default)]
    pub limits: StepLimits,
}

/// `[source]`, or one of `[[source]]`: what [`SourceSettings`] says, and what it is in the query.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SourceTable {
    name: Option<String>,
    watermark: Option<WatermarkConfig>,
    #[serde(default, deserialize_with = "some_duration")]
    idle_timeout: Option<Duration>,
    path: Option<PathBuf>,
    #[serde(default)]
    stdin: bool,
    format: Option<Format>,
    schema: Option<Schema>,
    header: Option<bool>,
    delimiter: Option<char>,
    null_value: Option<String>,
    #[serde(default)]
    skip_committed: bool,
}

/// A source of a query.
#[derive(Debug, Clone)]
pub struct SourceConfig {
    /// Unique in the query.
    pub name: String,
    /// Its event time.
    pub watermark: Option<WatermarkConfig>,
    /// Without rows for so long, it no longer holds the watermark back.
    pub idle_timeout: Option<Duration>,
    /// Where its rows are.
    pub at: SourceSettings,
}

impl SourceTable {
    /// Where it says nothing, it has the name and the watermark given here.
    pub(super) fn into_source(self, name: &str, watermark: Option<&WatermarkConfig>) -> SourceConfig {
        let Self { path, stdin, format, schema, header, delimiter, null_value, skip_committed, .. } = self;
        SourceConfig {
            name: self.name.unwrap_or_else(|| name.to_owned()),
            watermark: self.watermark.or_else(|| watermark.cloned()),
            idle_timeout: self.idle_timeout,
            at: SourceSettings { path, stdin, format, schema, header, delimiter, null_value, skip_committed },
        }
    }
}

/// `[quarantine]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuarantineConfig {
    /// A directory of JSON Lines files, one per batch that has malformed rows.
    pub path: PathBuf,
}

/// `[dead_letters]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadLettersConfig {
    /// A directory of JSON Lines files, one per batch that has dead letters.
    pub path: PathBuf,
}

/// `[query]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryTable {
    /// For people; a checkpoint of another name is refused.
    pub name: Option<String>,
    /// The columns that rows are grouped by. This and the next three are of a query without `[[step]]`.
    pub(super) key: Option<Vec<String>>,
    pub(super) time_mode: Option<TimeMode>,
    pub(super) output_mode: Option<OutputMode>,
    pub(super) output_event_time: Option<String>,
    /// How a processor that runs too long is stopped.
    #[serde(default = "metering_epoch")]
    pub metering: Metering,
    /// Event time of sources that say nothing else: `{ column = "at", delay = "10 minutes" }`.
    pub watermark: Option<WatermarkConfig>,
    /// How several sources make one watermark: `min` or `max`.
    #[serde(default)]
    pub watermark_policy: WatermarkPolicy,
    /// Sources of the checkpoint that are given up for good.
    #[serde(default)]
    pub dropped_sources: Vec<String>,
    /// `available-now`, `continuous`, or an interval such as `5s`.
    #[serde(default)]
    pub trigger: TriggerConfig,
    /// Where state, log and snapshots are kept.
    pub checkpoint: Option<PathBuf>,
    /// Worker threads; default: one per processor core.
    pub workers: Option<u16>,
    /// Key groups of a new checkpoint: the most workers that it can ever have.
    #[serde(default = "key_groups_default")]
    pub key_groups: u16,
    /// What becomes of malformed rows.
    #[serde(default = "bad_rows_fail")]
    pub bad_rows: BadRows,
    /// What becomes of rows and timers at which a processor fails each time: `fail` or `dead-letter`.
    #[serde(default)]
    pub on_poison: OnPoison,
    /// What becomes of later rows of their keys: `continue` or `hold`.
    #[serde(default)]
    pub after_poison: AfterPoison,
    /// Seed of everything random, for a new checkpoint.
    pub seed: Option<u64>,
    /// A file with the time of each batch, one per line: milliseconds since the epoch or RFC 3339.
    pub clock: Option<PathBuf>,
    /// Least time between two batches without rows.
    #[serde(default = "min_batch_interval_default", deserialize_with = "duration")]
    pub min_batch_interval: Duration,
    /// Expired state alone runs a batch at most this often.
    #[serde(default = "ttl_sweep_default", deserialize_with = "duration")]
    pub ttl_sweep: Duration,
}

impl QueryTable {
    /// A setting of a query without `[[step]]`, if one is there.
    pub(super) fn flat(&self) -> Option<&'static str> {
        let given = [
            ("query.key", self.key.is_some()),
            ("query.time_mode", self.time_mode.is_some()),
            ("query.output_mode", self.output_mode.is_some()),
            ("query.output_event_time", self.output_event_time.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(setting, _)| setting)
    }
}

/// `watermark`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatermarkConfig {
    /// A TIMESTAMP column of the source.
    pub column: String,
    /// How late a row may come behind the latest event time.
    #[serde(deserialize_with = "duration")]
    pub delay: Duration,
    /// How far ahead of its batch a row may be and still move the watermark: a duration, or `off`. Default: a day by the
    /// machine's clock, off with a clock file, whose times may have nothing to do with those of the rows.
    pub max_future: Option<MaxFuture>,
}

/// `watermark.max_future`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxFuture {
    /// Every row moves the watermark.
    Off,
    /// Rows up to so far ahead do.
    Within(Duration),
}

/// Clocks and time zones that are off by hours are common, and rows of a day ahead are rare.
const MAX_FUTURE: Duration = Duration::from_secs(24 * 60 * 60);

impl WatermarkConfig {
    pub(super) fn settings(&self, has_clock_file: bool) -> WatermarkSettings {
        let default = if has_clock_file { MaxFuture::Off } else { MaxFuture::Within(MAX_FUTURE) };
        WatermarkSettings {
            column: self.column.clone(),
            delay_ms: millis(self.delay),
            max_future_ms: match self.max_future.unwrap_or(default) {
                MaxFuture::Off => None,
                MaxFuture::Within(duration) => Some(millis(duration)),
            },
        }
    }
}

impl<'de> Deserialize<'de> for MaxFuture {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "off" {
            return Ok(Self::Off);
        }
        let refused = |error| {
            serde::de::Error::custom(format!("{text:?} is no duration ({error}); write for example 1 day, or off"))
        };
        parse_duration(&text).map(Self::Within).map_err(refused)
    }
}

/// `trigger`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TriggerConfig(pub Trigger);

impl Default for TriggerConfig {
    fn default() -> Self {
        Self(Trigger::AvailableNow)
    }
}

impl std::str::FromStr for TriggerConfig {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "available-now" => Ok(Self(Trigger::AvailableNow)),
            "continuous" => Ok(Self(Trigger::Continuous)),
            interval => match parse_duration(interval) {
                Ok(interval) if !interval.is_zero() => Ok(Self(Trigger::Interval(millis(interval)))),
                _ => Err(format!("{text:?} is no trigger; use available-now, continuous, or an interval such as 5s")),
            },
        }
    }
}

impl<'de> Deserialize<'de> for TriggerConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// `[limits]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsTable {
    /// Files begun in a batch.
    pub files_per_batch: Option<u64>,
    /// Rows read in a batch.
    pub rows_per_batch: u64,
    /// Bytes read in a batch, decompressed.
    pub bytes_per_batch: u64,
    /// The search for rows and timers at which a processor fails.
    pub poison: PoisonLimits,
    // Those of each step, which [`StepLimits`] has; here they are known, so that they may be written here.
    output_rows: Option<u64>,
    output_bytes: Option<u64>,
    state: Option<StateLimits>,
    sandbox: Option<SandboxLimits>,
}

impl Default for LimitsTable {
    /// A batch that fits comfortably in memory.
    fn default() -> Self {
        Self {
            files_per_batch: None,
            rows_per_batch: 1_000_000,
            bytes_per_batch: 256 << 20,
            poison: PoisonLimits::default(),
            output_rows: None,
            output_bytes: None,
            state: None,
            sandbox: None,
        }
    }
}

impl LimitsTable {
    pub(super) fn of_the_only_step(&self) -> StepLimits {
        let default = StepLimits::default();
        StepLimits {
            output_rows: self.output_rows.unwrap_or(default.output_rows),
            output_bytes: self.output_bytes.unwrap_or(default.output_bytes),
            state: self.state.unwrap_or(default.state),
            sandbox: self.sandbox.clone().unwrap_or(default.sandbox),
        }
    }
}

/// `limits` of a step.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct StepLimits {
    /// Rows that a worker may emit in a batch.
    pub output_rows: u64,
    /// Packed bytes that a worker may emit in a batch.
    pub output_bytes: u64,
    /// What a worker may write in a batch.
    pub state: StateLimits,
    /// What an instance of the processor may use.
    pub sandbox: SandboxLimits,
}

impl Default for StepLimits {
    /// An output that a batch of a million keys fits in.
    fn default() -> Self {
        Self {
            output_rows: 10_000_000,
            output_bytes: 2 << 30,
            state: StateLimits::default(),
            sandbox: SandboxLimits::default(),
        }
    }
}

/// `[retention]`
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionTable {
    /// Batches that can be replayed.
    pub batches: u64,
    /// A snapshot at least every so many batches.
    pub snapshot_batches: u64,
    /// A snapshot at least after so many bytes of log.
    pub snapshot_bytes: u64,
}

impl RetentionTable {
    pub(super) fn settings(&self) -> Retention {
        Retention {
            snapshot_batches: self.snapshot_batches.max(1),
            snapshot_bytes: self.snapshot_bytes.max(1),
            batches: self.batches.max(1),
        }
    }
}

impl Default for RetentionTable {
    fn default() -> Self {
        let Retention { snapshot_batches, snapshot_bytes, batches } = Retention::default();
        Self { batches, snapshot_batches, snapshot_bytes }
    }
}

fn parse_duration(text: &str) -> Result<Duration, humantime::DurationError> {
    humantime::parse_duration(text)
}

pub(super) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_duration(&text).map_err(|error| {
        serde::de::Error::custom(format!(
            "{text:?} is no duration ({error}); write for example 10 minutes, 5s or 1 day"
        ))
    })
}

fn some_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration(deserializer).map(Some)
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn metering_epoch() -> Metering {
    Metering::Epoch
}

pub(super) fn time_mode_none() -> TimeMode {
    TimeMode::None
}

pub(super) fn output_mode_append() -> OutputMode {
    OutputMode::Append
}

fn bad_rows_fail() -> BadRows {
    BadRows::Fail
}

/// Enough for any single machine, and few enough that each can have its own bookkeeping.
pub(super) fn key_groups_default() -> u16 {
    256
}

pub(super) fn min_batch_interval_default() -> Duration {
    Duration::from_millis(100)
}

pub(super) fn ttl_sweep_default() -> Duration {
    Duration::from_secs(60)
}
