//! `state`: what a checkpoint holds.

use std::fs;
use std::process::Stdio;

use insta::assert_snapshot;
use tempfile::TempDir;

use super::{Ran, files_below, shown};
use crate::support::{Example, fail_with, json_lines, run, succeed, tidemill};

#[test]
fn variables_are_listed_with_kinds_schemas_and_counts() {
    let ran = Ran::new("counter");

    assert_snapshot!(shown(&succeed(&mut ran.state(["list"]))), @r"
    name   kind   key           value         ttl  declared  keys  rows
    count  value                value BIGINT       true      2     2
    seen   list                 value BIGINT       true      2     5
    times  map    value BIGINT  value BIGINT       true      2     3
    ");
}

#[test]
fn a_ttl_is_listed_with_its_length() {
    let ran = Ran::new("dedup");

    let listed = json_lines(&succeed(&mut ran.state(["list", "-o", "json"])).out);

    assert_eq!(listed[0]["ttl"], "1h");
}

#[test]
fn get_shows_what_one_key_has() {
    let ran = Ran::new("counter");
    let get = |variable| succeed(&mut ran.state(["get", variable, "--key", r#"{"key":"a"}"#]));

    assert_snapshot!(shown(&get("count")), @r"
    key.key  value.value
    a        3
    ");
    assert_snapshot!(shown(&get("seen")), @r"
    key.key  sequence  value.value
    a        0         1
    a        1         2
    a        2         1
    ");
    assert_snapshot!(shown(&get("times")), @r"
    key.key  entry.value  value.value
    a        1            2
    a        2            1
    ");
    let nobody = succeed(&mut ran.state(["get", "count", "--key", r#"{"key":"nobody"}"#, "-o", "json"]));
    assert_eq!(nobody.out, "");
}

#[test]
fn scan_shows_all_keys_up_to_a_limit() {
    let ran = Ran::new("counter");

    let all = json_lines(&succeed(&mut ran.state(["scan", "times", "-o", "json"])).out);
    let two = json_lines(&succeed(&mut ran.state(["scan", "times", "--limit", "2", "-o", "json"])).out);

    assert_eq!(all.len(), 3);
    assert_eq!(two, all[..2]);
    assert!(all.iter().any(|row| row["key"]["key"] == "b" && row["entry"]["value"] == 7 && row["value"]["value"] == 2));
}

#[test]
fn rows_with_a_ttl_show_when_they_expire() {
    let ran = Ran::new("dedup");

    assert_snapshot!(shown(&succeed(&mut ran.state(["scan", "seen"]))), @r"
    key.id  value.value  expires
    e3      true         2026-01-01T13:30:00Z
    e1      true         2026-01-01T14:00:00Z
    ");
}

#[test]
fn timers_are_shown_while_they_wait() {
    let ran = Ran::with("heartbeat", |example| {
        fs::remove_file(example.path().join("input/0002.jsonl")).unwrap();
        fs::remove_file(example.path().join("input/0003.jsonl")).unwrap();
        fs::write(example.path().join("clock"), "2026-01-01T12:00:00Z\n").unwrap();
    });

    assert_snapshot!(shown(&succeed(&mut ran.state(["timers"]))), @r"
    key.sensor  expires
    cellar      2026-01-01T12:05:00Z
    boiler      2026-01-01T12:05:00Z
    ");
    let one = succeed(&mut ran.state(["timers", "--key", r#"{"sensor":"cellar"}"#, "-o", "json"]));
    let cellar = "{\"key\":{\"sensor\":\"cellar\"},\"expires\":\"2026-01-01T12:05:00Z\",\"key_group\":";
    assert!(one.out.starts_with(cellar), "{}", one.out);
}

#[test]
fn metadata_tells_who_the_query_is_and_where_it_stands() {
    let ran = Ran::new("sessions");

    let metadata = json_lines(&succeed(&mut ran.state(["metadata", "-o", "json"])).out).remove(0);

    assert_eq!(metadata["lastBatch"], 3);
    assert_eq!(metadata["retainedBatches"], serde_json::json!({ "first": 0, "last": 3, "count": 4 }));
    assert_eq!(metadata["timeMode"], "event-time");
    assert_eq!(metadata["watermark"], "2026-01-01T11:50:00Z");
    assert_eq!(metadata["key"], "user STRING NOT NULL");
    assert_eq!(metadata["sources"][0]["lastRead"]["files"][0]["path"], "0003.jsonl");
    assert_eq!(metadata["sinks"][0]["rows"], 2);
    assert!(metadata["processor"].as_str().unwrap().starts_with("sha256:"));
    let text = succeed(&mut ran.state(["metadata"])).out;
    assert!(text.contains("retainedBatches   first 0, last 3, count 4\n"), "{text}");
}

#[test]
fn a_batch_that_was_committed_before_a_crash_is_there() {
    let example = Example::new("counter");
    let place = TempDir::new().unwrap();
    let crashed = run(example.command(place.path(), []).env("TIDEMILL_CRASH_AT", "commit.after-sync:1"));
    assert_eq!(crashed.code, None, "{}", crashed.err);
    let ran = Ran { example, place };

    let before = files_below(&ran.checkpoint());
    let said = succeed(&mut ran.state(["get", "count", "--key", r#"{"key":"a"}"#, "-o", "json"]));

    assert!(said.out.starts_with("{\"key\":{\"key\":\"a\"},\"value\":{\"value\":3},\"key_group\":"), "{}", said.out);
    assert!(files_below(&ran.checkpoint()) == before, "looking at a checkpoint has changed it");
}

#[test]
fn looking_changes_nothing() {
    let ran = Ran::new("flights");
    let before = files_below(&ran.checkpoint());

    for look in [&["list"][..], &["scan", "last_flight"], &["timers"], &["metadata"]] {
        succeed(&mut ran.state(look.iter().copied()));
    }

    assert!(files_below(&ran.checkpoint()) == before);
}

#[test]
fn what_is_not_there_is_told_with_what_is() {
    let ran = Ran::new("counter");

    let unknown = fail_with(&mut ran.state(["scan", "total"]), "STDS_INVALID_OPTION_VALUE");
    assert!(unknown.err.contains("count, seen, times"), "{}", unknown.err);
    let key = fail_with(&mut ran.state(["get", "count", "--key", r#"{"city":"a"}"#]), "STATE_KEY_INVALID");
    assert!(key.err.contains("key STRING NOT NULL"), "{}", key.err);
    fail_with(&mut ran.state(["get", "count", "--key", "a"]), "STATE_KEY_INVALID");
    let nowhere = ran.place.path().join("nowhere");
    fail_with(tidemill().arg("state").arg(nowhere).arg("list"), "CHECKPOINT_NOT_FOUND");
}

#[test]
fn a_query_that_runs_can_be_looked_at_and_is_left_alone() {
    let ran = Ran::new("counter");
    let running = fs::File::options().write(true).open(ran.checkpoint().join("lock")).unwrap();
    running.lock().unwrap();

    assert!(succeed(&mut ran.state(["list"])).out.contains("count"));
    fail_with(&mut ran.replay([]), "CHECKPOINT_IN_USE");
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let ran = Ran::new("flights");
    for arguments in [&["scan", "last_flight", "-o", "json"][..], &["scan", "last_flight"]] {
        let mut command = ran.state(arguments.iter().copied());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());

        let output = child.wait_with_output().unwrap();

        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    }
}
