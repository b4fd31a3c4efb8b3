//! Checkpoints and sinks that belong to something else, or are in use.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use xxhash_rust::xxh3::xxh3_64;

use super::streams::Stream;
use super::{A, B, Counter, owned, says};
use crate::support::{fail_with, published, write_at};

#[test]
fn a_second_process_on_the_same_checkpoint_is_refused_and_the_first_goes_on() {
    let query = Counter::over(&[]);
    let mut first = Stream::start(&query, []);
    first.send(A);
    first.emitted_row();

    let said = fail_with(&mut query.streaming([]), "CHECKPOINT_IN_USE");

    says(&said, &["checkpoint", "in use by another process", "another checkpoint"]);
    first.send(A);
    assert_eq!(first.emitted_row()["count"], 2);
    assert_eq!(first.end().0, Some(0));
}

#[test]
fn folders_of_something_else_are_left_alone() {
    let query = Counter::over(&[("1.jsonl", A)]);
    let other = query.path().join("other");
    write_at(&other.join("thesis.doc"), "years of work", 1);
    let other = other.to_str().unwrap();

    says(
        &fail_with(&mut query.command(["--checkpoint", other]), "CHECKPOINT_NOT_EMPTY"),
        &["thesis.doc", "nothing was changed"],
    );
    says(&fail_with(&mut query.command(["--sink", other]), "SINK_NOT_EMPTY"), &["thesis.doc", "Use another one"]);

    assert_eq!(published(Path::new(other)).len(), 1);
    let another = Counter::over(&[("1.jsonl", A)]);
    another.summary([]);
    let sink = another.path().join("rows");
    let said = fail_with(&mut query.command(["--sink", sink.to_str().unwrap()]), "SINK_OF_ANOTHER_QUERY");
    says(&said, &["belongs to query", "Use another directory"]);
    assert_eq!(another.counts(), [("a", 1)].map(owned));
}

#[test]
fn a_checkpoint_goes_on_only_as_the_query_that_it_is() {
    let query = Counter::over(&[("1.jsonl", A)]);
    query.summary(["--name", "visits"]);
    query.write("2.jsonl", B);
    let cases: [(&[&str], &str, &str); 3] = [
        (&["--name", "orders"], "CHECKPOINT_NAME_MISMATCH", "\"visits\""),
        (&["--output-mode", "update"], "STATE_STORE_INVALID_CONFIG_AFTER_RESTART", "start with a new checkpoint"),
        (
            &["--time-mode", "processing-time"],
            "STATE_STORE_INVALID_CONFIG_AFTER_RESTART",
            "start with a new checkpoint",
        ),
    ];
    for (arguments, code, words) in cases {
        says(&fail_with(&mut query.command(arguments.iter().copied()), code), &[words]);
    }
    assert_eq!(query.summary(["--name", "visits"])["rowsIn"], 1);
}

#[test]
fn a_checkpoint_of_a_newer_version_is_told_from_a_damaged_one() {
    let query = Counter::over(&[("1.jsonl", A)]);
    query.summary([]);
    let metadata = query.path().join("checkpoint/metadata.json");
    let text = fs::read_to_string(&metadata).unwrap();

    fs::write(&metadata, text.replace("\"format\": 1", "\"format\": 2")).unwrap();
    says(&fail_with(&mut query.command([]), "CHECKPOINT_DAMAGED"), &["metadata.json", "checksum", "Restore it"]);

    let mut newer: serde_json::Map<String, Value> = serde_json::from_str(&text).unwrap();
    newer.insert("format".to_owned(), json!(2));
    newer.remove("checksum");
    let mut fields: Vec<_> = newer.iter().collect();
    fields.sort_by_key(|(name, _)| *name);
    let checksum = format!("{:016x}", xxh3_64(&serde_json::to_vec(&fields).unwrap()));
    newer.insert("checksum".to_owned(), json!(checksum));
    fs::write(&metadata, Value::Object(newer).to_string()).unwrap();
    let said = fail_with(&mut query.command([]), "CHECKPOINT_VERSION_UNSUPPORTED");
    says(&said, &["format version 2", "use a newer version of tidemill"]);

    fs::write(&metadata, text).unwrap();
    assert_eq!(query.summary([])["batches"], 0);
}
