//! What a tenant may write about a query that a server runs: a JSON document with the settings of `query.toml` that name
//! nothing of the machine.
//!
//! ```json
//! {
//!   "name": "visits", "processor": "counter@live", "input_schema": "user STRING, at TIMESTAMP", "key": ["user"],
//!   "time_mode": "event-time", "watermark": { "column": "at", "delay": "10 minutes" }
//! }
//! ```
//!
//! Rows come from the query's own ingest log and go to its own results, so there is no source and no sink to name. No field
//! holds a path, a URI or a variable of the environment: names and references have a grammar without them, columns are
//! those of a schema, and parameters go to the processor as they are, which can open nothing.

mod ceilings;
mod reference;
mod refused;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::tables::{
    RetentionTable, StepLimits, TriggerConfig, WatermarkConfig, duration, key_groups_default, millis,
    min_batch_interval_default, output_mode_append, time_mode_none, ttl_sweep_default,
};
use crate::engine::operator::{OutputMode, TimeMode};
use crate::engine::output::OutputLimits;
use crate::engine::settings::{
    BadRows, InputSettings, ONLY_SOURCE, ONLY_STEP, PoisonPolicy, QuerySettings, StepSettings, Trigger, WatermarkPolicy,
};
use crate::engine::source::ReadLimits;
use crate::record::Schema;
use crate::runtime::Limits as SandboxLimits;
pub use ceilings::Ceilings;
pub use reference::{ProcessorReference, Revision, is_name};

/// Longest document, in bytes: a few thousand columns and parameters.
pub const DOCUMENT_BYTES_MAX: usize = 256 << 10;

/// A query of a tenant, read and checked.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostedQuery {
    /// Unique among the tenant's queries.
    pub name: String,
    /// What runs, one processor after another; at least one.
    pub steps: Vec<HostedStep>,
    /// The columns of the rows that are ingested.
    pub input_schema: Schema,
    watermark: Option<WatermarkConfig>,
    #[serde(default = "continuous")]
    trigger: TriggerConfig,
    #[serde(default = "one")]
    workers: u16,
    #[serde(default = "key_groups_default")]
    key_groups: u16,
    #[serde(default)]
    limits: ReadTable,
    #[serde(default)]
    retention: RetentionTable,
    seed: Option<u64>,
    #[serde(default = "min_batch_interval_default", deserialize_with = "duration")]
    min_batch_interval: Duration,
    #[serde(default = "ttl_sweep_default", deserialize_with = "duration")]
    ttl_sweep: Duration,
}

/// A step: a processor with what is its own.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostedStep {
    /// Unique in the query.
    pub name: String,
    /// What runs.
    pub processor: ProcessorReference,
    key: Vec<String>,
    #[serde(default = "time_mode_none")]
    time_mode: TimeMode,
    #[serde(default = "output_mode_append")]
    output_mode: OutputMode,
    output_event_time: Option<String>,
    #[serde(default)]
    parameters: BTreeMap<String, String>,
    #[serde(default)]
    limits: StepLimits,
}

/// What of `limits` is not of a step.
#[derive(Debug, Clone, Deserialize, serde::Serialize)]
#[serde(deny_unknown_fields, default)]
struct ReadTable {
    rows_per_batch: u64,
    bytes_per_batch: u64,
}

impl Default for ReadTable {
    /// A batch that fits in the memory of a worker beside those of other queries.
    fn default() -> Self {
        Self { rows_per_batch: 100_000, bytes_per_batch: 32 << 20 }
    }
}

/// Why a query was refused.
#[derive(Debug, thiserror::Error)]
pub enum HostedError {
    /// It is not what a query looks like.
    #[error("the query is malformed: {0}")]
    Malformed(String),
    /// A setting of `query.toml` that is not a tenant's.
    #[error("{setting} is no setting of a hosted query: {why}; leave it out")]
    NotAllowed {
        /// Where it stands, e.g. `steps.0.component`.
        setting: String,
        /// Who decides it instead.
        why: &'static str,
    },
    /// A setting is further than the server allows.
    #[error("{setting} is {value}, and this server allows {bound}; change it, or ask who runs the server")]
    OutOfBounds {
        /// Where it stands, e.g. `limits.rows_per_batch`.
        setting: String,
        /// As it was given.
        value: String,
        /// What is allowed, e.g. `at most 16`.
        bound: String,
    },
}

impl HostedError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "CONFIG_INVALID",
            Self::NotAllowed { .. } => "HOSTED_SETTING_NOT_ALLOWED",
            Self::OutOfBounds { .. } => "HOSTED_SETTING_OUT_OF_BOUNDS",
        }
    }
}

impl HostedQuery {
    /// Reads a query. Nothing is opened and no processor looked up. [`Ceilings::check`] says whether a tenant may have it.
    ///
    /// # Errors
    /// What is wrong with the document, see [`HostedError`].
    pub fn parse(document: &[u8]) -> Result<Self, HostedError> {
        if document.len() > DOCUMENT_BYTES_MAX {
            return Err(malformed(format!("it has {} bytes, at most {DOCUMENT_BYTES_MAX} are read", document.len())));
        }
        let mut document: Map<String, Value> = serde_json::from_slice(document).map_err(malformed)?;
        refused::check(&document)?;
        list_steps(&mut document)?;
        inherit_limits(&mut document);
        let query = Self::deserialize(Value::Object(document)).map_err(malformed)?;
        query.check()?;
        Ok(query)
    }

