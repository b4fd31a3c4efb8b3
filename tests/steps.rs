//! Queries of several steps: what one emits is the input of the next, in one batch with one commit.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tidemill_host::connect::memory::{MemoryRows, MemorySource};
use tidemill_host::disk::RealDisk;
use tidemill_host::engine::operator::TimeMode;
use tidemill_host::engine::query::{Parts, Query, Step, StepParts};
use tidemill_host::engine::replay::{ChangedInput, Difference, ReplayParts, replay};
use tidemill_host::engine::settings::{BadRows, QuerySettings, StepSettings, Trigger};
use tidemill_host::record::{RowLayout, decode_rows, row_from_json};

use super::native_query::{
    MemoryQuery, Seen, code, drain, event_time, in_mode, settings, source, step, tallies, two_steps,
};
use super::tally::{INITIAL_STATE, INPUT, OUTPUT, Tally, Timers, initial_state, schema};

/// Rows of a batch (key, number), and the time that passes before it.
type Fed = (Vec<(u8, i64)>, i64);

#[test]
fn two_steps_give_what_two_queries_give_of_which_the_second_reads_what_the_first_wrote() {
    let batches = prop::collection::vec((prop::collection::vec((0_u8..6, -9_i64..9), 0..12), 0_i64..40), 1..10);
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };

    let result = TestRunner::new(config).run(&(batches, any::<bool>()), |(batches, restarts)| {
        let (chained, separate) = (Chained::new(restarts), Separate::new());
        let (chained, separate) = (chained.emits(&batches), separate.emits(&batches));
        prop_assert_eq!(chained, separate);
        Ok(())
    });

    result.unwrap();
}

/// Both steps register timers, which fire in batches without rows too.
fn tally() -> Tally {
    Tally { timers: Timers::After { ms: 30 }, ..Tally::default() }
}

fn by_the_clock() -> QuerySettings {
    QuerySettings { trigger: Trigger::Continuous, ..in_mode(TimeMode::ProcessingTime) }
}

fn feed(query: &MemoryQuery, rows: &[(u8, i64)]) {
    if !rows.is_empty() {
        let keys: Vec<String> = rows.iter().map(|(key, _)| format!("key-{key}")).collect();
        let rows: Vec<_> = keys.iter().zip(rows).map(|(key, (_, n))| (key.as_str(), 0, *n)).collect();
        query.feed(&rows);
    }
}

/// A query of two steps, perhaps started anew for each batch, and each time with another number of workers.
struct Chained {
    query: MemoryQuery,
    restarts: bool,
}

impl Chained {
    fn new(restarts: bool) -> Self {
        let query = MemoryQuery { operator: tally(), ..MemoryQuery::new(two_steps(by_the_clock())) };
        Self { query, restarts }
    }

    fn emits(mut self, batches: &[Fed]) -> Vec<String> {
        let mut running = self.query.open().unwrap();
        let mut now_ms = 1_000;
        for (number, (rows, passes_ms)) in batches.iter().enumerate() {
            now_ms += passes_ms;
            self.query.clock.set(now_ms);
            feed(&self.query, rows);
            if self.restarts {
                drop(running);
                self.query.settings.workers = [1, 3, 7][number % 3];
                running = self.query.open().unwrap();
            }
            running.step().unwrap();
        }
        self.query.table.rows()
    }
}

/// Two queries at the same times.
struct Separate {
    first: MemoryQuery,
    second: MemoryQuery,
}

impl Separate {
    fn new() -> Self {
        let query = |operator| MemoryQuery { operator, ..MemoryQuery::new(by_the_clock()) };
        Self { first: query(tally()), second: query(tally().of_a_tally()) }
    }

