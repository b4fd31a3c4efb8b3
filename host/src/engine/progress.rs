//! What a batch did, in numbers: the progress report of the model we follow, by the same names.

use serde::Serialize;

use crate::state::SessionMetrics;

/// One batch. Times in milliseconds.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Query id, stable over restarts.
    pub id: String,
    /// New with every start.
    pub run_id: String,
    /// The query's name, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// From 0.
    pub batch_id: u64,
    /// The batch's processing time, milliseconds since the epoch.
    pub batch_time_ms: i64,
    /// Input rows, late ones included, rejected ones not.
    pub num_input_rows: u64,
    /// Input rows over the duration of the batch.
    pub processed_rows_per_second: f64,
    /// How long the parts of the batch took.
    pub duration_ms: Durations,
    /// Event time.
    pub event_time: EventTime,
    /// One entry per step.
    pub state_operators: Vec<StateOperator>,
    /// One entry per source.
    pub sources: Vec<SourceProgress>,
    /// The sink.
    pub sink: SinkProgress,
}

/// How long the parts of a batch took, in milliseconds, with fractions.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Durations {
    /// Reading and decoding.
    pub read: f64,
    /// Grouping by key.
    pub route: f64,
    /// The processor, with its state reads.
    pub process: f64,
    /// Making the final bytes of the output.
    pub stage: f64,
    /// The commit record and its fsync.
    pub commit: f64,
    /// Sinks and the state store.
    pub publish: f64,
    /// All of it.
    pub trigger_execution: f64,
}

/// Event time, milliseconds since the epoch.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EventTime {
    /// The watermark that timers of this batch fired by.
    pub watermark_ms: i64,
    /// The watermark that late rows of this batch were judged by.
    pub late_watermark_ms: i64,
    /// The latest event time so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<i64>,
}

/// State of one step.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StateOperator {
    /// Always `transformWithState`.
    pub operator_name: &'static str,
    /// Keys of value and list states and entries of map states, over all variables.
    pub num_rows_total: u64,
    /// Rows dropped because they came too late.
    pub num_rows_dropped_by_watermark: u64,
    /// Writes, removals, timers and evictions of this batch.
    #[serde(flatten)]
    pub metrics: SessionMetrics,
    /// State variables that were dropped with this batch.
    pub num_deleted_state_vars: u64,
    /// Fuel burnt, where it is metered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuel: Option<u64>,
}

/// One source.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceProgress {
    /// Path or `stdin`.
    pub description: String,
    /// Rows read, rejected ones not counted.
    pub num_input_rows: u64,
    /// Rows that did not fit the schema.
    pub num_rejected_rows: u64,
    /// Bytes read, decompressed.
    pub num_input_bytes: u64,
}

/// The sink.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SinkProgress {
    /// Kind and place.
    pub description: String,
    /// Rows published.
    pub num_output_rows: u64,
}
