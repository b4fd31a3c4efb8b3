//! Going back to an earlier batch: what becomes of state, input, time and published rows; that it happens whole or not at
//! all, whatever happens to the process or the power; who must not go on afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use tidemill_host::clock::ManualClock;
use tidemill_host::connect::DirectorySink;
use tidemill_host::connect::memory::{MemorySink, MemoryTable};
use tidemill_host::disk::testing::{FaultyDisk, Loss, RecordingDisk};
use tidemill_host::disk::{Disk, RealDisk};
use tidemill_host::engine::error::QueryError;
use tidemill_host::engine::query::{Query, Step};
use tidemill_host::engine::rollback::{Mode, PublishedRows, RolledBack, roll_back};
use tidemill_host::engine::settings::{BadRows, QuerySettings, Retention};
use tidemill_host::engine::sink::Sink;
use tidemill_host::engine::source::ReadLimits;
use tidemill_host::engine::view::QueryView;
use tidemill_host::state::{Family, Store};

use super::native_query::{FileQuery, MemoryQuery, code, drain, event_time, settings};
use super::support::{Example, copy_with_times, fail_with, published, run, succeed, tidemill, write_at};
use super::tally::{Tally, Timers};

#[test]
fn the_query_goes_on_from_the_batch_as_if_those_after_it_had_never_run() {
    let place = Place::new(event_time(500));
    let undisturbed = place.drained();
    let (files, state) = (place.files(), place.state());

    let done = place.roll_back(3).unwrap();

    assert_eq!((done.to, done.generation, done.next_batch), (3, 1, undisturbed + 1));
    assert_eq!(done.superseded, (4..=undisturbed).collect::<Vec<_>>());
    let kept: Vec<_> = files.keys().take_while(|name| batch_of(name) <= 3).cloned().collect();
    assert_eq!(place.files().into_keys().collect::<Vec<_>>(), kept, "files that the batches published are gone");

    let last = place.drained();
    assert_eq!(last, undisturbed + (undisturbed - 3), "new batches take new ids");
    assert_eq!(contents(&place.files()), contents(&files), "the same rows come again");
    assert!(place.state() == state, "the state is the same again");
}

#[test]
fn snapshots_of_what_was_taken_back_are_gone() {
    let place = Place::new(settings());
    place.drained();

    let done = place.roll_back(3).unwrap();

    let view = QueryView::open(place.disk(), &place.query.checkpoint).unwrap();
    let names: Vec<_> = view.snapshots().unwrap().iter().map(ToString::to_string).collect();
    assert_eq!(names.last(), Some(&format!("{}-1", done.next_batch - 1)));
    assert!(names.iter().rev().skip(1).all(|name| ["1-0", "2-0", "3-0"].contains(&name.as_str())), "{names:?}");
}

#[test]
fn rows_of_a_stream_are_given_again_from_where_the_batch_had_come_to() {
    let place = TempDir::new().unwrap();
    let checkpoint = place.path().join("checkpoint");
    let lines = ["{\"key\":\"a\",\"n\":1}\n", "{\"key\":\"a\",\"n\":2}\n", "{\"key\":\"b\",\"n\":3}\n"];
    let feed = |text: &str, arguments: &[&str]| {
        let rows = place.path().join("stdin");
        fs::write(&rows, text).unwrap();
        let mut command = tidemill();
        command.arg("run").arg(super::support::component("counter")).args(["--input", "-", "--key", "key"]);
        command.args(["--schema", "key STRING, n BIGINT", "--set", "limits.rows_per_batch=1"]);
        command.arg("--sink").arg(place.path().join("rows")).arg("--checkpoint").arg(&checkpoint).args(arguments);
        succeed(command.stdin(fs::File::open(rows).unwrap()))
    };
    let rolled_back = || succeed(tidemill().arg("rollback").arg(&checkpoint).args(["--to", "0"]));
    feed(&lines.concat(), &[]);
    let rows = || super::support::rows(&place.path().join("rows"));
    let undisturbed = rows();

    let said = rolled_back();
    assert!(said.out.contains("2 rows of stdin must be given again."), "{}", said.out);
    feed(&lines[1..].concat(), &[]);
    assert_eq!(rows(), undisturbed);

    rolled_back();
    feed(&lines.concat(), &["--set", "source.skip_committed=true"]);
    assert_eq!(rows(), undisturbed, "or the whole stream, of which what counts is read over");
}

