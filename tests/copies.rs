//! Checkpoints that are moved, copied, forked and checked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use super::support::{Example, component, copy_with_times, fail_with, json_lines, published, run, succeed, tidemill};

#[test]
fn a_checkpoint_that_was_moved_goes_on_where_it_stands() {
    let ran = Ran::new();
    let moved = ran.at("elsewhere/checkpoint");
    fs::create_dir(ran.at("elsewhere")).unwrap();
    fs::rename(ran.checkpoint(), &moved).unwrap();
    ran.add_input();

    succeed(&mut ran.command(&moved, "rows"));

    assert_eq!(state(&moved, "metadata")["lastBatch"], 1);
    assert_eq!(published(&ran.at("rows")).len(), 2);
    succeed(tidemill().arg("state").arg(&moved).arg("verify"));
}

#[test]
fn of_two_copies_the_second_to_write_to_a_sink_is_stopped_and_can_be_forked() {
    let ran = Ran::new();
    let copy = ran.at("copy");
    copy_with_times(&ran.checkpoint(), &copy);
    ran.add_input();
    succeed(&mut ran.command(&ran.checkpoint(), "rows"));
    let rows = published(&ran.at("rows"));

    fail_with(&mut ran.command(&copy, "rows"), "SINK_DIVERGED");
    let forked = json_lines(&succeed(tidemill().arg("fork").arg(&copy).args(["-o", "json"])).out).remove(0);
    fail_with(&mut ran.command(&copy, "rows"), "SINK_OF_ANOTHER_QUERY");
    succeed(&mut ran.command(&copy, "rows of the copy"));

    assert_eq!((&forked["lastBatch"], &forked["from"]), (&0.into(), &state(&ran.checkpoint(), "metadata")["queryId"]));
    assert_eq!(state(&copy, "metadata")["queryId"], forked["queryId"]);
    let of_copy = published(&ran.at("rows of the copy"));
    assert_eq!(of_copy.len(), 1, "only what came after the fork");
    let (name, bytes) = of_copy.first_key_value().unwrap();
    assert_eq!(rows.get(name), Some(bytes), "the same batch of the same rows");
    assert!(published(&ran.at("rows")) == rows);
    for checkpoint in [ran.checkpoint(), copy] {
        succeed(tidemill().arg("state").arg(&checkpoint).arg("verify"));
        assert!(succeed(&mut ran.replay(&checkpoint)).out.contains("2 batch(es) with"));
    }
}

#[test]
fn a_copy_of_a_query_that_was_killed_can_be_forked() {
    let ran = Ran::new();
    ran.add_input();
    let killed = run(ran.command(&ran.checkpoint(), "rows").env("TIDEMILL_CRASH_AT", "commit.after-sync:1"));
    assert_eq!(killed.code, None, "{}", killed.err);
    let copy = ran.at("copy");
    copy_with_times(&ran.checkpoint(), &copy);

    fail_with(&mut ran.command(&copy, "rows of the copy"), "SINK_PENDING");
    succeed(tidemill().arg("fork").arg(&copy));
    succeed(&mut ran.command(&copy, "rows of the copy"));
    assert_eq!(published(&ran.at("rows of the copy")).len(), 0, "the batch is the original's to publish");
    succeed(&mut ran.command(&ran.checkpoint(), "rows"));
    assert_eq!(published(&ran.at("rows")).len(), 2);
}

#[test]
fn a_fork_can_be_rolled_back_behind_its_beginning() {
    let ran = Ran::new();
    ran.add_input();
    succeed(&mut ran.command(&ran.checkpoint(), "rows"));
    let (copy, rows) = (ran.at("copy"), published(&ran.at("rows")));
    copy_with_times(&ran.checkpoint(), &copy);
    succeed(tidemill().arg("fork").arg(&copy));

    succeed(tidemill().arg("rollback").arg(&copy).args(["--to", "0"]));
    succeed(&mut ran.command(&copy, "rows of the copy"));

    assert!(published(&ran.at("rows")) == rows, "what was published before is the original's");
    assert_eq!(
        published(&ran.at("rows of the copy")).into_values().collect::<Vec<_>>(),
        [rows.values().last().unwrap().clone()]
    );
}

