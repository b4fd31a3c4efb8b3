//! What people and files do wrong, and what the command answers: a code, what happened, where, and what to do. Nothing is
//! lost by it: once the cause is mended, the same command goes on.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tidemill_host::runtime::COMPONENT_BYTES_MAX;
use xxhash_rust::xxh3::xxh3_64;

use super::support::{
    Example, Said, component, fail_with, json_lines, published, rows, run, succeed, tidemill, write_at,
};

const SCHEMA: &str = "key STRING, n BIGINT";
const A: &str = "{\"key\":\"a\",\"n\":1}\n";
const B: &str = "{\"key\":\"b\",\"n\":2}\n";

// Rows that do not fit

#[test]
fn a_malformed_row_fails_the_batch_and_says_where_it_stands() {
    let query = Counter::over(&[("1.jsonl", A), ("2.jsonl", "{\"key\":\"b\",\"n\":\n")]);

    let said = fail_with(&mut query.command([]), "MALFORMED_ROW");

    says(
        &said,
        &[
            "batch 0",
            "row 1 of 2.jsonl",
            "Nothing of the batch was committed",
            "skip or quarantine",
            "{\"key\":\"b\",\"n\":",
        ],
    );
    assert!(query.rows().is_empty());
    query.write("2.jsonl", B);
    assert_eq!(query.summary([])["rowsIn"], 2);
    assert_eq!(query.counts(), [("a", 1), ("b", 1)].map(owned));
}

#[test]
fn malformed_rows_can_be_skipped_and_are_counted() {
    let query = Counter::over(&[("1.jsonl", &format!("{A}not json\n{B}[1]\n\n"))]);

    let summary = query.summary(["--bad-rows", "skip"]);

    assert_eq!((&summary["rowsIn"], &summary["rowsRejected"]), (&json!(2), &json!(2)));
    assert_eq!(query.counts(), [("a", 1), ("b", 1)].map(owned));
}

#[test]
fn malformed_rows_can_be_put_aside_with_the_reason() {
    let query = Counter::over(&[("1.jsonl", &format!("{A}{{\"key\":\"x\",\"n\":\"many\"}}\n"))]);
    let aside = query.path().join("aside");

    let summary = query.summary(["--bad-rows", "quarantine", "--quarantine", aside.to_str().unwrap()]);

    assert_eq!(summary["rowsRejected"], 1);
    let row = &json_lines(&rows(&aside))[0];
    let expected = [
        ("batch_id", json!(0)),
        ("origin", json!("1.jsonl")),
        ("row", json!(2)),
        ("code", json!("WRONG_TYPE")),
        ("text", json!("{\"key\":\"x\",\"n\":\"many\"}")),
    ];
    expected.iter().for_each(|(column, value)| assert_eq!(&row[column], value, "{row}"));
    assert!(row["reason"].as_str().unwrap().contains("expected a BIGINT"), "{row}");
}

#[test]
fn quarantine_needs_a_place() {
    let query = Counter::over(&[("1.jsonl", A)]);
    says(&fail_with(&mut query.command(["--bad-rows", "quarantine"]), "QUARANTINE_MISSING"), &["--quarantine DIR"]);
}

#[test]
fn each_kind_of_bad_row_has_a_code_of_its_own() {
    let too_long = format!("{{\"key\":\"{}\",\"n\":1}}\n", "x".repeat(17 << 20));
    let cases: [(&str, &[u8], &str, &str); 6] = [
        (SCHEMA, b"{\"key\":\"a\",\"n\":true}\n", "WRONG_TYPE", "column `n`"),
        (SCHEMA, b"{\"key\":\"a\",\"n\":9223372036854775808}\n", "WRONG_TYPE", "column `n`"),
        (SCHEMA, b"{\"key\":null,\"n\":1}\n", "NULL_IN_NOT_NULL_COLUMN", "column `key` is NOT NULL"),
        (SCHEMA, b"{\"n\":1}\n", "NULL_IN_NOT_NULL_COLUMN", "column `key` is NOT NULL"),
        (SCHEMA, b"{\"key\":\"\xff\xfe\",\"n\":1}\n", "MALFORMED_ROW", "UTF-8"),
        (SCHEMA, too_long.as_bytes(), "ROW_TOO_LONG", "at most 16777216 are read"),
    ];
    for (schema, bytes, code, what) in cases {
        let query = Counter::over(&[("1.jsonl", A)]);
        write_at(&query.path().join("input/2.jsonl"), bytes, 2);

        let said = fail_with(&mut query.command(["--schema", schema]), code);

        says(&said, &["row 1 of 2.jsonl", what, "Mend the input, or set bad_rows to skip or quarantine"]);
        assert!(said.err.len() < 4096, "{code}: the row fills the screen");
        assert_eq!(query.summary(["--bad-rows", "skip"])["rowsRejected"], 1);
        assert_eq!(query.counts(), [("a", 1)].map(owned));
    }
}

