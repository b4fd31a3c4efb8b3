//! A power loss at any operation: everything that was not synced is lost, kept, torn or reordered, and the query goes on
//! from what is left. Nothing committed is lost, nothing appears twice, and the end is that of an undisturbed run, byte
//! for byte. Checkpoint and sink stand on file systems of their own.
//!
//! That these tests can fail is tested, too: without one sync, or with a sink that does not look at what it has, they do.
//!
//! `TIDEMILL_CRASHES=5000` tries more crashes of each case.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use tempfile::TempDir;
use tidemill_host::clock::{Clock, ManualClock, ScriptedClock};
use tidemill_host::disk::testing::{FaultyDisk, Loss, RecordingDisk, SyncKind};
use tidemill_host::disk::{Disk, RealDisk, write_durably};
use tidemill_host::engine::error::QueryError;
use tidemill_host::engine::operator::TimeMode;
use tidemill_host::engine::query::{Query, Step};
use tidemill_host::engine::settings::{BadRows, QuerySettings};
use tidemill_host::engine::sink::{Publication, Published, Sink, SinkError, Staged};
use tidemill_host::engine::source::ReadLimits;
use tidemill_host::engine::trigger::{self, Stop};
use tidemill_host::record::Schema;

use super::native_query::{FileQuery, directory, event_time, in_mode, settings, source, two_steps};
use super::support::{published, write_at};
use super::tally::{Tally, Timers};

/// Crashes of each case, unless `TIDEMILL_CRASHES` says otherwise.
const CRASHES: usize = 60;

#[test]
fn a_power_loss_with_small_output_in_event_time() {
    survives_every_crash(&World::small_output());
}

#[test]
fn a_power_loss_with_output_in_staged_files() {
    survives_every_crash(&World::large_output());
}

#[test]
fn a_power_loss_with_ttl_and_timers_by_the_clock() {
    survives_every_crash(&World::by_the_clock());
}

#[test]
fn a_power_loss_with_two_steps_in_event_time() {
    survives_every_crash(&World::two_steps());
}

#[test]
fn a_power_loss_with_two_sources_in_two_steps() {
    survives_every_crash(&World::two_sources());
}

#[test]
fn a_power_loss_with_malformed_rows_in_quarantine() {
    survives_every_crash(&World::with_malformed_rows());
}

#[test]
fn a_power_loss_during_the_recovery_from_another() {
    let world = World::large_output();
    let first = world.run();
    for (point, loss) in sample(first.disk.operations(), crashes() / 10) {
        world.lay_out(&first, point, loss);
        let mut second = world.run();
        assert!(second.outcome == first.outcome, "{loss:?} at operation {point}");
        // What the first run promised holds for the second as well.
        second.promises.extend(first.promised(point).map(|batch| (0, batch)));
        for (again, loss_again) in sample(second.disk.operations(), 10) {
            if let Err(violation) = world.recovers(&second, again, loss_again) {
                let before = second.disk.describe(again);
                panic!("{loss:?} at operation {point}, then {loss_again:?} at {again}: {violation}\n{before}");
            }
        }
    }
}

#[test]
fn without_the_sync_of_the_commit_batches_are_lost() {
    // The first sync of a segment makes its header durable, those after it commit batches.
    let segments: Mutex<BTreeMap<PathBuf, u32>> = Mutex::default();
    is_noticed(&World::small_output(), move |kind, path| {
        let mut segments = segments.lock().unwrap();
        let syncs = segments.entry(path.to_owned()).or_insert(0);
        *syncs += 1;
        kind == SyncKind::File && is_in(path, "log") && *syncs > 1
    });
}

#[test]
fn without_the_sync_of_the_folder_of_the_log_batches_are_lost() {
    is_noticed(&World::small_output(), |kind, path| kind == SyncKind::Folder && path.ends_with("log"));
}

#[test]
fn without_the_sync_of_the_folder_of_the_sink_rows_are_lost() {
    is_noticed(&World::small_output(), |kind, path| kind == SyncKind::Folder && path.ends_with("rows"));
}

