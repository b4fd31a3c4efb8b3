//! The same input gives the same rows, whatever a processor tries: the guest `escape`, in every language.
//!
//! Its README says what each area of attempts may answer.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::{Language, component_in};
use crate::support::{json_lines, rows, succeed, tidemill, write_at};

const SEED: &str = "7";
/// Times of the batches, in milliseconds.
const CLOCK: &str = "1700000000123\n1700000001456\n";
/// What must be refused.
const FORBIDDEN: [&str; 5] = ["files", "network", "processes", "threads", "code"];
/// In the environment of the host, and nowhere else.
const CANARY: &str = "tidemill-canary";

/// A query over the guest, whose input has two batches of several keys.
struct Place(TempDir);

impl Place {
    fn new(clock: &str) -> Self {
        let place = Self(TempDir::new().unwrap());
        for batch in 1..=2 {
            let keys = ["a", "b", "a", "c"].map(|key| format!("{{\"key\":\"{key}\",\"n\":{batch}}}\n"));
            write_at(&place.path().join(format!("input/{batch}.jsonl")), keys.concat(), batch);
        }
        fs::write(place.path().join("clock"), clock).unwrap();
        place
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, name: &str, language: Language, seed: &str) -> Command {
        let mut command = tidemill();
        command.current_dir(self.path()).arg(name).arg(component_in(language, "escape"));
        command.args(["--input", "input", "--schema", "key STRING, n BIGINT", "--key", "key"]);
        command.args(["--time-mode", "processing-time", "--clock", "clock", "--seed", seed, "--workers", "2"]);
        command.args(["--set", "limits.rows_per_batch=4", "--sink", "rows", "--checkpoint", "checkpoint"]);
        command
    }

    fn findings(&self) -> Vec<Finding> {
        json_lines(&rows(&self.path().join("rows"))).iter().map(Finding::of).collect()
    }
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    key: String,
    what: String,
    result: String,
}

impl Finding {
    fn of(row: &Value) -> Self {
        let text = |column: &str| row[column].as_str().unwrap().to_owned();
        Self { key: text("key"), what: text("what"), result: text("result") }
    }

    fn area(&self) -> &str {
        self.what.split_once(": ").unwrap().0
    }
}

fn run(language: Language, seed: &str, clock: &str) -> Vec<Finding> {
    let place = Place::new(clock);
    succeed(&mut place.command("run", language, seed));
    place.findings()
}

/// Of two runs, the attempts whose results may differ, by area; all others are the same.
fn differ_only_in(language: Language, one: &[Finding], other: &[Finding], areas: &[&str]) {
    assert_eq!(one.len(), other.len(), "{language:?}");
    for (one, other) in one.iter().zip(other) {
        assert_eq!((&one.key, &one.what), (&other.key, &other.what), "{language:?}");
        assert!(one.result == other.result || areas.contains(&one.area()), "{language:?}: {one:?} and {other:?}");
    }
}

#[test]
fn at_another_time_and_place_the_same_rows_come_out() {
    for language in Language::ALL {
        let (here, elsewhere) = (Place::new(CLOCK), Place::new(CLOCK));
        succeed(&mut here.command("run", language, SEED));

        let mut command = elsewhere.command("run", language, SEED);
        command.envs([("TZ", "Asia/Tokyo"), ("LANG", "de_DE.UTF-8"), ("LC_ALL", "de_DE.UTF-8"), ("USER", CANARY)]);
        succeed(command.env(CANARY, CANARY));

        assert_eq!(here.findings(), elsewhere.findings(), "{language:?}");
        let attempts = here.findings().len();
        assert!(attempts > 8 * 25, "{language:?} makes its attempts for each of 8 rows, not {attempts} in all");
    }
}

#[test]
fn a_replay_is_as_recorded() {
    for language in Language::ALL {
        let place = Place::new(CLOCK);
        succeed(&mut place.command("run", language, SEED));

        let said = succeed(&mut place.command("replay", language, SEED));

        assert!(said.out.contains("2 batch(es) with 8 rows in are as recorded"), "{language:?}: {}", said.out);
    }
}

#[test]
fn another_seed_changes_all_that_is_random_and_nothing_else() {
    for language in Language::ALL {
        let (one, other) = (run(language, SEED, CLOCK), run(language, "8", CLOCK));

        differ_only_in(language, &one, &other, &["random", "order"]);
        for (one, other) in one.iter().zip(&other).filter(|(one, _)| one.area() == "random") {
            assert_ne!(one.result, other.result, "{language:?}: {one:?}");
        }
    }
}

#[test]
fn batches_are_random_each_in_its_own_way() {
    for language in Language::ALL {
        let findings = run(language, SEED, CLOCK);
        let (first, second) = findings.split_at(findings.len() / 2);

        for (first, second) in first.iter().zip(second).filter(|(first, _)| first.area() == "random") {
            assert_ne!(first.result, second.result, "{language:?}: {first:?}");
        }
    }
}

#[test]
fn another_clock_changes_the_time_and_nothing_else() {
    for language in Language::ALL {
        let (one, other) = (run(language, SEED, CLOCK), run(language, SEED, "1800000000000\n1800000000001\n"));

        // An identifier may begin with the time, and what the time is made of has addresses.
        differ_only_in(language, &one, &other, &["time", "random", "order"]);
        let is_now = |finding: &Finding| ["time: now", "time: of the handler"].contains(&finding.what.as_str());
        // Sleeping moves the clock of a Go program: a few days at most.
        for (one, other) in one.iter().zip(&other).filter(|(one, _)| is_now(one)) {
            let told = |finding: &Finding, times: [&str; 2]| times.iter().any(|time| finding.result.contains(time));
            assert!(told(one, ["17000000", "2023-11-1"]), "{language:?}: {one:?}");
            assert!(told(other, ["18000000", "2027-01-1"]), "{language:?}: {other:?}");
        }
    }
}

#[test]
fn an_instance_remembers_nothing_of_earlier_batches() {
    for language in Language::ALL {
        for finding in run(language, SEED, CLOCK) {
            assert!(finding.what != "order: kept from an earlier batch" || finding.result == "0", "{language:?}");
        }
    }
}

#[test]
fn what_is_outside_is_refused() {
    for language in Language::ALL {
        let place = Place::new(CLOCK);
        succeed(place.command("run", language, SEED).env(CANARY, CANARY).env("HOME", format!("/home/{CANARY}")));

        let findings = place.findings();

        let forbidden = |finding: &&Finding| FORBIDDEN.contains(&finding.area());
        for finding in findings.iter().filter(forbidden) {
            assert!(finding.result.starts_with("refused: "), "{language:?}: {finding:?}");
        }
        for area in FORBIDDEN {
            // Rust has nothing that could load code.
            let tried = findings.iter().any(|finding| finding.area() == area);
            assert!(tried || (language, area) == (Language::Rust, "code"), "{language:?} tries {area}");
        }
        let here = place.path().to_str().unwrap();
        for finding in &findings {
            assert!(!finding.result.contains(CANARY) && !finding.result.contains(here), "{language:?}: {finding:?}");
        }
    }
}
