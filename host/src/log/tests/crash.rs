//! A power loss at every operation, with everything that was not synced lost, kept, torn or reordered.

use tempfile::TempDir;

use super::*;
use crate::disk::testing::{Failure, RecordingDisk, SyncKind};

/// Random ones at each operation, beside the three fixed ones.
const LOSSES: usize = 3;

/// What a run had promised after so many operations.
#[derive(Debug, Clone, Copy)]
struct Promise {
    operations: usize,
    /// Last record that is durable.
    durable: u64,
    /// First record that must not be removed.
    kept: u64,
}

const NOTHING_YET: Promise = Promise { operations: 0, durable: 0, kept: 1 };

/// The content follows from the sequence number, so a record in a wrong place is seen.
fn expected(sequence: u64) -> Record {
    let sizes = [0, 10, 300, 700];
    record(u8::try_from(sequence).unwrap(), sizes[usize::try_from(sequence).unwrap() % sizes.len()])
}

/// Steps of a run that does some of everything.
const STEPS: u32 = 9;

/// Opens a log and writes to it until a failure ends it. Says what was promised when.
fn run(disk: &Arc<dyn Disk>, recording: &RecordingDisk, dir: &Path, steps: u32) -> Vec<Promise> {
    let mut promises = Vec::new();
    let _ended_early = (|| -> Result<(), LogError> {
        let (log, found) = QueryLog::open(Arc::clone(disk), dir, QUERY)?;
        let mut log = log.with_segment_bytes(1000);
        let mut durable = found.last().map_or(0, |last| last.sequence);
        let mut kept = found.first().map_or(1, |first| first.sequence);
        let mut next = durable + 1;
        let mut promise = |durable, kept| {
            promises.push(Promise { operations: recording.operations(), durable, kept });
        };
        promise(durable, kept);
        for step in 0..steps {
            let durability = if step % 3 == 1 { Durability::WithNext } else { Durability::Synced };
            let written = log.append(NewRecord::from(&expected(next)), durability)?;
            assert_eq!(written.sequence, next);
            if durability == Durability::Synced {
                durable = next;
            }
            next += 1;
            promise(durable, kept);
            if step == 4 {
                log.roll()?;
                durable = next - 1;
                promise(durable, kept);
            }
            if step == 6 {
                kept = written.sequence;
                promise(durable, kept);
                log.remove_segments_before(&written)?;
            }
        }
        Ok(())
    })();
    promises
}

/// What is wrong with a log after a crash, if anything.
fn broken(dir: &Path, promise: Promise) -> Option<String> {
    let found = match open(dir) {
        Err(error) => return Some(error.to_string()),
        Ok((log, found)) => {
            found.iter().map(|at| (at.sequence, log.read(at).map_err(|error| error.to_string()))).collect::<Vec<_>>()
        }
    };
    let sequences: Vec<_> = found.iter().map(|(sequence, _)| *sequence).collect();
    let gaps = sequences.windows(2).any(|pair| pair[0] + 1 != pair[1]);
    let first_is_there =
        promise.kept > promise.durable || sequences.first().is_some_and(|first| *first <= promise.kept);
    let last_is_there = promise.durable == 0 || sequences.last().is_some_and(|last| *last >= promise.durable);
    if gaps || !first_is_there || !last_is_there {
        return Some(format!("{promise:?}, found {sequences:?}"));
    }
    found
        .into_iter()
        .find(|(sequence, read)| read.as_ref() != Ok(&expected(*sequence)))
        .map(|wrong| format!("{wrong:?}"))
}

/// Crashes at every operation from `from` on; gives the first outcome that breaks a promise.
fn first_broken_promise(recording: &RecordingDisk, from: usize, promises: &[Promise]) -> Option<String> {
    let broken = |point, root: &Path| {
        let promise = promises.iter().rfind(|promise| promise.operations <= point).copied().unwrap_or(NOTHING_YET);
        broken(&root.join("log"), promise)
    };
    recording.first_broken(from, LOSSES, broken).unwrap()
}

#[test]
fn a_power_loss_at_any_operation_loses_no_record_whose_append_returned() {
    let dir = TempDir::new().unwrap();
    let (recording, disk) = RecordingDisk::beneath_faults(dir.path()).unwrap();
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let mut promises = run(&disk, &recording, &dir.path().join("log"), STEPS);
    promises.extend(run(&disk, &recording, &dir.path().join("log"), STEPS));
    assert_eq!(promises.last().unwrap().durable, 18, "the runs came to their end");

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
        let mut promises = run(&disk, &recording, &dir.path().join("log"), STEPS);
        let killed_after = recording.operations();
        // The machine goes on: what the killed process had written is still not synced.
        let next: Arc<dyn Disk> = Arc::<RecordingDisk>::clone(&recording);
        promises.extend(run(&next, &recording, &dir.path().join("log"), 2));

        assert_eq!(first_broken_promise(&recording, killed_after, &promises), None, "killed at {kill_at}");
        if killed_after < kill_at {
            return;
        }
        kill_at += 5;
    }
}

#[test]
fn without_the_sync_of_a_commit_a_power_loss_loses_records() {
    let dir = TempDir::new().unwrap();
    let (recording, disk) = RecordingDisk::beneath_faults(dir.path()).unwrap();
    disk.drop_syncs(|kind, _| kind == SyncKind::File);
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let promises = run(&disk, &recording, &dir.path().join("log"), STEPS);

    assert!(first_broken_promise(&recording, 0, &promises).is_some());
}

#[test]
fn without_the_sync_of_the_folder_a_power_loss_loses_records() {
    let dir = TempDir::new().unwrap();
    let (recording, disk) = RecordingDisk::beneath_faults(dir.path()).unwrap();
    let log = dir.path().join("log");
    disk.drop_syncs(move |kind, path| kind == SyncKind::Folder && path == log);
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let promises = run(&disk, &recording, &dir.path().join("log"), STEPS);

    assert!(first_broken_promise(&recording, 0, &promises).is_some());
}
