//! What a batch did, in numbers: the progress report of the model we follow, by the same names (docs/metrics.md).

use serde::Serialize;

use super::commit::{CommitHeader, SinkRole};
use super::metrics::{Counted, state_operator};
use super::query::Query;
use super::snapshots::Snapshots;
use super::upgrade::Upgrade;

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
    /// Deciding what the batch consists of.
    pub plan: f64,
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
    /// Each source, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceEventTime>,
}

/// Event time of one source.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceEventTime {
    /// The source's name.
    pub name: String,
    /// Its latest event time so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_ms: Option<i64>,
    /// Whether it has been without rows for so long that it did not hold the watermark back.
    pub idle: bool,
}

/// State of one step. Times in milliseconds, with fractions, summed over the workers.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StateOperator {
    /// Always `transformWithState`.
    pub operator_name: &'static str,
    /// The step's name.
    pub step: String,
    /// Rows that it was given, late ones and dead letters not counted.
    pub num_input_rows: u64,
    /// Rows that it emitted.
    pub num_output_rows: u64,
    /// Keys of value and list states and entries of map states, over all variables.
    pub num_rows_total: u64,
    /// Values, list elements and map entries written.
    pub num_rows_updated: u64,
    /// Handling of input rows, with the processor's work.
    pub all_updates_time_ms: f64,
    /// Values, list elements and map entries removed, by the processor or by TTL.
    pub num_rows_removed: u64,
    /// Removal of what has expired.
    pub all_removals_time_ms: f64,
    /// Collecting the changes and applying them to the store. The fsync is in [`Durations::commit`].
    pub commit_time_ms: f64,
    /// Memory of the state store; in the first step's report for all.
    pub memory_used_bytes: u64,
    /// Rows dropped because they came too late.
    pub num_rows_dropped_by_watermark: u64,
    /// Rows and timers that became dead letters, held rows included.
    pub num_dead_letters: u64,
    /// Keys of which rows become dead letters, after the batch.
    pub num_held_keys: u64,
    /// Set in the first batch of another processor, or of one with other state variables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Upgrade>,
    /// Key groups.
    pub num_shuffle_partitions: u64,
    /// Always 1: all workers share one store.
    pub num_state_store_instances: u64,
    /// The rest.
    pub custom_metrics: CustomMetrics,
}

/// Numbers of a step that only this operator and this store have.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomMetrics {
    /// Handling of rows of the initial state.
    pub initial_state_processing_time_ms: f64,
    /// Value states declared without TTL.
    pub num_value_state_vars: u64,
    /// List states declared without TTL.
    pub num_list_state_vars: u64,
    /// Map states declared without TTL.
    pub num_map_state_vars: u64,
    /// Value states declared with TTL.
    #[serde(rename = "numValueStateWithTTLVars")]
    pub num_value_state_with_ttl_vars: u64,
    /// List states declared with TTL.
    #[serde(rename = "numListStateWithTTLVars")]
    pub num_list_state_with_ttl_vars: u64,
    /// Map states declared with TTL.
    #[serde(rename = "numMapStateWithTTLVars")]
    pub num_map_state_with_ttl_vars: u64,
    /// Variables whose state this batch dropped.
    pub num_deleted_state_vars: u64,
    /// Handling of due timers, with the processor's work.
    pub timer_processing_time_ms: f64,
    /// Timers registered, also those that existed.
    pub num_registered_timers: u64,
    /// Timers deleted, also those that did not exist, and those that fired.
    pub num_deleted_timers: u64,
    /// Timers that fired.
    pub num_expired_timers: u64,
    /// Values, list elements and map entries removed by TTL.
    #[serde(rename = "numValuesRemovedDueToTTLExpiry")]
    pub num_values_removed_due_to_ttl_expiry: u64,
    /// Fuel burnt, where it is metered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuel: Option<u64>,
    /// Memory that the sandbox gave the processor, at its most, all workers together.
    pub sandbox_memory_bytes: u64,
    /// The state store, if it is RocksDB and measured; in the first step's report for all.
    #[serde(flatten)]
    pub rocks: Option<RocksProgress>,
}