#[test]
fn a_column_that_the_processor_wants_and_the_input_lacks_is_named_with_those_that_there_are() {
    let query = Counter::over(&[("1.jsonl", A)]);
    let said = fail_with(&mut query.command(["--schema", "key STRING, m BIGINT"]), "UNRESOLVED_COLUMN.WITH_SUGGESTION");
    says(&said, &["\"n\"", "there are: key, m"]);
}

#[test]
fn null_is_a_grouping_key_where_the_processor_takes_it() {
    let (example, place) = (Example::new("flights"), TempDir::new().unwrap());
    succeed(&mut example.command(place.path(), []));
    let without = json_lines(&rows(&place.path().join("rows"))).into_iter().filter(|row| row["tailnum"].is_null());
    let events: Vec<_> = without.map(|row| row["event"].as_str().unwrap().to_owned()).collect();
    assert!(events.len() == 8 && events.iter().all(|event| event == "cancelled"), "{events:?}");
}

// Files

#[test]
fn a_compressed_file_that_ends_too_early_is_not_taken_for_the_whole() {
    let whole = gzip(&A.repeat(1000));
    let query = Counter::over(&[]);
    query.write("1.jsonl.gz", whole.get(..whole.len() / 2).unwrap());

    let said = fail_with(&mut query.command([]), "SOURCE_FILE_TRUNCATED");

    says(&said, &["1.jsonl.gz", "Nothing of the batch was committed", "put the whole file in its place"]);
    query.write("1.jsonl.gz", whole);
    assert_eq!(query.summary([])["rowsIn"], 1000);
}

#[test]
fn files_that_cannot_be_read_are_named() {
    for (name, bytes) in [("1.jsonl.gz", "not gzip at all"), ("1.jsonl.zst", "nor zstd"), ("1.parquet", "nor Parquet")]
    {
        let query = Counter::over(&[(name, bytes)]);
        says(&fail_with(&mut query.command([]), "SOURCE_UNREADABLE"), &[name]);
        assert!(query.rows().is_empty());
    }
    let query = Counter::over(&[]);
    // A file of which not even root can read the first byte.
    std::os::unix::fs::symlink("/proc/self/mem", query.path().join("input/1.jsonl")).unwrap();
    says(&fail_with(&mut query.command([]), "SOURCE_UNREADABLE"), &["1.jsonl", "os error"]);
}

#[test]
fn an_input_that_is_not_there_is_named_with_the_setting() {
    let query = Counter::over(&[]);
    let said = fail_with(&mut query.command(["--input", "nowhere"]), "SOURCE_NOT_FOUND");
    says(&said, &["nowhere", "source.path"]);
}

