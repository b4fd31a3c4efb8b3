//! A power loss, a kill or a full disk at every operation, with a consumer that reads on where it was.

use super::*;
use crate::disk::testing::{Failure, Loss, RecordingDisk, SyncKind};
use crate::engine::sink::{Published, SinkError, Undo, Withdrawal};

/// What a query gives to its sink.
#[derive(Debug, Clone, Copy)]
enum Step {
    Batch { generation: u32, id: u64, rows: u64 },
    Rollback { generation: u32, last_batch: u64, to: u64 },
}

const STEPS: [Step; 8] = [
    Step::Batch { generation: 0, id: 1, rows: 1 },
    Step::Batch { generation: 0, id: 2, rows: 30 },
    Step::Batch { generation: 0, id: 4, rows: 2 },
    Step::Rollback { generation: 1, last_batch: 5, to: 2 },
    Step::Batch { generation: 1, id: 6, rows: 3 },
    Step::Batch { generation: 1, id: 7, rows: 9 },
    Step::Batch { generation: 1, id: 8, rows: 1 },
    Step::Batch { generation: 1, id: 9, rows: 1 },
];

fn give(sink: &mut ResultsSink, step: Step) -> Result<(), SinkError> {
    match step {
        Step::Batch { generation, id, rows } => {
            let staged = Staged::Inline(lines(id, rows));
            sink.publish(&Publication { entry: &ledger(generation, id), staged: &staged })
        }
        Step::Rollback { generation, last_batch, to } => {
            let undone = STEPS.iter().filter_map(|step| match *step {
                Step::Batch { generation: of, id, .. } if of < generation && id > to => Some(ledger(of, id)),
                _ => None,
            });
            let undo = Undo { batches: undone.collect(), published: Some(ledger(generation, to)) };
            sink.withdraw(&Withdrawal { query_id: "q".to_owned(), generation, last_batch, undo: Some(undo) })
        }
    }
}

/// Whether a rollback among these steps took the batch back.
fn is_taken_back(steps: &[Step], batch: u64) -> bool {
    let takes =
        |step: &Step| matches!(step, Step::Rollback { to, last_batch, .. } if (to + 1..=*last_batch).contains(&batch));
    steps.iter().any(takes)
}

/// A process of the query: it opens the sink as the engine does, gives it what it lacks of the steps that were begun, and goes
/// on with the others. `begin` is told of each.
fn run(disk: Arc<dyn Disk>, folder: &Path, begun: &[Step], begin: &mut dyn FnMut(usize)) -> Result<(), SinkError> {
    let mut sink = ResultsSink::new(disk, folder).with_sizes(400, 100);
    sink.open("q", &sink_schema())?;
    let is_rollback = |step: &&Step| matches!(step, Step::Rollback { .. });
    begun.iter().filter(is_rollback).try_for_each(|step| give(&mut sink, *step))?;
    let published = match sink.published()? {
        Published::UpTo(ledger) => ledger.batch_id,
        _ => 0,
    };
    for step in begun {
        if let Step::Batch { id, .. } = *step
            && id > published
            && !is_taken_back(begun, id)
        {
            give(&mut sink, *step)?;
        }
    }
    for (number, step) in STEPS.iter().enumerate().skip(begun.len()) {
        begin(number);
        give(&mut sink, *step)?;
    }
    Ok(())
}

/// A folder whose every change is recorded.
struct Recorded {
    _root: TempDir,
    folder: std::path::PathBuf,
    recording: Arc<RecordingDisk>,
    disk: Arc<FaultyDisk>,
}

impl Recorded {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        let folder = root.path().join("results");
        std::fs::create_dir(&folder).unwrap();
        let (recording, disk) = RecordingDisk::beneath_faults(root.path()).unwrap();
        Self { _root: root, folder, recording, disk: Arc::new(disk) }
    }

    fn faulty(&self) -> Arc<dyn Disk> {
        Arc::<FaultyDisk>::clone(&self.disk)
    }

    /// Runs a process; answers with the number of steps that were begun, by operations.
    fn run(&self, disk: Arc<dyn Disk>, begun: usize) -> Vec<(usize, usize)> {
        let mut steps = vec![(self.recording.operations(), begun)];
        let mut begin = |number| steps.push((self.recording.operations(), number + 1));
        let _ended_early = run(disk, &self.folder, STEPS.get(..begun).unwrap(), &mut begin);
        steps
    }

    /// What a power loss from an operation on does to a consumer, where that is wrong.
    fn first_wrong(&self, from: usize, steps: &[(usize, usize)]) -> Option<String> {
        let whole = undisturbed();
        for point in from..=self.recording.operations() {
            let begun = steps.iter().rfind(|(operations, _)| *operations <= point).map_or(0, |(_, begun)| *begun);
            let rebuilt = TempDir::new().unwrap();
            let as_seen = rebuilt.path().join("seen");
            self.recording.rebuild(point, Loss::Nothing, &[&as_seen]).unwrap();
            let given = read_all(&as_seen.join("results"));
            for (number, loss) in Loss::at(point, 4).enumerate() {
                let root = rebuilt.path().join(number.to_string());
                self.recording.rebuild(point, loss, &[&root]).unwrap();
                if let Err(wrong) = go_on(&root.join("results"), &given, begun, &whole) {
                    return Some(format!("{wrong}, {loss:?} after {}", self.recording.describe(point)));
                }
            }
        }
        None
    }
}

