//! What is found: exactly the poison, whatever the processor says of it, on any number of workers.

use proptest::prelude::*;
use serde_json::{Value, json};
use tidemill_host::engine::settings::{AfterPoison, OnPoison, PoisonLimits, PoisonPolicy, QuerySettings};

use super::fussy::{Fails, Fussy, Names};
use super::{FussyQuery, POISON, Row, model, state};
use crate::native_query::{code, drain, settings, two_steps};
use crate::tally::Tally;

const NAMES: [Names; 4] = [Names::ItsKey, Names::OneOf(2), Names::OneOf(128), Names::Nothing];

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn it_is_as_if_the_poison_had_never_been_there(
        rows in prop::collection::vec((0..60_u8, prop::option::weighted(0.8, 0..9_i64)), 1..300),
        names in prop::sample::select(&NAMES[..]),
        workers in 1..5_u16,
    ) {
        let keys: Vec<_> = rows.iter().map(|(key, _)| format!("key-{key}")).collect();
        let rows: Vec<Row> = keys.iter().zip(&rows).map(|(key, (_, number))| (key.as_str(), *number)).collect();
        let fussy = Fussy { names, ..Fussy::default() };
        let query = FussyQuery::with(fussy, QuerySettings { workers, ..settings() });

        let running = query.batch(&rows).unwrap();

        let (expected_state, expected_rows) = model(&rows, workers);
        prop_assert!(state(&running) == expected_state);
        prop_assert_eq!(query.query.emitted(), expected_rows);
        let dead: Vec<_> = query.letters().iter().map(|letter| letter["row"].as_u64().unwrap() as usize).collect();
        let poison: Vec<_> = (0..rows.len()).filter(|row| rows[*row].1 == POISON).collect();
        prop_assert_eq!(dead, poison);
        drop(running);
        query.replays();
    }
}

#[test]
fn a_dead_letter_tells_all_that_is_known() {
    let fussy = Fussy { fails: Fails::WithTrap("GUEST_FUEL"), ..Fussy::default() };
    let query = FussyQuery::with(fussy, settings());

    drop(query.batch(&[("a", Some(1)), ("b", Some(2)), ("b", POISON), ("b", Some(3))]).unwrap());

    let mut letter = query.letters().remove(0);
    let text: Value = serde_json::from_str(letter["text"].take().as_str().unwrap()).unwrap();
    assert_eq!(text, json!({ "k": "b", "at": "1970-01-01T00:00:00.000000Z", "n": null }));
    assert_eq!(
        letter,
        json!({
            "id": "0-0", "batch_id": 0, "step": "main", "kind": "row", "key": "{\"k\":\"b\"}", "row": 2, "expiry_ms": null,
            "code": "GUEST_FUEL", "message": "a trap", "fuel": null, "attempts": 3, "text": null,
        })
    );
}

#[test]
fn any_number_of_workers_gives_the_same_letters() {
    let keys: Vec<_> = (0..200).map(|key| format!("key-{}", key % 67)).collect();
    let rows: Vec<Row> = (0..).zip(&keys).map(|(row, key)| (key.as_str(), (row % 10 != 3).then_some(row))).collect();
    let letters = |workers| {
        let query = FussyQuery::with(Fussy::default(), QuerySettings { workers, ..settings() });
        drop(query.batch(&rows).unwrap());
        query.letters()
    };

    assert_eq!(letters(1).len(), 20);
    assert_eq!(letters(1), letters(2));
    assert_eq!(letters(1), letters(7));
}

#[test]
fn the_search_begins_at_the_key_that_the_failure_names() {
    let keys: Vec<_> = (0..100).map(|key| format!("key-{key}")).collect();
    let rows: Vec<Row> = keys.iter().map(|key| (key.as_str(), (key != "key-50").then_some(1))).collect();
    let query = FussyQuery::with(Fussy::default(), QuerySettings { workers: 1, ..settings() });

    drop(query.batch(&rows).unwrap());

    let runs = query.fussy.runs.lock().unwrap().clone();
    // All; the one that was named; those behind it; all but it.
    assert_eq!((runs[0], runs[1], runs[3], runs.len()), (100, 1, 99, 4), "{runs:?}");
}

