//! What a query does when it cannot go on as before: other settings, other sinks, damage, a full disk, a failing sink or
//! processor. Each gives an error with a code, and nothing is lost. In this process, over a native operator.

mod snapshots;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::RecordBatch;
use tempfile::TempDir;
use tidemill_host::connect::memory::MemoryRows;
use tidemill_host::disk::testing::{Failure, FaultyDisk, RecordingDisk};
use tidemill_host::disk::{Disk, RealDisk};
use tidemill_host::engine::error::QueryError;
use tidemill_host::engine::operator::{OutputMode, TimeMode};
use tidemill_host::engine::query::{Parts, Query, Step, StepParts};
use tidemill_host::engine::settings::{BadRows, QuerySettings, StepSettings};
use tidemill_host::engine::sink::{Publication, Published, Sink, SinkError};
use tidemill_host::record::Schema;

use crate::native_query::{FileQuery, MemoryQuery, code, directory, drain, in_mode, settings, shown_files, step};
use crate::support::{copy_with_times, published, write_at};
use crate::tally::{Tally, initial_state, input};

#[test]
fn a_full_disk_at_any_write_loses_nothing() {
    survives_failures(Failure::DiskFull);
}

#[test]
fn a_failing_device_at_any_write_loses_nothing() {
    survives_failures(Failure::DeviceError);
}

fn survives_failures(failure: Failure) {
    let undisturbed = Place::new();
    drain(&mut undisturbed.open().unwrap()).unwrap();
    let mut failures = 0;
    for operation in 0.. {
        let place = Place::new();
        let disk = FaultyDisk::over(Arc::new(RecordingDisk::over(&[place.folder.path()]).unwrap()));
        disk.fail_at(operation, failure);
        let disk = Arc::new(disk);

        let outcome = place.query.open(&(Arc::<FaultyDisk>::clone(&disk) as _)).and_then(|mut query| {
            let drained = drain(&mut query);
            let closed = query.close();
            drained.map(drop).and(closed)
        });

        let was_hit = disk.operations() > operation;
        if let Err(error) = outcome {
            let expected = ["LOG_WRITE_FAILED", "CHECKPOINT_DISK_FAILED", "SINK_WRITE_FAILED", "STAGING_FAILED"];
            assert!(expected.contains(&error.code()), "operation {operation}: [{}] {error}", error.code());
            failures += 1;
        }
        drain(&mut place.open().unwrap()).unwrap();
        assert!(place.published() == undisturbed.published(), "{failure:?} at operation {operation}");
        if !was_hit {
            break;
        }
    }
    assert!(failures > 40, "{failures} operations failed");
}

#[test]
fn a_checkpoint_is_open_once() {
    let query = MemoryQuery::new(settings());
    let running = query.open().unwrap();

    assert_eq!(code(query.open()), "CHECKPOINT_IN_USE");

    drop(running);
    query.open().unwrap();
}

#[test]
fn a_checkpoint_goes_on_only_with_what_its_state_was_made_by() {
    let query = MemoryQuery::new(settings());
    query.feed(&[("a", 0, 1)]);
    drain(&mut query.open().unwrap()).unwrap();
    let with = |settings: QuerySettings| code(Query::open(settings, query.parts()));

    assert_eq!(with(in_mode(TimeMode::ProcessingTime)), "STATE_STORE_INVALID_CONFIG_AFTER_RESTART");
    assert_eq!(
        with(QuerySettings {
            steps: vec![StepSettings { output_mode: OutputMode::Update, ..step("main") }],
            ..settings()
        }),
        "STATE_STORE_INVALID_CONFIG_AFTER_RESTART"
    );
    assert_eq!(
        with(QuerySettings { steps: vec![step("other")], ..settings() }),
        "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"
    );
    let over = |operator: Tally| {
        let steps = vec![StepParts { operator: Arc::new(operator), initial_state: None }];
        code(Query::open(settings(), Parts { steps, ..query.parts() }))
    };
    let other_key = Tally { key: "k STRING NOT NULL", ..Tally::default() };
    assert_eq!(over(other_key), "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE");

    query.feed(&[("a", 0, 2)]);
    drain(&mut query.open().unwrap()).unwrap();
    assert_eq!(query.emitted(), ["a row 0 1 1", "a row 0 2 3"].map(|row| row.replace(" 0 ", " 1000 ")));
}

#[test]
fn an_older_copy_of_a_checkpoint_does_not_go_on_with_the_sink() {
    let place = Place::new();
    place.first_batches(2);
    let copy = place.query.checkpoint.with_file_name("copy");
    copy_with_times(&place.query.checkpoint, &copy);
    place.first_batches(1);

    let older = FileQuery { checkpoint: copy, ..place.query.clone() };

    assert_eq!(code(older.open(&real())), "SINK_DIVERGED");
}

