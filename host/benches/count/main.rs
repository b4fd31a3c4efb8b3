//! What a batch costs: count per key through a component, through the same operator in native Rust, and as a bare loop on
//! RocksDB. See docs/benchmarks.md.
//!
//! ```text
//! cargo bench --bench count                100 thousand and 1 million keys, a few minutes
//! cargo bench --bench count -- --full      10 million keys as well
//! cargo bench --bench count -- throughput  this part only: throughput, latency, process
//! cargo bench --bench count -- languages   the same counter in every language, a few minutes
//! ```
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
#![expect(clippy::indexing_slicing, reason = "the operator is a measure of speed, over the engine's own ranges")]

mod bare;
mod languages;
mod latency;
mod measure;
mod native;
mod process;
mod running;
mod throughput;
mod timed_disk;
mod workload;

use anyhow::Result;
use languages::LANGUAGES;
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
    // It needs components that scripts/build-guests.sh makes only where all languages are installed.
    if parts.contains(&"languages") {
        languages()?;
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
    let latency = latency::measure(running::processor("bench")?)?;
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
    let runs = process::first_output_ms("counter")?;
    println!("start to first output, ms, all starts:{runs}\nleast {:.1}", runs.least());
    for (keys, rows_per_batch) in [(1_000_000, 100_000), (1_000_000, 1_000_000)] {
        let peak = process::peak_memory_mib(keys, rows_per_batch)?;
        println!("peak memory, {keys} keys in batches of {rows_per_batch}: {peak:.0} MiB");
    }
    Ok(())
}

fn languages() -> Result<()> {
    println!("\n# languages: start");
    println!("{:>12} {:>10} {:>10} {:>16}", "", "MB", "compile s", "first output ms");
    for (language, name) in LANGUAGES {
        let languages::Start { compile_s, first_output_ms } = languages::start(name)?;
        let megabytes = running::component(name)?.metadata()?.len() as f64 / 1e6;
        println!("{language:>12} {megabytes:>10.2} {compile_s:>10.2} {:>16.0}", first_output_ms.least());
    }

    println!("\n# languages: batches of {} rows, ms", latency::ROWS_PER_BATCH);
    println!("{:>12} {:>10} {:>10} {:>10} {:>10}", "", "wall p50", "wall p99", "CPU p50", "sync p50");
    for (language, name) in LANGUAGES {
        let latency::Latency { work_ms, cpu_ms, sync_ms, .. } = languages::small_batches(name)?;
        let [p50, p99, cpu, sync] =
            [work_ms.percentile(50), work_ms.percentile(99), cpu_ms.percentile(50), sync_ms.percentile(50)];
        println!("{language:>12} {p50:>10.2} {p99:>10.2} {cpu:>10.2} {sync:>10.2}");
    }

    println!(
        "\n# languages: CPU microseconds per row of batches of {ROWS} rows, beyond the native operator, and as rows"
    );
    println!(
        "per second relative to the first\n{:>12} {:>10} {:>10} {:>10} {:>10}",
        "", "rows/key", "us", "beyond", "ratio"
    );
    for languages::PerRow { workload, native, languages } in languages::per_row()? {
        let host = native.least();
        let first = languages.first().map_or(f64::NAN, measure::Runs::least);
        println!("{:>12} {:>10} {:>10.2}", "native", workload.rows_per_key, host / 1e3);
        for ((language, _), runs) in LANGUAGES.iter().zip(&languages) {
            let least = runs.least();
            let [us, beyond, ratio] = [least / 1e3, (least - host) / 1e3, first / least];
            println!("{language:>12} {:>10} {us:>10.2} {beyond:>10.2} {ratio:>10.3}   {runs}", workload.rows_per_key);
        }
    }

    println!("\n# languages: MiB of an instance, by keys in its one batch");
    println!("{:>12} {:>10} {:>10} {:>10} {:>10} {:>12}", "", "10", "100,000", "500,000", "1,000,000", "s of that");
    let mut checks = Vec::new();
    for (language, name) in LANGUAGES {
        let memory = languages::memory(name)?;
        let languages::Memory { small, medium, large, million, million_s } = memory;
        let [small, medium, large, million] =
            [small, medium, large, million].map(|bytes| bytes as f64 / f64::from(1 << 20));
        println!("{language:>12} {small:>10.1} {medium:>10.1} {large:>10.1} {million:>10.1} {million_s:>12.1}");
        checks.push(memory.check(language));
    }
    checks.into_iter().collect()
}
