//! What a person writes down about a query: `query.toml`, or the same things as flags. And the environment, which is
//! read here and nowhere else.
//!
//! A query of one step is written flat (`[processor]`, `[query] key = ...`), one of several as a list (`[[step]]`). Read,
//! both are a list of steps. The same goes for `[source]` and `[[source]]`.

mod environment;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub mod hosted;
mod overlay;
mod tables;

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::connect::{SinkSettings, SourceSettings};
use crate::engine::output::OutputLimits;
use crate::engine::settings::{InputSettings, ONLY_SOURCE, ONLY_STEP, PoisonPolicy, QuerySettings, StepSettings};
use crate::engine::source::ReadLimits;
pub use environment::Environment;
use overlay::{drop_empty_paths, inherit_limits, name_list_of_sources, not_said, overlay, resolve_paths};
use tables::{
    DeadLettersConfig, LimitsTable, ProcessorConfig, QuarantineConfig, QueryTable, RetentionTable, SourceTable,
};
pub use tables::{SourceConfig, StepConfig};
use tables::{millis, output_mode_append, time_mode_none};

/// A query file, as it is written. Paths are relative to the folder of the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryFile {
    /// What runs.
    processor: Option<ProcessorConfig>,
    /// What runs, one processor after another.
    #[serde(default)]
    step: Vec<StepConfig>,
    /// Where rows come from.
    #[serde(default)]
    source: SourceTable,
    /// The same, where there are several: `[[source]]`, which is given this name before it is read.
    #[serde(default)]
    sources: Vec<SourceTable>,
    /// State to begin with.
    initial_state: Option<SourceSettings>,
    /// Where emitted rows go.
    #[serde(default)]
    sink: SinkSettings,
    /// Where malformed rows go, with `bad_rows = "quarantine"`.
    quarantine: Option<QuarantineConfig>,
    /// Where rows and timers go at which a processor fails, with `on_poison = "dead-letter"`.
    dead_letters: Option<DeadLettersConfig>,
    /// How the query runs.
    query: QueryTable,
    /// How much it may use.
    #[serde(default)]
    limits: LimitsTable,
    /// How much of the past is kept.
    #[serde(default)]
    retention: RetentionTable,
}