#[test]
fn a_rollback_can_follow_another_also_behind_it() {
    let place = Place::new(event_time(500));
    let (last, files) = (place.drained(), place.files());
    let state = place.state();

    place.roll_back(4).unwrap();
    let again = place.drained();
    place.roll_back(last + 1).unwrap();
    place.drained();
    let third = place.roll_back(2).unwrap();

    assert_eq!(third.generation, 3);
    let mut superseded = vec![3, 4, last + 1];
    superseded.extend(again + 1..third.next_batch);
    assert_eq!(third.superseded, superseded, "those in between were taken back before");
    place.drained();
    assert_eq!(contents(&place.files()), contents(&files));
    assert!(place.state() == state);
}

#[test]
fn going_back_is_possible_to_retained_batches_of_the_present_past_only() {
    let place = Place::new(settings());
    let last = place.drained();

    assert_eq!(code(place.roll_back(last)), "ROLLBACK_NOTHING_TO_DO");
    assert_eq!(code(place.roll_back(last + 1)), "ROLLBACK_BATCH_UNAVAILABLE");
    place.roll_back(2).unwrap();
    assert_eq!(code(place.roll_back(4)), "ROLLBACK_BATCH_UNAVAILABLE");

    let query = place.query.open(&place.disk()).unwrap();
    assert_eq!(code(place.roll_back(1)), "CHECKPOINT_IN_USE");
    drop(query);
}

#[test]
fn a_dry_run_says_the_same_and_changes_nothing() {
    let place = Place::new(settings());
    place.drained();
    let before = place.everything();

    let would = place.roll_back_with(3, PublishedRows::Withdraw, Mode::DryRun).unwrap();

    assert!(place.everything() == before);
    assert_eq!(would.sinks[0].places.len(), would.superseded.len());
    assert_eq!(would, place.roll_back(3).unwrap());
}

#[test]
fn a_power_loss_at_any_operation_leaves_the_query_where_it_was_or_where_it_should_go() {
    let settings = QuerySettings { bad_rows: BadRows::Quarantine, ..event_time(500) };
    let place = Place::new(settings);
    write_at(&place.query.input.join("bad.jsonl"), "no JSON\n{\"k\":\"b\",\"n\":3}\n", 5_000);
    place.drained();
    let (before, bad_files) = (contents(&place.files()), published(&place.query.bad_rows).len());
    let recording = Arc::new(RecordingDisk::over(&place.roots()).unwrap());

    let disk: Arc<dyn Disk> = Arc::<RecordingDisk>::clone(&recording);
    let done = place.roll_back_on(&disk, 3, PublishedRows::Withdraw, Mode::Perform).unwrap();

    let after = place.files();
    let (mut not_yet, mut happened) = (0, 0);
    for point in 0..=recording.operations() {
        let torn = if point % 2 == 0 { Loss::Bytes } else { Loss::Random { seed: point as u64 } };
        for loss in [Loss::Unsynced, torn] {
            place.roots().into_iter().for_each(|root| fs::remove_dir_all(root).unwrap());
            recording.rebuild(point, loss, &place.roots()).unwrap();
            let at = format!("{loss:?} at operation {point}\n{}", recording.describe(point));

            let generation = place.generation();
            if generation == 0 {
                assert_eq!(contents(&place.files()), before, "{at}");
                not_yet += 1;
            }
            // Either the query itself finishes it, or the same command does.
            if generation == 1 && point % 2 == 0 {
                let query = place.query.open(&place.disk()).unwrap();
                assert_eq!(query.head().next_batch(), done.next_batch, "{at}");
                drop(query);
                happened += 1;
            } else {
                let again = place.roll_back(3).unwrap_or_else(|error| panic!("{error}: {at}"));
                assert_eq!((again.to, again.generation), (3, 1), "{at}");
            }
            assert!(place.files() == after, "{at}");
            if point % 7 == 0 {
                place.drained();
                assert_eq!(contents(&place.files()), before, "{at}");
                assert_eq!(published(&place.query.bad_rows).len(), bad_files, "{at}");
            }
        }
    }
    assert!(not_yet > 10 && happened > 2, "{not_yet} crashes before it, {happened} after");
}

