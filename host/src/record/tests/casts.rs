//! What casts keep, refuse and find.

use std::sync::Arc;

use arrow_array::builder::{Int16Builder, LargeListBuilder, ListBuilder};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, Date64Array, Decimal32Array, Decimal64Array, Decimal128Array,
    Decimal256Array, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray, Float32Array, Int8Array, Int16Array,
    Int32Array, Int64Array, LargeBinaryArray, LargeStringArray, ListArray, MapArray, NullArray, RecordBatch, RunArray,
    StringArray, StringViewArray, StructArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, TimestampSecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer, i256};
use arrow_schema::{DataType as ArrowType, Field};
use serde_json::{Value, json};

use super::super::{CastError, DataType, RowEncoder, RowLayout, Schema, cast_batch, row_to_json, widens};

fn one(array: impl Array + 'static) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([("a", Arc::new(array) as ArrayRef, true)]).unwrap()
}

/// Column `a` of the batch, cast to the type, as JSON.
fn cast(batch: &RecordBatch, data_type: &str) -> Result<Vec<Value>, CastError> {
    let schema = Schema::parse(&format!("a {data_type}")).unwrap();
    let cast = cast_batch(batch, &schema)?;
    assert_eq!(cast.schema(), schema.to_arrow());
    let layout = RowLayout::new(&schema);
    let encoder = RowEncoder::new(&layout, &cast).unwrap();
    let json = |row| {
        let mut bytes = Vec::new();
        encoder.encode(row, &mut bytes);
        layout.validate(&bytes).unwrap();
        row_to_json(&layout, &bytes).unwrap()["a"].clone()
    };
    Ok((0..encoder.rows()).map(json).collect())
}

fn parse(data_type: &str) -> DataType {
    Schema::parse(&format!("a {data_type}")).unwrap().fields()[0].data_type.clone()
}

#[test]
fn exactly_the_widenings_without_loss_are_made() {
    let scalars = [
        "BOOLEAN",
        "TINYINT",
        "SMALLINT",
        "INT",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "DECIMAL(5,2)",
        "DECIMAL(7,2)",
        "DECIMAL(7,4)",
        "DECIMAL(6,3)",
        "DECIMAL(6,4)",
        "STRING",
        "BINARY",
        "DATE",
        "TIMESTAMP",
    ];
    let allowed = [
        ("TINYINT", "SMALLINT"),
        ("TINYINT", "INT"),
        ("TINYINT", "BIGINT"),
        ("TINYINT", "DOUBLE"),
        ("SMALLINT", "INT"),
        ("SMALLINT", "BIGINT"),
        ("SMALLINT", "DOUBLE"),
        ("INT", "BIGINT"),
        ("INT", "DOUBLE"),
        ("FLOAT", "DOUBLE"),
        ("DECIMAL(5,2)", "DECIMAL(7,2)"),
        ("DECIMAL(5,2)", "DECIMAL(7,4)"),
        ("DECIMAL(5,2)", "DECIMAL(6,3)"),
        ("DECIMAL(6,3)", "DECIMAL(7,4)"),
        ("DECIMAL(6,4)", "DECIMAL(7,4)"),
    ];
    for from in scalars {
        for to in scalars {
            let expected = from == to || allowed.contains(&(from, to));
            assert_eq!(widens(&parse(from), &parse(to)), expected, "{from} to {to}");
            let wrapped = |inner| format!("ARRAY<MAP<STRING, STRUCT<x: {inner}>>>");
            assert_eq!(widens(&parse(&wrapped(from)), &parse(&wrapped(to))), expected, "{from} to {to}, nested");
        }
    }
    assert!(!widens(&parse("STRUCT<x: INT>"), &parse("STRUCT<y: INT>")));
    assert!(!widens(&parse("STRUCT<x: INT>"), &parse("STRUCT<x: INT, y: INT>")));
    assert!(widens(&parse("STRUCT<x: INT>"), &parse("STRUCT<X: BIGINT NOT NULL>")));
}