#[test]
fn a_copy_of_a_checkpoint_goes_on_elsewhere() {
    let place = Place::new();
    place.first_batches(3);
    let elsewhere = TempDir::new().unwrap();
    let checkpoint = elsewhere.path().join("moved");
    copy_with_times(&place.query.checkpoint, &checkpoint);
    fs::remove_dir_all(&place.query.checkpoint).unwrap();

    let moved = FileQuery { checkpoint, ..place.query.clone() };
    drain(&mut moved.open(&real()).unwrap()).unwrap();

    assert!(place.published() == Place::undisturbed());
}

#[test]
fn another_sink_waits_until_the_first_has_what_was_committed() {
    let place = Place::new();
    let failing = FailingSink::on(place.sink());
    let mut running = place.query.open_with(&real(), Box::new(failing)).unwrap();
    assert_eq!(code(drain(&mut running)), "SINK_WRITE_FAILED");
    drop(running);

    assert_eq!(code(place.with_rows("other").open(&real())), "SINK_PENDING");

    place.first_batches(0);
    place.with_rows("other").open(&real()).unwrap();
    assert_eq!(place.published().len(), 1);
}

#[test]
fn another_sink_gets_what_comes_after_it_and_no_more() {
    let place = Place::new();
    place.first_batches(2);
    let other = place.with_rows("other");

    // Committed to the other sink, but not published.
    let mut running = other.open_with(&real(), Box::new(FailingSink::on(directory(real(), &other.rows)))).unwrap();
    assert_eq!(code(running.step()), "SINK_WRITE_FAILED");
    drop(running);
    drain(&mut other.open(&real()).unwrap()).unwrap();

    let all = Place::undisturbed();
    let (first, rest): (Vec<_>, Vec<_>) = all.into_iter().enumerate().partition(|(number, _)| *number < 2);
    assert!(place.published().into_iter().eq(first.into_iter().map(|(_, file)| file)));
    assert!(published(&other.rows).into_iter().eq(rest.into_iter().map(|(_, file)| file)));
}

#[test]
fn a_sink_that_was_left_and_comes_back_gets_nothing_of_the_time_between() {
    let place = Place::new();
    place.first_batches(1);
    let other = place.with_rows("other");
    let mut running = other.open(&real()).unwrap();
    running.step().unwrap();
    running.close().unwrap();

    let mut running = place.open().unwrap();
    running.step().unwrap();
    drop(running);
    drain(&mut place.open().unwrap()).unwrap();

    let names = |folder: &Path| published(folder).into_keys().map(|name| name[24..25].to_owned()).collect::<String>();
    assert_eq!((names(&place.query.rows).as_str(), names(&other.rows).as_str()), ("02345", "1"));
}

#[test]
fn a_quarantine_is_not_given_up_while_rows_for_it_are_pending() {
    let place = Place::with_bad_rows();
    let quarantining = |bad_rows| {
        let mut query = place.query.clone();
        query.settings.bad_rows = bad_rows;
        query
    };
    // The batch is committed, and the sink for rows fails before the quarantine is given its own.
    let failing = FailingSink::on(place.sink());
    let mut running = quarantining(BadRows::Quarantine).open_with(&real(), Box::new(failing)).unwrap();
    assert_eq!(code(drain(&mut running)), "SINK_WRITE_FAILED");
    drop(running);

    assert_eq!(code(quarantining(BadRows::Skip).open(&real())), "SINK_PENDING");

    drain(&mut quarantining(BadRows::Quarantine).open(&real()).unwrap()).unwrap();
    assert_eq!(fs::read_to_string(bad_rows(&place)).unwrap().lines().count(), 1);
}

#[test]
fn malformed_rows_follow_the_policy_over_a_failure() {
    for policy in [BadRows::Skip, BadRows::Quarantine] {
        let place = Place::with_bad_rows();
        assert_eq!(code(drain(&mut place.open().unwrap())), "MALFORMED_ROW");
        assert!(place.published().is_empty(), "nothing of the batch was committed");

        let mut query = place.query.clone();
        query.settings.bad_rows = policy;
        let mut running = query.open_with(&real(), Box::new(FailingSink::on(place.sink()))).unwrap();
        assert_eq!(code(drain(&mut running)), "SINK_WRITE_FAILED");
        drop(running);
        let mut running = query.open(&real()).unwrap();
        let batches = drain(&mut running).unwrap();

        assert_eq!(shown_files(&place.query.rows).len(), 22, "{policy:?}");
        assert_eq!(batches.iter().map(|batch| batch.sources[0].num_rejected_rows).sum::<u64>(), 0, "it was in batch 0");
        let quarantined = fs::read_to_string(bad_rows(&place)).map_or(0, |text| text.lines().count());
        assert_eq!(quarantined, usize::from(policy == BadRows::Quarantine), "{policy:?}");
    }
}

