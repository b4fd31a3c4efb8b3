//! Every example gives the same files whatever happens to its process: killed at any named point, killed at random times,
//! started again with another number of workers.
//!
//! `TIDEMILL_KILLS=200` is the long mode of the random kills.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tidemill_host::clock::Stopwatch;
use tidemill_host::disk::RealDisk;
use tidemill_host::engine::checkpoint::Checkpoint;
use tidemill_host::engine::commit::StagedAt;
use tidemill_host::engine::faults::POINTS;
use tidemill_host::engine::history::History;

use super::support::{EXAMPLES, Example, published, succeed, write_at};

/// A query that is run, killed and run again.
struct Case {
    name: &'static str,
    example: Example,
    arguments: Vec<&'static str>,
    /// The files that it gives when nothing happens to it.
    undisturbed: BTreeMap<String, Vec<u8>>,
}

#[test]
fn a_crash_at_any_named_point_is_as_if_it_had_not_been() {
    let mut cases: Vec<Case> = EXAMPLES.into_iter().map(|name| Case::new(name, Example::new(name), &[])).collect();
    cases.push(large_output());
    let mut crashes = Vec::new();
    for case in &cases {
        for (point, _) in run_points() {
            // A process recovers once; everything else comes again in a later batch, worker or sink.
            let hits = if point.starts_with("recovery.") { 1..=1 } else { 1..=2 };
            crashes.extend(hits.map(|nth| (case, *point, nth)));
        }
    }

    let hit = Mutex::new(BTreeSet::new());
    in_parallel(&crashes, |&(case, point, nth)| {
        let place = TempDir::new().unwrap();
        if case.crashes_at(place.path(), point, nth) {
            hit.lock().unwrap().insert(point);
            case.goes_on(place.path(), &format!("a crash at {point}:{nth}"));
        }
    });

    let points: BTreeSet<_> = run_points().map(|(point, _)| *point).collect();
    assert_eq!(hit.into_inner().unwrap(), points, "points that something crashed at");
}

/// Those that a run comes to; those of a rollback and of a search for poison are for their own tests.
fn run_points() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    POINTS.iter().filter(|(point, _)| !point.starts_with("rollback.") && !point.starts_with("poison."))
}

/// Random kills, unless `TIDEMILL_KILLS` says otherwise.
const KILLS: u32 = 20;

/// Phases of a run that are long enough for a kill to come to them by its time alone. Those between two steps of a batch
/// are for the named points.
const LONG_PHASES: [&str; 3] = ["before the first commit", "within a batch", "after the last batch"];

