//! The command as a process of its own: from its start to the first row, and the most memory that it takes.

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tidemill_host::clock::Stopwatch;

use crate::measure::Runs;
use crate::running::{component, repository};
use crate::workload::key;

/// Starts that are measured.
const STARTS: usize = 10;

/// How often the memory of a process is looked at; the system keeps the peak, so only the last look counts.
const LOOK: Duration = Duration::from_millis(5);

/// Milliseconds from the start of `tidemill run` over the rows of the counter example to its first byte of output, with
/// a warm compile cache.
pub fn first_output_ms(name: &str) -> Result<Runs> {
    let cache = TempDir::new()?;
    let mut runs = Runs::default();
    for start in 0..=STARTS {
        let place = TempDir::new()?;
        let watch = Stopwatch::start();
        let mut child = tidemill(cache.path())
            .arg(component(name)?)
            .arg("--config")
            .arg(repository()?.join("examples/counter/query.toml"))
            .args(["--sink", "-", "--checkpoint"])
            .arg(place.path().join("checkpoint"))
            .stdout(Stdio::piped())
            .spawn()?;
        let mut out = child.stdout.take().context("its output")?;
        out.read_exact(&mut [0])?;
        let elapsed_ms = watch.elapsed().as_secs_f64() * 1e3;
        out.read_to_end(&mut Vec::new())?;
        ensure!(child.wait()?.success(), "the counter example failed");
        // The first start compiles.
        if start > 0 {
            runs.push(elapsed_ms);
        }
    }
    Ok(runs)
}

/// Peak memory in MiB of `tidemill run` over `keys` rows of as many keys, in batches of `rows_per_batch`.
pub fn peak_memory_mib(keys: u64, rows_per_batch: u64) -> Result<f64> {
    let place = TempDir::new()?;
    let input = place.path().join("input.jsonl");
    let mut file = BufWriter::new(File::create(&input)?);
    for number in 0..keys {
        writeln!(file, "{{\"key\":\"{}\",\"n\":1}}", key(number))?;
    }
    file.flush()?;
    let mut child = tidemill(place.path())
        .arg(component("bench")?)
        .args(["--key", "key", "--time-mode", "none", "--schema", crate::workload::INPUT, "--input"])
        .arg(input)
        .arg("--sink")
        .arg(place.path().join("rows"))
        .arg("--checkpoint")
        .arg(place.path().join("checkpoint"))
        .arg("--set")
        .arg(format!("limits.rows_per_batch={rows_per_batch}"))
        .stdout(Stdio::null())
        .spawn()?;
    let peak = peak_kib(&mut child)?;
    Ok(peak as f64 / 1024.0)
}

fn tidemill(cache: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemill"));
    command.arg("run").env("TIDEMILL_CACHE", cache).stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// Waits for a process and gives the most memory that it had.
fn peak_kib(child: &mut Child) -> Result<u64> {
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0).max(peak);
        if let Some(status) = child.try_wait()? {
            ensure!(status.success(), "the run failed");
            return Ok(peak);
        }
        std::thread::sleep(LOOK);
    }
}
