//! What is counted and measured while a batch runs, and how that is reported.

use super::commit::StepCommit;
use super::operator::OperatorPlan;
use super::progress::{CustomMetrics, RocksProgress, StateOperator};
use super::snapshots::Taken;
use crate::state::{SessionMetrics, Store, StoreActivity, VariableKind, VariableSpec};

/// What the workers of a batch did; of one worker, or of all together.
#[derive(Debug, Clone, Default)]
pub struct Counted {
    /// State and timers.
    pub state: SessionMetrics,
    /// How long the parts took.
    pub times: Times,
    /// Fuel burnt, where it is metered.
    pub fuel: Option<u64>,
    /// Memory that the sandbox gave the processor, at its most.
    pub sandbox_bytes: u64,
    /// Variables whose state is dropped, by the batch as a whole.
    pub dropped_variables: u64,
}

/// How long the parts of a worker's share took, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Times {
    /// Rows of the initial state.
    pub initial_state: f64,
    /// Input rows.
    pub input_rows: f64,
    /// Due timers.
    pub timers: f64,
    /// Removal of what has expired.
    pub eviction: f64,
    /// Collecting the changes.
    pub changes: f64,
}

impl Counted {
    /// Adds what another worker did.
    pub fn add(&mut self, other: &Self) {
        self.state.add(&other.state);
        let Times { initial_state, input_rows, timers, eviction, changes } = other.times;
        self.times.initial_state += initial_state;
        self.times.input_rows += input_rows;
        self.times.timers += timers;
        self.times.eviction += eviction;
        self.times.changes += changes;
        self.dropped_variables += other.dropped_variables;
        self.sandbox_bytes += other.sandbox_bytes;
        self.fuel = other.fuel.map(|fuel| fuel + self.fuel.unwrap_or(0)).or(self.fuel);
    }
}

/// What a step reports of a batch.
pub(super) fn state_operator(
    plan: &OperatorPlan,
    step: &StepCommit,
    key_groups: u16,
    counted: &Counted,
    store: StoreReport,
) -> StateOperator {
    let Counted { state, times, fuel, sandbox_bytes, dropped_variables } = counted;
    let with_ttl = |spec: &VariableSpec| spec.ttl_ms.is_some_and(|ttl_ms| ttl_ms > 0);
    let variables = |kind, ttl| {
        let like = |spec: &&VariableSpec| spec.kind == kind && with_ttl(spec) == ttl;
        plan.variables.iter().filter(like).count() as u64
    };
    StateOperator {
        operator_name: "transformWithState",
        step: step.name.clone(),
        num_input_rows: step.rows_in,
        num_output_rows: step.rows_out,
        num_rows_total: step.state_rows,
        num_rows_updated: state.rows_updated,
        all_updates_time_ms: times.input_rows,
        num_rows_removed: state.rows_removed,
        all_removals_time_ms: times.eviction,
        commit_time_ms: times.changes + store.apply_ms,
        memory_used_bytes: store.memory_bytes,
        num_rows_dropped_by_watermark: step.late,
        num_dead_letters: (step.skipped.rows.len() + step.skipped.timers.len()) as u64,
        num_held_keys: 0,
        upgrade: step.upgrade.clone(),
        num_shuffle_partitions: key_groups.into(),
        num_state_store_instances: 1,
        custom_metrics: CustomMetrics {
            initial_state_processing_time_ms: times.initial_state,
            num_value_state_vars: variables(VariableKind::Value, false),
            num_list_state_vars: variables(VariableKind::List, false),
            num_map_state_vars: variables(VariableKind::Map, false),
            num_value_state_with_ttl_vars: variables(VariableKind::Value, true),
            num_list_state_with_ttl_vars: variables(VariableKind::List, true),
            num_map_state_with_ttl_vars: variables(VariableKind::Map, true),
            num_deleted_state_vars: *dropped_variables,
            timer_processing_time_ms: times.timers,
            num_registered_timers: state.timers_registered,
            num_deleted_timers: state.timers_deleted,
            num_expired_timers: state.timers_expired,
            num_values_removed_due_to_ttl_expiry: state.ttl_values_removed,
            fuel: *fuel,
            sandbox_memory_bytes: *sandbox_bytes,
            rocks: store.rocks,
        },
    }
}

/// Reads the state store's own counters, and tells what is new since the last report.
#[derive(Debug, Default)]
pub(super) struct StoreMeter {
    reported: StoreActivity,
    restored: Restored,
}

/// How the store of a query was made.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Restored {
    /// From a snapshot.
    pub(super) snapshot_ms: u64,
    /// By applying batches again.
    pub(super) apply_ms: u64,
    /// How many these were.
    pub(super) batches: u64,
}

/// The store in the report of one batch.
#[derive(Default)]
pub(super) struct StoreReport {
    apply_ms: f64,
    memory_bytes: u64,
    rocks: Option<RocksProgress>,
}

impl StoreMeter {
    /// Begins behind what recovery did, which the first report tells.
    pub(super) fn new(restored: Restored) -> Self {
        Self { reported: StoreActivity::default(), restored }
    }

    /// What the store did since the last report. `apply_ms`: applying the batch; `snapshots`: those finished.
    pub(super) fn report(&mut self, store: &dyn Store, apply_ms: f64, snapshots: Taken) -> StoreReport {
        let metrics = store.metrics();
        let rocks = metrics.activity.map(|activity| {
            let before = std::mem::replace(&mut self.reported, activity);
            let Restored { snapshot_ms, apply_ms: again_ms, batches } = std::mem::take(&mut self.restored);
            let new = |counter: fn(&StoreActivity) -> u64| counter(&activity).saturating_sub(counter(&before));
            RocksProgress {
                rocksdb_get_count: new(|of| of.gets),
                rocksdb_put_count: new(|of| of.puts),
                rocksdb_put_latency: apply_ms,
                rocksdb_total_bytes_read: new(|of| of.read_bytes),
                rocksdb_total_bytes_read_through_iterator: new(|of| of.scanned_bytes),
                rocksdb_total_bytes_written: new(|of| of.written_bytes),
                rocksdb_total_bytes_written_by_flush: new(|of| of.flushed_bytes),
                rocksdb_total_bytes_read_by_compaction: new(|of| of.compaction_read_bytes),
                rocksdb_total_bytes_written_by_compaction: new(|of| of.compaction_written_bytes),
                rocksdb_total_compaction_latency_ms: new(|of| of.compaction_us) as f64 / 1e3,
                rocksdb_read_block_cache_hit_count: new(|of| of.cache_hits),
                rocksdb_read_block_cache_miss_count: new(|of| of.cache_misses),
                rocksdb_pinned_blocks_memory_usage: metrics.pinned_bytes,
                rocksdb_sst_file_size: metrics.disk_bytes,
                rocksdb_writer_stall_latency_ms: new(|of| of.stall_us) as f64 / 1e3,
                rocksdb_commit_checkpoint_latency: snapshots.took_ms,
                snapshot_last_batch: snapshots.last_batch,
                rocksdb_load_from_snapshot_latency_ms: snapshot_ms,
                rocksdb_replay_change_log_latency_ms: again_ms,
                rocksdb_num_replay_changelog_files: batches,
            }
        });
        StoreReport { apply_ms, memory_bytes: metrics.memory_bytes, rocks }
    }
}