#[test]
fn a_file_of_which_rows_are_still_needed_must_stay_as_it_is() {
    let query = Counter::over(&[("1.jsonl", &A.repeat(10)), ("2.jsonl", B)]);
    let row_by_row = ["--set", "limits.rows_per_batch=2"];
    let crashed = query.command(row_by_row).env("TIDEMILL_CRASH_AT", "apply.after:2").status().unwrap();
    assert_eq!(crashed.code(), None, "it should have been killed");
    let file = query.path().join("input/1.jsonl");

    fs::remove_file(&file).unwrap();
    says(&fail_with(&mut query.command(row_by_row), "SOURCE_FILE_MISSING"), &["1.jsonl", "put it back as it was"]);

    query.write("1.jsonl", B.repeat(10));
    let said = fail_with(&mut query.command(row_by_row), "SOURCE_FILE_CHANGED");
    says(&said, &["1.jsonl", "are committed", "put the file back as it was, or begin with a new checkpoint"]);

    query.write("1.jsonl", A.repeat(10));
    succeed(&mut query.command(row_by_row));
    assert_eq!(query.counts().last(), Some(&owned(("b", 1))));
}

#[test]
fn a_file_that_was_read_to_its_end_may_go_and_is_not_read_again_when_it_changes() {
    let query = Counter::over(&[("1.jsonl", A), ("2.jsonl", B)]);
    query.summary([]);
    fs::remove_file(query.path().join("input/1.jsonl")).unwrap();
    query.write("2.jsonl", B.repeat(2));

    let said = succeed(&mut query.command(["-o", "json"]));

    assert_eq!(json_lines(&said.out)[0]["rowsIn"], 0);
    says(&said, &["SOURCE_FILE_CHANGED", "2.jsonl", "new rows come in new files"]);
}

#[test]
fn no_rows_are_no_error() {
    let empty_file = Counter::over(&[("1.jsonl", "")]);
    assert_eq!(empty_file.summary([])["rowsIn"], 0);
    assert!(empty_file.rows().is_empty());

    let only_a_header = Counter::over(&[("1.csv", "key,n\n")]);
    assert_eq!(only_a_header.summary([])["rowsIn"], 0);

    let empty_folder = Counter::over(&[]);
    assert_eq!(empty_folder.summary(["--format", "jsonl"])["batches"], 0);

    let everything_rejected = Counter::over(&[("1.jsonl", "?\n")]);
    assert_eq!(everything_rejected.summary(["--bad-rows", "skip"])["rowsRejected"], 1);
}

#[test]
fn without_a_row_to_look_at_the_schema_and_the_format_must_be_given() {
    let empty_file = Counter::over(&[("1.jsonl", "")]);
    says(
        &fail_with(&mut empty_file.without_schema([]), "SOURCE_SCHEMA_REQUIRED"),
        &["1.jsonl", "source.schema", "BIGINT"],
    );

    let empty_folder = Counter::over(&[]);
    let said = fail_with(&mut empty_folder.command([]), "SOURCE_SETTING_INVALID");
    says(&said, &["source.format", "no file whose name ends in .jsonl, .csv or .parquet", "set jsonl, csv or parquet"]);
}

#[test]
fn a_schema_that_was_not_given_is_inferred_and_shown() {
    let query = Counter::over(&[("1.jsonl", A)]);
    let said = succeed(&mut query.without_schema([]));
    says(&said, &["schema inferred: key STRING, n BIGINT"]);
    assert_eq!(query.counts(), [("a", 1)].map(owned));
}

#[test]
fn compressed_files_are_read_as_their_names_say() {
    let query = Counter::over(&[]);
    query.write("1.jsonl.gz", gzip(A));
    query.write("2.jsonl.zst", zstd::encode_all(A.as_bytes(), 1).unwrap());
    query.write("3.jsonl", A);
    assert_eq!(query.summary([])["rowsIn"], 3);
    assert_eq!(query.counts(), [("a", 3)].map(owned));
}

#[test]
fn what_a_sink_writes_a_source_reads() {
    let body = "with \\\"quotes\\\", commas, and é\\nlines";
    let events = format!(
        "{{\"id\":\"e1\",\"body\":\"{body}\"}}\n{{\"id\":\"e2\",\"body\":null}}\n{{\"id\":\"e1\",\"body\":\"again\"}}\n"
    );
    for format in ["jsonl", "csv", "parquet"] {
        let first = Counter::over(&[("1.jsonl", &events)]);
        succeed(&mut first.dedup(["--sink-format", format]));
        let written = first.path().join("rows");
        let second = Counter::over(&[]);

        succeed(&mut second.dedup(["--input", written.to_str().unwrap()]));

        let expected = json_lines(&events);
        let mut rows = json_lines(&second.rows());
        rows.sort_by_key(|row| row["id"].to_string());
        assert_eq!(rows, expected[..2], "through {format}");
    }
}

