//! What a batch costs: count per key through a component, through the same operator in native Rust, and as a bare loop on
//! RocksDB. See docs/benchmarks.md.
//!
//! ```text
//! cargo bench --bench count                100 thousand and 1 million keys, a few minutes
//! cargo bench --bench count -- --full      10 million keys as well
//! cargo bench --bench count -- throughput  this part only: throughput, latency, process
//! ```
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
#![expect(clippy::indexing_slicing, reason = "the operator is a measure of speed, over the engine's own ranges")]

mod bare;
mod latency;
mod measure;
mod native;
mod process;
mod running;
mod throughput;
mod timed_disk;
mod workload;

use anyhow::Result;
use throughput::{Contenders, Measured};
use tidemill_host::engine::progress::Durations;

/// Rows of a batch that is measured.
const ROWS: u64 = 100_000;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let full = arguments.iter().any(|argument| argument == "--full");
    let parts: Vec<&str> = arguments.iter().map(String::as_str).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |part| parts.is_empty() || parts.contains(&part);
    if wanted("throughput") {
        let sizes: &[u64] = if full { &[100_000, 1_000_000, 10_000_000] } else { &[100_000, 1_000_000] };
        throughput(sizes)?;
    }
    if wanted("latency") {
        latency()?;
    }
    if wanted("process") {
        process()?;
    }
    Ok(())
}

fn throughput(sizes: &[u64]) -> Result<()> {
    println!("# throughput: CPU nanoseconds per row, batches of {ROWS} rows, all runs\n");
    let mut all = Vec::new();
    for &keys in sizes {
        let mut contenders = Contenders::filled(keys)?;
        for rows_per_key in [1, 10] {
            let measured = contenders.measure(ROWS / rows_per_key, rows_per_key)?;
            print_runs(&measured);
            all.push(measured);
        }
    }
    println!(
        "\n{:>10} {:>8} {:>8} {:>8} {:>8} {:>12} {:>12}",
        "keys", "rows/key", "wasm", "native", "bare", "wasm:native", "native:bare"
    );
    for measured in &all {
        let Measured { workload, wasm, native, bare, .. } = measured;
        let (wasm, native, bare) = (wasm.least(), native.least(), bare.least());
        println!(
            "{:>10} {:>8} {wasm:>8.0} {native:>8.0} {bare:>8.0} {:>12.3} {:>12.3}",
            workload.keys,
            workload.rows_per_key,
            native / wasm,
            bare / native,
        );
    }
    println!(
        "\ngrowth of the time per row from the fewest keys to the most (bare loop, native, wasm; relative to the bare loop)"
    );
    for rows_per_key in [1, 10] {
        let of: Vec<_> = all.iter().filter(|measured| measured.workload.rows_per_key == rows_per_key).collect();
        if let [first, .., last] = of.as_slice() {
            let [bare, native, wasm] = [
                last.bare.least() / first.bare.least(),
                last.native.least() / first.native.least(),
                last.wasm.least() / first.wasm.least(),
            ];
            println!(
                "{rows_per_key:>3} rows/key: bare {bare:.2}, native {native:.2} ({:.2}), wasm {wasm:.2} ({:.2})",
                native / bare,
                wasm / bare
            );
        }
    }
    Ok(())
}

fn print_runs(measured: &Measured) {
    let Measured { workload, wasm, native, bare, wasm_steps, native_steps } = measured;
    println!("{} keys, {} rows per key", workload.keys, workload.rows_per_key);
    println!("  wasm  {wasm}   {}", steps(wasm_steps));
    println!("  native{native}   {}", steps(native_steps));
    println!("  bare  {bare}");
}

fn steps(durations: &Option<Durations>) -> String {
    durations.as_ref().map_or_else(String::new, |ms| {
        format!(
            "(wall ms: read {:.1}, route {:.1}, process {:.1}, stage {:.1}, commit {:.1}, publish {:.1})",
            ms.read, ms.route, ms.process, ms.stage, ms.commit, ms.publish
        )
    })
}

fn latency() -> Result<()> {
    let latency = latency::measure()?;
    println!("\n# latency: milliseconds of batches of {} rows", latency::ROWS_PER_BATCH);
    let rows = [("wall without sync", &latency.work_ms), ("CPU", &latency.cpu_ms), ("sync", &latency.sync_ms)];
    for (name, runs) in rows {
        println!("{name:>18}: p50 {:.3}  p99 {:.3}", runs.percentile(50), runs.percentile(99));
    }
    println!("{:>18}: {:.3} per batch", "syncs", latency.syncs.mean());
    Ok(())
}

fn process() -> Result<()> {
    println!("\n# process");
    let runs = process::first_output_ms()?;
    println!("start to first output, ms, all starts:{runs}\nleast {:.1}", runs.least());
    for (keys, rows_per_batch) in [(1_000_000, 100_000), (1_000_000, 1_000_000)] {
        let peak = process::peak_memory_mib(keys, rows_per_batch)?;
        println!("peak memory, {keys} keys in batches of {rows_per_batch}: {peak:.0} MiB");
    }
    Ok(())
}