#[test]
fn without_the_sync_of_a_published_file_rows_are_lost() {
    is_noticed(&World::small_output(), |kind, path| {
        kind == SyncKind::File && is_in(path, "rows") && path.to_string_lossy().contains("part-")
    });
}

#[test]
fn without_the_sync_of_the_ledger_it_is_damaged() {
    is_noticed(&World::small_output(), |kind, path| {
        kind == SyncKind::File && is_in(path, "rows") && path.to_string_lossy().contains("ledger")
    });
}

#[test]
fn without_the_sync_of_a_staged_file_rows_are_lost() {
    is_noticed(&World::large_output(), |kind, path| kind == SyncKind::File && is_in(path, "staging"));
}

#[test]
fn without_the_sync_of_the_staging_folder_rows_are_lost() {
    is_noticed(&World::large_output(), |kind, path| kind == SyncKind::Folder && path.ends_with("staging"));
}

#[test]
fn without_the_sync_of_a_snapshot_state_is_lost() {
    is_noticed(&World::small_output(), |kind, _| kind == SyncKind::Tree);
}

#[test]
fn without_the_sync_of_the_folder_of_snapshots_state_is_lost() {
    is_noticed(&World::small_output(), |kind, path| kind == SyncKind::Folder && path.ends_with("snapshots"));
}

#[test]
fn without_the_sync_of_the_metadata_the_checkpoint_is_lost() {
    is_noticed(&World::small_output(), |kind, path| kind == SyncKind::Folder && path.ends_with("checkpoint"));
}

#[test]
fn a_sink_that_does_not_look_at_what_it_has_gives_rows_twice() {
    let looking = World { sink: TestSink::Numbered(Look::First), ..World::small_output() };
    survives_every_crash(&looking);

    is_noticed(&World { sink: TestSink::Numbered(Look::Never), ..World::small_output() }, |_, _| false);
}

/// A query, with the folders that its disks are made of.
struct World {
    _folder: TempDir,
    roots: [PathBuf; 2],
    query: FileQuery,
    sink: TestSink,
}

/// Rows as consumers see them: those of the sink and those in quarantine, file by file.
#[derive(Clone, PartialEq, Eq)]
struct Outcome {
    rows: BTreeMap<String, Vec<u8>>,
    bad_rows: BTreeMap<String, Vec<u8>>,
}

/// A run that was recorded to its end.
struct Run {
    disk: Arc<RecordingDisk>,
    /// From that many operations on, this batch is committed: its step has returned.
    promises: Vec<(usize, u64)>,
    outcome: Outcome,
}

impl World {
    fn small_output() -> Self {
        let operator = Tally { timers: Timers::After { ms: 700 }, ..Tally::default() };
        Self::new(event_time(500), operator, Arc::new(ManualClock::at(1_000)))
    }

    fn large_output() -> Self {
        // Some 1.3 MiB a batch, which is more than a commit record takes in.
        let operator = Tally { padding_bytes: 330_000, ..Tally::default() };
        Self::new(settings(), operator, Arc::new(ManualClock::at(1_000)))
    }

    fn by_the_clock() -> Self {
        let settings = in_mode(TimeMode::ProcessingTime);
        let operator = Tally { timers: Timers::After { ms: 150 }, ttl_ms: Some(250), ..Tally::default() };
        let times_ms = (0..8).map(|batch| 1_000 + batch * 100).collect();
        Self::new(settings, operator, Arc::new(ScriptedClock::new(times_ms)))
    }

    fn two_steps() -> Self {
        let mut world = Self::small_output();
        world.query.settings = two_steps(world.query.settings.clone());
        world
    }

    fn two_sources() -> Self {
        let mut world = Self::two_steps();
        world.query.settings.sources.push(source("second", Some(500)));
        let second = world.query.input.with_file_name("second");
        fs::create_dir(&second).unwrap();
        fs::rename(world.query.input.join("1.jsonl"), second.join("1.jsonl")).unwrap();
        world
    }

    fn with_malformed_rows() -> Self {
        let settings = QuerySettings { bad_rows: BadRows::Quarantine, ..settings() };
        let world = Self::new(settings, Tally::default(), Arc::new(ManualClock::at(1_000)));
        for (file, text) in
            ["no JSON\n", "{\"k\":\"a\",\"n\":\"many\"}\n{\"k\":\"b\",\"n\":3}\n{}}\n"].iter().enumerate()
        {
            write_at(&world.query.input.join(format!("bad-{file}.jsonl")), text, 1_500 + file as u64);
        }
        world
    }