/// What an undisturbed run gives to a consumer.
fn undisturbed() -> Vec<String> {
    let folder = TempDir::new().unwrap();
    run(super::disk(), folder.path(), &[], &mut |_| {}).unwrap();
    read_all(folder.path())
}

/// A consumer goes on behind what it was given, before and after the query does.
fn go_on(folder: &Path, given: &[String], begun: usize, whole: &[String]) -> Result<(), String> {
    let position = given.last().map(|shown| at(shown.split(' ').next().unwrap()));
    let mut reader = reader(folder);
    let mut seen = given.to_vec();
    let mut next = position;
    let mut read_to_the_end = |reader: &mut ResultsReader, seen: &mut Vec<String>| loop {
        let page = reader.read_after(next, ALL).map_err(|error| error.to_string())?;
        seen.extend(shown(&page));
        next = page.next;
        if page.end_reached {
            return Ok::<(), String>(());
        }
    };
    read_to_the_end(&mut reader, &mut seen)?;
    run(super::disk(), folder, STEPS.get(..begun).unwrap(), &mut |_| {}).map_err(|error| error.message)?;
    read_to_the_end(&mut reader, &mut seen)?;
    for (what, stream) in [("the consumer saw", seen), ("the stream is", read_all(folder))] {
        if stream != whole {
            let positions: Vec<_> = stream.iter().map(|shown| shown.split(' ').next().unwrap_or_default()).collect();
            return Err(format!("{what} {positions:?}"));
        }
    }
    Ok(())
}

#[test]
fn a_power_loss_at_any_operation_gives_a_consumer_no_gap_and_no_double() {
    let recorded = Recorded::new();
    let steps = recorded.run(recorded.faulty(), 0);
    assert_eq!(steps.last().unwrap().1, STEPS.len(), "the run came to its end");

    assert_eq!(recorded.first_wrong(0, &steps), None);
}

#[test]
fn a_power_loss_after_a_kill_at_any_operation_gives_a_consumer_no_gap_and_no_double() {
    let mut kill_at = 1;
    loop {
        let recorded = Recorded::new();
        recorded.disk.fail_at(kill_at, Failure::Killed);
        let mut steps = recorded.run(recorded.faulty(), 0);
        let killed_after = recorded.recording.operations();
        // The machine goes on: what the killed process had written is still not synced.
        let next: Arc<dyn Disk> = Arc::<RecordingDisk>::clone(&recorded.recording);
        steps.extend(recorded.run(next, steps.last().unwrap().1));

        assert_eq!(recorded.first_wrong(killed_after, &steps), None, "killed at {kill_at}");
        if killed_after < kill_at {
            return;
        }
        kill_at += 4;
    }
}

#[test]
fn without_its_syncs_a_power_loss_would_lose_something() {
    for kind in [SyncKind::File, SyncKind::Folder] {
        let recorded = Recorded::new();
        recorded.disk.drop_syncs(move |of, _| of == kind);
        let steps = recorded.run(recorded.faulty(), 0);

        assert_ne!(recorded.first_wrong(0, &steps), None, "{kind:?}");
    }
}

#[test]
fn a_failed_operation_is_an_error_and_the_query_goes_on_once_it_is_opened_again() {
    for failure in [Failure::DiskFull, Failure::Killed] {
        let mut operation = 0;
        loop {
            let recorded = Recorded::new();
            recorded.disk.fail_at(operation, failure);
            let mut begun = 0;
            let disk = recorded.faulty();
            let result = run(disk, &recorded.folder, &[], &mut |number| begun = number + 1);

            let is_done = match result {
                Ok(()) => true,
                Err(error) => {
                    assert!(["SINK_WRITE_FAILED", "RESULTS_UNREADABLE"].contains(&error.code), "{error}");
                    false
                }
            };
            let given = read_all(&recorded.folder);
            assert_eq!(go_on(&recorded.folder, &given, begun, &undisturbed()), Ok(()), "{failure:?} at {operation}");
            if is_done {
                assert!(operation > 40, "{operation}");
                break;
            }
            operation += 1;
        }
    }
}

#[test]
fn a_sync_that_failed_is_not_trusted_when_it_is_done_again() {
    let recorded = Recorded::new();
    let mut sink = ResultsSink::new(recorded.faulty(), &recorded.folder);
    sink.open("q", &sink_schema()).unwrap();
    give(&mut sink, STEPS[0]).unwrap();
    recorded.disk.fail_at(recorded.disk.operations() + 1, Failure::DiskFull);
    assert!(give(&mut sink, STEPS[1]).is_err());
    assert_eq!(give(&mut sink, STEPS[1]).unwrap_err().code, "SINK_WRITE_FAILED", "what is durable is unknown now");
    assert_eq!(read_all(&recorded.folder).len(), 1);

    sink.open("q", &sink_schema()).unwrap();

    let segments = std::fs::read_dir(&recorded.folder).unwrap().count();
    assert_eq!(segments, 2, "the rows were written anew");
    give(&mut sink, STEPS[1]).unwrap();
    assert_eq!(read_all(&recorded.folder).len(), 31);
}