#[test]
fn verify_reads_everything_and_changes_nothing() {
    let ran = Ran::new();
    ran.add_input();
    succeed(&mut ran.command(&ran.checkpoint(), "rows"));
    succeed(tidemill().arg("rollback").arg(ran.checkpoint()).args(["--to", "0"]));
    succeed(&mut ran.command(&ran.checkpoint(), "rows"));
    let before = files(&ran.checkpoint());

    let verified = verified(&ran.checkpoint(), 0);

    assert_eq!((&verified["batches"], &verified["rollbacks"]), (&3.into(), &1.into()));
    assert_eq!(verified["rows"], 12);
    assert_eq!(verified["findings"], Value::Array(Vec::new()));
    assert!(files(&ran.checkpoint()) == before);
}

#[test]
fn verify_tells_what_is_damaged() {
    let ran = Ran::new();
    ran.add_input();
    succeed(&mut ran.command(&ran.checkpoint(), "rows"));
    let undamaged = files(&ran.checkpoint());
    let find = |folder: &str, ending: &str| -> PathBuf {
        let below = ran.checkpoint().join(folder);
        let found =
            files(&below).into_iter().map(|(path, _)| path).find(|path| path.to_string_lossy().ends_with(ending));
        found.unwrap_or_else(|| panic!("no {ending} in {folder}"))
    };
    let damages = [("snapshots", ".sst", "SNAPSHOT_DAMAGED"), ("snapshots", "manifest.json", "SNAPSHOT_DAMAGED")];
    for (folder, ending, code) in damages {
        let path = find(folder, ending);
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();

        let verified = verified(&ran.checkpoint(), 1);

        assert_eq!(verified["findings"][0]["code"], code, "{verified}");
        fs::write(&path, &undamaged.iter().find(|(other, _)| *other == path).unwrap().1).unwrap();
    }
    fs::remove_file(find("components", ".wasm")).unwrap();
    assert_eq!(verified(&ran.checkpoint(), 1)["findings"][0]["code"], "CHECKPOINT_DAMAGED");
}

/// Every file below a folder, with its bytes.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.clone(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

fn state(checkpoint: &Path, look: &str) -> Value {
    json_lines(&succeed(tidemill().arg("state").arg(checkpoint).args([look, "-o", "json"])).out).remove(0)
}

fn verified(checkpoint: &Path, code: i32) -> Value {
    let said = run(tidemill().arg("state").arg(checkpoint).args(["verify", "-o", "json"]));
    assert_eq!(said.code, Some(code), "{}{}", said.out, said.err);
    json_lines(&said.out).remove(0)
}

/// The example `counter`, after its first batch.
struct Ran {
    example: Example,
    place: TempDir,
}

impl Ran {
    fn new() -> Self {
        let ran = Self { example: Example::new("counter"), place: TempDir::new().unwrap() };
        succeed(&mut ran.command(&ran.checkpoint(), "rows"));
        ran
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn checkpoint(&self) -> PathBuf {
        self.at("checkpoint")
    }

    fn add_input(&self) {
        fs::write(self.example.path().join("input/more.jsonl"), "{\"key\":\"a\",\"n\":5}\n").unwrap();
    }

    fn command(&self, checkpoint: &Path, sink: &str) -> Command {
        let mut command = tidemill();
        command.arg("run").arg(component("counter")).arg("--config").arg(self.example.path().join("query.toml"));
        command.arg("--checkpoint").arg(checkpoint).arg("--sink").arg(self.at(sink));
        command
    }

    fn replay(&self, checkpoint: &Path) -> Command {
        let mut command = tidemill();
        command.arg("replay").arg(component("counter")).arg("--config").arg(self.example.path().join("query.toml"));
        command.arg("--checkpoint").arg(checkpoint);
        command
    }
}