    /// 25 rows of seven keys in three files, four rows to a batch.
    fn new(settings: QuerySettings, operator: Tally, clock: Arc<dyn Clock>) -> Self {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (file, rows) in [0..9, 9..14, 14..25].into_iter().enumerate() {
            let text: String = rows
                .map(|row| {
                    let (key, millis) = (row * 5 % 7, row * 130);
                    format!(
                        "{{\"k\":\"key-{key}\",\"at\":\"1970-01-01T00:00:{:02}.{:03}Z\",\"n\":{row}}}\n",
                        millis / 1000,
                        millis % 1000
                    )
                })
                .collect();
            write_at(&at("input").join(format!("{file}.jsonl")), text, 1_000 + 1_000 * file as u64);
        }
        let roots = [at("checkpoint-disk"), at("sink-disk")];
        let query = FileQuery {
            settings: QuerySettings {
                read: ReadLimits { files_max: None, rows_max: 4, bytes_max: u64::MAX },
                ..settings
            },
            operator,
            input: at("input"),
            clock,
            checkpoint: roots[0].join("checkpoint"),
            rows: roots[1].join("rows"),
            bad_rows: roots[1].join("bad-rows"),
        };
        roots.iter().for_each(|root| fs::create_dir(root).unwrap());
        Self { _folder: folder, roots, query, sink: TestSink::Directory }
    }

    fn roots(&self) -> [&Path; 2] {
        self.roots.each_ref().map(PathBuf::as_path)
    }

    /// Runs the query to its end on what stands in the folders, and records it. `drop_syncs` says which syncs do nothing.
    fn record(&self, pace: Pace, drop_syncs: impl Fn(SyncKind, &Path) -> bool + Send + 'static) -> Run {
        let recording = Arc::new(RecordingDisk::over(&self.roots()).unwrap());
        let faulty = FaultyDisk::over(Arc::<RecordingDisk>::clone(&recording));
        faulty.drop_syncs(drop_syncs);
        let mut promises = Vec::new();
        let mut query = self.open_with(&(Arc::new(faulty) as Arc<dyn Disk>), 2).unwrap();
        while let Step::Ran(progress) = query.step().unwrap() {
            promises.push((recording.operations(), progress.batch_id));
            if pace == Pace::SnapshotBySnapshot {
                query.settle().unwrap();
            }
        }
        query.close().unwrap();
        Run { disk: recording, promises, outcome: self.outcome() }
    }

    fn run(&self) -> Run {
        self.record(Pace::Free, |_, _| false)
    }

    fn open_with(&self, disk: &Arc<dyn Disk>, workers: u16) -> Result<Query, QueryError> {
        let mut query = self.query.clone();
        query.settings.workers = workers;
        let inner = directory(Arc::clone(disk), &self.query.rows);
        let sink: Box<dyn Sink> = match self.sink {
            TestSink::Directory => inner,
            TestSink::Numbered(look) => {
                Box::new(NumberedSink { inner, folder: self.query.rows.clone(), disk: Arc::clone(disk), look })
            }
        };
        query.open_with(disk, sink)
    }

    fn outcome(&self) -> Outcome {
        Outcome { rows: published(&self.query.rows), bad_rows: published(&self.query.bad_rows) }
    }

    /// Makes the folders what a crash leaves.
    fn lay_out(&self, run: &Run, point: usize, loss: Loss) {
        for root in &self.roots {
            fs::remove_dir_all(root).unwrap();
        }
        run.disk.rebuild(point, loss, &self.roots()).unwrap();
    }