#[test]
fn a_batch_that_was_not_published_is_published_once_by_the_next_start() {
    let query = MemoryQuery::new(settings());
    query.feed(&[("a", 0, 1)]);
    let sink = Box::new(FailingSink::on(query.parts().sink));
    let mut running = Query::open(settings(), Parts { sink, ..query.parts() }).unwrap();

    assert_eq!(code(running.step()), "SINK_WRITE_FAILED");
    assert_eq!(code(running.step()), "QUERY_POISONED");
    running.close().unwrap();
    query.feed(&[("a", 0, 2)]);
    let mut running = query.open().unwrap();
    assert_eq!((running.recovered().published, query.emitted().len()), (1, 1));
    drain(&mut running).unwrap();

    assert_eq!(query.emitted(), ["a row 1000 1 1", "a row 1000 2 3"]);
}

#[test]
fn a_batch_that_failed_is_done_again_by_the_next_start() {
    let query = MemoryQuery::new(settings());
    query.rows.push(input(&[("a", 0, Some(1)), ("b", 0, None)]));
    let mut running = query.open().unwrap();

    assert_eq!(code(running.step()), "USER_CODE");
    assert_eq!(code(running.step()), "QUERY_POISONED");
    drop(running);

    let mended = MemoryQuery { rows: MemoryRows::default(), ..query };
    mended.feed(&[("a", 0, 1), ("b", 0, 2)]);
    let mut running = mended.open().unwrap();
    assert_eq!((drain(&mut running).unwrap()[0].batch_id, mended.emitted().len()), (0, 2));
}

#[test]
fn a_stop_after_a_batch_that_failed_is_as_clean_as_any() {
    let mut place = Place::new();
    place.query.settings.retention.snapshot_batches = u64::MAX;
    write_at(&place.query.input.join("zz.jsonl"), "no JSON\n", 2_000);
    let mut running = place.open().unwrap();
    assert_eq!(code(drain(&mut running)), "MALFORMED_ROW");
    running.close().unwrap();
    let whole = place.published();

    let skipping = |query: FileQuery| {
        let settings = QuerySettings { bad_rows: BadRows::Skip, ..query.settings.clone() };
        FileQuery { settings, ..query }
    };
    // Another sink is welcome: the one before has everything.
    let mut other = skipping(place.with_rows("other")).open(&real()).unwrap();

    assert_eq!((other.recovered().applied, other.recovered().published), (0, 0));
    drain(&mut other).unwrap();
    assert!(place.published() == whole);
}

#[test]
fn a_stop_after_a_publication_that_failed_leaves_it_to_the_next_start() {
    let place = Place::new();
    place.first_batches(1);
    let mut running = place.query.open_with(&real(), Box::new(FailingSink::on(place.sink()))).unwrap();
    assert_eq!(code(drain(&mut running)), "SINK_WRITE_FAILED");
    running.close().unwrap();

    assert_eq!(code(place.with_rows("other").open(&real())), "SINK_PENDING");

    let mut running = place.open().unwrap();
    assert_eq!(running.recovered().published, 1);
    drain(&mut running).unwrap();
    assert!(place.published() == Place::undisturbed());
}

#[test]
fn an_initial_state_is_read_once_before_the_input() {
    let fed = MemoryRows::default();
    let one_row = |settings: QuerySettings| {
        let read = tidemill_host::engine::source::ReadLimits { rows_max: 1, ..settings.read };
        QuerySettings { read, ..settings }
    };
    let mut query = MemoryQuery { initial_state: Some(fed.clone()), ..MemoryQuery::new(settings()) };
    query.settings = one_row(query.settings);
    fed.push(initial_state(&[("a", 10), ("b", 20)]));
    fed.end();
    query.feed(&[("a", 0, 1)]);

    // Interrupted after the first of its two rows.
    query.open().unwrap().step().unwrap();
    query.initial_state = None;
    assert_eq!(code(query.open()), "INITIAL_STATE_MISSING");
    query.initial_state = Some(fed);
    drain(&mut query.open().unwrap()).unwrap();
    assert_eq!(query.emitted(), ["a row 1000 1 11"]);

    // Once it has been read it may be given or not, and is not read again.
    query.feed(&[("b", 0, 1)]);
    drain(&mut query.open().unwrap()).unwrap();
    query.feed(&[("b", 0, 1)]);
    query.initial_state = None;
    drain(&mut query.open().unwrap()).unwrap();
    assert_eq!(query.emitted()[1..], ["b row 1000 1 21", "b row 1000 2 22"]);
}

