//! Watermarks, late rows, timers and batches without rows, in queries over a native operator.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;
use tidemill_host::clock::ScriptedClock;
use tidemill_host::engine::operator::TimeMode;
use tidemill_host::engine::query::{Parts, Query, Step};
use tidemill_host::engine::settings::{QuerySettings, Trigger};
use tidemill_host::engine::trigger::{self, Stop};

use super::native_query::{MemoryQuery, code, drain, event_time, in_mode};
use super::support::{component, fail_with, json_lines, rows, succeed, tidemill, write_at};
use super::tally::{Tally, Timers};

#[test]
fn rows_are_late_by_the_watermark_of_the_batch_before() {
    let query = MemoryQuery::new(event_time(10));
    let mut running = query.open().unwrap();
    let mut batch = |rows: &[(&str, i64, i64)]| {
        query.feed(rows);
        let Step::Ran(progress) = running.step().unwrap() else { panic!("it should have run") };
        let late = progress.state_operators[0].num_rows_dropped_by_watermark;
        (progress.event_time.late_watermark_ms, progress.event_time.watermark_ms, late)
    };

    assert_eq!(batch(&[("a", 100, 1), ("a", 1, 2)]), (0, 0, 0), "a row is not late because of rows of its own batch");
    assert_eq!(batch(&[("a", 5, 4)]), (0, 90, 0), "nor because of rows of the batch before");
    assert_eq!(batch(&[("a", 90, 8), ("a", 91, 16)]), (90, 90, 1));
    assert_eq!(query.emitted().last().unwrap(), "a row 91 4 23");
}

#[test]
fn a_trigger_without_rows_counts_for_lateness() {
    let query = MemoryQuery::new(event_time(0));
    let mut running = query.open().unwrap();
    query.feed(&[("a", 100, 1)]);
    drain(&mut running).unwrap();

    query.feed(&[("a", 100, 2), ("a", 101, 4)]);
    let batch = drain(&mut running).unwrap().remove(0);

    assert_eq!((batch.event_time.late_watermark_ms, batch.state_operators[0].num_rows_dropped_by_watermark), (100, 1));
}

#[test]
fn a_trigger_without_rows_counts_for_lateness_after_a_restart_too() {
    let query = MemoryQuery::new(event_time(0));
    let mut running = query.open().unwrap();
    query.feed(&[("a", 100, 1)]);
    drain(&mut running).unwrap();
    running.close().unwrap();

    let mut running = query.open().unwrap();
    query.feed(&[("a", 100, 2), ("a", 101, 4)]);
    let batch = drain(&mut running).unwrap().remove(0);

    assert_eq!((batch.event_time.late_watermark_ms, batch.state_operators[0].num_rows_dropped_by_watermark), (100, 1));
    assert_eq!(query.emitted(), ["a row 100 1 1", "a row 101 2 5"]);
}

#[test]
fn a_row_far_ahead_of_its_batch_does_not_make_the_rows_of_others_late() {
    for (max_future_ms, late) in [(Some(1_000), 0), (None, 1)] {
        let mut settings = event_time(10);
        settings.sources[0].watermark.as_mut().unwrap().max_future_ms = max_future_ms;
        // It is always 1,000 ms: 2,000 is the latest that moves the watermark.
        let query = MemoryQuery::new(settings);
        let mut running = query.open().unwrap();
        query.feed(&[("a", 1_900, 1), ("clock of b", 2_001, 1)]);
        running.step().unwrap();
        running.close().unwrap();

        let mut running = query.open().unwrap();
        query.feed(&[("a", 1_900, 1)]);
        running.step().unwrap();
        query.feed(&[("a", 1_891, 1)]);
        let Step::Ran(progress) = running.step().unwrap() else { panic!("it should have run") };

        assert_eq!(query.emitted()[..2], ["a row 1900 1 1", "clock of b row 2001 1 1"], "it is processed all the same");
        let watermark_ms = if late == 0 { 1_890 } else { 1_991 };
        assert_eq!(progress.event_time.watermark_ms, watermark_ms);
        assert_eq!(progress.state_operators[0].num_rows_dropped_by_watermark, late, "{max_future_ms:?}");
    }
}

#[test]
fn the_earliest_and_the_latest_event_time_are_times_like_others() {
    const MIN_MS: i64 = i64::MIN / 1000;
    const MAX_MS: i64 = i64::MAX / 1000;
    let query = MemoryQuery::new(event_time(0));
    let mut running = query.open().unwrap();
    query.feed(&[("a", MIN_MS, 1), ("a", -1, 1), ("a", 1, 1), ("a", MAX_MS, 1)]);
    let first = drain(&mut running).unwrap().remove(0);
    assert_eq!(first.state_operators[0].num_rows_dropped_by_watermark, 2, "event time begins at 0");
    assert_eq!(first.event_time.max_ms, Some(MAX_MS));

    query.feed(&[("a", MAX_MS, 1), ("b", MIN_MS, 1)]);
    let second = drain(&mut running).unwrap().remove(0);

    assert_eq!((second.event_time.watermark_ms, second.num_input_rows), (MAX_MS, 2));
    assert_eq!(second.state_operators[0].num_rows_dropped_by_watermark, 2);
    assert_eq!(query.emitted(), ["a row 1 1 1".to_owned(), format!("a row {MAX_MS} 2 2")]);
}

