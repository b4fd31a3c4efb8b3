//! A power loss at every operation, with everything that was not synced lost, kept, torn or reordered: what was
//! acknowledged is there, whole, and a client that sends everything again doubles nothing.

use tempfile::TempDir;

use super::super::writer::Writer;
use super::*;
use crate::disk::testing::{Failure, RecordingDisk, SyncKind};

/// Random ones at each operation, beside the three fixed ones.
const LOSSES: usize = 3;

/// Requests that a client sends, in groups of one sync.
const GROUPS: [u64; 7] = [1, 3, 2, 1, 4, 1, 2];

const SETTINGS: IngestSettings =
    IngestSettings { segment_bytes: 1_000, backlog_bytes_max: u64::MAX, producers_max: 10, keys_max: 100 };

/// What was promised after so many operations.
#[derive(Debug, Clone, Copy, Default)]
struct Promise {
    operations: usize,
    /// Requests that were acknowledged.
    requests: u64,
    /// Rows before this one may be gone.
    kept_from: u64,
}

/// The request of a number: every second one is told apart by a key, the others by a count.
fn request(number: u64) -> (Rows, Dedup) {
    let rows = rows(&number.to_string(), number % 4);
    let dedup = match number % 2 {
        0 => producer("p", 0, number / 2),
        _ => Dedup::Key(format!("key {number}")),
    };
    (rows, dedup)
}

/// The rows of the requests before this one.
fn rows_before(request: u64) -> Vec<String> {
    (0..request).flat_map(|number| (0..number % 4).map(move |n| format!("{number} {n}"))).collect()
}

fn first_row_of(request: u64) -> u64 {
    (0..request).map(|number| number % 4).sum()
}

/// Sends requests from this one on, until a failure ends it, and trims in the middle. Says what was promised when.
fn run(disk: &Arc<dyn Disk>, recording: &RecordingDisk, dir: &Path, first: u64) -> Vec<Promise> {
    let mut promises = Vec::new();
    let _ended_early = (|| -> Result<(), IngestError> {
        let mut writer = Writer::open(Arc::clone(disk), dir, QUERY, &schema(), SETTINGS)?;
        let (mut next, mut kept_from) = (first, 0);
        for (index, requests) in GROUPS.into_iter().enumerate() {
            writer.roll_if_grown()?;
            for number in next..next + requests {
                let (rows, dedup) = request(number);
                writer.stage(&rows, dedup, 0)?;
            }
            writer.sync()?;
            next += requests;
            promises.push(Promise { operations: recording.operations(), requests: next, kept_from });
            if index == 5 {
                kept_from = first_row_of(next - 2);
                promises.push(Promise { operations: recording.operations(), requests: next, kept_from });
                writer.trim(kept_from)?;
            }
        }
        Ok(())
    })();
    promises
}

/// What is wrong with a log after a crash, if anything: what it holds, and what it holds once the client has sent again
/// everything that is not known to be acknowledged.
fn broken(dir: &Path, promise: Promise) -> Option<String> {
    let log = match open_with(dir, SETTINGS, &Arc::new(ManualClock::at(0))) {
        Ok(log) => log,
        Err(error) => return Some(error.to_string()),
    };
    let held = (promise.requests..).find(|request| first_row_of(*request) >= log.end()).unwrap_or_default();
    if first_row_of(held) != log.end() || log.first_row() > promise.kept_from {
        return Some(format!("{promise:?}: it has the rows {} to {}", log.first_row(), log.end()));
    }
    let sent = promise.requests + 6;
    for number in promise.requests.saturating_sub(4)..sent.max(held) {
        let (rows, dedup) = request(number);
        let answer = match log.append(rows, dedup) {
            Ok(answer) => answer,
            Err(error) => return Some(format!("{promise:?}, request {number}: {error}")),
        };
        if answer.first_row != first_row_of(number) || (number < promise.requests && !answer.repeated) {
            return Some(format!("{promise:?}, request {number}: {answer:?}"));
        }
    }
    let found = read_from(dir, log.first_row(), log.end());
    let expected = rows_before(sent.max(held)).split_off(usize::try_from(log.first_row()).unwrap());
    (found != expected).then(|| format!("{promise:?}: {found:?} instead of {expected:?}"))
}