    /// What serde cannot see. Everything that depends on the processors is checked when the query is opened.
    fn check(&self) -> Result<(), HostedError> {
        let names = self.steps.iter().map(|step| &step.name).chain([&self.name]);
        if let Some(name) = names.into_iter().find(|name| !is_name(name)) {
            return Err(malformed(format!("{name:?} is no name; {}", reference::NAME_RULE)));
        }
        let columns = self.steps.first().into_iter().flat_map(|step| &step.key);
        let columns = columns.chain(self.watermark.as_ref().map(|watermark| &watermark.column));
        match columns.into_iter().find(|column| self.input_schema.field(column).is_none()) {
            Some(column) => Err(malformed(format!("{column:?} is no column of input_schema ({})", self.input_schema))),
            None => Ok(()),
        }
    }

    /// What the engine needs to know of it.
    pub fn settings(&self) -> QuerySettings {
        let input = InputSettings {
            name: ONLY_SOURCE.to_owned(),
            watermark: self.watermark.as_ref().map(|watermark| watermark.settings(false)),
            idle_timeout_ms: None,
        };
        QuerySettings {
            name: Some(self.name.clone()),
            steps: self.steps.iter().map(HostedStep::settings).collect(),
            sources: vec![input],
            dropped_sources: Vec::new(),
            watermark_policy: WatermarkPolicy::Min,
            trigger: self.trigger.0,
            workers: self.workers.max(1),
            key_groups: self.key_groups.max(1),
            read: ReadLimits {
                files_max: None,
                rows_max: self.limits.rows_per_batch.max(1),
                bytes_max: self.limits.bytes_per_batch.max(1),
            },
            // Rows were checked against the schema when they were ingested: one that does not fit is damage.
            bad_rows: BadRows::Fail,
            poison: PoisonPolicy::default(),
            seed: self.seed,
            min_batch_interval_ms: millis(self.min_batch_interval),
            ttl_sweep_ms: millis(self.ttl_sweep),
            retention: self.retention.settings(),
        }
    }
}

impl HostedStep {
    /// What an instance of its processor may use.
    pub fn sandbox(&self) -> &SandboxLimits {
        &self.limits.sandbox
    }

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

/// Settings of a step, which stand at the top where there is one step only.
const OF_A_STEP: [&str; 6] = ["processor", "key", "time_mode", "output_mode", "output_event_time", "parameters"];

/// Makes a list of the step of a query that has one only.
fn list_steps(document: &mut Map<String, Value>) -> Result<(), HostedError> {
    let flat = OF_A_STEP.into_iter().filter_map(|setting| Some((setting.to_owned(), document.remove(setting)?)));
    let mut flat: Map<_, _> = flat.collect();
    match (document.contains_key("steps"), flat.keys().next()) {
        (true, Some(setting)) => {
            Err(malformed(format!("{setting} stands beside steps; write it in the step it is of")))
        }
        (true, None) => Ok(()),
        (false, _) => {
            flat.insert("name".to_owned(), ONLY_STEP.into());
            document.insert("steps".to_owned(), Value::Array(vec![Value::Object(flat)]));
            Ok(())
        }
    }
}

/// Settings of `limits` that a step may have of its own.
const STEP_LIMITS: [&str; 4] = ["output_rows", "output_bytes", "state", "sandbox"];

/// Gives each step the limits of the query, but for its own.
fn inherit_limits(document: &mut Map<String, Value>) {
    let mut common = Map::new();
    if let Some(limits) = document.get_mut("limits").and_then(Value::as_object_mut) {
        common.extend(STEP_LIMITS.into_iter().filter_map(|name| Some((name.to_owned(), limits.remove(name)?))));
    }
    let steps = document.get_mut("steps").and_then(Value::as_array_mut).into_iter().flatten();
    for step in steps.filter_map(Value::as_object_mut) {
        let own = step.remove("limits");
        step.insert("limits".to_owned(), laid_over(Value::Object(common.clone()), own));
    }
}

fn laid_over(under: Value, over: Option<Value>) -> Value {
    match (under, over) {
        (under, None) => under,
        (Value::Object(mut under), Some(Value::Object(over))) => {
            for (name, over) in over {
                let laid = laid_over(under.remove(&name).unwrap_or_default(), Some(over));
                under.insert(name, laid);
            }
            Value::Object(under)
        }
        (_, Some(over)) => over,
    }
}

fn malformed(problem: impl std::fmt::Display) -> HostedError {
    HostedError::Malformed(problem.to_string())
}

fn continuous() -> TriggerConfig {
    TriggerConfig(Trigger::Continuous)
}

/// Tenants share the machine's cores; one that needs more for a query says so.
fn one() -> u16 {
    1
}