#[test]
fn an_initial_state_comes_too_late_for_a_query_that_has_run() {
    let query = MemoryQuery::new(settings());
    query.feed(&[("a", 0, 1)]);
    drain(&mut query.open().unwrap()).unwrap();

    let query = MemoryQuery { initial_state: Some(MemoryRows::default()), ..query };

    assert_eq!(code(query.open()), "INITIAL_STATE_TOO_LATE");
}

#[test]
fn the_number_of_workers_changes_nothing() {
    for workers in [1, 3, 7] {
        let mut place = Place::new();
        place.query.settings.workers = workers;
        drain(&mut place.open().unwrap()).unwrap();
        assert!(place.published() == Place::undisturbed(), "{workers} workers");
    }
    let place = Place::new();
    for workers in [7, 1, 3, 7, 1, 3] {
        let mut query = place.query.clone();
        query.settings.workers = workers;
        let mut running = query.open(&real()).unwrap();
        running.step().unwrap();
    }
    assert!(place.published() == Place::undisturbed(), "another number at each start");
}

/// A query from files to files: 22 rows in 6 batches.
struct Place {
    folder: TempDir,
    query: FileQuery,
}

impl Place {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        let text: String = (0..22).map(|row| format!("{{\"k\":\"key-{}\",\"n\":{row}}}\n", row % 5)).collect();
        write_at(&at("input/rows.jsonl"), text, 1_000);
        let query = FileQuery {
            settings: settings(),
            operator: Tally::default(),
            input: at("input"),
            clock: Arc::new(tidemill_host::clock::ManualClock::at(1_000)),
            checkpoint: at("checkpoint"),
            rows: at("rows"),
            bad_rows: at("bad-rows"),
        };
        Self { folder, query }
    }

    /// The first batch has a row that is none.
    fn with_bad_rows() -> Self {
        let place = Self::new();
        write_at(&place.query.input.join("bad.jsonl"), "no JSON\n", 500);
        place
    }

    fn open(&self) -> Result<Query, QueryError> {
        self.query.open(&real())
    }

    fn sink(&self) -> Box<dyn Sink> {
        directory(real(), &self.query.rows)
    }

    fn with_rows(&self, name: &str) -> FileQuery {
        FileQuery { rows: self.folder.path().join(name), ..self.query.clone() }
    }

    /// Runs so many batches and stops cleanly.
    fn first_batches(&self, batches: usize) {
        let mut query = self.open().unwrap();
        for _ in 0..batches {
            assert!(matches!(query.step().unwrap(), Step::Ran(_)));
        }
        query.close().unwrap();
    }

    fn published(&self) -> std::collections::BTreeMap<String, Vec<u8>> {
        published(&self.query.rows)
    }

    fn undisturbed() -> std::collections::BTreeMap<String, Vec<u8>> {
        let place = Self::new();
        drain(&mut place.open().unwrap()).unwrap();
        assert_eq!(shown_files(&place.query.rows).len(), 22);
        place.published()
    }
}

/// A sink that fails at its first publication.
struct FailingSink {
    inner: Box<dyn Sink>,
    has_failed: AtomicBool,
}

impl FailingSink {
    fn on(inner: Box<dyn Sink>) -> Self {
        Self { inner, has_failed: AtomicBool::new(false) }
    }
}

impl Sink for FailingSink {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn open(&mut self, query_id: &str, schema: &Schema) -> Result<(), SinkError> {
        self.inner.open(query_id, schema)
    }

    fn published(&self) -> Result<Published, SinkError> {
        self.inner.published()
    }

    fn encode(
        &self,
        rows: &mut dyn Iterator<Item = Result<RecordBatch, SinkError>>,
        out: &mut dyn io::Write,
    ) -> Result<(), SinkError> {
        self.inner.encode(rows, out)
    }

    fn publish(&mut self, publication: &Publication<'_>) -> Result<(), SinkError> {
        if self.has_failed.swap(true, Ordering::SeqCst) {
            return self.inner.publish(publication);
        }
        Err(SinkError { code: "SINK_WRITE_FAILED", message: "the sink was told to fail".to_owned(), source: None })
    }
}

fn real() -> Arc<dyn Disk> {
    Arc::new(RealDisk)
}

fn bad_rows(place: &Place) -> PathBuf {
    place.query.bad_rows.join("part-00000000000000000000.jsonl")
}
