//! What never becomes a dead letter, and what the policy needs.

use tidemill_host::engine::query::{Parts, Query};
use tidemill_host::engine::settings::{OnPoison, PoisonPolicy, QuerySettings};

use super::fussy::{Fails, Fussy, Names};
use super::{FussyQuery, POISON};
use crate::native_query::{code, settings};

fn fails(fails: Fails, names: Names) -> String {
    let query =
        FussyQuery::with(Fussy { fails, names, ..Fussy::default() }, QuerySettings { workers: 1, ..settings() });
    let code = code(query.batch(&[("a", Some(1)), ("b", POISON), ("c", Some(1))]));
    assert!(query.letters().is_empty() && query.query.emitted().is_empty(), "{fails:?}");
    code
}

#[test]
fn a_processor_that_a_wall_clock_stopped() {
    assert_eq!(fails(Fails::WithTrap("GUEST_DEADLINE"), Names::ItsKey), "GUEST_DEADLINE");
}

#[test]
fn a_failure_of_the_host() {
    assert_eq!(fails(Fails::OfItsHost, Names::ItsKey), "HOST_ERROR");
}

#[test]
fn a_failure_in_close() {
    assert_eq!(fails(Fails::InClose, Names::ItsKey), "NO_NUMBER");
}

#[test]
fn keys_that_fail_only_together() {
    for names in [Names::ItsKey, Names::OneOf(128), Names::Nothing] {
        assert_eq!(fails(Fails::OnlyTogether, names), "NO_NUMBER", "{names:?}");
    }
}

#[test]
fn a_failure_that_does_not_come_again() {
    assert_eq!(fails(Fails::Once, Names::ItsKey), "NO_NUMBER");
}

#[test]
fn every_row_is_a_dead_letter_of_nobody_while_the_policy_is_fail() {
    let mut query = FussyQuery::with(Fussy::default(), settings());
    query.query.settings.poison.on_poison = OnPoison::Fail;

    assert_eq!(code(query.batch(&[("a", POISON)])), "NO_NUMBER");
    assert!(query.letters().is_empty());
}

#[test]
fn dead_letters_need_a_place() {
    let query = FussyQuery::new(Fussy::default(), PoisonPolicy::default());

    let without = Parts { dead_letters: None, ..query.parts() };

    assert_eq!(code(Query::open(query.query.settings.clone(), without)), "DEAD_LETTERS_MISSING");
}
