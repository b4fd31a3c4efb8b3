//! A query that publishes to results: replayed, rolled back, cut by a power loss, with a consumer that reads on.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use tidemill_host::clock::ManualClock;
use tidemill_host::connect::{FileFormat, FileSource, TextFormat};
use tidemill_host::disk::testing::{FaultyDisk, Loss, RecordingDisk};
use tidemill_host::disk::{Disk, RealDisk};
use tidemill_host::engine::error::QueryError;
use tidemill_host::engine::replay::{ChangedInput, ReplayParts, replay};
use tidemill_host::engine::rollback::{Mode, PublishedRows, RolledBack, roll_back};
use tidemill_host::engine::settings::{QuerySettings, Retention};
use tidemill_host::engine::sink::Sink;
use tidemill_host::results::{Entry, PageLimits, Position, ResultsReader, ResultsSink, RolledBackRows, open_folder};

use super::native_query::{FileQuery, Seen, drain, event_time};
use super::support::write_at;
use super::tally::{INPUT, Tally, Timers, schema};

#[test]
fn a_replay_finds_every_batch_as_it_was_published() {
    let hosted = Hosted::new();
    hosted.run(&hosted.disk()).unwrap();
    let scratch = TempDir::new().unwrap();
    let format = FileFormat::Text(TextFormat::JsonLines);
    let parts = ReplayParts {
        operators: vec![Arc::new(hosted.query.operator.clone())],
        load: Box::new(|_, _, _| panic!("native operators are not kept")),
        inputs: vec![Box::new(FileSource::open(&hosted.query.input, format, Some(schema(INPUT))).unwrap())],
        initial_states: Vec::new(),
        disk: hosted.disk(),
        checkpoint: hosted.query.checkpoint.clone(),
        scratch: scratch.path().to_owned(),
    };
    let mut seen = Seen::default();

    replay(&hosted.query.settings, parts, ChangedInput::Refuse, &mut seen).unwrap();

    assert!(seen.0.len() > 5 && seen.0.iter().all(|batch| batch.differences.is_empty()), "{:?}", seen.0);
    assert_eq!(seen.0.iter().map(|batch| batch.rows_out).sum::<u64>(), hosted.read_all().rows.len() as u64);
}

#[test]
fn a_consumer_that_follows_a_rollback_has_the_rows_of_a_query_that_never_went_astray() {
    let hosted = Hosted::new();
    hosted.run(&hosted.disk()).unwrap();
    let undisturbed = hosted.read_all();
    let mut consumer = undisturbed.clone();

    let would = hosted.roll_back(&hosted.disk(), 3, PublishedRows::Withdraw, Mode::DryRun).unwrap();
    let done = hosted.roll_back(&hosted.disk(), 3, PublishedRows::Withdraw, Mode::Perform).unwrap();

    assert_eq!(would, done);
    assert_eq!(
        (done.sinks[0].sink.as_str(), done.sinks[0].places.as_slice()),
        ("results", ["results".to_owned()].as_slice())
    );
    consumer.read(&mut hosted.reader());
    assert_eq!(consumer.rollbacks, [RolledBackRows::Withdrawn { after: Some(3) }]);
    assert!(consumer.rows.iter().all(|(batch, _)| *batch <= 3));

    hosted.run(&hosted.disk()).unwrap();
    consumer.read(&mut hosted.reader());
    assert_eq!(consumer.json(), undisturbed.json());
    assert_eq!(hosted.read_all().json(), undisturbed.json(), "a consumer that begins now is told the same");
}

#[test]
fn rows_that_were_trimmed_are_taken_back_as_well() {
    let hosted = Hosted::new();
    hosted.run(&hosted.disk()).unwrap();
    let undisturbed = hosted.read_all();
    let mut consumer = undisturbed.clone();
    // A segment that nothing follows is never removed: another opening begins the next one.
    let mut evolved = hosted.sink(&hosted.disk());
    evolved.open(&hosted.query_id(), &schema("other INT")).unwrap();
    assert!(hosted.reader().trim(consumer.position.unwrap()).unwrap().entries > 0);

    hosted.roll_back(&hosted.disk(), 3, PublishedRows::Withdraw, Mode::Perform).unwrap();
    hosted.run(&hosted.disk()).unwrap();

    consumer.read(&mut hosted.reader());
    assert_eq!(consumer.json(), undisturbed.json());
}