    fn emits(self, batches: &[Fed]) -> Vec<String> {
        let Self { first, second } = self;
        let input = MemorySource::new(schema(OUTPUT), second.rows.clone());
        let mut last =
            Query::open(second.settings.clone(), Parts { inputs: vec![Box::new(input)], ..second.parts() }).unwrap();
        let mut running = first.open().unwrap();
        let (mut handed, mut now_ms) = (0, 1_000);
        for (rows, passes_ms) in batches {
            now_ms += passes_ms;
            first.clock.set(now_ms);
            second.clock.set(now_ms);
            feed(&first, rows);
            running.step().unwrap();
            let emitted = first.table.rows();
            if emitted.len() > handed {
                second.rows.push(tallied(&emitted[handed..]));
                handed = emitted.len();
            }
            last.step().unwrap();
        }
        second.table.rows()
    }
}

/// What a tally emitted, as input.
fn tallied(rows: &[String]) -> RecordBatch {
    let layout = RowLayout::new(&schema(OUTPUT));
    let packed = rows.iter().map(|row| row_from_json(&layout, &serde_json::from_str(row).unwrap()).unwrap());
    let packed: Vec<_> = packed.collect();
    decode_rows(&layout, packed.iter().map(Vec::as_slice)).unwrap()
}

#[test]
fn the_watermark_comes_with_the_rows_to_the_next_step() {
    let query = MemoryQuery {
        operator: Tally { timers: Timers::After { ms: 50 }, ..Tally::default() },
        ..MemoryQuery::new(two_steps(event_time(10)))
    };
    let mut running = query.open().unwrap();

    query.feed(&[("a", 100, 1)]);
    drain(&mut running).unwrap();
    query.feed(&[("b", 260, 1)]);
    let batches = drain(&mut running).unwrap();

    // At the watermark 250 the first step's timer of 150 fires. Its row is after 90, the watermark of the batch before, so
    // it is not late in the second step, whose own timers of 150 and of 200, which that row has just registered, fire too.
    assert_eq!(
        query.emitted(),
        ["a row 100 1 1", "b row 260 1 1", "a row 150 2 2", "a timer 150 2 2", "a timer 200 2 2"]
    );
    let steps = &batches.last().unwrap().state_operators;
    assert_eq!((steps[0].step.as_str(), steps[0].num_output_rows), ("first", 1));
    assert_eq!((steps[1].step.as_str(), steps[1].num_input_rows, steps[1].num_output_rows), ("second", 1, 3));
}

#[test]
fn a_row_that_the_next_step_would_find_late_fails_its_batch() {
    // In time mode none, the tally emits the time of the batch, which the watermark has passed long ago.
    let first = StepSettings { output_event_time: Some("time".to_owned()), ..step("main") };
    let query = MemoryQuery::new(QuerySettings { steps: vec![first], ..event_time(0) });
    let mut running = query.open().unwrap();
    for at_ms in [5_000, 5_001] {
        query.feed(&[("a", at_ms, 1)]);
        running.step().unwrap();
    }

    query.feed(&[("a", 6_000, 1)]);
    let error = running.step().unwrap_err();

    assert_eq!(error.code(), "EMITTING_ROWS_OLDER_THAN_WATERMARK_NOT_ALLOWED");
    for time in ["1970-01-01T00:00:01.000000Z", "1970-01-01T00:00:05.000000Z", "column time"] {
        assert!(error.to_string().contains(time), "{error}");
    }
    assert_eq!(query.emitted().len(), 2);
}