#[test]
fn an_output_of_another_format_is_the_same_rows() {
    let query = Counter::over(&[("1.jsonl", &format!("{A}{A}{B}"))]);
    query.summary([]);
    let csv = Counter::over(&[("1.jsonl", &format!("{A}{A}{B}"))]);
    csv.summary(["--sink-format", "csv"]);
    let as_csv: String = json_lines(&query.rows())
        .iter()
        .map(|row| format!("{},{},{},{}\n", row["key"].as_str().unwrap(), row["count"], row["listed"], row["distinct"]))
        .collect();
    assert_eq!(csv.rows(), format!("key,count,listed,distinct\n{as_csv}"));
}

// Settings

#[test]
fn settings_that_cannot_be_are_named_with_what_could_be() {
    let query = Counter::over(&[("1.jsonl", A)]);
    let cases: &[(&[&str], &str, &[&str])] = &[
        (&["--set", "limits.rows_per_bach=1"], "CONFIG_INVALID", &["rows_per_bach", "`rows_per_batch`"]),
        (&["--set", "limits.sandbox.memory=1"], "CONFIG_INVALID", &["`memory`", "`memory_bytes`", "limits.sandbox"]),
        (&["--set", "queri.name=x"], "CONFIG_INVALID", &["`queri`", "`query`"]),
        (&["--set", "nothing"], "CONFIG_INCOMPLETE", &["NAME=VALUE"]),
        (&["--time-mode", "sometimes"], "CONFIG_INVALID", &["`sometimes`", "`processing-time`", "query.time_mode"]),
        (&["--bad-rows", "ignore"], "CONFIG_INVALID", &["`ignore`", "`skip`", "query.bad_rows"]),
        (&["--trigger", "soon"], "CONFIG_INVALID", &["\"soon\" is no trigger", "5s"]),
        (&["--trigger", "0s"], "CONFIG_INVALID", &["\"0s\" is no trigger"]),
        (&["--watermark", "at, 5 parsecs"], "CONFIG_INVALID", &["5 parsecs", "10 minutes", "query.watermark.delay"]),
        (&["--watermark", "at"], "CONFIG_INCOMPLETE", &["COLUMN, DELAY"]),
        (
            &["--watermark", "at, 5s", "--time-mode", "event-time"],
            "WATERMARK_COLUMN_MISSING",
            &["at", SCHEMA, "TIMESTAMP"],
        ),
        (&["--time-mode", "event-time"], "WATERMARK_MISSING", &["--watermark 'COLUMN, DELAY'"]),
        (&["--schema", "key STRNG"], "CONFIG_INVALID", &["no type STRNG", "STRING", "source.schema"]),
        (&["--schema", "key STRING, KEY INT"], "CONFIG_INVALID", &["`KEY` is there twice", "rename"]),
        (&["--format", "xml"], "CONFIG_INVALID", &["`xml`", "`jsonl`", "source.format"]),
        (&["--key", "kee"], "KEY_COLUMN_MISSING", &["`kee`", "there are: key, n"]),
        (&["--workers", "many"], "", &["many", "--workers"]),
        (&["--config", "nowhere.toml"], "CONFIG_UNREADABLE", &["nowhere.toml", "check the path"]),
        (&["--clock", "nowhere"], "CONFIG_UNREADABLE", &["nowhere", "check the path"]),
        (&["--sink-format", "parquet", "--sink", "-"], "SINK_SETTING_INVALID", &["jsonl or csv"]),
    ];
    for (arguments, code, words) in cases {
        let said = run(&mut query.command(arguments.iter().copied()));
        // A flag of the wrong kind is wrong usage, and for clap to say.
        let (exit, head) = if code.is_empty() { (2, "error: ".to_owned()) } else { (1, format!("error[{code}]: ")) };
        assert_eq!(said.code, Some(exit), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(&head), "{arguments:?}: {}", said.err);
        says(&said, words);
    }
    assert_eq!(query.summary([])["rowsIn"], 1);
}

