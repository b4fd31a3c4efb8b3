//! What a person writes down about a query: `query.toml`, or the same things as flags. And the environment, which is
//! read here and nowhere else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::connect::{SinkSettings, SourceSettings};
use crate::engine::operator::{OutputMode, TimeMode};
use crate::engine::output::OutputLimits;
use crate::engine::settings::{BadRows, QuerySettings, Retention, Trigger, WatermarkSettings};
use crate::engine::source::ReadLimits;
use crate::runtime::{Limits as SandboxLimits, Metering};
use crate::state::StateLimits;

/// A query file. Paths are relative to the folder of the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryConfig {
    /// What runs.
    pub processor: ProcessorConfig,
    /// Where rows come from.
    #[serde(default)]
    pub source: SourceSettings,
    /// State to begin with.
    pub initial_state: Option<SourceSettings>,
    /// Where emitted rows go.
    #[serde(default)]
    pub sink: SinkSettings,
    /// Where malformed rows go, with `bad_rows = "quarantine"`.
    pub quarantine: Option<QuarantineConfig>,
    /// How the query runs.
    pub query: QueryTable,
    /// How much it may use.
    #[serde(default)]
    pub limits: LimitsTable,
    /// How much of the past is kept.
    #[serde(default)]
    pub retention: RetentionTable,
}

/// `[processor]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessorConfig {
    /// The component, a `.wasm` file.
    pub component: PathBuf,
    /// Settings that the processor's author reads by name.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// How a processor that runs too long is stopped.
    #[serde(default = "metering_epoch")]
    pub metering: Metering,
}

/// `[quarantine]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuarantineConfig {
    /// A directory of JSON Lines files, one per batch that has malformed rows.
    pub path: PathBuf,
}

/// `[query]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryTable {
    /// For people; a checkpoint of another name is refused.
    pub name: Option<String>,
    /// The columns that rows are grouped by.
    pub key: Vec<String>,
    /// When timers and TTL move.
    #[serde(default = "time_mode_none")]
    pub time_mode: TimeMode,
    /// What emitted rows mean to a sink with keys.
    #[serde(default = "output_mode_append")]
    pub output_mode: OutputMode,
    /// Event time: `{ column = "at", delay = "10 minutes" }`.
    pub watermark: Option<WatermarkConfig>,
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

/// `watermark`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WatermarkConfig {
    /// A TIMESTAMP column of the input.
    pub column: String,
    /// How late a row may come behind the latest event time.
    #[serde(deserialize_with = "duration")]
    pub delay: Duration,
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
    /// Rows that a worker may emit in a batch.
    pub output_rows: u64,
    /// Packed bytes that a worker may emit in a batch.
    pub output_bytes: u64,
    /// What a worker may write in a batch.
    pub state: StateLimits,
    /// What an instance of the processor may use.
    pub sandbox: SandboxLimits,
}

impl Default for LimitsTable {
    /// A batch that fits comfortably in memory, and an output that a batch of a million keys fits in.
    fn default() -> Self {
        Self {
            files_per_batch: None,
            rows_per_batch: 1_000_000,
            bytes_per_batch: 256 << 20,
            output_rows: 10_000_000,
            output_bytes: 2 << 30,
            state: StateLimits::default(),
            sandbox: SandboxLimits::default(),
        }
    }
}

/// `[retention]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionTable {
    /// Batches that can be replayed.
    pub batches: u64,
    /// A snapshot at least every so many batches.
    pub snapshot_batches: u64,
    /// A snapshot at least after so many bytes of log.
    pub snapshot_bytes: u64,
}

impl Default for RetentionTable {
    fn default() -> Self {
        let Retention { snapshot_batches, snapshot_bytes, batches } = Retention::default();
        Self { batches, snapshot_batches, snapshot_bytes }
    }
}

/// Why a query file was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("{} cannot be read: {source}; check the path", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The failure.
        source: std::io::Error,
    },
    /// It is not what a query file looks like.
    #[error("{}: {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        message: String,
    },
    /// A clock file is not what it should be.
    #[error("{}, line {line}: {text:?} is no time; write milliseconds since the epoch, or RFC 3339", path.display())]
    Clock {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// A setting that must be there is not.
    #[error("{0}")]
    Missing(String),
}

