//! Schemas and rows of any bytes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a fuzzer is told by a panic")]

use serde_json::Value;

use super::{
    PackedRows, RowEncoder, RowLayout, Schema, decode_rows, key_from_json, key_layout, row_from_json, row_to_json,
    validate_key,
};

/// Splits a first line from what follows.
pub(crate) fn first_line(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    Some((std::str::from_utf8(bytes.get(..end)?).ok()?, bytes.get(end + 1..)?))
}

/// DDL: what is read is printed so that it reads as the same schema, also by way of Arrow.
pub(crate) fn ddl(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Schema::parse(text) {
        Ok(schema) => {
            let printed = schema.to_string();
            assert_eq!(Schema::parse(&printed).as_ref(), Ok(&schema), "{printed}");
            assert_eq!(Schema::from_arrow(&schema.to_arrow()).as_ref(), Ok(&schema), "{printed}");
            let _ = key_layout(&schema);
        }
        Err(error) => assert!(error.to_string().len() < 2_000, "{error}"),
    }
}

/// A line of DDL and a packed row: what is valid is decoded, and comes back as the same bytes, from Arrow and from JSON.
pub(crate) fn packed_rows(bytes: &[u8]) {
    let Some((ddl, row)) = first_line(bytes) else { return };
    let Ok(schema) = Schema::parse(ddl) else { return };
    let layout = RowLayout::new(&schema);
    let decoded = decode_rows(&layout, [row]);
    let json = row_to_json(&layout, row);
    if layout.validate(row).is_ok() {
        let mut encoded = Vec::new();
        RowEncoder::new(&layout, &decoded.unwrap()).unwrap().encode(0, &mut encoded);
        assert_eq!(encoded, row, "by way of Arrow, as {schema}");
        let json = json.unwrap();
        assert_eq!(row_from_json(&layout, &json).as_deref(), Ok(row), "by way of {json}, as {schema}");
    }
    if let Ok(layout) = key_layout(&schema)
        && validate_key(&layout, row).is_ok()
    {
        layout.validate(row).unwrap();
    }
    PackedRows::new(row).for_each(drop);
}

/// A line of DDL and a row in JSON: what is read is a valid row, and is written so that it reads as the same.
pub(crate) fn json_rows(bytes: &[u8]) {
    let Some((ddl, json)) = first_line(bytes) else { return };
    let (Ok(schema), Ok(value)) = (Schema::parse(ddl), serde_json::from_slice::<Value>(json)) else { return };
    let layout = RowLayout::new(&schema);
    if let Ok(row) = row_from_json(&layout, &value) {
        layout.validate(&row).unwrap();
        let written = row_to_json(&layout, &row).unwrap();
        assert_eq!(row_from_json(&layout, &written).as_ref(), Ok(&row), "by way of {written}, as {schema}");
    }
    if let Ok(layout) = key_layout(&schema)
        && let Ok(row) = key_from_json(&layout, &value)
    {
        validate_key(&layout, &row).unwrap();
    }
}