#[test]
fn what_a_query_does_not_say_is_asked_for() {
    let query = Counter::over(&[("1.jsonl", A)]);
    let (component, input) = (component("counter"), query.path().join("input"));
    let (component, input) = (component.to_str().unwrap(), input.to_str().unwrap());
    let cases: [(&[&str], &str, &str); 6] = [
        (&[], "CONFIG_INCOMPLETE", "a component as first argument"),
        (&[component], "CONFIG_INCOMPLETE", "--input PATH"),
        (&[component, "--input", input], "CONFIG_INCOMPLETE", "--sink PATH"),
        (&[component, "--input", input, "--sink", "-"], "CONFIG_INCOMPLETE", "--key COLUMN"),
        (&[component, "--input", input, "--sink", "-", "--key", "key"], "CHECKPOINT_MISSING", "--checkpoint DIR"),
        (
            &[component, "--input", "-", "--sink", "-", "--key", "key", "--ephemeral"],
            "SOURCE_SCHEMA_REQUIRED",
            "source.schema",
        ),
    ];
    for (arguments, code, how) in cases {
        says(&fail_with(tidemill().arg("run").args(arguments), code), &[how]);
    }
}

#[test]
fn a_typing_error_in_a_query_file_is_named_with_its_table() {
    let query = Counter::over(&[("1.jsonl", A)]);
    let file = query.path().join("query.toml");
    let text = format!(
        "[processor]\ncomponent = {:?}\n[source]\npath = \"input\"\nschema = \"{SCHEMA}\"\n[query]\nkey = [\"key\"]\n\
         checkpoint = \"checkpoint\"\n[sink]\npath = \"rows\"\n",
        component("counter")
    );
    let config = |text: &str| {
        fs::write(&file, text).unwrap();
        let mut command = tidemill();
        command.arg("run").arg("--config").arg(&file);
        command
    };
    let cases = [
        (text.replace("checkpoint =", "chekpoint ="), ["`chekpoint`", "`checkpoint`", "`query`"]),
        (text.replace("[sink]", "[skin]"), ["`skin`", "`sink`", "query.toml"]),
        (text.replace("schema =", "schema = ="), ["line 5", "query.toml", "schema"]),
        (text.replace("[\"key\"]", "1"), ["query.key", "sequence", "query.toml"]),
    ];
    for (text, words) in cases {
        says(&fail_with(&mut config(&text), "CONFIG_INVALID"), &words);
    }
    succeed(&mut config(&text));
    assert_eq!(query.counts(), [("a", 1)].map(owned));
}

#[test]
fn a_clock_file_that_is_none_or_ends_too_soon_is_named() {
    let query = Counter::over(&[("1.jsonl", A), ("2.jsonl", B)]);
    let clock = query.path().join("clock");
    let by_file = ["--clock", clock.to_str().unwrap(), "--set", "limits.files_per_batch=1"];

    fs::write(&clock, "2026-01-01T00:00:00Z\nnoon\n").unwrap();
    says(&fail_with(&mut query.command(by_file), "CLOCK_FILE_INVALID"), &["line 2", "noon", "RFC 3339"]);

    fs::write(&clock, "2026-01-01T00:00:00Z\n").unwrap();
    says(&fail_with(&mut query.command(by_file), "CLOCK_EXHAUSTED"), &["batch 1", "add a line"]);
}

// Components

