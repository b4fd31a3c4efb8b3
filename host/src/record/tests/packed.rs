//! What encoders, decoders, validation and framing hold for random rows.

use std::sync::Arc;

use arrow_array::builder::{Int32Builder, MapBuilder, StringBuilder};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_buffer::NullBuffer;
use proptest::prelude::*;
use serde_json::json;

use super::super::{
    EncodeError, PackedRows, RowDecoder, RowEncoder, RowLayout, Schema, decode_rows, push_row, row_from_json,
    row_to_json,
};
use super::arbitrary::{pack, schema_and_rows};

fn layout(ddl: &str) -> RowLayout {
    RowLayout::new(&Schema::parse(ddl).unwrap())
}

fn batch(layout: &RowLayout, columns: Vec<ArrayRef>) -> RecordBatch {
    RecordBatch::try_new(Arc::clone(layout.arrow_schema()), columns).unwrap()
}

fn encode_all(layout: &RowLayout, batch: &RecordBatch) -> Vec<Vec<u8>> {
    let encoder = RowEncoder::new(layout, batch).unwrap();
    let encode = |row| {
        let mut out = Vec::new();
        encoder.encode(row, &mut out);
        out
    };
    (0..encoder.rows()).map(encode).collect()
}

/// Re-encodes rows that may come from anyone; none if they cannot be decoded.
fn canonical(layout: &RowLayout, row: &[u8]) -> Option<Vec<u8>> {
    let batch = decode_rows(layout, [row]).ok()?;
    let encoder = RowEncoder::new(layout, &batch).ok()?;
    let mut out = Vec::new();
    encoder.encode(0, &mut out);
    Some(out)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn rows_survive_arrow_json_and_bytes((schema, rows) in schema_and_rows(0..6)) {
        let layout = RowLayout::new(&schema);
        let packed = pack(&layout, &rows);
        for row in &packed {
            layout.validate(row).unwrap();
        }

        let decoded = decode_rows(&layout, packed.iter().map(Vec::as_slice)).unwrap();
        prop_assert_eq!(decoded.num_rows(), rows.len());
        prop_assert_eq!(&encode_all(&layout, &decoded), &packed);

        let json: Vec<_> = packed.iter().map(|row| row_to_json(&layout, row).unwrap()).collect();
        prop_assert_eq!(&pack(&layout, &json), &packed);
    }

    #[test]
    fn rows_of_a_slice_are_the_rows_of_the_whole((schema, rows) in schema_and_rows(3..6)) {
        let layout = RowLayout::new(&schema);
        let packed = pack(&layout, &rows);
        let whole = decode_rows(&layout, packed.iter().map(Vec::as_slice)).unwrap();

        let slice = whole.slice(1, rows.len() - 2);

        prop_assert_eq!(&encode_all(&layout, &slice), &packed[1..rows.len() - 1]);
    }

    #[test]
    fn equal_rows_are_equal_bytes((schema, rows) in schema_and_rows(2..5)) {
        let layout = RowLayout::new(&schema);
        let packed = pack(&layout, &rows);
        for (a, a_packed) in rows.iter().zip(&packed) {
            for (b, b_packed) in rows.iter().zip(&packed) {
                // As text, since -0.0 equals 0.0 as a number.
                let json = |row: &[u8]| row_to_json(&layout, row).unwrap().to_string();
                prop_assert_eq!(a_packed == b_packed, json(a_packed) == json(b_packed), "{} {}", a, b);
            }
        }
    }

    #[test]
    fn a_changed_row_is_refused_or_is_another_canonical_row(
        (schema, rows) in schema_and_rows(1..2),
        flip in 1..=255_u8,
    ) {
        let layout = RowLayout::new(&schema);
        let row = pack(&layout, &rows).remove(0);
        for at in 0..row.len() {
            for flip in [flip, 1, 0x80] {
                let mut changed = row.clone();
                changed[at] ^= flip;
                let again = canonical(&layout, &changed);
                let _ = row_to_json(&layout, &changed);
                if layout.validate(&changed).is_ok() {
                    prop_assert_eq!(again.as_deref(), Some(changed.as_slice()));
                }
            }
        }
    }

    #[test]
    fn a_cut_or_longer_row_is_refused((schema, rows) in schema_and_rows(1..2)) {
        let layout = RowLayout::new(&schema);
        let row = pack(&layout, &rows).remove(0);
        for length in 0..row.len() {
            prop_assert!(layout.validate(&row[..length]).is_err());
            prop_assert!(decode_rows(&layout, [&row[..length]]).is_err());
        }
        let longer = [row.as_slice(), &[0; 8]].concat();
        prop_assert!(layout.validate(&longer).is_err());
    }

    #[test]
    fn arbitrary_bytes_never_panic((schema, _) in schema_and_rows(0..1), words in prop::collection::vec(0..40_u64, 0..40)) {
        let layout = RowLayout::new(&schema);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let again = canonical(&layout, &bytes);
        let _ = row_to_json(&layout, &bytes);
        if layout.validate(&bytes).is_ok() {
            prop_assert_eq!(again, Some(bytes));
        }
    }

    #[test]
    fn framed_rows_come_back(rows in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..4), 0..5)) {
        let rows: Vec<Vec<u8>> = rows.iter().map(|row| row.iter().flat_map(|word| word.to_le_bytes()).collect()).collect();
        let mut list = Vec::new();
        for row in &rows {
            push_row(&mut list, row);
        }
        let read: Result<Vec<_>, _> = PackedRows::new(&list).collect();
        prop_assert_eq!(read.unwrap(), rows);
    }
}