impl ConfigError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "CONFIG_UNREADABLE",
            Self::Malformed { .. } => "CONFIG_INVALID",
            Self::Clock { .. } => "CLOCK_FILE_INVALID",
            Self::Missing(_) => "CONFIG_INCOMPLETE",
        }
    }
}

impl QueryConfig {
    /// Reads a query: the file, if there is one, with `overrides` on top.
    ///
    /// # Errors
    /// A file that cannot be read, an unknown or missing setting, a value of the wrong kind.
    pub fn load(file: Option<&Path>, overrides: toml::Table) -> Result<Self, ConfigError> {
        let mut table = match file {
            None => toml::Table::new(),
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
                let mut table: toml::Table = text.parse().map_err(|error: toml::de::Error| malformed(file, &error))?;
                resolve_paths(&mut table, path.parent().unwrap_or_else(|| Path::new("")));
                table
            }
        };
        overlay(&mut table, overrides);
        drop_empty_paths(&mut table);
        Self::deserialize(table.clone()).map_err(|error| {
            let missing = if error.message().starts_with("missing field") { not_said(&table) } else { None };
            missing.unwrap_or_else(|| malformed(file, &error))
        })
    }

    /// What the engine needs to know of it.
    pub fn settings(&self) -> QuerySettings {
        let query = &self.query;
        let cores = std::thread::available_parallelism().map_or(1, |cores| u16::try_from(cores.get()).unwrap_or(64));
        QuerySettings {
            name: query.name.clone(),
            key: query.key.clone(),
            time_mode: query.time_mode,
            output_mode: query.output_mode,
            watermark: query.watermark.as_ref().map(|watermark| WatermarkSettings {
                column: watermark.column.clone(),
                delay_ms: millis(watermark.delay),
            }),
            trigger: query.trigger.0,
            workers: query.workers.unwrap_or(cores).max(1),
            key_groups: query.key_groups.max(1),
            read: ReadLimits {
                files_max: self.limits.files_per_batch.map(|files| files.max(1)),
                rows_max: self.limits.rows_per_batch.max(1),
                bytes_max: self.limits.bytes_per_batch.max(1),
            },
            output: OutputLimits { rows_max: self.limits.output_rows, bytes_max: self.limits.output_bytes },
            state: self.limits.state,
            bad_rows: query.bad_rows,
            parameters: self.processor.parameters.clone(),
            seed: query.seed,
            min_batch_interval_ms: millis(query.min_batch_interval),
            ttl_sweep_ms: millis(query.ttl_sweep),
            retention: Retention {
                snapshot_batches: self.retention.snapshot_batches.max(1),
                snapshot_bytes: self.retention.snapshot_bytes.max(1),
                batches: self.retention.batches.max(1),
            },
        }
    }
}

/// Reads a clock file: one time per line, blank lines and lines that begin with `#` left out.
///
/// # Errors
/// [`ConfigError::Unreadable`], [`ConfigError::Clock`].
pub fn read_clock(path: &Path) -> Result<Vec<i64>, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(line, text)| {
            text.parse()
                .ok()
                .or_else(|| crate::connect::parse_timestamp(text).map(|us| us.div_euclid(1000)))
                .ok_or_else(|| ConfigError::Clock { path: path.to_owned(), line, text: text.to_owned() })
        })
        .collect()
}

/// Settings that hold paths, as (table, key).
const PATHS: [(&str, &str); 7] = [
    ("processor", "component"),
    ("source", "path"),
    ("initial_state", "path"),
    ("sink", "path"),
    ("quarantine", "path"),
    ("query", "checkpoint"),
    ("query", "clock"),
];

fn resolve_paths(table: &mut toml::Table, folder: &Path) {
    for (section, key) in PATHS {
        if let Some(toml::Value::String(path)) = table.get_mut(section).and_then(|section| section.get_mut(key)) {
            *path = folder.join(&*path).to_string_lossy().into_owned();
        }
    }
}