#[test]
fn timers_at_the_ends_of_time_fire_at_once_or_wait_for_ever() {
    let place = Script::with(&[("timer.register", &i64::MIN.to_string()), ("timer.register", &i64::MAX.to_string())]);

    succeed(&mut place.command(["--time-mode", "processing-time"]));

    let fired: Vec<_> = json_lines(&place.rows()).iter().map(|row| row["result"].clone()).collect();
    assert_eq!(fired, [i64::MIN.to_string()]);
    let mut timers = tidemill();
    timers.arg("state").arg(place.path().join("checkpoint")).args(["timers", "-o", "json"]);
    let waiting = json_lines(&succeed(&mut timers).out);
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0]["expires"], "+294247-01-10T04:00:54.775807Z", "the last instant that can be written");
}

#[test]
fn by_the_machines_clock_a_row_of_another_century_is_told_and_does_not_count() {
    let place = Script::with(&[("emit", "now")]);
    place.write(2, &[("emit", "far ahead", "2999-01-01T00:00:00Z")]);
    place.write(3, &[("emit", "as ever", "2020-01-01T00:00:01Z")]);
    place.write(4, &[("emit", "as ever", "2020-01-01T00:00:02Z")]);
    let in_event_time = ["--time-mode", "event-time", "--watermark", "at, 0s", "--set", "limits.files_per_batch=1"];

    let said = succeed(&mut place.command(in_event_time));

    assert_eq!(said.err.matches("EVENT_TIME_IN_FUTURE").count(), 1, "{}", said.err);
    assert_eq!(json_lines(&place.rows()).len(), 4);
    fs::remove_dir_all(place.path().join("checkpoint")).unwrap();
    fs::remove_dir_all(place.path().join("rows")).unwrap();
    succeed(place.command(in_event_time).args(["--set", "query.watermark.max_future=off"]));
    assert_eq!(json_lines(&place.rows()).len(), 3, "the last is late");
    fail_with(place.command(in_event_time).args(["--set", "query.watermark.max_future=never"]), "CONFIG_INVALID");
}

/// The script guest over rows of one key, with an event time each.
struct Script(TempDir);

impl Script {
    fn with(steps: &[(&str, &str)]) -> Self {
        let place = Self(TempDir::new().unwrap());
        let steps: Vec<_> = steps.iter().map(|(op, arg)| (*op, *arg, "2020-01-01T00:00:00Z")).collect();
        place.write(1, &steps);
        place
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, number: u64, steps: &[(&str, &str, &str)]) {
        let step = |(op, arg, at): &(&str, &str, &str)| {
            format!("{}\n", serde_json::json!({ "key": "k", "op": op, "arg": arg, "at": at }))
        };
        let text: String = steps.iter().map(step).collect();
        write_at(&self.path().join(format!("input/{number}.jsonl")), text, number);
    }

    fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = tidemill();
        command.current_dir(self.path()).arg("run").arg(component("script"));
        command.args(["--input", "input", "--schema", "key STRING, op STRING, arg STRING, at TIMESTAMP"]);
        command.args(["--key", "key", "--sink", "rows", "--checkpoint", "checkpoint"]).args(arguments);
        command
    }

    fn rows(&self) -> String {
        rows(&self.path().join("rows"))
    }
}

#[test]
fn timers_fire_in_a_batch_without_rows_once_the_watermark_has_passed_them() {
    let query = MemoryQuery { operator: timers(50), ..MemoryQuery::new(event_time(10)) };
    let mut running = query.open().unwrap();

    query.feed(&[("a", 100, 1)]);
    assert_eq!(drain(&mut running).unwrap().len(), 1);
    query.feed(&[("b", 160, 1)]);
    let batches = drain(&mut running).unwrap();

    assert_eq!(batches.iter().map(|batch| batch.num_input_rows).collect::<Vec<_>>(), [1, 0]);
    assert_eq!(query.emitted(), ["a row 100 1 1", "b row 160 1 1", "a timer 150 1 1"]);
}

