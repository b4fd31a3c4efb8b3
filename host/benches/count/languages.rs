//! The same counter in every language: what a start, a batch, a key, a row and an instance cost.

use std::sync::Arc;

use anyhow::{Result, ensure};
use tempfile::TempDir;
use tidemill_host::clock::Stopwatch;
use tidemill_host::engine::operator::Operator;
use tidemill_host::runtime::{Limits, Metering, Processor, Sandbox};

use crate::latency::{self, Latency};
use crate::measure::{Runs, process_cpu_ns, thread_cpu_ns};
use crate::native;
use crate::process;
use crate::running::{Running, component, processor};
use crate::timed_disk::TimedDisk;
use crate::workload::{self, Workload};

/// Languages and the components that they are measured by; the first is what the others are compared with.
pub const LANGUAGES: [(&str, &str); 4] =
    [("Rust", "bench"), ("Go", "bench-go"), ("Python", "bench-python"), ("JavaScript", "bench-js")];

/// Batches that count, per language and workload. One more warms up.
const RUNS: u64 = 5;
/// Rows of a batch.
const ROWS: u64 = 100_000;
/// Keys that must fit into one batch within the default limits.
const KEYS_OF_ONE_BATCH: u64 = 500_000;
/// Memory after ten times the keys, relative to that before. Runtimes that free what they do not need stay below.
const GROWTH_MAX: f64 = 1.2;
/// Languages whose instances grow with what they write, with the bytes that they may have after [`KEYS_OF_ONE_BATCH`].
/// What componentize-py 0.25 passes to the host it never frees; JavaScript begins to free late.
const GROWING: [(&str, u64); 2] = [("Python", 64 << 20), ("JavaScript", 112 << 20)];

/// What a start of a component takes.
pub struct Start {
    /// Seconds of CPU time to compile it.
    pub compile_s: f64,
    /// Milliseconds to its first output, once it is compiled.
    pub first_output_ms: Runs,
}

/// Compiles a component, and starts it when it is compiled already.
pub fn start(name: &str) -> Result<Start> {
    let sandbox = Sandbox::new(Metering::Epoch)?;
    let begin = process_cpu_ns();
    Processor::from_file(&sandbox, &component(name)?, Limits::default(), None)?;
    let compile_s = (process_cpu_ns() - begin) as f64 / 1e9;
    Ok(Start { compile_s, first_output_ms: process::first_output_ms(name)? })
}

/// What batches of ten rows take.
pub fn small_batches(name: &str) -> Result<Latency> {
    latency::measure(processor(name)?)
}

/// CPU time per row, in nanoseconds, of the native operator and of every language.
pub struct PerRow {
    /// What was measured.
    pub workload: Workload,
    /// What the host takes by itself, with a native operator.
    pub native: Runs,
    /// In the order of [`LANGUAGES`].
    pub languages: Vec<Runs>,
}

/// Counts the same rows in every language, turn by turn.
pub fn per_row() -> Result<Vec<PerRow>> {
    let folder = TempDir::new()?;
    let open = |name: &str, operator: Arc<dyn Operator>| {
        Running::open(operator, Arc::new(TimedDisk::default()), folder.path().join(name))
    };
    let mut native = open("native", native::operator())?;
    let mut languages = Vec::new();
    for (_, name) in LANGUAGES {
        languages.push(open(name, processor(name)?)?);
    }
    let mut next_batch = 0;
    let mut all = Vec::new();
    for rows_per_key in [1, 10] {
        let workload = Workload { keys: ROWS, keys_per_batch: ROWS / rows_per_key, rows_per_key };
        let mut measured =
            PerRow { workload, native: Runs::default(), languages: LANGUAGES.map(|_| Runs::default()).into() };
        for run in 0..=RUNS {
            let rows = workload.batch(next_batch)?;
            next_batch += 1;
            let contenders = std::iter::once(&mut native).chain(&mut languages);
            let runs = std::iter::once(&mut measured.native).chain(&mut measured.languages);
            for (contender, runs) in contenders.zip(runs) {
                contender.feed(rows.clone());
                let begin = thread_cpu_ns();
                contender.step()?;
                if run > 0 {
                    runs.push((thread_cpu_ns() - begin) as f64 / workload.rows() as f64);
                }
            }
        }
        all.push(measured);
    }
    Ok(all)
}

/// Memory of the one instance of a batch, in bytes, and what such a batch takes.
pub struct Memory {
    /// After ten keys.
    pub small: u64,
    /// After a hundred thousand keys in one batch.
    pub medium: u64,
    /// After [`KEYS_OF_ONE_BATCH`] in one batch.
    pub large: u64,
    /// After a million keys in one batch.
    pub million: u64,
    /// Seconds that the largest batch took.
    pub million_s: f64,
}

/// Runs ever larger batches, each of new keys, within the default limits.
pub fn memory(name: &str) -> Result<Memory> {
    let folder = TempDir::new()?;
    let mut query = Running::open(processor(name)?, Arc::new(TimedDisk::default()), folder.path().join("checkpoint"))?;
    let mut next_key = 0;
    let mut batch_of = |keys: u64| -> Result<(u64, f64)> {
        query.feed(workload::rows(next_key..next_key + keys)?);
        next_key += keys;
        let watch = Stopwatch::start();
        let progress = query.step()?;
        let bytes = progress.state_operators.iter().map(|step| step.custom_metrics.sandbox_memory_bytes).sum();
        Ok((bytes, watch.elapsed().as_secs_f64()))
    };
    let [small, medium, large] = [batch_of(10)?.0, batch_of(ROWS)?.0, batch_of(KEYS_OF_ONE_BATCH)?.0];
    let (million, million_s) = batch_of(1_000_000)?;
    Ok(Memory { small, medium, large, million, million_s })
}

impl Memory {
    /// Whether the runtime frees what it does not need.
    pub fn check(&self, language: &str) -> Result<()> {
        let Self { medium, large, million, .. } = *self;
        if let Some((_, bytes_max)) = GROWING.iter().find(|(growing, _)| *growing == language) {
            ensure!(large <= *bytes_max, "{KEYS_OF_ONE_BATCH} keys in {language} took {large} bytes");
        } else {
            let growth = million as f64 / medium as f64;
            ensure!(growth <= GROWTH_MAX, "memory in {language} grew {growth:.2} times with ten times the keys");
        }
        Ok(())
    }
}