/// A query.
#[derive(Debug, Clone)]
pub struct QueryConfig {
    /// What runs, one processor after another; at least one.
    pub steps: Vec<StepConfig>,
    /// Where rows come from; at least one.
    pub sources: Vec<SourceConfig>,
    /// Where emitted rows go.
    pub sink: SinkSettings,
    /// Where malformed rows go, with `bad_rows = "quarantine"`.
    pub quarantine: Option<QuarantineConfig>,
    /// Where rows and timers go at which a processor fails, with `on_poison = "dead-letter"`.
    pub dead_letters: Option<DeadLettersConfig>,
    /// How the query runs.
    pub query: QueryTable,
    /// How much it may read.
    pub limits: LimitsTable,
    /// How much of the past is kept.
    pub retention: RetentionTable,
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
        overlay(&mut table, overrides).map_err(|error| malformed(file, &error))?;
        drop_empty_paths(&mut table);
        inherit_limits(&mut table);
        name_list_of_sources(&mut table);
        let read = QueryFile::deserialize(table.clone()).map_err(|error| {
            let missing = if error.message().starts_with("missing field") { not_said(&table) } else { None };
            missing.unwrap_or_else(|| malformed(file, &error))
        })?;
        let QueryFile { processor, step, source, sources, initial_state, query, limits, .. } = read;
        let QueryFile { sink, quarantine, dead_letters, retention, .. } = read;
        let steps = if step.is_empty() {
            let (Some(ProcessorConfig { component, parameters }), Some(key)) = (processor, query.key.clone()) else {
                return Err(not_said(&table).unwrap_or_else(|| malformed(file, &"the query has no step")));
            };
            vec![StepConfig {
                name: ONLY_STEP.to_owned(),
                component,
                key,
                time_mode: query.time_mode.unwrap_or_else(time_mode_none),
                output_mode: query.output_mode.unwrap_or_else(output_mode_append),
                output_event_time: query.output_event_time.clone(),
                parameters,
                initial_state,
                limits: limits.of_the_only_step(),
            }]
        } else {
            let flat = query.flat().or(processor.map(|_| "processor")).or(initial_state.map(|_| "initial_state"));
            if let Some(setting) = flat {
                let problem = format!(
                    "{setting} is for a query of one step, and this one has [[step]] tables; write it there, or give it \
                     with --set step.NAME.SETTING=VALUE"
                );
                return Err(malformed(file, &problem));
            }
            step
        };
        let watermark = query.watermark.as_ref();
        let sources: Vec<_> = match sources.is_empty() {
            true => vec![source.into_source(ONLY_SOURCE, watermark)],
            false => sources.into_iter().map(|source| source.into_source("", watermark)).collect(),
        };
        if sources.iter().filter(|source| source.at.stdin).count() > 1 {
            return Err(malformed(file, &"standard input can be one source only"));
        }
        Ok(Self { steps, sources, sink, quarantine, dead_letters, query, limits, retention })
    }

    /// What the engine needs to know of it.
    pub fn settings(&self) -> QuerySettings {
        let query = &self.query;
        let cores = std::thread::available_parallelism().map_or(1, |cores| u16::try_from(cores.get()).unwrap_or(64));
        QuerySettings {
            name: query.name.clone(),
            steps: self.steps.iter().map(StepConfig::settings).collect(),
            sources: self.sources.iter().map(|source| source.settings(query.clock.is_some())).collect(),
            dropped_sources: query.dropped_sources.clone(),
            watermark_policy: query.watermark_policy,
            trigger: query.trigger.0,
            workers: query.workers.unwrap_or(cores).max(1),
            key_groups: query.key_groups.max(1),
            read: ReadLimits {
                files_max: self.limits.files_per_batch.map(|files| files.max(1)),
                rows_max: self.limits.rows_per_batch.max(1),
                bytes_max: self.limits.bytes_per_batch.max(1),
            },
            bad_rows: query.bad_rows,
            poison: PoisonPolicy {
                on_poison: query.on_poison,
                after_poison: query.after_poison,
                limits: self.limits.poison,
            },
            seed: query.seed,
            min_batch_interval_ms: millis(query.min_batch_interval),
            ttl_sweep_ms: millis(query.ttl_sweep),
            retention: self.retention.settings(),
        }
    }
}

impl SourceConfig {
    fn settings(&self, has_clock_file: bool) -> InputSettings {
        InputSettings {
            name: self.name.clone(),
            watermark: self.watermark.as_ref().map(|watermark| watermark.settings(has_clock_file)),
            idle_timeout_ms: self.idle_timeout.map(millis),
        }
    }
}

impl StepConfig {
    fn settings(&self) -> StepSettings {
        StepSettings {
            name: self.name.clone(),
            key: self.key.clone(),
            time_mode: self.time_mode,
            output_mode: self.output_mode,
            output_event_time: self.output_event_time.clone(),
            output: OutputLimits { rows_max: self.limits.output_rows, bytes_max: self.limits.output_bytes },
            state: self.limits.state,
            parameters: self.parameters.clone(),
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
                .or_else(|| crate::record::parse_timestamp(text).map(|us| us.div_euclid(1000)))
                .ok_or_else(|| ConfigError::Clock { path: path.to_owned(), line, text: text.to_owned() })
        })
        .collect()
}

fn malformed(file: Option<&Path>, error: &dyn std::fmt::Display) -> ConfigError {
    let path = file.map_or_else(|| PathBuf::from("the command line"), Path::to_owned);
    ConfigError::Malformed { path, message: error.to_string().trim_end().to_owned() }
}