#[test]
fn timers_that_are_due_fire_right_after_a_restart() {
    let query = MemoryQuery { operator: timers(50), ..MemoryQuery::new(event_time(0)) };
    let mut running = query.open().unwrap();
    query.feed(&[("a", 100, 1)]);
    query.feed(&[("b", 200, 1)]);
    running.step().unwrap();
    drop(running);

    let mut running = query.open().unwrap();
    running.step().unwrap();

    assert_eq!(query.emitted()[2..], ["a timer 150 1 1"]);
}

#[test]
fn timers_that_the_clock_has_passed_meanwhile_fire_right_after_a_restart() {
    let settings = QuerySettings { trigger: Trigger::Continuous, min_batch_interval_ms: 3_600_000, ..by_the_clock() };
    let query = MemoryQuery { operator: timers(50), ..MemoryQuery::new(settings) };
    let mut running = query.open().unwrap();
    query.feed(&[("a", 0, 1)]);
    assert_eq!(drain(&mut running).unwrap().len(), 1);
    drop(running);

    query.clock.set(1_050);
    let mut running = query.open().unwrap();

    assert!(matches!(running.step().unwrap(), Step::Ran(_)));
    assert_eq!(query.emitted(), ["a row 1000 1 1", "a timer 1050 1 1"]);
}

#[test]
fn time_does_not_go_back_over_a_restart() {
    let query = MemoryQuery::new(by_the_clock());
    let mut running = query.open().unwrap();
    query.feed(&[("a", 0, 1)]);
    drain(&mut running).unwrap();
    drop(running);

    query.clock.set(400);
    query.feed(&[("a", 0, 1)]);
    let batch = drain(&mut query.open().unwrap()).unwrap().remove(0);

    assert_eq!(batch.batch_time_ms, 1_000);
}

#[test]
fn a_timer_that_arms_itself_again_in_the_past_does_not_keep_event_time_busy_for_ever() {
    let operator = Tally { timers: Timers::AgainAndAgain, ..Tally::default() };
    let query = MemoryQuery { operator, ..MemoryQuery::new(event_time(0)) };
    let mut running = query.open().unwrap();
    query.feed(&[("a", 100, 1)]);

    let batches = drain(&mut running).unwrap();

    assert_eq!(batches.len(), 1 + 100);
    query.feed(&[("b", 101, 1)]);
    assert_eq!(drain(&mut running).unwrap().len(), 1 + 100, "it fires again once the watermark has moved");
}

#[test]
fn a_timer_that_arms_itself_again_by_the_clock_runs_one_batch_of_a_query_that_ends() {
    let operator = Tally { timers: Timers::AgainAndAgain, ..Tally::default() };
    let query = MemoryQuery { operator, ..MemoryQuery::new(by_the_clock()) };
    query.feed(&[("a", 0, 1)]);
    query.rows.end();
    let mut batches = 0;

    trigger::run(&mut query.open().unwrap(), &Stop::default(), &mut |_| batches += 1).unwrap();

    assert_eq!(batches, 2);
}

#[test]
fn a_script_of_times_that_ends_before_the_rows_do_loses_none() {
    let settings = by_the_clock();
    let query = MemoryQuery::new(QuerySettings { ..settings });
    query.feed(&[("a", 0, 1)]);
    let mut running = with_script(&query, &[10]);
    drain(&mut running).unwrap();
    query.feed(&[("a", 0, 2)]);

    assert_eq!(code(running.step()), "CLOCK_EXHAUSTED");
    assert_eq!(code(running.step()), "QUERY_POISONED", "its source stands behind the row");
    drop(running);

    drain(&mut with_script(&query, &[10, 20])).unwrap();
    assert_eq!(query.emitted(), ["a row 10 1 1", "a row 20 2 3"]);
}

#[test]
fn a_script_of_times_that_ends_with_the_rows_ends_the_run() {
    let query = MemoryQuery::new(by_the_clock());
    query.feed(&[("a", 0, 1)]);
    let mut running = with_script(&query, &[10]);

    drain(&mut running).unwrap();

    assert!(matches!(running.step().unwrap(), Step::Ended));
}

#[test]
fn a_script_of_times_that_ends_before_timers_of_event_time_says_so() {
    let query = MemoryQuery { operator: timers(0), ..MemoryQuery::new(event_time(0)) };
    query.feed(&[("a", 100, 1)]);
    let mut running = with_script(&query, &[10]);
    running.step().unwrap();

    assert_eq!(code(running.step()), "CLOCK_EXHAUSTED");
}

fn by_the_clock() -> QuerySettings {
    in_mode(TimeMode::ProcessingTime)
}

fn timers(ms: i64) -> Tally {
    Tally { timers: Timers::After { ms }, ..Tally::default() }
}

fn with_script(query: &MemoryQuery, times_ms: &[i64]) -> Query {
    let clock = Arc::new(ScriptedClock::new(times_ms.to_vec()));
    Query::open(query.settings.clone(), Parts { clock, ..query.parts() }).unwrap()
}