/// Crashes at every operation from `from` on; gives the first outcome that breaks a promise.
fn first_broken_promise(recording: &RecordingDisk, from: usize, promises: &[Promise]) -> Option<String> {
    let broken = |point, root: &Path| {
        let promise = promises.iter().rfind(|promise| promise.operations <= point).copied().unwrap_or_default();
        broken(&root.join("ingest"), promise)
    };
    recording.first_broken(from, LOSSES, broken).unwrap()
}

#[test]
fn a_power_loss_at_any_operation_loses_nothing_acknowledged_and_doubles_nothing() {
    let dir = TempDir::new().unwrap();
    let (recording, disk) = RecordingDisk::beneath_faults(dir.path()).unwrap();
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let promises = run(&disk, &recording, &dir.path().join("ingest"), 0);
    assert_eq!(promises.last().unwrap().requests, GROUPS.iter().sum::<u64>(), "the run came to its end");

    assert_eq!(first_broken_promise(&recording, 0, &promises), None);
}

#[test]
fn a_power_loss_while_a_killed_process_is_recovered_loses_nothing() {
    let mut kill_at = 3;
    loop {
        let dir = TempDir::new().unwrap();
        let (recording, disk) = RecordingDisk::beneath_faults(dir.path()).unwrap();
        disk.fail_at(kill_at, Failure::Killed);
        let disk: Arc<dyn Disk> = Arc::new(disk);
        let mut promises = run(&disk, &recording, &dir.path().join("ingest"), 0);
        let killed_after = recording.operations();
        let promise = promises.last().copied().unwrap_or_default();
        // The machine goes on: what the killed process had written is still not synced.
        let next: Arc<dyn Disk> = Arc::<RecordingDisk>::clone(&recording);
        promises.extend(
            run(&next, &recording, &dir.path().join("ingest"), promise.requests)
                .into_iter()
                .map(|later| Promise { kept_from: later.kept_from.max(promise.kept_from), ..later }),
        );

        assert_eq!(first_broken_promise(&recording, killed_after, &promises), None, "killed at {kill_at}");
        if killed_after < kill_at {
            return;
        }
        kill_at += 7;
    }
}

#[test]
fn without_the_sync_of_a_group_a_power_loss_loses_what_was_acknowledged() {
    let dir = TempDir::new().unwrap();
    let (recording, disk) = RecordingDisk::beneath_faults(dir.path()).unwrap();
    disk.drop_syncs(|kind, _| kind == SyncKind::File);
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let promises = run(&disk, &recording, &dir.path().join("ingest"), 0);

    assert!(first_broken_promise(&recording, 0, &promises).is_some());
}

#[test]
fn a_log_that_could_not_be_written_takes_nothing_more_until_it_is_opened_again() {
    let dir = TempDir::new().unwrap();
    let disk = Arc::new(FaultyDisk::over(Arc::new(RealDisk)));
    let log = IngestLog::open(
        Arc::<FaultyDisk>::clone(&disk),
        dir.path(),
        QUERY,
        &schema(),
        SETTINGS,
        Arc::new(ManualClock::at(0)),
    )
    .unwrap();
    log.append(rows("a", 1), producer("p", 0, 0)).unwrap();

    disk.fail_at(disk.operations() + 1, Failure::DiskFull);
    let failed = log.append(rows("b", 1), producer("p", 0, 1)).unwrap_err();
    let later = log.append(rows("b", 1), producer("p", 0, 1)).unwrap_err();

    assert_eq!((failed.code(), later.code()), ("LOG_WRITE_FAILED", "LOG_POISONED"));
    assert_eq!(log.end(), 1);
    drop(log);
    let log = open(dir.path());
    assert!(log.append(rows("a", 1), producer("p", 0, 0)).unwrap().repeated);
    log.append(rows("b", 1), producer("p", 0, 1)).unwrap();
    assert_eq!(read_all(dir.path(), log.end()), ["a 0", "b 0"]);
}
