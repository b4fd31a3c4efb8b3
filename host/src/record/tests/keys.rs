//! What makes keys equal, and where they go.

use std::sync::Arc;

use arrow_array::{Float64Array, RecordBatch};
use proptest::prelude::*;
use serde_json::json;

use super::super::{
    GroupingKey, KeyEncoder, RowEncoder, Schema, hash_key, key_from_json, key_group, key_layout, row_from_json,
    validate_key,
};

#[test]
fn negative_zero_and_zero_are_one_key() {
    let layout = key_layout(&Schema::parse("k DOUBLE").unwrap()).unwrap();
    let column = Arc::new(Float64Array::from(vec![-0.0, 0.0]));
    let batch = RecordBatch::try_new(Arc::clone(layout.arrow_schema()), vec![column]).unwrap();
    let (mut negative, mut positive, mut row) = (Vec::new(), Vec::new(), Vec::new());

    let encoder = KeyEncoder::new(&layout, &batch).unwrap();
    let hashes = (encoder.encode(0, &mut negative), encoder.encode(1, &mut positive));
    RowEncoder::new(&layout, &batch).unwrap().encode(0, &mut row);

    assert_eq!(negative, positive);
    assert_eq!(hashes, (hash_key(&positive), hash_key(&positive)));
    assert_eq!(validate_key(&layout, &negative), Ok(()));
    assert_ne!(row, negative, "in a value the sign stays");
    assert_eq!(validate_key(&layout, &row).unwrap_err().code(), "INVALID_ROW");
    assert_eq!(layout.validate(&row), Ok(()));
    assert_eq!(key_from_json(&layout, &json!({"k": -0.0})).unwrap(), negative);
    assert_eq!(row_from_json(&layout, &json!({"k": -0.0})).unwrap(), row);
}

#[test]
fn the_hash_of_a_key_appended_to_others_is_of_that_key_alone() {
    let layout = key_layout(&Schema::parse("k DOUBLE").unwrap()).unwrap();
    let column = Arc::new(Float64Array::from(vec![1.0]));
    let batch = RecordBatch::try_new(Arc::clone(layout.arrow_schema()), vec![column]).unwrap();
    let mut keys = vec![1, 2, 3];
    let hash = KeyEncoder::new(&layout, &batch).unwrap().encode(0, &mut keys);
    assert_eq!(hash, GroupingKey::new(&keys[3..]).hash);
}

#[test]
fn maps_are_refused_in_keys() {
    for ddl in ["a INT, m MAP<STRING, INT>", "m ARRAY<STRUCT<x: MAP<INT, INT>>>"] {
        let error = key_layout(&Schema::parse(ddl).unwrap()).unwrap_err();
        assert_eq!(error.code(), "GROUP_EXPRESSION_TYPE_IS_NOT_ORDERABLE");
        assert!(error.to_string().contains("`m`"), "{error}");
    }
}

#[test]
fn the_hash_never_changes() {
    // Published values of XXH3-64 with seed 0: stores depend on them.
    assert_eq!(hash_key(b""), 0x2d06_8005_38d3_94c2);
    let layout = key_layout(&Schema::parse("k STRING NOT NULL").unwrap()).unwrap();
    let row = key_from_json(&layout, &json!({"k": "a"})).unwrap();
    assert_eq!(hash_key(&row), 13_984_135_845_730_392_441);
}

proptest! {
    #[test]
    fn key_groups_are_ranges_of_the_hash(a in any::<u64>(), b in any::<u64>(), groups in 1..=u16::MAX) {
        let (low, high) = (a.min(b), a.max(b));
        prop_assert!(key_group(low, groups) <= key_group(high, groups));
        prop_assert!(key_group(high, groups) < groups);
        prop_assert_eq!(key_group(0, groups), 0);
        prop_assert_eq!(key_group(u64::MAX, groups), groups - 1);
    }
}