#[test]
fn a_kill_at_any_time_is_as_if_it_had_not_been() {
    let kills = std::env::var("TIDEMILL_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    // Small batches, so that there are many.
    let case = Case::new("flights", Example::new("flights"), &["--set", "limits.rows_per_batch=200"]);
    let watch = Stopwatch::start();
    case.goes_on(TempDir::new().unwrap().path(), "nothing");
    let whole = watch.elapsed();

    let mut phases: BTreeMap<&str, u32> = BTreeMap::new();
    for kill in 0..kills {
        // Over the run and a little beyond it.
        *phases.entry(case.kill_after(whole.mul_f64(f64::from(kill) * 1.1 / f64::from(kills)))).or_default() += 1;
    }
    // The run takes longer or shorter than it did. A phase that was missed lies between one before and one after it.
    for (order, phase) in LONG_PHASES.into_iter().enumerate() {
        let (mut from, mut to) = (Duration::ZERO, whole * 4);
        for _ in 0..MORE_KILLS {
            if phases.contains_key(phase) {
                break;
            }
            let delay = (from + to) / 2;
            let hit = case.kill_after(delay);
            *phases.entry(hit).or_default() += 1;
            let is_before = LONG_PHASES.iter().position(|of| *of == hit).is_some_and(|of| of < order);
            if is_before { from = delay } else { to = delay }
        }
    }

    println!("kills by phase: {phases:#?}");
    for phase in LONG_PHASES {
        assert!(phases.contains_key(phase), "no kill came {phase}: {phases:?}");
    }
}

/// Kills more that look for a phase.
const MORE_KILLS: u32 = 20;

/// Batches with more output than a commit record takes in.
fn large_output() -> Case {
    let example = Example::new("counter");
    let row = |row: u32| format!("{{\"key\":\"{:0>120}\",\"n\":{row}}}\n", row % 7_000);
    for file in 0..2 {
        let text: String = (file * 7_000..(file + 1) * 7_000).map(row).collect();
        write_at(&example.path().join(format!("input/large-{file}.jsonl")), text, 2_000_000_000 + u64::from(file));
    }
    let case = Case::new("counter with large output", example, &["--set", "limits.files_per_batch=1"]);
    assert!(case.undisturbed.values().filter(|bytes| bytes.len() > 1 << 20).count() == 2);
    case
}

impl Case {
    fn new(name: &'static str, example: Example, arguments: &[&'static str]) -> Self {
        // Snapshots after every second batch, so that short examples take some.
        let often = ["--set", "retention.snapshot_batches=2"];
        let arguments = often.iter().chain(arguments).copied().collect();
        let mut case = Self { name, example, arguments, undisturbed: BTreeMap::new() };
        let place = TempDir::new().unwrap();
        succeed(&mut case.command(place.path(), "2"));
        case.undisturbed = published(&place.path().join("rows"));
        assert!(!case.undisturbed.is_empty(), "{name} gives no rows");
        case
    }

    fn command(&self, place: &Path, workers: &'static str) -> std::process::Command {
        self.example.command(place, self.arguments.iter().copied().chain(["--workers", workers]))
    }

    /// Runs it up to a crash. False: it ended before.
    fn crashes_at(&self, place: &Path, point: &str, nth: u32) -> bool {
        // Recovery has something to do only in a checkpoint that was cut off.
        let before = point.starts_with("recovery.").then_some("commit.after-sync:1");
        before.into_iter().chain([format!("{point}:{nth}").as_str()]).all(|fault| {
            let output = self.command(place, "2").env("TIDEMILL_CRASH_AT", fault).output().unwrap();
            let crashed = output.status.code().is_none();
            assert!(crashed || output.status.success(), "{}: {}", self.name, String::from_utf8_lossy(&output.stderr));
            crashed
        })
    }

    /// Kills it after so long, sees how far it had come, and lets it go on.
    fn kill_after(&self, delay: Duration) -> &'static str {
        let place = TempDir::new().unwrap();
        let mut child = self.command(place.path(), "2").stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(delay);
        child.kill().unwrap();
        child.wait().unwrap();
        let phase = self.phase(place.path());
        self.goes_on(place.path(), &format!("a kill {phase}"));
        phase
    }

    /// Runs it to its end with another number of workers.
    fn goes_on(&self, place: &Path, what: &str) {
        succeed(&mut self.command(place, "3"));
        let files = published(&place.join("rows"));
        let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&files), names(&self.undisturbed), "{} after {what}", self.name);
        assert!(files == self.undisturbed, "{} after {what}: other bytes", self.name);
    }

    /// How far a killed process had come, by what it left.
    fn phase(&self, place: &Path) -> &'static str {
        let checkpoint = Checkpoint::open_existing(std::sync::Arc::new(RealDisk), &place.join("checkpoint"));
        let history = checkpoint.ok().and_then(|checkpoint| History::view(&checkpoint).ok());
        let Some(last) = history.and_then(|history| history.last) else { return "before the first commit" };
        let files = published(&place.join("rows"));
        let emitted = last.sinks.iter().any(|part| part.staged != StagedAt::Nowhere);
        let file = files.keys().find(|name| name.contains(&format!("{:020}", last.batch_id)));
        if emitted && file.is_none() {
            "between commit and publication"
        } else if files.len() == self.undisturbed.len() {
            "after the last batch"
        } else {
            "within a batch"
        }
    }
}

/// Does the work with a few threads more than there are cores: much of it is waiting for the disk.
fn in_parallel<T: Sync>(work: &[T], each: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = work.get(next.fetch_add(1, Ordering::Relaxed)) {
                    each(item);
                }
            });
        }
    });
}