#[test]
fn numbers_widen_to_their_values() {
    let tiny = one(Int8Array::from(vec![Some(-128), None, Some(127)]));
    for to in ["TINYINT", "SMALLINT", "INT", "BIGINT"] {
        assert_eq!(cast(&tiny, to).unwrap(), [json!(-128), Value::Null, json!(127)], "{to}");
    }
    assert_eq!(cast(&tiny, "DOUBLE").unwrap(), [json!(-128.0), Value::Null, json!(127.0)]);
    assert_eq!(cast(&one(Int32Array::from(vec![i32::MIN])), "DOUBLE").unwrap(), [json!(-2_147_483_648.0)]);
    assert_eq!(cast(&one(Float32Array::from(vec![0.1])), "DOUBLE").unwrap(), [json!(f64::from(0.1_f32))]);
    let decimal = Decimal128Array::from(vec![-12_345]).with_precision_and_scale(5, 2).unwrap();
    assert_eq!(cast(&one(decimal), "DECIMAL(20,4)").unwrap(), [json!("-123.4500")]);
}

#[test]
fn bigint_to_double_and_narrowing_are_refused() {
    for (batch, to) in [
        (one(Int64Array::from(vec![1])), "DOUBLE"),
        (one(Int64Array::from(vec![1])), "INT"),
        (one(Int32Array::from(vec![1])), "STRING"),
        (one(UInt64Array::from(vec![1])), "BIGINT"),
    ] {
        let error = cast(&batch, to).unwrap_err();
        assert_eq!(error.code(), "CANNOT_WIDEN_COLUMN", "{error}");
        assert!(error.to_string().contains("`a`"), "{error}");
    }
}

#[test]
fn foreign_types_are_read_as_the_type_that_holds_their_values() {
    let dictionary: DictionaryArray<arrow_array::types::Int32Type> = vec!["x", "y", "x"].into_iter().collect();
    let large = Decimal256Array::from(vec![i256::from_i128(15)]).with_precision_and_scale(38, 1).unwrap();
    let cases = [
        (one(UInt8Array::from(vec![255])), "SMALLINT", vec![json!(255)]),
        (one(UInt16Array::from(vec![65_535])), "INT", vec![json!(65_535)]),
        (one(UInt32Array::from(vec![u32::MAX])), "BIGINT", vec![json!(u32::MAX)]),
        (one(UInt64Array::from(vec![u64::MAX])), "DECIMAL(20,0)", vec![json!("18446744073709551615")]),
        (one(LargeStringArray::from(vec!["a"])), "STRING", vec![json!("a")]),
        (
            one(StringViewArray::from(vec!["a string that is not short"])),
            "STRING",
            vec![json!("a string that is not short")],
        ),
        (one(dictionary), "STRING", vec![json!("x"), json!("y"), json!("x")]),
        (one(large), "DECIMAL(38,1)", vec![json!("1.5")]),
        (one(Date64Array::from(vec![-1])), "DATE", vec![json!("1969-12-31")]),
        (one(TimestampSecondArray::from(vec![-1])), "TIMESTAMP", vec![json!("1969-12-31T23:59:59.000000Z")]),
        (
            one(TimestampMillisecondArray::from(vec![1]).with_timezone("+02:00")),
            "TIMESTAMP",
            vec![json!("1970-01-01T00:00:00.001000Z")],
        ),
        (one(TimestampMicrosecondArray::from(vec![1])), "TIMESTAMP", vec![json!("1970-01-01T00:00:00.000001Z")]),
        (one(TimestampNanosecondArray::from(vec![-1])), "TIMESTAMP", vec![json!("1969-12-31T23:59:59.999999Z")]),
    ];
    for (batch, data_type, expected) in cases {
        let from = Schema::from_arrow(batch.schema_ref()).unwrap();
        assert_eq!(from.to_string(), format!("a {data_type}"));
        assert_eq!(cast(&batch, data_type).unwrap(), expected);
    }
}

#[test]
fn arrow_types_without_a_counterpart_are_named() {
    let null = Schema::from_arrow(one(NullArray::new(1)).schema_ref()).unwrap_err();
    assert_eq!(null.code(), "UNSUPPORTED_COLUMN_TYPE");
    assert!(null.to_string().contains("column `a` has the Arrow type Null"), "{null}");
    let nested =
        ArrowType::Struct(vec![Field::new("t", ArrowType::Time64(arrow_schema::TimeUnit::Nanosecond), true)].into());
    let error = Schema::from_arrow(&arrow_schema::Schema::new(vec![Field::new("s", nested, true)])).unwrap_err();
    assert!(error.to_string().contains("`s.t`"), "{error}");
}