#[test]
fn an_event_time_needs_its_column_and_a_watermark() {
    let (none, by_clock, in_event_time) = (TimeMode::None, TimeMode::ProcessingTime, TimeMode::EventTime);
    let watermark = Some(0);
    let named = |name: &str, time_mode, column: Option<&str>| StepSettings {
        time_mode,
        output_event_time: column.map(str::to_owned),
        ..step(name)
    };
    let cases = [
        (vec![named("a", none, Some("time"))], None, "CANNOT_ASSIGN_EVENT_TIME_COLUMN_WITHOUT_WATERMARK"),
        (vec![named("a", none, Some("tim"))], watermark, "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        (vec![named("a", none, Some("count"))], watermark, "WATERMARK_COLUMN_TYPE"),
        (vec![named("a", none, None), named("b", in_event_time, None)], watermark, "WATERMARK_MISSING"),
        (vec![named("a", by_clock, Some("time")), named("b", in_event_time, None)], watermark, "WATERMARK_MISSING"),
        (
            vec![named("a", by_clock, None), named("b", none, Some("time"))],
            watermark,
            "CANNOT_ASSIGN_EVENT_TIME_COLUMN_WITHOUT_WATERMARK",
        ),
    ];
    for (steps, watermark, expected) in cases {
        let several = steps.len() > 1;
        let query = MemoryQuery::new(QuerySettings { steps, sources: vec![source("input", watermark)], ..settings() });
        let error = query.open().err().unwrap();
        assert_eq!(error.code(), expected, "{error}");
        assert_eq!(error.to_string().starts_with("step "), several, "{error}");
    }
    let accepted = vec![named("a", none, Some("time")), named("b", in_event_time, None)];
    MemoryQuery::new(QuerySettings { steps: accepted, ..event_time(0) }).open().unwrap();
}

#[test]
fn steps_have_names_of_their_own() {
    let open = |names: &[&str]| {
        code(
            MemoryQuery::new(QuerySettings { steps: names.iter().map(|name| step(name)).collect(), ..settings() })
                .open(),
        )
    };
    assert_eq!(open(&["a", "a"]), "STEP_NAME_INVALID");
    assert_eq!(open(&["a/b"]), "STEP_NAME_INVALID");
    assert_eq!(open(&[""]), "STEP_NAME_INVALID");
}

#[test]
fn a_query_has_up_to_255_steps() {
    let steps = (0..256).map(|number| step(&format!("s{number}"))).collect();
    assert_eq!(code(MemoryQuery::new(QuerySettings { steps, ..settings() }).open()), "STEPS_INVALID");
}

#[test]
fn a_column_that_the_step_before_does_not_emit_is_no_key() {
    let other = StepSettings { key: vec!["nobody".to_owned()], ..step("second") };
    let query = MemoryQuery::new(QuerySettings { steps: vec![step("first"), other], ..settings() });

    let error = query.open().err().unwrap();

    assert_eq!(error.code(), "KEY_COLUMN_MISSING");
    assert!(error.to_string().starts_with("step second: "), "{error}");
}

#[test]
fn the_steps_of_a_checkpoint_stay_as_they_are() {
    let query = MemoryQuery::new(two_steps(settings()));
    query.feed(&[("a", 0, 1)]);
    drain(&mut query.open().unwrap()).unwrap();
    let [first, second] = [0, 1].map(|number| query.settings.steps[number].clone());

    for steps in [vec![second.clone(), first.clone()], vec![first.clone()], vec![first, second, step("third")]] {
        let other = QuerySettings { steps, ..query.settings.clone() };
        let parts = Parts { steps: tallies(&other, &query.operator), ..query.parts() };
        let refused = code(Query::open(other, parts));
        assert_eq!(refused, "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA");
    }
}

#[test]
fn every_step_may_begin_with_a_state_of_its_own() {
    let query = MemoryQuery::new(two_steps(settings()));
    let fed = [MemoryRows::default(), MemoryRows::default()];
    fed[0].push(initial_state(&[("a", 10)]));
    fed[1].push(initial_state(&[("a", 1_000), ("b", 2_000)]));
    fed.iter().for_each(MemoryRows::end);
    let open = || {
        let with_state = |(step, rows): (StepParts, &MemoryRows)| StepParts {
            initial_state: Some(Box::new(MemorySource::new(schema(INITIAL_STATE), rows.clone()))),
            ..step
        };
        let steps = tallies(&query.settings, &query.operator).into_iter().zip(&fed).map(with_state).collect();
        Query::open(query.settings.clone(), Parts { steps, ..query.parts() })
    };
    query.feed(&[("a", 0, 1), ("b", 0, 2)]);

    // Interrupted between the two.
    open().unwrap().step().unwrap();
    assert_eq!(code(query.open()), "INITIAL_STATE_MISSING");
    drain(&mut open().unwrap()).unwrap();

    let mut emitted = query.emitted();
    emitted.sort();
    assert_eq!(emitted, ["a row 1000 1 1011", "b row 1000 1 2002"]);
}

#[test]
fn a_null_that_the_next_step_does_not_take_is_a_bad_row() {
    let rows = |query: &MemoryQuery| {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(vec![Some("a"), None, Some("b")])),
            Arc::new(TimestampMicrosecondArray::from(vec![0; 3]).with_timezone("UTC")),
            Arc::new(Int64Array::from(vec![1, 2, 4])),
        ];
        query.rows.push(RecordBatch::try_new(schema(INPUT).to_arrow(), columns).unwrap());
    };
    let open = |query: &MemoryQuery| {
        let mut steps = tallies(&query.settings, &query.operator);
        steps[1].operator = Arc::new(Tally { key: "k STRING NOT NULL", ..Tally::default().of_a_tally() });
        Query::open(query.settings.clone(), Parts { steps, ..query.parts() }).unwrap()
    };
    let failing = MemoryQuery::new(two_steps(settings()));
    rows(&failing);
    let error = open(&failing).step().unwrap_err();
    assert_eq!(error.code(), "NULL_IN_NOT_NULL_COLUMN");
    assert!(error.to_string().contains("of step first"), "{error}");

    let skipping = MemoryQuery::new(QuerySettings { bad_rows: BadRows::Skip, ..two_steps(settings()) });
    rows(&skipping);
    open(&skipping).step().unwrap();
    let mut emitted = skipping.emitted();
    emitted.sort();
    assert_eq!(emitted, ["a row 1000 1 1", "b row 1000 1 4"]);
}