/// RocksDB since the batch before. Flushes, compactions and snapshots run beside the batches and show in the batch
/// after which they were seen.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RocksProgress {
    /// Keys looked up.
    pub rocksdb_get_count: u64,
    /// Keys put or deleted.
    pub rocksdb_put_count: u64,
    /// Applying the changes.
    pub rocksdb_put_latency: f64,
    /// Bytes of values found by lookups.
    pub rocksdb_total_bytes_read: u64,
    /// Bytes of keys and values found by scans.
    pub rocksdb_total_bytes_read_through_iterator: u64,
    /// Bytes of keys and values put or deleted.
    pub rocksdb_total_bytes_written: u64,
    /// Bytes of files written from write buffers.
    pub rocksdb_total_bytes_written_by_flush: u64,
    /// Bytes that compactions read.
    pub rocksdb_total_bytes_read_by_compaction: u64,
    /// Bytes that compactions wrote.
    pub rocksdb_total_bytes_written_by_compaction: u64,
    /// CPU time of compactions.
    pub rocksdb_total_compaction_latency_ms: f64,
    /// Blocks found in the block cache.
    pub rocksdb_read_block_cache_hit_count: u64,
    /// Blocks read from files.
    pub rocksdb_read_block_cache_miss_count: u64,
    /// Memory of blocks that are in use and cannot be evicted, now.
    pub rocksdb_pinned_blocks_memory_usage: u64,
    /// Bytes of all files, now.
    pub rocksdb_sst_file_size: u64,
    /// Waiting because flushes or compactions lag behind.
    pub rocksdb_writer_stall_latency_ms: f64,
    /// Taking the snapshots that were finished.
    pub rocksdb_commit_checkpoint_latency: f64,
    /// The last batch that a snapshot surely holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_last_batch: Option<u64>,
    /// Making the store from a snapshot, in the first batch after a start.
    pub rocksdb_load_from_snapshot_latency_ms: u64,
    /// Applying the batches behind the snapshot again, in the first batch after a start.
    pub rocksdb_replay_change_log_latency_ms: u64,
    /// How many these were.
    pub rocksdb_num_replay_changelog_files: u64,
}

/// One source.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceProgress {
    /// The source's name; that of an initial state is the name of its step.
    pub name: String,
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

fn event_times(header: &CommitHeader) -> Vec<SourceEventTime> {
    if header.event_times.len() == 1 {
        return Vec::new();
    }
    let sources = header.event_times.iter().map(|time| SourceEventTime {
        name: time.name.clone(),
        max_ms: time.event_time_max_us.map(|max_us| max_us.div_euclid(1000)),
        idle: time.idle,
    });
    sources.collect()
}

/// What a committed batch did; `counted` is by step, `apply_ms` what the state store took.
pub(super) fn report(
    query: &mut Query,
    header: &CommitHeader,
    counted: &[Counted],
    apply_ms: f64,
    durations: Durations,
) -> Progress {
    let rows: u64 = header.sources.iter().map(|source| source.rows).sum();
    let snapshots = query.snapshots.as_mut().map(Snapshots::taken).unwrap_or_default();
    let mut store = query.meter.report(query.store.as_ref(), apply_ms, snapshots);
    let steps = query.steps.iter().zip(&header.steps).zip(counted);
    let steps = steps.map(|((running, step), counted)| {
        let held = running.held.len() as u64;
        let store = std::mem::take(&mut store);
        StateOperator {
            num_held_keys: held,
            ..state_operator(&running.pipeline.plan, step, header.key_groups, counted, store)
        }
    });
    let state_operators = steps.collect();
    let sources = header.sources.iter().map(|source| SourceProgress {
        name: source.name.clone(),
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
            max_ms: header.event_time_max_us().map(|max_us| max_us.div_euclid(1000)),
            sources: event_times(header),
        },
        state_operators,
        sources: sources.collect(),
        sink: SinkProgress {
            description: query.output.sink.describe(),
            num_output_rows: header.sink(SinkRole::Output).map_or(0, |part| part.rows),
        },
    }
}
