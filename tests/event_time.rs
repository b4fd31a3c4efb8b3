//! Watermarks, late rows, timers and batches without rows, in queries over a native operator.

use std::sync::Arc;

use tidemill_host::clock::ScriptedClock;
use tidemill_host::engine::operator::TimeMode;
use tidemill_host::engine::query::{Parts, Query, Step};
use tidemill_host::engine::settings::{QuerySettings, Trigger};
use tidemill_host::engine::trigger::{self, Stop};

use super::native_query::{MemoryQuery, code, drain, event_time, in_mode};
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