#[test]
fn rows_that_are_kept_stay_beside_those_that_come_again() {
    let hosted = Hosted::new();
    hosted.run(&hosted.disk()).unwrap();
    let before = hosted.read_all().rows.len();

    let done = hosted.roll_back(&hosted.disk(), 3, PublishedRows::Keep, Mode::Perform).unwrap();
    hosted.run(&hosted.disk()).unwrap();

    let after = hosted.read_all();
    assert_eq!(after.rollbacks, [RolledBackRows::Kept]);
    assert_eq!(after.rows.len() as u64, before as u64 + done.sinks[0].rows);
}

#[test]
fn a_power_loss_at_any_operation_of_a_query_gives_its_consumer_no_gap_and_no_double() {
    let hosted = Hosted::new();
    let recording = Arc::new(RecordingDisk::over(&hosted.roots()).unwrap());
    let disk: Arc<dyn Disk> = Arc::<RecordingDisk>::clone(&recording);
    hosted.run(&disk).unwrap();

    hosted.survives(&recording, 5, |hosted| hosted.run(&hosted.disk()));
}

#[test]
fn a_power_loss_at_any_operation_of_a_rollback_gives_its_consumer_no_gap_and_no_double() {
    let hosted = Hosted::new();
    hosted.run(&hosted.disk()).unwrap();
    let recording = Arc::new(RecordingDisk::over(&hosted.roots()).unwrap());
    let disk: Arc<dyn Disk> = Arc::<RecordingDisk>::clone(&recording);
    hosted.roll_back(&disk, 3, PublishedRows::Withdraw, Mode::Perform).unwrap();
    hosted.run(&hosted.disk()).unwrap();

    hosted.survives(&recording, 3, |hosted| {
        hosted.roll_back(&hosted.disk(), 3, PublishedRows::Withdraw, Mode::Perform)?;
        hosted.run(&hosted.disk())
    });
}

/// A query over files that publishes to results, on disks of their own.
struct Hosted {
    _folder: TempDir,
    roots: [PathBuf; 2],
    query: FileQuery,
}