    /// Goes on after a crash; the error says what is wrong.
    fn recovers(&self, run: &Run, point: usize, loss: Loss) -> Result<(), String> {
        self.lay_out(run, point, loss);
        let seen = self.outcome();

        // Another crash, right after everything is open, must change nothing.
        let query = self.reopen(3)?;
        let last = query.head().last_batch;
        drop(query);
        let committed = run.outcome.up_to(last);
        if last < run.promised(point) {
            return Err(format!("batch {:?} was committed, the last one now is {last:?}", run.promised(point)));
        }
        if !seen.is_part_of(&committed) {
            return Err(format!("before recovery consumers saw {seen:?}, committed is {committed:?}"));
        }
        if self.outcome() != committed {
            return Err(format!("recovery published {:?}, committed is {committed:?}", self.outcome()));
        }
        let mut query = self.reopen(1)?;
        if (query.recovered().published, query.head().last_batch) != (0, last) {
            return Err(format!("another recovery published {:?}", query.recovered()));
        }

        let finished = trigger::run(&mut query, &Stop::default(), &mut |_| {}).and_then(|()| query.close());
        finished.map_err(|error| format!("it does not go on: [{}] {error}", error.code()))?;
        if self.outcome() != run.outcome {
            return Err(format!("at the end there is {:?} instead of {:?}", self.outcome(), run.outcome));
        }

        let mut query = self.reopen(2)?;
        let is_idle = matches!(query.step(), Ok(Step::Idle | Step::Ended));
        if query.recovered().applied + query.recovered().published > 0 || !is_idle || self.outcome() != run.outcome {
            return Err(format!("after a clean stop there was more to do: {:?}", query.recovered()));
        }
        Ok(())
    }

    fn reopen(&self, workers: u16) -> Result<Query, String> {
        // The machine does not fail here, so nothing need be synced.
        let disk = FaultyDisk::over(Arc::new(RealDisk));
        disk.drop_syncs(|_, _| true);
        let opened = self.open_with(&(Arc::new(disk) as Arc<dyn Disk>), workers);
        opened.map_err(|error| format!("it does not open: [{}] {error}", error.code()))
    }
}

impl Run {
    /// The last batch that is committed after so many operations.
    fn promised(&self, point: usize) -> Option<u64> {
        self.promises.iter().filter(|(operations, _)| *operations <= point).map(|(_, batch)| *batch).max()
    }
}

impl Outcome {
    /// What of it belongs to the batches up to this one.
    fn up_to(&self, batch: Option<u64>) -> Self {
        let up_to = |files: &BTreeMap<String, Vec<u8>>| {
            let kept = files.iter().filter(|(name, _)| batch.is_some_and(|batch| batch_of(name) <= batch));
            kept.map(|(name, bytes)| (name.clone(), bytes.clone())).collect()
        };
        Self { rows: up_to(&self.rows), bad_rows: up_to(&self.bad_rows) }
    }

    fn is_part_of(&self, whole: &Self) -> bool {
        let is_part = |part: &BTreeMap<String, Vec<u8>>, whole: &BTreeMap<String, Vec<u8>>| {
            part.iter().all(|(name, bytes)| whole.get(name) == Some(bytes))
        };
        is_part(&self.rows, &whole.rows) && is_part(&self.bad_rows, &whole.bad_rows)
    }
}

/// The names of files, with the number of their bytes.
impl std::fmt::Debug for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let files = self.rows.iter().chain(&self.bad_rows);
        f.debug_map().entries(files.map(|(name, bytes)| (name, bytes.len()))).finish()
    }
}

/// How batches and snapshots, which are taken in the background, go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// As it comes.
    Free,
    /// A batch waits for the snapshot in hand, so that the log is trimmed at the same place in every run.
    SnapshotBySnapshot,
}

fn survives_every_crash(world: &World) {
    let run = world.run();
    assert!(run.promises.len() >= 7 && run.outcome.rows.len() >= 7, "{:?}", run.outcome);
    for (point, loss) in sample(run.disk.operations(), crashes()) {
        if let Err(violation) = world.recovers(&run, point, loss) {
            panic!("{loss:?} at operation {point}: {violation}\n{}", run.disk.describe(point));
        }
    }
}