fn overlay(under: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(toml::Value::Table(under)), toml::Value::Table(over)) => overlay(under, over),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}

/// An empty path is none: so a flag can take a path of the file away.
fn drop_empty_paths(table: &mut toml::Table) {
    for (section, key) in PATHS {
        if let Some(section) = table.get_mut(section).and_then(toml::Value::as_table_mut)
            && section.get(key).and_then(toml::Value::as_str).is_some_and(str::is_empty)
        {
            section.remove(key);
        }
    }
}

/// Settings that every query needs, any one of each line, with how to give them.
const REQUIRED: [(&str, &[&str], &str); 4] = [
    ("processor", &["component"], "what runs: a component as first argument, or component in [processor]"),
    ("source", &["path", "stdin"], "where rows come from: --input PATH (- for standard input), or path in [source]"),
    ("sink", &["path", "stdout"], "where rows go: --sink PATH (- for standard output), or path in [sink]"),
    ("query", &["key"], "by which columns rows are grouped: --key COLUMN, or key = [\"COLUMN\"] in [query]"),
];

/// Says how to give what is missing, which a parser of tables cannot.
fn not_said(table: &toml::Table) -> Option<ConfigError> {
    let given = |section: &str, keys: &[&str]| {
        let section = table.get(section).and_then(toml::Value::as_table);
        section.is_some_and(|section| keys.iter().any(|key| section.contains_key(*key)))
    };
    let (_, _, how) = REQUIRED.into_iter().find(|(section, keys, _)| !given(section, keys))?;
    Some(ConfigError::Missing(format!("the query does not say {how}")))
}

fn malformed(file: Option<&Path>, error: &dyn std::fmt::Display) -> ConfigError {
    let path = file.map_or_else(|| PathBuf::from("the command line"), Path::to_owned);
    ConfigError::Malformed { path, message: error.to_string().trim_end().to_owned() }
}

fn parse_duration(text: &str) -> Result<Duration, humantime::DurationError> {
    humantime::parse_duration(text)
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_duration(&text).map_err(|error| {
        serde::de::Error::custom(format!(
            "{text:?} is no duration ({error}); write for example 10 minutes, 5s or 1 day"
        ))
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn metering_epoch() -> Metering {
    Metering::Epoch
}

fn time_mode_none() -> TimeMode {
    TimeMode::None
}

fn output_mode_append() -> OutputMode {
    OutputMode::Append
}

fn bad_rows_fail() -> BadRows {
    BadRows::Fail
}

/// Enough for any single machine, and few enough that each can have its own bookkeeping.
fn key_groups_default() -> u16 {
    256
}

fn min_batch_interval_default() -> Duration {
    Duration::from_millis(100)
}

fn ttl_sweep_default() -> Duration {
    Duration::from_secs(60)
}

/// What the host takes from its environment.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `TIDEMILL_LOG`: a filter for log lines, e.g. `tidemill=debug`.
    pub log_filter: Option<String>,
    /// `TIDEMILL_CACHE`, else the user's cache folder: where compiled components are kept.
    pub cache_dir: Option<PathBuf>,
    /// `TIDEMILL_CRASH_AT`, for tests: `point:n` aborts the process at the n-th pass of a named point.
    pub crash_at: Option<String>,
    /// `NO_COLOR` is set.
    pub no_color: bool,
}

impl Environment {
    /// Reads it.
    #[expect(clippy::disallowed_methods, reason = "this is the place that reads the environment")]
    pub fn read() -> Self {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let cache_dir = set("TIDEMILL_CACHE").map(PathBuf::from).or_else(|| {
            let base = set("XDG_CACHE_HOME")
                .map(PathBuf::from)
                .or_else(|| set("HOME").map(|home| Path::new(&home).join(".cache")));
            base.map(|base| base.join("tidemill"))
        });
        Self {
            log_filter: set("TIDEMILL_LOG"),
            cache_dir,
            crash_at: set("TIDEMILL_CRASH_AT"),
            no_color: set("NO_COLOR").is_some(),
        }
    }
}