impl Hosted {
    /// Rows of seven keys, four to a batch, with timers; every batch stays.
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        let row = |n: u64| {
            format!(
                "{{\"k\":\"key-{}\",\"at\":\"1970-01-01T00:00:0{}.{:03}Z\",\"n\":{n}}}\n",
                n * 5 % 7,
                n * 130 / 1000,
                n * 130 % 1000
            )
        };
        write_at(&at("input").join("0.jsonl"), (0..25).map(row).collect::<String>(), 1_000);
        let roots = [at("checkpoint-disk"), at("results-disk")];
        fs::create_dir(&roots[0]).unwrap();
        fs::create_dir_all(roots[1].join("results")).unwrap();
        let retention = Retention { batches: 1_000, snapshot_batches: 2, snapshot_bytes: u64::MAX };
        let query = FileQuery {
            settings: QuerySettings { retention, ..event_time(500) },
            operator: Tally { timers: Timers::After { ms: 700 }, ..Tally::default() },
            input: at("input"),
            clock: Arc::new(ManualClock::at(1_000)),
            checkpoint: roots[0].join("checkpoint"),
            rows: roots[1].join("results"),
            bad_rows: roots[1].join("bad-rows"),
        };
        Self { _folder: folder, roots, query }
    }

    fn roots(&self) -> [&Path; 2] {
        self.roots.each_ref().map(PathBuf::as_path)
    }

    /// The machine does not fail where this is used, so nothing need be synced.
    fn disk(&self) -> Arc<dyn Disk> {
        let disk = FaultyDisk::over(Arc::new(RealDisk));
        disk.drop_syncs(|_, _| true);
        Arc::new(disk)
    }

    fn sink(&self, disk: &Arc<dyn Disk>) -> ResultsSink {
        ResultsSink::new(Arc::clone(disk), &self.query.rows)
    }

    /// Runs all there is to run.
    fn run(&self, disk: &Arc<dyn Disk>) -> Result<(), QueryError> {
        let mut query = self.query.open_with(disk, Box::new(self.sink(disk)))?;
        drain(&mut query)?;
        query.close()
    }

    fn query_id(&self) -> String {
        let query = self.query.open_with(&self.disk(), Box::new(self.sink(&self.disk()))).unwrap();
        query.id().to_owned()
    }

    fn roll_back(
        &self,
        disk: &Arc<dyn Disk>,
        to: u64,
        published: PublishedRows,
        mode: Mode,
    ) -> Result<RolledBack, QueryError> {
        let open = |name: &str| (name == ResultsSink::DESCRIPTION).then(|| Box::new(self.sink(disk)) as Box<dyn Sink>);
        roll_back(Arc::clone(disk), &self.query.checkpoint, to, published, mode, &open)
    }

    fn reader(&self) -> ResultsReader {
        let root = File::open(&self.roots[1]).unwrap();
        ResultsReader::new(open_folder(root.as_fd(), Path::new("results")).unwrap())
    }

    fn read_all(&self) -> Consumer {
        let mut consumer = Consumer::default();
        consumer.read(&mut self.reader());
        consumer
    }

    /// Cuts the recorded run at every so many operations. `go_on` brings the query to the end of that run.
    fn survives(&self, recording: &RecordingDisk, stride: usize, go_on: impl Fn(&Self) -> Result<(), QueryError>) {
        let undisturbed = self.read_all();
        let lay_out = |point: usize, loss: Loss| {
            self.roots().into_iter().for_each(|root| fs::remove_dir_all(root).unwrap());
            recording.rebuild(point, loss, &self.roots()).unwrap();
        };
        for point in (0..=recording.operations()).step_by(stride) {
            lay_out(point, Loss::Nothing);
            let as_seen = self.read_all();
            for loss in [Loss::Unsynced, Loss::Random { seed: point as u64 }] {
                let at = || format!("{loss:?} at operation {point}\n{}", recording.describe(point));
                lay_out(point, loss);
                let (mut consumer, mut reader) = (as_seen.clone(), self.reader());
                consumer.read(&mut reader);
                go_on(self).unwrap_or_else(|error| panic!("{error}: {}", at()));
                consumer.read(&mut reader);
                assert_eq!(consumer.json(), undisturbed.json(), "{}", at());
                assert_eq!(self.read_all().json(), undisturbed.json(), "{}", at());
            }
        }
    }
}

/// A consumer that keeps the rows that count, with their batches.
#[derive(Debug, Clone, Default)]
struct Consumer {
    position: Option<Position>,
    rows: Vec<(u64, String)>,
    rollbacks: Vec<RolledBackRows>,
}

impl Consumer {
    /// Reads on to the end, and checks that every position comes once.
    fn read(&mut self, reader: &mut ResultsReader) {
        loop {
            let page = reader.read_after(self.position, PageLimits { rows_max: 3, bytes_max: 1 << 20 }).unwrap();
            for entry in page.entries {
                assert!(Some(entry.position()) > self.position);
                self.position = Some(entry.position());
                match entry {
                    Entry::Row { position, json } => self.rows.push((position.batch, json)),
                    Entry::Rollback(rollback) => {
                        self.rollbacks.push(rollback.rows);
                        if let RolledBackRows::Withdrawn { after } = rollback.rows {
                            self.rows.retain(|(batch, _)| Some(*batch) <= after);
                        }
                    }
                }
            }
            if page.end_reached {
                return;
            }
        }
    }

    fn json(&self) -> Vec<&str> {
        self.rows.iter().map(|(_, json)| json.as_str()).collect()
    }
}
