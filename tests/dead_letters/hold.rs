//! Keys that are held after a dead letter.

use tidemill_host::engine::settings::{AfterPoison, PoisonPolicy};

use super::fussy::Fussy;
use super::{FussyQuery, POISON};
use crate::native_query::drain;

fn holding() -> FussyQuery {
    FussyQuery::new(Fussy::default(), PoisonPolicy { after_poison: AfterPoison::Hold, ..PoisonPolicy::default() })
}

fn emitted(query: &FussyQuery) -> Vec<String> {
    let mut rows = query.query.emitted();
    rows.sort();
    rows
}

#[test]
fn later_rows_of_the_key_go_on_unless_it_is_held() {
    let query = FussyQuery::new(Fussy::default(), PoisonPolicy::default());

    let running = query.batch(&[("a", Some(1)), ("a", POISON), ("a", Some(2)), ("b", Some(5))]).unwrap();

    assert_eq!(query.shown(), ["0-0 row {\"k\":\"a\"} 1 NO_NUMBER"]);
    assert_eq!(emitted(&query), ["a row 1000 1 1", "a row 1000 2 3", "b row 1000 1 5"]);
    assert_eq!(running.held_keys().count(), 0);
}

#[test]
fn rows_behind_a_dead_letter_are_held_back_over_batches_and_restarts() {
    let query = holding();
    let running = query.batch(&[("a", Some(1)), ("a", POISON), ("a", Some(2)), ("b", Some(5))]).unwrap();
    assert_eq!(running.held_keys().map(|(step, _)| step).collect::<Vec<_>>(), ["main"]);
    drop(running);

    let mut running = query.batch(&[("b", Some(1)), ("a", Some(3))]).unwrap();
    query.feed(&[("a", Some(4)), ("a", POISON)]);
    let progress = drain(&mut running).unwrap();

    let of_a = |id, kind, row, code| format!("{id} {kind} {{\"k\":\"a\"}} {row} {code}");
    assert_eq!(
        query.shown(),
        [
            of_a("0-0", "row", 1, "NO_NUMBER"),
            of_a("0-1", "held-row", 2, "KEY_HELD"),
            of_a("1-0", "held-row", 1, "KEY_HELD"),
            of_a("2-0", "held-row", 0, "KEY_HELD"),
            of_a("2-1", "held-row", 1, "KEY_HELD"),
        ]
    );
    assert_eq!(query.letters()[2]["message"], "the key is held since 0-0");
    assert_eq!(emitted(&query), ["a row 1000 1 1", "b row 1000 1 5", "b row 1000 2 6"]);
    let step = &progress[0].state_operators[0];
    assert_eq!((step.num_input_rows, step.num_dead_letters, step.num_held_keys), (0, 2, 1));
    drop(running);
    query.replays();
}

#[test]
fn a_key_that_is_released_is_processed_again_and_stays_so() {
    let query = holding();
    let mut running = query.batch(&[("a", POISON), ("b", POISON)]).unwrap();
    let held: Vec<_> = running.held_keys().map(|(step, key)| (step.to_owned(), key.to_vec())).collect();
    assert_eq!(held.len(), 2);

    let (step, key) = held.iter().find(|(_, key)| key.contains(&b'a')).unwrap();
    assert!(running.release(step, key));
    assert!(!running.release(step, key) && !running.release("other", key));
    query.feed(&[("a", Some(1)), ("b", Some(1))]);
    drain(&mut running).unwrap();
    drop(running);
    drop(query.batch(&[("a", Some(2)), ("b", Some(2))]).unwrap());

    assert_eq!(emitted(&query), ["a row 1000 1 1", "a row 1000 2 3"]);
    query.replays();
}

#[test]
fn a_start_that_does_not_hold_releases_all_keys() {
    let mut query = holding();
    drop(query.batch(&[("a", POISON)]).unwrap());

    query.query.settings.poison.after_poison = AfterPoison::Continue;
    drop(query.batch(&[("a", Some(1))]).unwrap());
    query.query.settings.poison.after_poison = AfterPoison::Hold;
    drop(query.batch(&[("a", Some(2))]).unwrap());

    assert_eq!(emitted(&query), ["a row 1000 1 1", "a row 1000 2 3"]);
}
