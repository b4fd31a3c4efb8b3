//! What a processor can do to the host that runs it: fail, and nothing else.
//!
//! The evil guest misbehaves in every way that its README lists. Against each the host stays up, ends with the code of the
//! error, in bounded time and memory, and commits nothing: the same checkpoint then runs a polite processor from batch 0.

mod attacks;
mod guest;
mod place;

use std::collections::BTreeSet;
use std::fs;

use tempfile::TempDir;
use tidemill_host::runtime::Limits;
use tidemill_host::state::StateLimits;

use self::attacks::{
    ANY_CALLS, Attack, BREACHES, FAILURES, FLOODS, LIMITS, LOOPS, PHASES, PLANS, ROWS, SHORT, all, ends,
};
use self::guest::{Guest, RECURSION};
use self::place::Place;
use crate::support::{Example, repository, rows, succeed};

#[test]
fn a_loop_without_end_meets_the_deadline_in_every_export() {
    LOOPS.iter().for_each(meet);
}

#[test]
fn a_loop_without_end_runs_out_of_fuel_in_every_export() {
    for attack in LOOPS {
        let attack = &attack.saying("limits.sandbox.chunk_fuel");
        let place = Place::new(attack);
        let fuel = ["--metering", "fuel", "--set", "limits.sandbox.chunk_fuel=2000000"];

        let said = place.run(place.attack(attack).args(fuel));

        said.failed_with(attack, "GUEST_FUEL");
        place.nothing_was_committed(attack);
    }
}

#[test]
fn too_much_of_what_is_allowed_is_stopped() {
    FLOODS.iter().for_each(meet);
}

#[test]
fn breaches_of_the_contract_trap() {
    BREACHES.iter().for_each(meet);
}

#[test]
fn rows_that_are_none_are_faults() {
    ROWS.iter().for_each(meet);
}

#[test]
fn plans_that_cannot_be_are_refused() {
    PLANS.iter().for_each(meet);
}

#[test]
fn calls_at_the_wrong_time_are_faults() {
    PHASES.iter().for_each(meet);
}

#[test]
fn failures_and_traps_reach_the_user_and_only_the_user() {
    FAILURES.iter().for_each(meet);
}

#[test]
fn a_flood_of_logs_stays_within_its_limit() {
    let attack = ends("log-flood", "GUEST_DEADLINE").with(&[SHORT, ANY_CALLS]);
    let place = Place::new(&attack);

    let said = place.run(&mut place.attack(&attack));

    let Limits { log_bytes, log_lines, .. } = Limits::default();
    // Two workers; before each line stand the level and where it comes from.
    assert!(said.text.len() < 2 * (log_bytes + 300 * log_lines), "{} bytes were logged", said.text.len());
    assert!(said.text.contains("lines of the processor were dropped"), "{}", said.text);
}

#[test]
fn a_processor_that_failed_does_not_disturb_its_neighbours() {
    for attack in [ends("memory-heap", "GUEST_MEMORY"), ends("loop-input", "GUEST_DEADLINE").with(&[SHORT])] {
        meet(&attack);
        let (example, place) = (Example::new("counter"), TempDir::new().unwrap());

        succeed(&mut example.command(place.path(), []));

        assert_eq!(rows(&place.path().join("rows")), example.expected());
    }
}

#[test]
fn every_attack_of_the_evil_guest_is_tried() {
    let tried: BTreeSet<&str> = all().map(|attack| attack.name).collect();
    let source = repository().join("tests/guests/evil/src");
    let mut known = BTreeSet::new();
    for file in fs::read_dir(source).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        for call in ["Attack::polite(\"", "typed("] {
            let names = text.split(call).skip(1).map(|after| after.trim_start().trim_start_matches('"'));
            known.extend(
                names.filter_map(|after| after.split('"').next()).filter(|name| is_name(name)).map(str::to_owned),
            );
        }
    }
    assert!(known.len() > 100, "{known:?}");
    let left_out: Vec<_> = known.iter().filter(|name| !tried.contains(name.as_str())).collect();
    assert!(left_out.is_empty(), "not tried: {left_out:?}");
}

#[test]
fn every_limit_of_the_sandbox_is_met_by_a_guest_and_names_its_setting() {
    for (limit, guest, attack) in LIMITS {
        let place = Place::new(attack);

        let said = place.run(&mut place.run_guest(&guest.component(place.path()), attack));

        said.failed_with(attack, attack.code.unwrap());
        assert!(said.text.contains(&format!("limits.sandbox.{limit}")), "{limit}: {}", said.text);
    }
    let met: BTreeSet<&str> = LIMITS.iter().map(|(limit, ..)| *limit).collect();
    assert_eq!(met, names_of(&serde_json::to_value(Limits::default()).unwrap()), "a limit without an attack");
}

#[test]
fn every_limit_of_the_state_is_met_by_a_guest() {
    let limits = serde_json::to_value(StateLimits::default()).unwrap();
    let said = |limit: &str| FLOODS.iter().any(|attack| attack.says == format!("limits.state.{limit}"));
    let left_out: Vec<_> = names_of(&limits).into_iter().filter(|limit| !said(limit)).map(str::to_owned).collect();
    // The first bounds the host's own sweep, whose rest waits for the next one. It takes several versions of a guest to
    // meet the second: the case `schemas_are_limited` of tests/conformance does.
    assert_eq!(left_out, ["ttl_evictions_max", "value_schemas_max"]);
}

#[test]
fn a_recursion_without_end_overflows_the_stack() {
    let attack = ends("recursion", "GUEST_STACK_OVERFLOW").saying("look for a recursion");
    let place = Place::new(&attack);

    let said = place.run(&mut place.run_guest(&Guest::Core(RECURSION).component(place.path()), &attack));

    said.failed_with(&attack, "GUEST_STACK_OVERFLOW");
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|character| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-')
}

fn names_of(object: &serde_json::Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Runs an attack, and then a polite processor on what it left.
fn meet(attack: &Attack) {
    let place = Place::new(attack);
    let said = place.run(&mut place.attack(attack));
    match attack.code {
        Some(code) => {
            said.failed_with(attack, code);
            place.nothing_was_committed(attack);
        }
        None => assert_eq!(said.code, Some(0), "{}: {}", attack.name, said.text),
    }
}