#[test]
fn a_replay_names_the_step_that_is_not_as_recorded() {
    let query = MemoryQuery { operator: tally(), ..MemoryQuery::new(two_steps(event_time(10))) };
    let mut running = query.open().unwrap();
    for at_ms in [100, 200, 300] {
        query.feed(&[("a", at_ms, 1), ("b", at_ms, 2)]);
        drain(&mut running).unwrap();
    }
    running.close().unwrap();
    let scratch = tempfile::TempDir::new().unwrap();
    let run = |name: &str, second: Tally| {
        let parts = ReplayParts {
            operators: vec![Arc::new(tally()), Arc::new(second)],
            load: Box::new(|_, _, _| panic!("native operators are not kept")),
            inputs: vec![Box::new(MemorySource::new(schema(INPUT), query.rows.clone()))],
            initial_states: Vec::new(),
            disk: Arc::new(RealDisk),
            checkpoint: query.checkpoint(),
            scratch: Path::join(scratch.path(), name),
        };
        let mut seen = Seen::default();
        std::fs::create_dir(&parts.scratch).unwrap();
        replay(&query.settings, parts, ChangedInput::Refuse, &mut seen).unwrap();
        seen.0
    };

    let same = run("same", tally().of_a_tally());
    assert!(same.len() > 3 && same.iter().all(|batch| batch.differences.is_empty()), "{same:?}");

    let other = run("other", Tally { padding_bytes: 1, ..tally().of_a_tally() });
    let last = other.last().unwrap();
    assert_eq!((last.step.as_deref(), last.differences.as_slice()), (Some("second"), [Difference::Output].as_slice()));
}

#[test]
fn steps_in_both_times_end_when_nothing_is_due() {
    let mut settings = two_steps(event_time(0));
    settings.steps[1].time_mode = TimeMode::ProcessingTime;
    let query = MemoryQuery::new(settings);
    query.rows.end();
    query.feed(&[("a", 100, 1)]);
    let mut steps = tallies(&query.settings, &query.operator);
    steps[1].operator = Arc::new(Tally { timers: Timers::AgainAndAgain, ..Tally::default().of_a_tally() });
    let mut running = Query::open(query.settings.clone(), Parts { steps, ..query.parts() }).unwrap();

    let stop = tidemill_host::engine::trigger::Stop::default();
    let mut batches = 0;
    tidemill_host::engine::trigger::run(&mut running, &stop, &mut |_| batches += 1).unwrap();

    // The rows with the timer that they registered, and once more when the input is drained.
    assert_eq!(batches, 2);
    assert!(matches!(running.step().unwrap(), Step::Ended | Step::Idle));
}