/// Fails unless some crash shows that these syncs were not done.
fn is_noticed(world: &World, drop_syncs: impl Fn(SyncKind, &Path) -> bool + Send + 'static) {
    let run = world.record(Pace::SnapshotBySnapshot, drop_syncs);
    // What is lost whole shows most at the end, when nothing else holds it any more.
    let at_the_end = (0..=run.disk.operations()).rev().map(|point| (point, Loss::Unsynced));
    let mut crashes =
        at_the_end.take(NOTICED_WITHIN).chain(sample(run.disk.operations(), usize::MAX).take(NOTICED_WITHIN));
    let violation = crashes.find_map(|(point, loss)| world.recovers(&run, point, loss).err());
    println!("noticed: {}", violation.expect("no crash showed it"));
}

/// Crashes within which a fault must show itself.
const NOTICED_WITHIN: usize = 400;

fn crashes() -> usize {
    std::env::var("TIDEMILL_CRASHES").ok().and_then(|crashes| crashes.parse().ok()).unwrap_or(CRASHES)
}

/// Losses tried at each operation, the random ones with seeds of their own.
const LOSSES_PER_POINT: usize = 7;

/// That many of all crashes, or all of them, spread over the run: the same in every test run.
fn sample(operations: usize, crashes: usize) -> impl Iterator<Item = (usize, Loss)> {
    let all = (operations + 1) * LOSSES_PER_POINT;
    // Without a common divisor the steps come to each once.
    let step = (all / crashes.clamp(1, all)).max(all * 2 / 5);
    let step = (step..).find(|step| greatest_common_divisor(*step, all) == 1).unwrap_or(1);
    (0..all.min(crashes)).map(move |number| {
        let at = number * step % all;
        let loss = match at % LOSSES_PER_POINT {
            0 => Loss::Unsynced,
            1 => Loss::Nothing,
            2 => Loss::Bytes,
            _ => Loss::Random { seed: at as u64 },
        };
        (at / LOSSES_PER_POINT, loss)
    })
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// `part-<20 digits>.<ending>`
fn batch_of(name: &str) -> u64 {
    name[5..25].parse().unwrap()
}

fn is_in(path: &Path, folder: &str) -> bool {
    path.parent().is_some_and(|parent| parent.ends_with(folder))
}

/// What a world publishes to.
#[derive(Debug, Clone, Copy)]
enum TestSink {
    /// The product's own.
    Directory,
    /// One that makes a new file for each publication.
    Numbered(Look),
}

/// Whether a sink looks at what it has before it publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    First,
    Never,
}

/// A directory with a new file for each publication: `part-<batch>.<number>.jsonl`. Only its look at what is there already
/// keeps rows from appearing twice.
struct NumberedSink {
    inner: Box<dyn Sink>,
    folder: PathBuf,
    disk: Arc<dyn Disk>,
    look: Look,
}

impl NumberedSink {
    fn ledger(&self) -> PathBuf {
        self.folder.join(".numbered.json")
    }
}

impl Sink for NumberedSink {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn open(&mut self, query_id: &str, schema: &Schema) -> Result<(), SinkError> {
        self.inner.open(query_id, schema)
    }

    fn published(&self) -> Result<Published, SinkError> {
        let ledger = fs::read(self.ledger()).ok().map(|bytes| serde_json::from_slice(&bytes).unwrap());
        Ok(ledger.map_or(Published::Nothing, Published::UpTo))
    }

    fn encode(
        &self,
        rows: &mut dyn Iterator<Item = Result<RecordBatch, SinkError>>,
        out: &mut dyn io::Write,
    ) -> Result<(), SinkError> {
        self.inner.encode(rows, out)
    }

    fn publish(&mut self, publication: &Publication<'_>) -> Result<(), SinkError> {
        let bytes = match publication.staged {
            Staged::Inline(bytes) => bytes.clone(),
            Staged::File(path) => fs::read(path).unwrap(),
        };
        let path = |number: usize| self.folder.join(format!("part-{:020}.{number}.jsonl", publication.entry.batch_id));
        let number = (0..).find(|number| !path(*number).exists()).unwrap();
        if number == 0 || self.look == Look::Never {
            write_durably(self.disk.as_ref(), &path(number), &bytes).unwrap();
        }
        let entry = serde_json::to_vec(publication.entry).unwrap();
        write_durably(self.disk.as_ref(), &self.ledger(), &entry).unwrap();
        Ok(())
    }
}
