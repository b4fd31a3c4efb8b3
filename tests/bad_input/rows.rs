//! Rows that do not fit: they fail the batch, are skipped, or are put aside with the reason.

use serde_json::json;
use tempfile::TempDir;

use super::{A, B, Counter, SCHEMA, owned, says};
use crate::support::{Example, fail_with, json_lines, rows, succeed, write_at};

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
