//! What a batch did, in numbers: the progress report of the model we follow, by the same names.

use serde::Serialize;

use super::commit::{CommitHeader, SinkRole};
use super::query::Query;
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
    /// The step's name.
    pub step: String,
    /// Rows that it was given, late ones not counted.
    pub num_input_rows: u64,
    /// Rows that it emitted.
    pub num_output_rows: u64,
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

/// What only the workers of a step know of a batch.
pub(super) struct StepMetrics {
    pub(super) metrics: SessionMetrics,
    pub(super) fuel: Option<u64>,
    pub(super) variables_dropped: u64,
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

/// What a committed batch did.
pub(super) fn report(
    query: &Query,
    header: &CommitHeader,
    metrics: Vec<StepMetrics>,
    durations: Durations,
) -> Progress {
    let rows: u64 = header.sources.iter().map(|source| source.rows).sum();
    let steps = header.steps.iter().zip(metrics).map(|(step, of)| StateOperator {
        operator_name: "transformWithState",
        step: step.name.clone(),
        num_input_rows: step.rows_in,
        num_output_rows: step.rows_out,
        num_rows_total: step.state_rows,
        num_rows_dropped_by_watermark: step.late,
        metrics: of.metrics,
        num_deleted_state_vars: of.variables_dropped,
        fuel: of.fuel,
    });
    let sources = header.sources.iter().map(|source| SourceProgress {
        description: source.source.clone(),
        num_input_rows: source.rows,
        num_rejected_rows: source.rejected,
        num_input_bytes: source.bytes,
    });
    Progress {
        id: query.query_id.clone(),
        run_id: header.run_id.clone(),
        name: query.settings.name.clone(),
        batch_id: header.batch_id,
        batch_time_ms: header.time.processing_time_ms,
        num_input_rows: rows,
        processed_rows_per_second: rows as f64 / (durations.trigger_execution / 1e3).max(1e-6),
        duration_ms: durations,
        event_time: EventTime {
            watermark_ms: header.time.watermark_ms,
            late_watermark_ms: header.late_watermark_ms,
            max_ms: header.event_time_max_us.map(|max_us| max_us.div_euclid(1000)),
        },
        state_operators: steps.collect(),
        sources: sources.collect(),
        sink: SinkProgress {
            description: query.output.sink.describe(),
            num_output_rows: header.sink(SinkRole::Output).map_or(0, |part| part.rows),
        },
    }
}
