//! Files of the input: damaged, missing, changed, empty, compressed, of each format.

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::{A, B, Counter, owned, says};
use crate::support::{fail_with, json_lines, succeed};

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
fn a_file_in_use_is_missed_also_where_no_other_tells_format_and_schema() {
    let query = Counter::over(&[("1.jsonl", &A.repeat(10))]);
    let row_by_row = ["--set", "limits.rows_per_batch=2"];
    let crashed = query.without_schema(row_by_row).env("TIDEMILL_CRASH_AT", "apply.after:2").status().unwrap();
    assert_eq!(crashed.code(), None, "it should have been killed");

    fs::remove_file(query.path().join("input/1.jsonl")).unwrap();

    let said = fail_with(&mut query.without_schema(row_by_row), "SOURCE_FILE_MISSING");
    says(&said, &["1.jsonl", "needed from row 5 on", "put it back as it was"]);
    fail_with(query.without_schema(row_by_row).args(["--format", "jsonl"]), "SOURCE_FILE_MISSING");
}

#[test]
fn a_link_to_nothing_is_warned_about_and_read_once_it_leads_somewhere() {
    let query = Counter::over(&[("1.jsonl", A)]);
    std::os::unix::fs::symlink("../later.jsonl", query.path().join("input/2.jsonl")).unwrap();

    says(&succeed(&mut query.command([])), &["SOURCE_NOT_A_FILE", "2.jsonl", "until it is a file"]);

    fs::write(query.path().join("later.jsonl"), B).unwrap();
    succeed(&mut query.command([]));
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

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}
