//! Random schemas, and random rows of them as JSON.

use arrow_cast::base64::{BASE64_STANDARD, Engine};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::calendar::{date_text, full_timestamp_text};
use super::super::json::row_from_json;
use super::super::schema::holds_map;
use super::super::{DataType, Field, RowLayout, Schema};

/// A schema of up to six columns whose types nest up to three deep, and rows of it.
pub(super) fn schema_and_rows(rows: std::ops::Range<usize>) -> impl Strategy<Value = (Schema, Vec<Value>)> {
    schema().prop_flat_map(move |schema| {
        let rows = vec(row(&schema), rows.clone());
        (Just(schema), rows)
    })
}

/// Packs rows by way of JSON.
pub(super) fn pack(layout: &RowLayout, rows: &[Value]) -> Vec<Vec<u8>> {
    rows.iter().map(|row| row_from_json(layout, row).unwrap()).collect()
}

pub(super) fn schema() -> impl Strategy<Value = Schema> {
    fields(data_type(), 0..6)
}

fn fields(
    data_type: impl Strategy<Value = DataType>,
    columns: std::ops::Range<usize>,
) -> impl Strategy<Value = Schema> {
    let name = prop_oneof!["[a-z]{1,3}", "[ -~]{0,4}", "\\PC{1,3}"];
    vec((name, data_type, any::<bool>()), columns).prop_map(|fields| {
        let field = |(index, (name, data_type, nullable))| Field {
            // The number keeps names unique.
            name: format!("{name}{index}"),
            data_type,
            nullable,
        };
        Schema::new(fields.into_iter().enumerate().map(field).collect()).unwrap()
    })
}

fn data_type() -> impl Strategy<Value = DataType> {
    let decimal = (1..=38_u8)
        .prop_flat_map(|precision| (0..=precision).prop_map(move |scale| DataType::Decimal { precision, scale }));
    let scalar = prop_oneof![
        Just(DataType::Boolean),
        Just(DataType::TinyInt),
        Just(DataType::SmallInt),
        Just(DataType::Int),
        Just(DataType::BigInt),
        Just(DataType::Float),
        Just(DataType::Double),
        Just(DataType::String),
        Just(DataType::Binary),
        Just(DataType::Date),
        Just(DataType::Timestamp),
        decimal,
    ];
    scalar.prop_recursive(3, 12, 3, |inner| {
        let key = inner.clone().prop_map(|key| if holds_map(&key) { DataType::String } else { key });
        prop_oneof![
            inner.clone().prop_map(|element| DataType::Array(Box::new(element))),
            (key, inner.clone()).prop_map(|(key, value)| DataType::Map(Box::new(key), Box::new(value))),
            fields(inner, 0..4).prop_map(DataType::Struct),
        ]
    })
}

pub(super) fn row(schema: &Schema) -> BoxedStrategy<Value> {
    let start = Just(Value::Object(serde_json::Map::new())).boxed();
    schema.fields().iter().fold(start, |object, field| {
        let name = field.name.clone();
        let value = if field.nullable { nullable(&field.data_type) } else { value(&field.data_type) };
        (object, value)
            .prop_map(move |(mut object, value)| {
                object[&name] = value;
                object
            })
            .boxed()
    })
}

fn nullable(data_type: &DataType) -> BoxedStrategy<Value> {
    prop_oneof![1 => Just(Value::Null), 4 => value(data_type)].boxed()
}

fn value(data_type: &DataType) -> BoxedStrategy<Value> {
    match data_type {
        DataType::Boolean => any::<bool>().prop_map(Value::from).boxed(),
        DataType::TinyInt => any::<i8>().prop_map(Value::from).boxed(),
        DataType::SmallInt => any::<i16>().prop_map(Value::from).boxed(),
        DataType::Int => prop_oneof![0..3_i32, any::<i32>()].prop_map(Value::from).boxed(),
        DataType::BigInt => prop_oneof![0..3_i64, any::<i64>()].prop_map(Value::from).boxed(),
        DataType::Float => prop_oneof![float_text(), any::<f32>().prop_map(|value| json!(value))].boxed(),
        DataType::Double => prop_oneof![float_text(), any::<f64>().prop_map(|value| json!(value))].boxed(),
        DataType::Decimal { precision, scale } => decimal(*precision, usize::from(*scale)).boxed(),
        DataType::String => "\\PC{0,12}".prop_map(Value::from).boxed(),
        DataType::Binary => vec(any::<u8>(), 0..12).prop_map(|bytes| json!(BASE64_STANDARD.encode(bytes))).boxed(),
        DataType::Date => any::<i32>().prop_map(|days| json!(date_text(days))).boxed(),
        DataType::Timestamp => any::<i64>().prop_map(|micros| json!(full_timestamp_text(micros))).boxed(),
        DataType::Array(element) => vec(nullable(element), 0..4).prop_map(Value::Array).boxed(),
        DataType::Map(key, of) if **key == DataType::String => btree_map("[a-c]{0,3}", nullable(of), 0..4)
            .prop_map(|entries| Value::Object(entries.into_iter().collect()))
            .boxed(),
        DataType::Map(key, of) => {
            let layout = RowLayout::new(&Schema::new(vec![Field::required("k", (**key).clone())]).unwrap());
            vec((value(key), nullable(of)), 0..4)
                .prop_map(move |mut entries| {
                    // Keys are unique if their bytes are; -0.0 and 0.0 are one key.
                    let packed = |key: &Value| super::super::key_from_json(&layout, &json!({ "k": key })).unwrap();
                    entries.sort_by_key(|(key, _)| packed(key));
                    entries.dedup_by_key(|(key, _)| packed(key));
                    Value::Array(entries.into_iter().map(|(key, value)| json!([key, value])).collect())
                })
                .boxed()
        }
        DataType::Struct(schema) => row(schema),
    }
}

/// The values that are easily got wrong.
fn float_text() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!("NaN")),
        Just(json!("Infinity")),
        Just(json!("-Infinity")),
        Just(json!(-0.0)),
        Just(json!(0.0)),
        Just(json!(1.5)),
    ]
}

fn decimal(precision: u8, scale: usize) -> impl Strategy<Value = Value> {
    let digits = vec(0..10_u8, 0..=usize::from(precision));
    (any::<bool>(), digits).prop_map(move |(negative, digits)| {
        let digits: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        let digits = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let sign = if negative { "-" } else { "" };
        if scale == 0 { json!(format!("{sign}{whole}")) } else { json!(format!("{sign}{whole}.{fraction}")) }
    })
}