#[test]
fn without_the_sync_of_its_record_a_rollback_is_lost() {
    let place = Place::new(settings());
    place.drained();
    let recording = Arc::new(RecordingDisk::over(&place.roots()).unwrap());
    let faulty = FaultyDisk::over(Arc::<RecordingDisk>::clone(&recording));
    faulty.drop_syncs(|_, path| path.parent().is_some_and(|folder| folder.ends_with("log")));

    place.roll_back_on(&(Arc::new(faulty) as _), 3, PublishedRows::Withdraw, Mode::Perform).unwrap();

    place.roots().into_iter().for_each(|root| fs::remove_dir_all(root).unwrap());
    recording.rebuild(recording.operations(), Loss::Unsynced, &place.roots()).unwrap();
    let query = place.query.open(&place.disk());
    assert!(query.is_err() || place.generation() == 0);
}

#[test]
fn a_sink_that_cannot_take_back_is_a_reason_not_to_roll_back() {
    let query = MemoryQuery::new(settings());
    for n in 0..3 {
        query.feed(&[("a", 0, n)]);
        drain(&mut query.open().unwrap()).unwrap();
    }

    let roll_back = |published| {
        let table: MemoryTable = query.table.clone();
        let open = move |_: &str| Some(Box::new(MemorySink::new(table.clone())) as Box<dyn Sink>);
        roll_back(Arc::new(RealDisk), &query.checkpoint(), 0, published, Mode::Perform, &open)
    };
    assert_eq!(code(roll_back(PublishedRows::Withdraw)), "ROLLBACK_SINK_CANNOT_FOLLOW");
    let kept = roll_back(PublishedRows::Keep).unwrap();

    assert_eq!((kept.sinks[0].batches.clone(), kept.sinks[0].rows), (vec![1, 2], 2));
    drain(&mut query.open().unwrap()).unwrap();
    let counts: Vec<_> = query.emitted().iter().map(|row| row.rsplit(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(counts, ["1", "2", "3", "2", "3"], "the rows that stayed, then those of the input read again");
}

#[test]
fn a_file_that_a_consumer_has_taken_is_a_reason_not_to_roll_back() {
    let place = Place::new(settings());
    let last = place.drained();
    let taken = place.files().into_keys().nth(5).unwrap();
    fs::remove_file(place.query.rows.join(&taken)).unwrap();
    let before = place.everything();

    let refused = place.roll_back(3).unwrap_err();
    assert_eq!(refused.code(), "ROLLBACK_SINK_CANNOT_FOLLOW");
    assert!(refused.to_string().contains(&taken), "{refused}");
    assert!(place.everything() == before || place.generation() == 0);

    let files = place.files();
    place.roll_back_with(3, PublishedRows::Keep, Mode::Perform).unwrap();
    assert!(place.files() == files, "kept");
    place.drained();
    assert!(place.files().keys().filter(|name| batch_of(name) > last).count() > 2);
    // A batch whose file stays can be gone back behind later.
    place.roll_back_with(1, PublishedRows::Keep, Mode::Perform).unwrap();
}

#[test]
fn another_copy_of_the_checkpoint_does_not_write_to_the_sink_any_more() {
    let place = Place::new(settings());
    place.drained();
    let copy = place.folder.path().join("copy");
    copy_with_times(&place.query.checkpoint, &copy);
    place.roll_back(3).unwrap();

    let older = FileQuery { checkpoint: copy, ..place.query.clone() };

    assert_eq!(code(older.open(&place.disk())), "SINK_DIVERGED");
    assert_eq!(place.generation(), 1);
    place.drained();
    assert_eq!(code(older.open(&place.disk())), "SINK_DIVERGED");
}

#[test]
fn a_damaged_snapshot_of_the_rollback_is_made_up_for_by_older_ones() {
    let place = Place::new(event_time(500));
    place.drained();
    let (files, state) = (place.files(), place.state());
    let done = place.roll_back(3).unwrap();

    let snapshot = place.query.checkpoint.join("snapshots").join(format!("{}-1", done.next_batch - 1));
    fs::write(snapshot.join("CURRENT"), "damage").unwrap();

    place.drained();
    assert_eq!(contents(&place.files()), contents(&files));
    assert!(place.state() == state);
}

#[test]
fn what_was_taken_back_is_forgotten_with_the_rest_of_the_past() {
    let retention = Retention { snapshot_batches: 1, snapshot_bytes: u64::MAX, batches: 2 };
    let place = Place::new(QuerySettings { retention, ..event_time(500) });
    let last = place.drained();
    let done = place.roll_back(last - 2).unwrap();
    let state = |place: &Place| place.state();

    for file in 0..4 {
        write_at(&place.query.input.join(format!("more-{file}.jsonl")), row("more", 9_000, file), 6_000 + file);
        let mut query = place.query.open(&place.disk()).unwrap();
        while let Step::Ran(_) = query.step().unwrap() {
            query.settle().unwrap();
        }
        query.close().unwrap();
    }

    let view = QueryView::open(place.disk(), &place.query.checkpoint).unwrap();
    assert!(view.history().batches[0].batch_id >= done.next_batch, "{:?}", view.history().batches[0]);
    assert!(view.snapshots().unwrap().iter().all(|name| name.generation == 1), "{:?}", view.snapshots());
    assert_eq!(view.history().head.generation, 1);
    let before = state(&place);
    place.query.open(&place.disk()).unwrap().close().unwrap();
    assert!(state(&place) == before);
}

#[test]
fn the_command_is_as_if_it_had_not_been_killed_at_any_of_its_steps() {
    for point in ["snapshot.begin", "snapshot.filled", "snapshot.renamed", "rollback.snapshot-taken"]
        .into_iter()
        .chain(["rollback.recorded", "rollback.withdrawn"])
    {
        let ran = Flights::run();
        let undisturbed = ran.rows();

        let killed = run(ran.rollback(3).env("TIDEMILL_CRASH_AT", format!("{point}:1")));
        assert_eq!(killed.code, None, "{point}: {}", killed.err);
        succeed(&mut ran.rollback(3));

        assert_eq!(published(&ran.place.path().join("rows")).len(), 4, "{point}");
        succeed(&mut ran.command());
        assert_eq!(ran.rows(), undisturbed, "{point}");
    }
}

#[test]
fn a_replay_follows_the_log_through_a_rollback() {
    let ran = Flights::run();
    succeed(&mut ran.rollback(3));
    succeed(&mut ran.command());
    let mut replay = tidemill();
    replay.arg("replay").arg(super::support::component("flights"));
    replay.arg("--config").arg(ran.example.path().join("query.toml"));
    replay.arg("--checkpoint").arg(ran.place.path().join("checkpoint"));

    let said = succeed(&mut replay);

    let batches = said.out.lines().filter_map(|line| line.strip_prefix("batch ")?.split_whitespace().next());
    let batches: Vec<u64> = batches.map(|batch| batch.parse().unwrap()).collect();
    assert_eq!(batches[..5], [0, 1, 2, 3, 10], "{}", said.out);
    assert!(!said.out.contains("DIFFERENT"), "{}", said.out);
}

#[test]
fn standard_output_is_told_apart_from_what_can_follow() {
    let place = TempDir::new().unwrap();
    let rows = place.path().join("rows.jsonl");
    fs::write(&rows, "{\"key\":\"a\",\"n\":1}\n{\"key\":\"a\",\"n\":2}\n").unwrap();
    let mut command = tidemill();
    command.arg("run").arg(super::support::component("counter")).args(["--key", "key", "--sink", "-"]);
    command.args(["--schema", "key STRING, n BIGINT", "--set", "limits.rows_per_batch=1"]);
    command.arg("--input").arg(&rows).arg("--checkpoint").arg(place.path().join("checkpoint"));
    succeed(&mut command);

    let mut rollback = tidemill();
    rollback.arg("rollback").arg(place.path().join("checkpoint")).args(["--to", "0"]);
    let refused = fail_with(&mut rollback, "ROLLBACK_SINK_CANNOT_FOLLOW");
    assert!(refused.err.contains("stdout cannot take back"), "{}", refused.err);
    let kept = succeed(rollback.arg("--keep-published"));
    assert!(kept.out.contains("Kept 1 rows of batch 1, stdout"), "{}", kept.out);
}

/// A query over files, whose checkpoint and sinks stand on disks of their own.
struct Place {
    folder: TempDir,
    roots: [PathBuf; 2],
    query: FileQuery,
}

impl Place {
    /// 25 rows of seven keys in three files, four rows to a batch; every batch stays.
    fn new(settings: QuerySettings) -> Self {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (file, rows) in [0..9, 9..14, 14..25].into_iter().enumerate() {
            let text: String = rows.map(|n| row(&format!("key-{}", n * 5 % 7), n * 130, n)).collect();
            write_at(&at("input").join(format!("{file}.jsonl")), text, 1_000 + 1_000 * file as u64);
        }
        let roots = [at("checkpoint-disk"), at("sink-disk")];
        roots.iter().for_each(|root| fs::create_dir(root).unwrap());
        let retention = match settings.retention {
            Retention { batches: 3, .. } => Retention { batches: 1_000, ..settings.retention },
            chosen => chosen,
        };
        let query = FileQuery {
            settings: QuerySettings {
                read: ReadLimits { files_max: None, rows_max: 4, bytes_max: u64::MAX },
                retention,
                ..settings
            },
            operator: Tally { timers: Timers::After { ms: 700 }, ..Tally::default() },
            input: at("input"),
            clock: Arc::new(ManualClock::at(1_000)),
            checkpoint: roots[0].join("checkpoint"),
            rows: roots[1].join("rows"),
            bad_rows: roots[1].join("bad-rows"),
        };
        Self { folder, roots, query }
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

    /// Runs all there is to run, and gives the last batch.
    fn drained(&self) -> u64 {
        let mut query: Query = self.query.open(&self.disk()).unwrap();
        drain(&mut query).unwrap();
        let last = query.head().last_batch.unwrap();
        query.close().unwrap();
        last
    }

    fn roll_back(&self, to: u64) -> Result<RolledBack, QueryError> {
        self.roll_back_with(to, PublishedRows::Withdraw, Mode::Perform)
    }

    fn roll_back_with(&self, to: u64, published: PublishedRows, mode: Mode) -> Result<RolledBack, QueryError> {
        self.roll_back_on(&self.disk(), to, published, mode)
    }

    fn roll_back_on(
        &self,
        disk: &Arc<dyn Disk>,
        to: u64,
        published: PublishedRows,
        mode: Mode,
    ) -> Result<RolledBack, QueryError> {
        let open = |name: &str| Some(Box::new(DirectorySink::described(Arc::clone(disk), name)?) as Box<dyn Sink>);
        roll_back(Arc::clone(disk), &self.query.checkpoint, to, published, mode, &open)
    }

    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        published(&self.query.rows)
    }

    fn generation(&self) -> u32 {
        QueryView::open(self.disk(), &self.query.checkpoint).unwrap().history().head.generation
    }

    /// All that the store holds, but for the mark of the batch.
    fn state(&self) -> Vec<(Family, Vec<u8>, Vec<u8>)> {
        let scratch = TempDir::new().unwrap();
        let mut view = QueryView::open(self.disk(), &self.query.checkpoint).unwrap();
        let state = view.state(None, &scratch.path().join("state")).unwrap();
        held(state.store.as_ref())
    }

    /// Every file of checkpoint and sinks.
    fn everything(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let (mut folders, mut files) = (self.roots.to_vec(), BTreeMap::new());
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path)
                } else {
                    drop(files.insert(path.clone(), fs::read(&path).unwrap()))
                }
            }
        }
        files
    }
}

