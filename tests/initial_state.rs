//! What a query takes as its initial state: the files that are there when it begins, and nothing else, whatever happens
//! meanwhile.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::support::{Example, fail_with, json_lines, rows, succeed, tidemill, write_at};

/// The example, with an initial state of two files.
struct Counting {
    example: Example,
    place: TempDir,
}

impl Counting {
    fn new() -> Self {
        let example = Example::new("counter-initial-state");
        let counting = Self { example, place: TempDir::new().unwrap() };
        fs::remove_dir_all(counting.example.path().join("initial-state")).unwrap();
        counting.initial("1.jsonl", "x", 10, 1);
        counting.initial("2.jsonl", "y", 20, 2);
        counting
    }

    fn initial(&self, name: &str, id: &str, count: u32, seconds: u64) {
        let row = format!("{{\"id\":\"{id}\",\"count\":{count}}}\n");
        write_at(&self.example.path().join("initial-state").join(name), row, seconds);
    }

    /// Reads one file of the initial state, and dies.
    fn dies_after_the_first_file(&self) {
        let crashed = self.command().env("TIDEMILL_CRASH_AT", "apply.after:1").status().unwrap();
        assert_eq!(crashed.code(), None, "it should have been killed");
    }

    fn command(&self) -> Command {
        self.example.command(self.place.path(), ["--set", "limits.files_per_batch=1"])
    }

    /// Ids in the state of the ended query.
    fn ids(&self) -> Vec<String> {
        let mut command = tidemill();
        command.arg("state").arg(self.place.path().join("checkpoint")).args(["scan", "count", "-o", "json"]);
        let rows = json_lines(&succeed(&mut command).out);
        rows.iter().map(|row| row["key"]["id"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn files_that_come_while_it_is_read_are_not_read() {
    let counting = Counting::new();
    counting.dies_after_the_first_file();
    counting.initial("0.jsonl", "older", 1, 0);
    counting.initial("3.jsonl", "newer", 1, 3);

    succeed(&mut counting.command());

    let ids = counting.ids();
    for (id, there) in [("x", true), ("y", true), ("older", false), ("newer", false)] {
        assert_eq!(ids.iter().any(|one| one == id), there, "{id} among {ids:?}");
    }
    assert!(!rows(&counting.place.path().join("rows")).is_empty());
}

#[test]
fn a_file_that_it_was_begun_with_must_stay_until_it_is_read() {
    let counting = Counting::new();
    counting.dies_after_the_first_file();

    counting.initial("2.jsonl", "y", 21, 2);
    let said = fail_with(&mut counting.command(), "SOURCE_FILE_CHANGED");
    assert!(said.err.contains("2.jsonl"), "{}", said.err);

    fs::remove_file(counting.example.path().join("initial-state/2.jsonl")).unwrap();
    fail_with(&mut counting.command(), "SOURCE_FILE_MISSING");

    counting.initial("2.jsonl", "y", 20, 2);
    succeed(&mut counting.command());
}

#[test]
fn a_link_to_nothing_does_not_pass_for_no_state() {
    let counting = Counting::new();
    let link = counting.example.path().join("initial-state/3.jsonl");
    std::os::unix::fs::symlink(Path::new("nowhere"), link).unwrap();

    let said = fail_with(&mut counting.command(), "SOURCE_NOT_A_FILE");

    assert!(said.err.contains("3.jsonl"), "{}", said.err);
}

#[test]
fn standard_input_is_for_rows() {
    let counting = Counting::new();
    fail_with(counting.command().args(["--set", "initial_state.stdin=true"]), "SOURCE_SETTING_INVALID");
}