#[test]
fn columns_are_found_by_name_and_reordered() {
    let batch = RecordBatch::try_from_iter([
        ("X", Arc::new(Int16Array::from(vec![1])) as ArrayRef),
        ("y", Arc::new(StringArray::from(vec!["s"]))),
        ("unused", Arc::new(NullArray::new(1))),
    ])
    .unwrap();
    let cast = cast_batch(&batch, &Schema::parse("y STRING NOT NULL, x BIGINT").unwrap()).unwrap();
    assert_eq!(cast.schema().fields().len(), 2);
    assert_eq!(cast.num_rows(), 1);
    let none = cast_batch(&batch, &Schema::parse("").unwrap()).unwrap();
    assert_eq!((none.num_columns(), none.num_rows()), (0, 1));
    let error = cast_batch(&batch, &Schema::parse("z INT").unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "there is no column `z`; there are: X, y, unused");
}

#[test]
fn every_row_that_does_not_fit_is_named_once() {
    let times = TimestampSecondArray::from(vec![Some(i64::MAX), Some(0), None, Some(i64::MIN)]);
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("k", Arc::new(StringArray::from(vec![Some("a"), Some("b"), None, Some("d")])) as ArrayRef, true),
        ("t", Arc::new(times), true),
    ])
    .unwrap();
    let error = cast_batch(&batch, &Schema::parse("k STRING NOT NULL, t TIMESTAMP NOT NULL").unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "row 0, column `t`: the value is out of range of the type (and 2 more rows of this batch)"
    );
    let CastError::BadRows(rows) = error else { panic!("{error}") };
    let found: Vec<_> = rows.iter().map(|bad| (bad.row, bad.column.as_str())).collect();
    assert_eq!(found, [(0, "t"), (2, "k"), (3, "t")]);
}

#[test]
fn decimals_beyond_their_precision_are_bad_rows() {
    let decimals = Decimal128Array::from(vec![99_999, 100_000]).with_precision_and_scale(5, 2).unwrap();
    let Err(CastError::BadRows(rows)) = cast(&one(decimals), "DECIMAL(5,2)") else { panic!("accepted") };
    assert_eq!(rows.iter().map(|bad| bad.row).collect::<Vec<_>>(), [1]);
}

#[test]
fn nested_values_are_widened_and_a_null_in_a_nested_not_null_field_names_the_row() {
    let xs: ArrayRef = Arc::new(Int16Array::from(vec![Some(1), None, None]));
    let field = Field::new("x", ArrowType::Int16, true);
    // The third struct is NULL, so what stands under it does not count.
    let structs = StructArray::new(vec![field].into(), vec![xs], Some(NullBuffer::from(vec![true, true, false])));
    let batch = one(structs);
    assert_eq!(cast(&batch, "STRUCT<x: BIGINT>").unwrap(), [json!({"x": 1}), json!({"x": null}), Value::Null]);
    let Err(CastError::BadRows(rows)) = cast(&batch, "STRUCT<x: BIGINT NOT NULL>") else { panic!("accepted") };
    assert_eq!(rows.iter().map(|bad| (bad.row, bad.column.as_str())).collect::<Vec<_>>(), [(1, "a.x")]);
    assert_eq!(cast(&batch.slice(2, 1), "STRUCT<x: BIGINT NOT NULL>").unwrap(), [Value::Null]);
}

#[test]
fn lists_are_widened_also_as_slices() {
    let mut lists = LargeListBuilder::new(ListBuilder::new(Int16Builder::new()));
    for row in [vec![vec![1, 2], vec![]], vec![], vec![vec![3]]] {
        for inner in row {
            inner.iter().for_each(|value| lists.values().values().append_value(*value));
            lists.values().append(true);
        }
        lists.append(true);
    }
    lists.append_null();
    let batch = one(lists.finish());
    let expected = [json!([[1, 2], []]), json!([]), json!([[3]]), Value::Null];
    assert_eq!(cast(&batch, "ARRAY<ARRAY<BIGINT>>").unwrap(), expected);
    assert_eq!(cast(&batch.slice(1, 3), "ARRAY<ARRAY<BIGINT>>").unwrap(), expected[1..]);
}

#[test]
fn a_batch_that_fits_is_not_copied() {
    let batch = one(BinaryArray::from(vec![b"abc".as_slice()]));
    let cast = cast_batch(&batch, &Schema::parse("a BINARY").unwrap()).unwrap();
    assert!(Arc::ptr_eq(batch.column(0), cast.column(0)));
}

