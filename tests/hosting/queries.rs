//! Hosted queries: rows in, results out, through stops, failures and deaths of the worker.

use serde_json::json;
use tidemill_host::ingest::IngestSettings;
use tidemill_host::isolation::Layer;
use tidemill_host::supervisor::{Settings, State, Wanted};

use super::place::{Place, counter, hasty, impatient, script, step};

#[test]
fn rows_that_are_handed_over_come_out_as_results() {
    let place = Place::new();
    let query = place.run("q1", &counter(), "counter");

    query.ingest(&[json!({"key": "a", "n": 1}), json!({"key": "a", "n": 2})]);
    assert_eq!(query.results(), [json!({"key": "a", "count": 2, "listed": 2, "distinct": 2})]);
    query.ingest(&[json!({"key": "a", "n": 3})]);

    assert_eq!(query.results()[1]["count"], 3);
}

#[test]
fn a_worker_stands_behind_the_walls_that_are_required() {
    let place = Place::new();
    let query = place.run("q1", &counter(), "counter");

    query.wait_for(State::Running);

    let workers = place.supervisor.workers();
    let [worker] = workers.as_slice() else { panic!("{workers:?}") };
    for layer in [Layer::LandlockFiles, Layer::Seccomp, Layer::NoNewPrivileges, Layer::NoDumps] {
        assert!(worker.walls.is_active(layer), "{layer:?}: {:?}", worker.walls);
    }
}

#[test]
fn a_query_goes_on_where_it_was_after_a_restart_of_the_server() {
    let mut place = Place::new();
    let query = place.run("q1", &counter(), "counter");
    query.ingest(&[json!({"key": "a", "n": 1})]);
    query.results();
    drop(query);

    place.restart();

    let query = place.run("q1", &counter(), "counter");
    query.ingest(&[json!({"key": "a", "n": 2})]);
    let counts: Vec<_> = query.results().iter().map(|row| row["count"].clone()).collect();
    assert_eq!(counts, [1, 2]);
}

#[test]
fn nothing_is_lost_or_doubled_when_the_worker_is_killed() {
    let place = Place::new();
    let query = place.run("q1", &counter(), "counter");
    for round in 1..=5 {
        query.ingest(&[json!({"key": "a", "n": round})]);
        query.wait_for(State::Running);
        let before = query.worker();
        query.kill_worker();
        query.wait_until("another worker", |status| status.state == State::Running && query.worker() != before);
    }

    let rows = query.results();

    assert_eq!(rows.last().unwrap()["count"], 5, "{rows:?}");
    let mut positions: Vec<_> = query.emitted().iter().map(|(position, _)| *position).collect();
    positions.dedup();
    assert_eq!(positions.len(), rows.len());
}

#[test]
fn a_query_that_has_nothing_to_do_is_unloaded_and_comes_back_with_rows() {
    let place = Place::with(hasty());
    let query = place.run("q1", &counter(), "counter");
    query.ingest(&[json!({"key": "a", "n": 1})]);
    query.results();

    let idle = query.wait_for(State::Idle);

    assert_eq!(idle.wake_at_ms, None);
    query.ingest(&[json!({"key": "a", "n": 2})]);
    assert_eq!(query.results()[1]["count"], 2);
}

#[test]
fn a_query_that_was_unloaded_comes_back_when_a_timer_is_due() {
    let place = Place::with(hasty());
    let query = place.run("q1", &script(), "script");
    query.ingest(&[step("a", "timer.register", "+1000")]);

    let idle = query.wait_until("a time to wake at", |status| status.wake_at_ms.is_some());

    assert_eq!((idle.state, query.emitted().len()), (State::Idle, 0));
    query.wait_until("the batch of the timer", |status| status.recent.len() == 2);
    assert_eq!(query.emitted()[0].1["op"], "timer");
}

#[test]
fn a_query_that_was_stopped_takes_rows_and_processes_them_when_it_is_started() {
    let place = Place::new();
    let query = place.run("q1", &counter(), "counter");
    query.wait_for(State::Running);

    query.handle.want(Wanted::Paused).unwrap();
    query.wait_for(State::Paused);
    query.ingest(&[json!({"key": "a", "n": 1})]);
    assert_eq!(query.emitted().len(), 0);
    query.handle.want(Wanted::Running).unwrap();

    assert_eq!(query.results().len(), 1);
    query.handle.want(Wanted::Stopped).unwrap();
    query.wait_for(State::Stopped);
}

#[test]
fn a_failing_query_is_tried_again_a_few_times_and_then_says_why_it_waits() {
    let place = Place::with(impatient(2));
    let query = place.run("q1", &script(), "script");
    query.ingest(&[step("a", "fail", "of my own will")]);

    let failed = query.wait_for(State::Failed);

    let failure = failed.failure.unwrap();
    assert_eq!((failure.code.as_str(), failure.batch), ("SCRIPTED", Some(0)));
    assert!(failure.message.contains("of my own will") && failure.message.contains('a'), "{failure:?}");
    assert_eq!(failed.attempts, 3);
}

#[test]
fn a_query_that_fails_leaves_its_neighbours_alone() {
    let place = Place::with(impatient(1));
    let failing = place.run("q1", &script(), "script");
    let fine = place.run("q2", &counter(), "counter");
    failing.ingest(&[step("a", "panic", "ouch")]);

    failing.wait_for(State::Failed);

    fine.ingest(&[json!({"key": "a", "n": 1})]);
    assert_eq!(fine.results().len(), 1);
    failing.handle.remove().unwrap();
}

#[test]
fn a_query_that_does_not_fit_its_processor_says_so() {
    let place = Place::with(impatient(0));
    let mut document = counter();
    document["input_schema"] = "key STRING, other BIGINT".into();

    let query = place.run("q1", &document, "counter");

    let failure = query.wait_for(State::Failed).failure.unwrap();
    assert!(failure.message.contains('n'), "{failure:?}");
}

#[test]
fn rows_that_no_kept_batch_needs_are_removed() {
    let mut place = Place::new();
    place.ingest = IngestSettings { segment_bytes: 1, ..IngestSettings::default() };
    let mut document = counter();
    document["retention"] = json!({ "batches": 4, "snapshot_batches": 2 });
    let query = place.run("q1", &document, "counter");

    for n in 1..=30 {
        query.ingest(&[json!({"key": "a", "n": n})]);
        query.results();
    }

    let status = query.wait_until("room", |status| status.input.needed > 0 && query.ingest.first_row() > 0);
    assert!(status.input.needed <= status.input.consumed - 4, "{:?}", status.input);
    assert!(query.ingest.first_row() <= status.input.needed);
    assert_eq!(query.emitted().last().unwrap().1["count"], 30);
}

#[test]
fn more_queries_than_a_worker_may_load_take_turns() {
    let place = Place::with(Settings { loaded_max: 2, ..Settings::default() });
    let queries: Vec<_> = (0..7).map(|number| place.run(&format!("q{number}"), &counter(), "counter")).collect();

    for round in 1..=2 {
        queries.iter().for_each(|query| query.ingest(&[json!({"key": "a", "n": round})]));
        for query in &queries {
            assert_eq!(query.results().last().unwrap()["count"], round);
        }
    }
}