#[test]
fn a_file_that_is_no_processor_is_told_what_it_is() {
    let query = Counter::over(&[("1.jsonl", A)]);
    let handler =
        |version: &str| format!("(instance $i) (export \"tidemill:processor/handler@{version}\" (instance $i))");
    let imports = r#"(import "wasi:http/types@0.2.10" (instance)) (import "evil:host/shell" (instance))"#;
    let cases: [(&str, Vec<u8>, &str, &[&str]); 7] = [
        ("empty.wasm", Vec::new(), "COMPONENT_EMPTY", &["empty.wasm", "build the processor again"]),
        ("core.wasm", wat("(module)"), "COMPONENT_IS_CORE_MODULE", &["core.wasm", "tidemill build"]),
        ("text.wasm", b"#!/bin/sh\n".to_vec(), "COMPONENT_INVALID", &["text.wasm", "tidemill build"]),
        (
            "cut.wasm",
            wat("(component (core module))").split_last().unwrap().1.to_vec(),
            "COMPONENT_INVALID",
            &["cut.wasm"],
        ),
        ("other.wasm", wat("(component)"), "COMPONENT_WORLD_MISMATCH", &["exports nothing", "matching SDK"]),
        (
            "imports.wasm",
            wat(&format!("(component {imports} {})", handler("0.1.0"))),
            "COMPONENT_IMPORTS_UNKNOWN",
            &["evil:host/shell", "wasi:http/types@0.2.10", "it grants only"],
        ),
        (
            "newer.wasm",
            wat(&format!("(component {})", handler("0.9.0"))),
            "COMPONENT_WORLD_MISMATCH",
            &["tidemill:processor@0.1.0", "handler@0.9.0", "matching SDK"],
        ),
    ];
    for (name, bytes, code, words) in cases {
        let path = query.path().join(name);
        fs::write(&path, bytes).unwrap();
        says(&fail_with(&mut query.run_component(&path, []), code), words);
    }
    let large = query.path().join("large.wasm");
    File::create(&large).unwrap().set_len(COMPONENT_BYTES_MAX + 1).unwrap();
    says(&fail_with(&mut query.run_component(&large, []), "COMPONENT_TOO_LARGE"), &["large.wasm", "leave out"]);
    for place in [query.path().join("nowhere.wasm"), query.path().to_owned()] {
        says(&fail_with(&mut query.run_component(&place, []), "COMPONENT_UNREADABLE"), &["check the path"]);
    }
    assert!(!query.path().join("checkpoint").exists(), "a checkpoint was made for nothing");
}

// Checkpoints and sinks

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

// Runs and streams

#[test]
fn a_query_that_has_read_everything_does_nothing_until_there_are_new_files() {
    let query = Counter::over(&[("1.jsonl", A)]);
    assert_eq!(query.summary([])["batches"], 1);
    assert_eq!(query.summary([])["batches"], 0);
    assert_eq!(query.counts(), [("a", 1)].map(owned));

    query.write("2.jsonl", A);

    assert_eq!(query.summary([])["batches"], 1);
    assert_eq!(query.counts(), [("a", 1), ("a", 2)].map(owned));
}

#[test]
fn an_ephemeral_query_keeps_nothing() {
    let query = Counter::over(&[("1.jsonl", A)]);
    let mut command = tidemill();
    command.arg("run").arg(component("counter")).args(["--key", "key", "--sink", "-", "--ephemeral", "--input"]);
    command.arg(query.path().join("input"));

    for _ in 0..2 {
        assert_eq!(json_lines(&succeed(&mut command).out)[0]["count"], 1);
    }
    assert!(!query.path().join("checkpoint").exists());
}

#[test]
fn a_summary_and_an_error_can_be_read_by_programs() {
    let query = Counter::over(&[("1.jsonl", &format!("{A}{A}{B}"))]);
    let summary = query.summary([]);
    let expected = json!({
        "batches": 1, "lastBatch": 0, "rowsIn": 3, "rowsOut": 2, "rowsLate": 0, "rowsRejected": 0, "stateRows": 6,
        "watermarkMs": 0
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!((name, &summary[name]), (name, value));
    }

    let said = run(&mut query.command(["--key", "kee", "-o", "json"]));
    let error: Value = serde_json::from_str(&said.err).unwrap();
    assert_eq!(error["error"]["code"], "KEY_COLUMN_MISSING");
    assert!(error["error"]["message"].as_str().unwrap().contains("there are: key, n"));
    assert!(said.out.is_empty());
}

#[test]
fn a_stream_that_is_interrupted_goes_on_with_another_one() {
    let query = Counter::over(&[]);
    let mut first = Stream::start(&query, []);
    first.send(A);
    assert_eq!(first.emitted_row()["count"], 1);
    first.interrupt();
    let (code, err) = first.end_without_closing();
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("Stopping after the batch in hand"), "{err}");

    let mut second = Stream::start(&query, []);
    second.send(A);
    assert_eq!(second.emitted_row()["count"], 2);
    assert_eq!(second.end().0, Some(0));
}

