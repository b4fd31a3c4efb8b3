//! Every example gives the same files whatever happens to its process: killed at any named point, killed at random
//! times, started again with another number of workers.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tidemill_host::engine::faults::POINTS;

use super::support::{EXAMPLES, Example, published, succeed};

/// Snapshots after every second batch, so that short examples take some.
const OFTEN: [&str; 2] = ["--set", "retention.snapshot_batches=2"];

#[test]
fn a_crash_at_any_named_point_is_as_if_it_had_not_been() {
    let mut hits: BTreeMap<&str, usize> = BTreeMap::new();
    for name in EXAMPLES {
        let example = Example::new(name);
        let undisturbed = undisturbed(&example);
        for (point, _) in POINTS {
            for nth in 1..=3 {
                let place = TempDir::new().unwrap();
                let crashed = run_until_crash(&example, place.path(), point, nth);
                if !crashed {
                    continue;
                }
                *hits.entry(point).or_default() += 1;

                succeed(&mut example.command(place.path(), OFTEN.into_iter().chain(["--workers", "3"])));

                let files = published(&place.path().join("rows"));
                assert_eq!(names(&files), names(&undisturbed), "{name} after a crash at {point}:{nth}");
                assert!(files == undisturbed, "{name} after a crash at {point}:{nth}: other bytes");
            }
        }
    }
    println!("crashes per point: {hits:#?}");
    let rare = ["stage.before-sync", "stage.after-sync"];
    for (point, _) in POINTS {
        assert!(hits.contains_key(point) || rare.contains(point), "no example was ever killed at {point}");
    }
}

/// Kills in the quick mode; `TIDEMILL_KILLS` gives another number.
const KILLS: u32 = 20;

#[test]
fn a_kill_at_any_time_is_as_if_it_had_not_been() {
    let kills = std::env::var("TIDEMILL_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let example = Example::new("flights");
    let undisturbed = undisturbed(&example);
    let whole = duration(&example);
    let mut phases: BTreeMap<&str, u32> = BTreeMap::new();
    for kill in 0..kills {
        let place = TempDir::new().unwrap();
        let mut child = example.command(place.path(), OFTEN).stderr(Stdio::null()).spawn().unwrap();
        // Spread over the run, and a little beyond, in steps that are no multiple of a batch.
        std::thread::sleep(whole.mul_f64(f64::from(kill) * 1.1 / f64::from(kills)));
        child.kill().unwrap();
        child.wait().unwrap();
        *phases.entry(phase(place.path(), &undisturbed)).or_default() += 1;

        succeed(&mut example.command(place.path(), OFTEN.into_iter().chain(["--workers", "3"])));

        let files = published(&place.path().join("rows"));
        assert!(files == undisturbed, "kill {kill}: other files than undisturbed");
    }
    println!("kills per phase: {phases:#?}");
}

fn undisturbed(example: &Example) -> BTreeMap<String, Vec<u8>> {
    let place = TempDir::new().unwrap();
    succeed(&mut example.command(place.path(), OFTEN));
    let files = published(&place.path().join("rows"));
    assert!(!files.is_empty(), "{} gives no rows", example.name);
    files
}

fn run_until_crash(example: &Example, place: &Path, point: &str, nth: u32) -> bool {
    // Recovery has something to do only in a checkpoint that was cut off.
    if point.starts_with("recovery") {
        let cut = example.command(place, OFTEN).env("TIDEMILL_CRASH_AT", "commit.after-sync:2").output().unwrap();
        assert!(cut.status.code() != Some(1), "{}", String::from_utf8_lossy(&cut.stderr));
    }
    let fault = format!("{point}:{nth}");
    let output = example.command(place, OFTEN).env("TIDEMILL_CRASH_AT", fault).output().unwrap();
    let crashed = output.status.code().is_none();
    assert!(crashed || output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    crashed
}

fn duration(example: &Example) -> Duration {
    let place = TempDir::new().unwrap();
    let watch = tidemill_host::clock::Stopwatch::start();
    succeed(&mut example.command(place.path(), OFTEN));
    watch.elapsed()
}

/// How far the killed process had come, by what it left.
fn phase(place: &Path, undisturbed: &BTreeMap<String, Vec<u8>>) -> &'static str {
    let files = published(&place.join("rows")).len();
    if !place.join("checkpoint/metadata.json").exists() {
        "before the checkpoint"
    } else if fs::read_dir(place.join("checkpoint/log")).map_or(0, Iterator::count) == 0 {
        "before the log"
    } else if files == 0 {
        "before the first publication"
    } else if files < undisturbed.len() {
        "between publications"
    } else {
        "after the last publication"
    }
}

fn names(files: &BTreeMap<String, Vec<u8>>) -> Vec<&str> {
    files.keys().map(String::as_str).collect()
}