#[test]
fn the_dead_letter_of_a_later_step_is_what_the_step_before_emitted() {
    let query = FussyQuery::with(Fussy::default(), two_steps(settings()));
    let mut parts = query.parts();
    parts.steps[0].operator = std::sync::Arc::new(Tally::default());
    let second = Fussy { tally: Tally::default().of_a_tally(), fails: Fails::WithAnError, ..Fussy::default() };
    parts.steps[1].operator = std::sync::Arc::new(Never(second));
    query.feed(&[("a", Some(1)), ("poison", Some(2)), ("b", Some(3))]);

    let mut running = tidemill_host::engine::query::Query::open(query.query.settings.clone(), parts).unwrap();
    let batches = drain(&mut running).unwrap();

    let letters = query.letters();
    assert_eq!(letters.len(), 1);
    assert_eq!((&letters[0]["step"], &letters[0]["key"]), (&json!("second"), &json!("{\"k\":\"poison\"}")));
    assert!(letters[0]["text"].as_str().unwrap().contains("\"event\":\"row\""), "{letters:?}");
    let dead: Vec<_> = batches[0].state_operators.iter().map(|step| step.num_dead_letters).collect();
    assert_eq!(dead, [0, 1]);
    assert_eq!(query.query.emitted().len(), 2);
}

/// Fails at the key `poison`.
struct Never(Fussy);

mod never {
    use tidemill_host::engine::operator::{
        AtKey, Closed, GroupedRows, Operator, OperatorError, OperatorPlan, QueryInfo, Task, Worker,
    };

    use super::Never;

    impl Operator for Never {
        fn identity(&self) -> String {
            "native:never".to_owned()
        }

        fn plan(&self, query: &QueryInfo) -> Result<OperatorPlan, OperatorError> {
            self.0.tally.plan(query)
        }

        fn open(&self, task: Task) -> Result<Box<dyn Worker>, OperatorError> {
            Ok(Box::new(NeverWorker(self.0.tally.open(task)?)))
        }
    }

    struct NeverWorker(Box<dyn Worker>);

    impl Worker for NeverWorker {
        fn initial_state(&mut self, rows: GroupedRows) -> Result<(), OperatorError> {
            self.0.initial_state(rows)
        }

        fn input_rows(&mut self, rows: GroupedRows) -> Result<(), OperatorError> {
            match rows.keys.windows(6).any(|part| part == b"poison") {
                true => Err(super::super::fussy::error("handle-input-rows", AtKey::NoKey)),
                false => self.0.input_rows(rows),
            }
        }

        fn expired_timers(&mut self, threshold_ms: i64) -> Result<(), OperatorError> {
            self.0.expired_timers(threshold_ms)
        }

        fn close(self: Box<Self>) -> Result<Closed, OperatorError> {
            self.0.close()
        }
    }
}

fn bounded(limits: PoisonLimits) -> FussyQuery {
    let policy = PoisonPolicy { on_poison: OnPoison::DeadLetter, after_poison: AfterPoison::Continue, limits };
    FussyQuery::new(Fussy::default(), policy)
}

const THREE: [Row<'_>; 5] = [("a", POISON), ("b", Some(1)), ("c", POISON), ("d", POISON), ("e", Some(1))];

#[test]
fn more_dead_letters_than_a_batch_may_have_fail_it() {
    let at = |dead_letters_max| bounded(PoisonLimits { dead_letters_max, ..PoisonLimits::default() });

    let query = at(2);
    let error = query.batch(&THREE).map(drop).unwrap_err();
    assert_eq!(error.code(), "POISON_LIMIT_EXCEEDED");
    assert!(error.to_string().contains("like a broken processor"), "{error}");
    assert!(query.letters().is_empty() && query.query.emitted().is_empty());

    let query = at(3);
    drop(query.batch(&THREE).unwrap());
    assert_eq!(query.letters().len(), 3);
}

#[test]
fn a_search_that_takes_too_many_runs_is_given_up_and_tells_what_it_knows() {
    let query = bounded(PoisonLimits { attempts_max: 4, ..PoisonLimits::default() });

    let error = query.batch(&THREE).map(drop).unwrap_err();

    assert_eq!(error.code(), "POISON_SEARCH_EXHAUSTED");
    let text = error.to_string();
    assert!(
        text.contains("limits.poison.attempts") && text.contains("NO_NUMBER") && text.contains("known: row"),
        "{text}"
    );
    assert!(query.letters().is_empty());
}

#[test]
fn a_search_that_takes_too_long_is_given_up() {
    let query = bounded(PoisonLimits { time_max_ms: 0, ..PoisonLimits::default() });
    let keys: Vec<_> = (0..2_000).map(|key| format!("key-{key}")).collect();
    let rows: Vec<Row> = keys.iter().map(|key| (key.as_str(), POISON)).collect();

    assert_eq!(code(query.batch(&rows)), "POISON_SEARCH_EXHAUSTED");
}
