//! How rows read and print as JSON.

use proptest::prelude::*;
use serde_json::{Value, json};

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
    fn floats_come_back_with_few_digits(value in any::<f32>()) {
        let row = again("f FLOAT", &json!({"f": value}));
        prop_assert_eq!(row["f"].as_f64().unwrap() as f32, value);
        let text = row["f"].to_string();
        let digits = text.split('e').next().unwrap().replace(['-', '.'], "");
        prop_assert!(digits.trim_matches('0').len() <= 9, "{}", text);
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
