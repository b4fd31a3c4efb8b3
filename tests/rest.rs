//! How long a query that has nothing to do may rest, so that whoever runs it need not look all the time.

use std::time::Duration;

use tidemill_host::engine::operator::TimeMode;
use tidemill_host::engine::query::Query;
use tidemill_host::engine::settings::{QuerySettings, Trigger};

use super::native_query::{MemoryQuery, drain, event_time, in_mode};
use super::tally::{Tally, Timers};

const TIMER_MS: i64 = 5_000;

#[test]
fn without_timers_and_ttl_only_rows_wake_it() {
    let query = MemoryQuery::new(in_mode(TimeMode::ProcessingTime));

    let running = with_a_row(&query);

    assert_eq!(running.due_in(), None);
}

#[test]
fn it_rests_until_the_earliest_timer_by_its_clock() {
    let operator = Tally { timers: Timers::After { ms: TIMER_MS }, ..Tally::default() };
    let query = MemoryQuery { operator, ..MemoryQuery::new(in_mode(TimeMode::ProcessingTime)) };

    let mut running = with_a_row(&query);

    assert_eq!(running.due_in(), Some(Duration::from_millis(5_000)));
    query.clock.set(1_000 + TIMER_MS - 1);
    assert_eq!(running.due_in(), Some(Duration::from_millis(1)));
    assert_eq!(drain(&mut running).unwrap().len(), 0);
    query.clock.set(1_000 + TIMER_MS);
    assert_eq!(running.due_in(), Some(Duration::ZERO));
    assert_eq!(drain(&mut running).unwrap().len(), 1);
    assert_eq!(running.due_in(), None);
}

#[test]
fn it_knows_that_right_after_a_start() {
    let operator = Tally { timers: Timers::After { ms: TIMER_MS }, ..Tally::default() };
    let query = MemoryQuery { operator, ..MemoryQuery::new(in_mode(TimeMode::ProcessingTime)) };
    with_a_row(&query).close().unwrap();

    let running = query.open().unwrap();

    assert_eq!(running.due_in(), Some(Duration::from_millis(5_000)));
}

#[test]
fn ttl_alone_wakes_it_no_more_often_than_the_sweep() {
    let operator = Tally { ttl_ms: Some(10), ..Tally::default() };
    let query = MemoryQuery { operator, ..MemoryQuery::new(continuous(TimeMode::ProcessingTime)) };

    let mut running = with_a_row(&query);

    let sweep = Duration::from_millis(query.settings.ttl_sweep_ms);
    assert_eq!(running.due_in(), Some(sweep));
    query.clock.set(1_000 + sweep.as_millis() as i64);
    assert_eq!(running.due_in(), Some(Duration::ZERO));
    assert_eq!(drain(&mut running).unwrap().len(), 1);
    assert_eq!(running.due_in(), None);
}

#[test]
fn timers_of_event_time_wait_for_rows() {
    let operator = Tally { timers: Timers::After { ms: TIMER_MS }, ..Tally::default() };
    let query = MemoryQuery { operator, ..MemoryQuery::new(event_time(0)) };

    let running = with_a_row(&query);

    assert_eq!(running.due_in(), None);
}

#[test]
fn a_timer_that_arms_itself_again_in_the_past_does_not_keep_it_awake_for_ever() {
    let operator = Tally { timers: Timers::AgainAndAgain, ..Tally::default() };
    let query = MemoryQuery { operator, ..MemoryQuery::new(event_time(0)) };

    let running = with_a_row(&query);

    assert_eq!(running.due_in(), None);
}

#[test]
fn a_source_that_will_fall_idle_and_free_the_watermark_wakes_it() {
    let operator = Tally { timers: Timers::After { ms: TIMER_MS }, ..Tally::default() };
    let mut settings = event_time(0);
    settings.sources[0].idle_timeout_ms = Some(700);
    let query = MemoryQuery { operator, ..MemoryQuery::new(settings) };

    let running = with_a_row(&query);

    assert_eq!(running.due_in(), Some(Duration::from_millis(700)));
    query.clock.set(1_700);
    assert_eq!(running.due_in(), None);
}

/// A query at 1 s that has processed one row and has nothing to do.
fn with_a_row(query: &MemoryQuery) -> Query {
    let mut running = query.open().unwrap();
    query.feed(&[("a", 100, 1)]);
    drain(&mut running).unwrap();
    running
}

fn continuous(mode: TimeMode) -> QuerySettings {
    QuerySettings { trigger: Trigger::Continuous, ..in_mode(mode) }
}
