//! How rows read and print as JSON.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::calendar::{format_date, format_timestamp, parse_date, parse_timestamp};
use super::super::{RowLayout, Schema, row_from_json, row_to_json};

fn layout(ddl: &str) -> RowLayout {
    RowLayout::new(&Schema::parse(ddl).unwrap())
}

fn again(ddl: &str, row: &Value) -> Value {
    let layout = layout(ddl);
    row_to_json(&layout, &row_from_json(&layout, row).unwrap()).unwrap()
}

proptest! {
    #[test]
    fn every_day_has_a_text(days in any::<i32>()) {
        prop_assert_eq!(parse_date(&format_date(days)), Some(days));
    }

    #[test]
    fn every_microsecond_has_a_text(micros in any::<i64>()) {
        prop_assert_eq!(parse_timestamp(&format_timestamp(micros)), Some(micros));
    }

    #[test]
    fn floats_come_back_with_few_digits(value in any::<f32>()) {
        let row = again("f FLOAT", &json!({"f": value}));
        prop_assert_eq!(row["f"].as_f64().unwrap() as f32, value);
        let text = row["f"].to_string();
        let digits = text.split('e').next().unwrap().replace(['-', '.'], "");
        prop_assert!(digits.trim_matches('0').len() <= 9, "{}", text);
    }

    #[test]
    fn arbitrary_times_never_panic(text in "[0-9TZ:. +-]{0,30}") {
        let _ = (parse_date(&text), parse_timestamp(&text));
    }
}

#[test]
fn calendar_days_are_those_of_the_gregorian_calendar() {
    let cases = [
        (0, "1970-01-01"),
        (-1, "1969-12-31"),
        (11_016, "2000-02-29"),
        (19_782, "2024-02-29"),
        (-719_162, "0001-01-01"),
        (-719_528, "0000-01-01"),
        (-719_529, "-0001-12-31"),
        (2_932_897, "+10000-01-01"),
        (i32::MAX, "+5881580-07-11"),
        (i32::MIN, "-5877641-06-23"),
    ];
    for (days, text) in cases {
        assert_eq!(format_date(days), text);
        assert_eq!(parse_date(text), Some(days));
    }
    for wrong in [
        "",
        "1970",
        "1970-1-1",
        "2023-02-29",
        "1900-02-29",
        "1970-13-01",
        "1970-00-10",
        "1970-01-32",
        "1970-01-01 ",
        "12345-01-01",
        "٢٠٢٤-01-01",
    ] {
        assert_eq!(parse_date(wrong), None, "{wrong}");
    }
}

#[test]
fn times_are_read_with_offsets_and_fractions() {
    let noon = parse_timestamp("2013-01-31T12:00:00Z").unwrap();
    for same in ["2013-01-31 12:00:00.0Z", "2013-01-31T14:30:00+02:30", "2013-01-30T23:59:00.000000-12:01"] {
        assert_eq!(parse_timestamp(same), Some(noon), "{same}");
    }
    assert_eq!(parse_timestamp("2013-01-31T12:00:00.01Z"), Some(noon + 10_000));
    for wrong in [
        "2013-01-31",
        "2013-01-31T12:00:00",
        "2013-01-31T24:00:00Z",
        "2013-01-31T12:00:60Z",
        "2013-01-31T12:00:00.Z",
        "2013-01-31T12:00:00.1234567Z",
        "2013-01-31T12:00:00z",
        "+300000-01-01T00:00:00Z",
    ] {
        assert_eq!(parse_timestamp(wrong), None, "{wrong}");
    }
}

#[test]
fn json_that_is_no_row_says_why() {
    let cases = [
        ("a INT", json!([1]), "row: expected an object, found an array"),
        ("a INT", json!({"b": 1}), "row: there is no column `b`; there are: a"),
        ("a INT", json!({"a": 1, "A": 2}), "column `A`: is there twice"),
        ("a INT NOT NULL", json!({}), "column `a`: is NULL"),
        ("a TINYINT", json!({"a": 128}), "column `a`: expected a whole number from -128 to 127, found 128"),
        ("a INT", json!({"a": 1.0}), "found 1.0"),
        ("a BOOLEAN", json!({"a": 1}), "expected true or false, found 1"),
        ("a FLOAT", json!({"a": 1e39}), "in the range of FLOAT"),
        ("a DOUBLE", json!({"a": "nan"}), "expected a number, found \"nan\""),
        (
            "a DECIMAL(3,1)",
            json!({"a": "100"}),
            "expected a decimal as a string, of at most 3 digits, 1 after the point",
        ),
        ("a DECIMAL(3,1)", json!({"a": "1.25"}), "found \"1.25\""),
        ("a DECIMAL(3,1)", json!({"a": 1.5}), "found 1.5"),
        ("a DECIMAL(3,1)", json!({"a": "."}), "expected a decimal"),
        ("a DECIMAL(38,0)", json!({"a": "9".repeat(60)}), "expected a decimal"),
        ("a BINARY", json!({"a": "a"}), "expected a string in base64"),
        ("a DATE", json!({"a": "31.1.2013"}), "expected a date"),
        ("a ARRAY<INT>", json!({"a": [1, "x"]}), "column `a[1]`: expected a whole number"),
        ("a STRUCT<b: STRUCT<c: INT>>", json!({"a": {"b": {"c": true}}}), "column `a.b.c`: expected"),
        ("a MAP<STRING, INT>", json!({"a": [["k", 1]]}), "expected an object"),
        ("a MAP<INT, INT>", json!({"a": [[1, 1], [1, 2]]}), "column `a`: the key 1 is there twice"),
        ("a MAP<INT, INT>", json!({"a": [[null, 1]]}), "column `a.key[0]`: a key of a map cannot be NULL"),
        ("a MAP<INT, INT>", json!({"a": [[1]]}), "expected an array of [key, value]"),
        ("a MAP<DOUBLE, INT>", json!({"a": [[0.0, 1], [-0.0, 2]]}), "is there twice"),
    ];
    for (ddl, row, message) in cases {
        let error = row_from_json(&layout(ddl), &row).unwrap_err();
        assert!(error.to_string().contains(message), "{ddl} {row}: {error}");
    }
    let null = row_from_json(&layout("a INT NOT NULL"), &json!({})).unwrap_err();
    assert_eq!(null.code(), "ILLEGAL_STATE_STORE_VALUE.NULL_VALUE");
}

#[test]
fn columns_come_in_the_order_of_the_schema() {
    assert_eq!(again("b INT, a INT", &json!({"A": 1, "b": 2})).to_string(), r#"{"b":2,"a":1}"#);
}
