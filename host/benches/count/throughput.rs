//! CPU time of whole batches: wasm, native and bare loop, turn by turn on the same rows.
//!
//! Each has a state of its own with every key in it. The time is that of the thread: with one worker it does everything
//! but RocksDB's flushes and compactions, which all three leave to the same number of threads.

use std::sync::Arc;

use anyhow::Result;
use tempfile::TempDir;
use tidemill_host::engine::progress::Durations;

use crate::bare::{Bare, SortedKeys};
use crate::measure::{Runs, thread_cpu_ns};
use crate::native;
use crate::running::{self, Running};
use crate::timed_disk::TimedDisk;
use crate::workload::{self, Workload};

/// Batches that count, per contender. One more warms up.
const RUNS: u64 = 5;

/// Rows of a batch while the state is filled.
const FILL_ROWS: u64 = 1_000_000;

/// The three, with their states.
pub struct Contenders {
    keys: u64,
    wasm: Running,
    native: Running,
    bare: Bare,
    next_batch: u64,
    _folder: TempDir,
}

/// What one workload took, in nanoseconds per row.
pub struct Measured {
    /// What was measured.
    pub workload: Workload,
    /// The component.
    pub wasm: Runs,
    /// The same in native Rust.
    pub native: Runs,
    /// RocksDB alone.
    pub bare: Runs,
    /// Wall time of the steps of the fastest batch of the component.
    pub wasm_steps: Option<Durations>,
    /// The same of the native operator.
    pub native_steps: Option<Durations>,
}

impl Contenders {
    /// Three states with all of `keys`.
    pub fn filled(keys: u64) -> Result<Self> {
        let folder = TempDir::new()?;
        let mut contenders = Self {
            keys,
            wasm: Running::open(
                running::processor("bench")?,
                Arc::new(TimedDisk::default()),
                folder.path().join("wasm"),
            )?,
            native: Running::open(native::operator(), Arc::new(TimedDisk::default()), folder.path().join("native"))?,
            bare: Bare::open(&folder.path().join("bare"))?,
            next_batch: 0,
            _folder: folder,
        };
        for begin in (0..keys).step_by(FILL_ROWS as usize) {
            let range = begin..keys.min(begin + FILL_ROWS);
            let rows = workload::rows(range.clone())?;
            contenders.bare.count(&SortedKeys::new(range)?, 1)?;
            for query in [&mut contenders.wasm, &mut contenders.native] {
                query.feed(rows.clone());
                query.step()?;
            }
        }
        Ok(contenders)
    }

    /// Measures batches of so many keys and rows.
    pub fn measure(&mut self, keys_per_batch: u64, rows_per_key: u64) -> Result<Measured> {
        let workload = Workload { keys: self.keys, keys_per_batch, rows_per_key };
        let mut measured = Measured {
            workload,
            wasm: Runs::default(),
            native: Runs::default(),
            bare: Runs::default(),
            wasm_steps: None,
            native_steps: None,
        };
        for run in 0..=RUNS {
            let rows = workload.batch(self.next_batch)?;
            let keys = SortedKeys::of(&workload, self.next_batch)?;
            self.next_batch += 1;
            self.wasm.feed(rows.clone());
            self.native.feed(rows);

            let (wasm_ns, wasm_steps) = timed(|| self.wasm.step())?;
            let (native_ns, native_steps) = timed(|| self.native.step())?;
            let (bare_ns, ()) = timed(|| self.bare.count(&keys, rows_per_key as i64))?;
            if run == 0 {
                continue;
            }
            let per_row = |ns: u64| ns as f64 / workload.rows() as f64;
            if measured.wasm.push(per_row(wasm_ns)) {
                measured.wasm_steps = Some(wasm_steps.duration_ms);
            }
            if measured.native.push(per_row(native_ns)) {
                measured.native_steps = Some(native_steps.duration_ms);
            }
            measured.bare.push(per_row(bare_ns));
        }
        Ok(measured)
    }
}

fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(u64, T)> {
    let begin = thread_cpu_ns();
    let done = work()?;
    Ok((thread_cpu_ns() - begin, done))
}