#[test]
fn every_nan_becomes_the_one_nan() {
    let layout = layout("a DOUBLE");
    let nans = [f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001)];
    let batch = batch(&layout, vec![Arc::new(Float64Array::from(nans.to_vec()))]);
    for row in encode_all(&layout, &batch) {
        assert_eq!(row[8..], 0x7ff8_0000_0000_0000_u64.to_le_bytes());
    }
}

#[test]
fn what_stands_under_a_null_is_not_written() {
    let layout = layout("s STRUCT<x: BIGINT NOT NULL, t: STRING>");
    let hidden: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(vec![7])), Arc::new(StringArray::from(vec!["hidden"]))];
    let fields = match layout.arrow_schema().field(0).data_type() {
        arrow_schema::DataType::Struct(fields) => fields.clone(),
        other => panic!("{other}"),
    };
    let null = StructArray::new(fields, hidden, Some(NullBuffer::new_null(1)));
    let rows = encode_all(&layout, &batch(&layout, vec![Arc::new(null)]));
    assert_eq!(rows, [row_from_json(&layout, &json!({"s": null})).unwrap()]);
}

#[test]
fn a_batch_of_another_schema_is_refused() {
    let other = batch(&layout("a BIGINT"), vec![Arc::new(Int64Array::from(vec![1]))]);
    let error = RowEncoder::new(&layout("a BIGINT NOT NULL"), &other).unwrap_err();
    assert_eq!(error.code(), "SCHEMA_MISMATCH");
}

#[test]
fn a_repeated_map_key_names_its_rows() {
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for keys in [vec!["a", "b"], vec!["a", "a"], vec![], vec!["c", "b", "c"]] {
        for key in keys {
            maps.keys().append_value(key);
            maps.values().append_value(1);
        }
        maps.append(true).unwrap();
    }
    let schema = Schema::parse("m MAP<STRING, INT>").unwrap();
    let maps = RecordBatch::try_from_iter([("m", Arc::new(maps.finish()) as ArrayRef)]).unwrap();
    let maps = super::super::cast_batch(&maps, &schema).unwrap();

    let Err(EncodeError::BadRows(rows)) = RowEncoder::new(&RowLayout::new(&schema), &maps) else {
        panic!("the rows were accepted");
    };

    assert_eq!(rows.iter().map(|bad| bad.row).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(rows[0].column, "m");
}

#[test]
fn broken_framing_is_refused_once_and_then_ends() {
    let mut good = Vec::new();
    push_row(&mut good, &[0; 16]);
    let cases: [(&str, Vec<u8>, usize); 5] = [
        ("a head that is cut off", good[..4].to_vec(), 0),
        ("a row that is cut off", good[..16].to_vec(), 0),
        ("a length that is no multiple of 8", [&good[..], &[4, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]].concat(), 24),
        ("a second half of the head that is not zero", [8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].to_vec(), 0),
        ("a length of 4 GiB", [0xf8, 0xff, 0xff, 0xff, 0, 0, 0, 0].to_vec(), 0),
    ];
    for (what, list, at) in cases {
        let mut rows = PackedRows::new(&list).skip_while(Result::is_ok);
        assert_eq!(rows.next().unwrap().unwrap_err().at, at, "{what}");
        assert!(rows.next().is_none(), "{what}");
    }
}

#[test]
fn a_decoder_tells_how_large_its_batch_is() {
    let layout = layout("a STRING, n BIGINT");
    let row = row_from_json(&layout, &json!({"a": "x".repeat(1000), "n": 1})).unwrap();
    let mut decoder = RowDecoder::new(&layout);
    for _ in 0..10 {
        decoder.push(&row).unwrap();
    }
    assert!((10_000..20_000).contains(&decoder.bytes()), "{}", decoder.bytes());
    let batch = decoder.finish().unwrap();
    assert_eq!((batch.num_rows(), batch.column(1).len()), (10, 10));
}