fn held(store: &dyn Store) -> Vec<(Family, Vec<u8>, Vec<u8>)> {
    let mut held = Vec::new();
    for family in Family::ALL {
        let visit = &mut |key: &[u8], value: &[u8]| {
            if key != b"applied" {
                held.push((family, key.to_vec(), value.to_vec()));
            }
            std::ops::ControlFlow::Continue(())
        };
        store.scan(family, &[], &[u8::MAX; 64], visit).unwrap();
    }
    held
}

fn row(key: &str, at_ms: u64, n: u64) -> String {
    format!("{{\"k\":\"{key}\",\"at\":\"1970-01-01T00:00:{:02}.{:03}Z\",\"n\":{n}}}\n", at_ms / 1000, at_ms % 1000)
}

/// What stands in the files, whatever their names.
fn contents(files: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    files.values().map(|bytes| String::from_utf8(bytes.clone()).unwrap()).collect()
}

/// `part-<20 digits>.<ending>`
fn batch_of(name: &str) -> u64 {
    name[5..25].parse().unwrap()
}

/// An example that was run.
struct Flights {
    example: Example,
    place: TempDir,
}

impl Flights {
    fn run() -> Self {
        let ran = Self { example: Example::new("flights"), place: TempDir::new().unwrap() };
        succeed(&mut ran.command());
        ran
    }

    fn command(&self) -> std::process::Command {
        self.example.command(self.place.path(), [])
    }

    fn rollback(&self, to: u64) -> std::process::Command {
        let mut command = tidemill();
        command.arg("rollback").arg(self.place.path().join("checkpoint")).args(["--to", &to.to_string()]);
        command
    }

    fn rows(&self) -> String {
        super::support::rows(&self.place.path().join("rows"))
    }
}
