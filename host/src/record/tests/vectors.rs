//! The test vectors that every SDK runs.

use serde::Deserialize;
use serde_json::Value;

use super::super::{
    RowEncoder, RowLayout, Schema, decode_rows, key_from_json, key_layout, row_from_json, row_to_json, validate_key,
};

const VECTORS: &str = include_str!("../../../../wit/vectors/packed-rows.json");

#[derive(Deserialize)]
struct Vectors {
    valid: Vec<Row>,
    keys: Vec<Row>,
    invalid: Vec<Invalid>,
    invalid_keys: Vec<Invalid>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    schema: String,
    row: Value,
    hex: String,
    #[serde(default)]
    also: Vec<Value>,
}

#[derive(Deserialize)]
struct Invalid {
    name: String,
    schema: String,
    hex: String,
    code: String,
}

fn vectors() -> Vectors {
    serde_json::from_str(VECTORS).unwrap()
}

fn layout(ddl: &str) -> RowLayout {
    RowLayout::new(&Schema::parse(ddl).unwrap())
}

fn from_hex(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn valid_rows_have_these_bytes_in_every_direction() {
    let vectors = vectors();
    assert!(vectors.valid.len() > 40);
    for Row { name, schema, row, hex, also } in vectors.valid {
        let layout = layout(&schema);
        for json in std::iter::once(&row).chain(&also) {
            assert_eq!(to_hex(&row_from_json(&layout, json).unwrap()), hex, "{name}: {json}");
        }
        let bytes = from_hex(&hex);
        assert_eq!(layout.validate(&bytes), Ok(()), "{name}");
        assert_eq!(row_to_json(&layout, &bytes).unwrap().to_string(), row.to_string(), "{name}");

        let batch = decode_rows(&layout, [bytes.as_slice()]).unwrap();
        let mut again = Vec::new();
        RowEncoder::new(&layout, &batch).unwrap().encode(0, &mut again);
        assert_eq!(to_hex(&again), hex, "{name}: by way of Arrow");
    }
}

#[test]
fn keys_have_these_bytes() {
    for Row { name, schema, row, hex, .. } in vectors().keys {
        let layout = key_layout(&Schema::parse(&schema).unwrap()).unwrap();
        assert_eq!(to_hex(&key_from_json(&layout, &row).unwrap()), hex, "{name}");
        assert_eq!(validate_key(&layout, &from_hex(&hex)), Ok(()), "{name}");
    }
}

#[test]
fn invalid_rows_are_refused_with_their_code() {
    let vectors = vectors();
    assert!(vectors.invalid.len() > 40);
    for Invalid { name, schema, hex, code } in vectors.invalid {
        let fault = layout(&schema).validate(&from_hex(&hex)).expect_err(&name);
        assert_eq!(fault.code(), code, "{name}: {fault}");
    }
}

#[test]
fn invalid_keys_are_valid_rows_and_refused_as_keys() {
    for Invalid { name, schema, hex, code } in vectors().invalid_keys {
        let layout = layout(&schema);
        assert_eq!(layout.validate(&from_hex(&hex)), Ok(()), "{name}");
        assert_eq!(validate_key(&layout, &from_hex(&hex)).expect_err(&name).code(), code, "{name}");
    }
}