#[test]
fn a_stream_that_begins_anew_can_skip_what_is_committed_after_it_was_compared() {
    let query = Counter::over(&[]);
    let skip = ["--set", "source.skip_committed=true"];
    let mut first = Stream::start(&query, []);
    first.send(A);
    first.emitted_row();
    first.end();

    let mut again = Stream::start(&query, skip);
    again.send(A);
    again.send(A);
    assert_eq!(again.emitted_row()["count"], 2);
    again.end();

    let mut other = Stream::start(&query, skip);
    other.send(B);
    other.send(B);
    let (code, err) = other.end();
    assert_eq!(code, Some(1));
    assert!(err.contains("error[STDIN_PREFIX_MISMATCH]") && err.contains("nothing was processed"), "{err}");
}

#[test]
fn a_reader_that_goes_away_ends_the_query_with_a_code_and_the_rows_come_again() {
    let query = Counter::over(&[]);
    let mut stream = Stream::start(&query, []);
    stream.send(A);
    stream.emitted_row();
    stream.close_output();
    stream.send(A);

    let (code, err) = stream.end_without_closing();

    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("error[SINK_CLOSED]") && err.contains("written again by the next start"), "{err}");
    let mut next = Stream::start(&query, []);
    assert_eq!(next.emitted_row()["count"], 2);
    assert_eq!(next.end().0, Some(0));
}

#[test]
fn one_interrupt_lets_the_batch_in_hand_end_and_a_second_abandons_it() {
    let query = Counter::over(&[]);
    let steps = |times: u32| {
        let step = |op: &str, arg: &str| format!("{}\n", json!({ "key": "k", "op": op, "arg": arg }));
        step("log", "in hand") + &step("repeat", &format!("{times} value.clear")) + &step("emit", "done")
    };
    let endless = ["--set", "limits.rows_per_batch=3", "--set", "limits.sandbox.chunk_time_ms=3600000"];
    let emit = "{\"key\":\"k\",\"op\":\"emit\",\"arg\":\"next\"}\n";

    query.write("1.jsonl", steps(4_000_000_000));
    let mut abandoned = Interrupted::in_hand(query.script(endless));
    abandoned.interrupt();
    abandoned.wait_for("interrupt again to abandon it");
    abandoned.interrupt();
    assert_eq!(abandoned.end(), Some(130));
    assert!(query.rows().is_empty(), "a batch that was abandoned has not happened");

    query.write("1.jsonl", steps(1_000_000) + emit);
    let finished = Interrupted::in_hand(query.script(endless));
    finished.interrupt();
    assert_eq!(finished.end(), Some(0));
    let results: Vec<_> = json_lines(&query.rows()).iter().map(|row| row["result"].clone()).collect();
    assert_eq!(results, [json!("done")], "the batch in hand is committed, the next is not begun");

    succeed(&mut query.script(endless));
    assert_eq!(json_lines(&query.rows()).len(), 2);
}

/// A query over the counter, or another component, in a folder of its own.
struct Counter(TempDir);

impl Counter {
    fn over(files: &[(&str, &str)]) -> Self {
        let query = Self(TempDir::new().unwrap());
        fs::create_dir(query.path().join("input")).unwrap();
        files.iter().for_each(|(name, text)| query.write(name, text));
        query
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file of the input; files are read in the order of the number that they begin with.
    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let number = name.split('.').next().and_then(|number| number.parse().ok()).unwrap();
        write_at(&self.path().join("input").join(name), text, number);
    }

