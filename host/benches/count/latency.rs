//! Batches of a few rows: how long one takes beside its fsync, and how many fsyncs it has.

use std::sync::Arc;

use anyhow::Result;
use tempfile::TempDir;
use tidemill_host::clock::Stopwatch;
use tidemill_host::engine::operator::Operator;

use crate::measure::{Runs, thread_cpu_ns};
use crate::running::Running;
use crate::timed_disk::TimedDisk;
use crate::workload::{self, Workload};

/// Keys with state.
const KEYS: u64 = 100_000;
/// Rows of a batch.
const ROWS: u64 = 10;
/// Batches.
const BATCHES: u64 = 1_000;

/// What batches of a few rows took, in milliseconds.
#[derive(Default)]
pub struct Latency {
    /// Wall time without that of the syncs.
    pub work_ms: Runs,
    /// CPU time of the thread.
    pub cpu_ms: Runs,
    /// Wall time of the syncs.
    pub sync_ms: Runs,
    /// Syncs of files and folders.
    pub syncs: Runs,
}

/// Rows of a batch, for people.
pub const ROWS_PER_BATCH: u64 = ROWS;

/// Runs a component over batches of a few rows.
pub fn measure(operator: Arc<dyn Operator>) -> Result<Latency> {
    let folder = TempDir::new()?;
    let disk = TimedDisk::default();
    let syncs = disk.syncs();
    let mut query = Running::open(operator, Arc::new(disk), folder.path().join("checkpoint"))?;
    query.feed(workload::rows(0..KEYS)?);
    query.step()?;

    let mut latency = Latency::default();
    let workload = Workload { keys: KEYS, keys_per_batch: ROWS, rows_per_key: 1 };
    for number in 0..BATCHES {
        query.feed(workload.batch(number)?);
        let (count, synced) = (syncs.count(), syncs.nanoseconds());
        let (cpu, watch) = (thread_cpu_ns(), Stopwatch::start());
        query.step()?;
        let wall_ms = watch.elapsed().as_secs_f64() * 1e3;
        let sync_ms = (syncs.nanoseconds() - synced) as f64 / 1e6;
        latency.cpu_ms.push((thread_cpu_ns() - cpu) as f64 / 1e6);
        latency.work_ms.push(wall_ms - sync_ms);
        latency.sync_ms.push(sync_ms);
        latency.syncs.push((syncs.count() - count) as f64);
    }
    Ok(latency)
}