#[test]
fn a_missing_column_is_named_also_where_names_are_there_twice() {
    let column = || Arc::new(Int8Array::from(vec![1])) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("a", column()), ("A", column())]).unwrap();
    let error = cast_batch(&batch, &Schema::parse("b INT").unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "there is no column `b`; there are: a, A");
}

#[test]
fn other_layouts_of_the_same_values_are_read() {
    let fixed_list = FixedSizeListArray::new(
        Arc::new(Field::new("item", ArrowType::Int8, true)),
        2,
        Arc::new(Int8Array::from(vec![1, 2, 3, 4])),
        None,
    );
    let runs = RunArray::<arrow_array::types::Int32Type>::try_new(
        &Int32Array::from(vec![1, 3]),
        &StringArray::from(vec!["x", "y"]),
    )
    .unwrap();
    let cases = [
        (
            one(Decimal32Array::from(vec![-15]).with_precision_and_scale(3, 1).unwrap()),
            "DECIMAL(3,1)",
            vec![json!("-1.5")],
        ),
        (
            one(Decimal64Array::from(vec![15]).with_precision_and_scale(18, 1).unwrap()),
            "DECIMAL(18,1)",
            vec![json!("1.5")],
        ),
        (one(FixedSizeBinaryArray::try_from_iter([[0_u8, 255]].iter()).unwrap()), "BINARY", vec![json!("AP8=")]),
        (one(BinaryViewArray::from(vec![[0_u8, 255].as_slice()])), "BINARY", vec![json!("AP8=")]),
        (one(LargeBinaryArray::from(vec![[0_u8, 255].as_slice()])), "BINARY", vec![json!("AP8=")]),
        (one(fixed_list), "ARRAY<TINYINT>", vec![json!([1, 2]), json!([3, 4])]),
        (one(runs), "STRING", vec![json!("x"), json!("y"), json!("y")]),
    ];
    for (batch, data_type, expected) in cases {
        assert_eq!(Schema::from_arrow(batch.schema_ref()).unwrap().to_string(), format!("a {data_type}"));
        assert_eq!(cast(&batch, data_type).unwrap(), expected, "{data_type}");
    }
}

#[test]
fn what_a_null_list_or_map_hides_is_no_value() {
    let x = Field::new("x", ArrowType::Int8, true);
    let structs = StructArray::new(vec![x].into(), vec![Arc::new(Int8Array::from(vec![None, Some(1)]))], None);
    let item = Arc::new(Field::new("item", structs.data_type().clone(), true));
    let offsets = OffsetBuffer::from_lengths([1, 1]);
    let nulls = NullBuffer::from(vec![false, true]);
    let lists = ListArray::new(item, offsets.clone(), Arc::new(structs), Some(nulls.clone()));

    let found = cast(&one(lists), "ARRAY<STRUCT<x: INT NOT NULL>>").unwrap();

    assert_eq!(found, [Value::Null, json!([{"x": 1}])]);

    let fields = vec![Field::new("k", ArrowType::Int8, false), Field::new("v", ArrowType::Int8, true)];
    let columns: Vec<ArrayRef> = vec![Arc::new(Int8Array::from(vec![1, 2])), Arc::new(Int8Array::from(vec![3, 4]))];
    let entries = StructArray::new(fields.into(), columns, None);
    let entry = Arc::new(Field::new("e", entries.data_type().clone(), false));
    let maps = MapArray::new(entry, offsets, entries, Some(nulls), false);

    let found = cast(&one(maps), "MAP<INT, BIGINT>").unwrap();

    assert_eq!(found, [Value::Null, json!([[2, 4]])]);
}

#[test]
fn a_null_within_a_list_names_the_row_and_the_path() {
    let x = Field::new("x", ArrowType::Int8, true);
    let xs = Int8Array::from(vec![Some(1), Some(2), None, Some(4)]);
    let structs = StructArray::new(vec![x].into(), vec![Arc::new(xs)], None);
    let item = Arc::new(Field::new("item", structs.data_type().clone(), true));
    let lists = ListArray::new(item, OffsetBuffer::from_lengths([2, 0, 2]), Arc::new(structs), None);
    let error = cast(&one(lists), "ARRAY<STRUCT<x: INT NOT NULL>>").unwrap_err();
    assert_eq!(error.to_string(), "row 2, column `a[].x`: is NULL, and the column is NOT NULL");
}