    fn run_component<'a>(&self, component: &Path, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = tidemill();
        command.current_dir(self.path()).arg("run").arg(component);
        let defaults = ["--input", "input", "--sink", "rows", "--checkpoint", "checkpoint", "--key", "key"];
        // A flag may be given only once, so what the arguments say is left out of the defaults.
        let arguments: Vec<&str> = arguments.into_iter().collect();
        for pair in defaults.chunks(2) {
            if !arguments.contains(&pair[0]) {
                command.args(pair);
            }
        }
        command.args(arguments);
        command
    }

    fn without_schema<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        self.run_component(&component("counter"), arguments)
    }

    fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let arguments: Vec<&str> = arguments.into_iter().collect();
        let schema: &[&str] = if arguments.contains(&"--schema") { &[] } else { &["--schema", SCHEMA] };
        self.without_schema(arguments.into_iter().chain(schema.iter().copied()))
    }

    /// From standard input to standard output.
    fn streaming<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        self.command(["--input", "-", "--sink", "-"].into_iter().chain(arguments))
    }

    /// The script guest over the same input.
    fn script<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let schema = ["--schema", "key STRING, op STRING, arg STRING"];
        self.run_component(&component("script"), schema.into_iter().chain(arguments))
    }

    /// Events without duplicates; what goes in comes out.
    fn dedup<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let defaults = ["--key", "id", "--time-mode", "processing-time", "--schema", "id STRING, body STRING"];
        self.run_component(&component("dedup"), defaults.into_iter().chain(arguments))
    }

    /// Runs it, and answers the summary.
    fn summary<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Value {
        let said = succeed(self.command(arguments).args(["-o", "json"]));
        serde_json::from_str(&said.out).unwrap()
    }

    fn rows(&self) -> String {
        rows(&self.path().join("rows"))
    }

    /// Key and count of every row, sorted.
    fn counts(&self) -> Vec<(String, i64)> {
        let count = |row: &Value| (row["key"].as_str().unwrap().to_owned(), row["count"].as_i64().unwrap());
        let mut counts: Vec<_> = json_lines(&self.rows()).iter().map(count).collect();
        counts.sort();
        counts
    }
}

/// A running query from standard input to standard output.
struct Stream {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<std::process::ChildStdout>>,
}

impl Stream {
    fn start<'a>(query: &Counter, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        let mut command = query.streaming(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Self { child, input, output }
    }

    fn send(&mut self, rows: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(rows.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    /// Waits for the next row.
    fn emitted_row(&mut self) -> Value {
        let mut line = String::new();
        self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn close_output(&mut self) {
        self.output = None;
    }

    fn interrupt(&self) {
        interrupt(&self.child);
    }

    /// Ends the input, and waits for the end of the query: its exit code and what it said.
    fn end(mut self) -> (Option<i32>, String) {
        self.input = None;
        self.end_without_closing()
    }

    fn end_without_closing(mut self) -> (Option<i32>, String) {
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (self.child.wait().unwrap().code(), err)
    }
}

/// A query whose processor has said that a batch is in hand.
struct Interrupted {
    child: Child,
    err: BufReader<std::process::ChildStderr>,
}

impl Interrupted {
    fn in_hand(mut command: Command) -> Self {
        let mut child = command.env("TIDEMILL_LOG", "processor=info").stderr(Stdio::piped()).spawn().unwrap();
        let err = BufReader::new(child.stderr.take().unwrap());
        let mut this = Self { child, err };
        this.wait_for("in hand");
        this
    }

    fn wait_for(&mut self, words: &str) {
        let mut said = String::new();
        while !said.contains(words) {
            let read = self.err.read_line(&mut said).unwrap();
            assert!(read > 0, "it ended without {words:?}: {said}");
        }
    }

    fn interrupt(&self) {
        interrupt(&self.child);
    }

    fn end(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

fn says(said: &Said, words: &[&str]) {
    for word in words {
        assert!(said.err.contains(word), "it should say {word:?}: {}", said.err);
    }
}

fn owned((key, count): (&str, i64)) -> (String, i64) {
    (key.to_owned(), count)
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}
