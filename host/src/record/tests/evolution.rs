//! Which schemas may follow which, and what becomes of the rows: by example, and over random pairs of schemas against a
//! model that works on JSON.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::schema::holds_map;
use super::super::{
    ConversionError, DataType, Evolution, Field, Obstacle, RowLayout, Schema, row_from_json, row_to_json, widens,
};
use super::arbitrary::{pack, schema_and_rows};

fn between(from: &str, to: &str) -> Evolution {
    Evolution::between(&Schema::parse(from).unwrap(), &Schema::parse(to).unwrap())
}

fn differences(from: &str, to: &str) -> Vec<String> {
    between(from, to).differences.iter().map(ToString::to_string).collect()
}

/// The row of `from` as JSON of a row of `to`.
fn converted(from: &str, to: &str, row: Value) -> Value {
    let [from_layout, to_layout] = [from, to].map(|ddl| RowLayout::new(&Schema::parse(ddl).unwrap()));
    let packed = row_from_json(&from_layout, &row).unwrap();
    let mut out = b"before".to_vec();
    match between(from, to).conversion().unwrap() {
        Some(conversion) => conversion.convert(&packed, &mut out, 10_000).unwrap(),
        None => out.extend_from_slice(&packed),
    }
    let row = out.strip_prefix(b"before").unwrap();
    to_layout.validate(row).unwrap();
    row_to_json(&to_layout, row).unwrap()
}

/// What stands in the way, with its place.
fn obstacle(from: &str, to: &str) -> (String, Obstacle) {
    let refused = between(from, to).conversion().unwrap_err();
    let [difference] = refused.as_slice() else { panic!("{refused:?}") };
    match &difference.change {
        super::super::FieldChange::Refused { obstacle, .. } => (difference.path.clone(), *obstacle),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_new_field_is_null_in_earlier_rows_wherever_it_stands() {
    assert_eq!(converted("a INT", "b STRING, a INT", json!({"a": 1})), json!({"b": null, "a": 1}));
    assert_eq!(
        converted(
            "l ARRAY<STRUCT<x: INT>>, m MAP<STRING, STRUCT<x: INT>>, s STRUCT<x: INT>",
            "l ARRAY<STRUCT<x: INT, y: DATE>>, m MAP<STRING, STRUCT<y: DATE, x: INT>>, s STRUCT<x: INT, y: DATE>",
            json!({"l": [{"x": 1}, null], "m": {"k": {"x": 2}}, "s": {"x": 3}}),
        ),
        json!({"l": [{"x": 1, "y": null}, null], "m": {"k": {"y": null, "x": 2}}, "s": {"x": 3, "y": null}})
    );
}

#[test]
fn fields_go_by_name_so_they_may_move_and_a_rename_loses_the_value() {
    assert_eq!(converted("a INT, b STRING", "B STRING, a INT", json!({"a": 1, "b": "x"})), json!({"B": "x", "a": 1}));
    assert_eq!(converted("a INT, b STRING", "a INT, c STRING", json!({"a": 1, "b": "x"})), json!({"a": 1, "c": null}));
    assert_eq!(
        differences("a INT, b STRING, c DATE", "c DATE, a INT, d STRING"),
        ["fields in another order", "d STRING added", "b STRING removed"]
    );
}

#[test]
fn numbers_widen_without_loss() {
    let row = json!({"a": -7, "b": 2_147_483_647, "c": "1.50", "d": "-99999999.9", "e": 0.5});
    assert_eq!(
        converted(
            "a TINYINT, b INT, c DECIMAL(3,2), d DECIMAL(9,1), e FLOAT",
            "a BIGINT, b DOUBLE, c DECIMAL(4,3), d DECIMAL(38,20), e DOUBLE",
            row
        ),
        json!({"a": -7, "b": 2_147_483_647.0, "c": "1.500", "d": "-99999999.90000000000000000000", "e": 0.5})
    );
    assert_eq!(differences("n INT", "n BIGINT"), ["n widened from INT to BIGINT"]);
}

#[test]
fn schemas_with_rows_of_the_same_bytes_need_no_conversion() {
    for (from, to) in [
        ("a INT, b STRING", "a INT, b STRING"),
        ("a TINYINT, f FLOAT, s STRUCT<x: SMALLINT>", "a BIGINT, f DOUBLE, s STRUCT<x: INT>"),
        ("a INT NOT NULL, d DECIMAL(5,2)", "A INT, d DECIMAL(18,2)"),
        ("m MAP<INT, ARRAY<DECIMAL(20,2)>>", "m MAP<BIGINT, ARRAY<DECIMAL(30,2)>>"),
    ] {
        assert_eq!(between(from, to).conversion().unwrap(), None, "{from} to {to}");
    }
}

#[test]
fn a_map_whose_keys_change_their_bytes_is_put_in_order_again() {
    let row = json!({"m": [[-1, "minus"], [0, "zero"], [1, null], [300, "many"]]});
    let to = RowLayout::new(&Schema::parse("m MAP<DOUBLE, STRING>").unwrap());
    let expected = json!({"m": [[-1.0, "minus"], [0.0, "zero"], [1.0, null], [300.0, "many"]]});
    let in_order = row_to_json(&to, &row_from_json(&to, &expected).unwrap()).unwrap();
    assert_eq!(converted("m MAP<INT, STRING>", "m MAP<DOUBLE, STRING>", row), in_order);
}

#[test]
fn what_could_lose_values_is_refused_with_its_place() {
    for (from, to, place) in [
        ("n BIGINT", "n INT", "n"),
        ("n BIGINT", "n DOUBLE", "n"),
        ("n STRING", "n INT", "n"),
        ("n INT", "n STRING", "n"),
        ("n DOUBLE", "n FLOAT", "n"),
        ("n DECIMAL(10,2)", "n DECIMAL(10,3)", "n"),
        ("l ARRAY<STRUCT<x: BIGINT>>", "l ARRAY<STRUCT<x: INT>>", "l.element.x"),
        ("m MAP<INT, BIGINT>", "m MAP<INT, INT>", "m.value"),
        ("m MAP<BIGINT, INT>", "m MAP<INT, INT>", "m.key"),
        ("s STRUCT<a: INT>", "s ARRAY<INT>", "s"),
    ] {
        assert_eq!(obstacle(from, to), (place.to_owned(), Obstacle::Lossy), "{from} to {to}");
    }
}

#[test]
fn not_null_cannot_be_asked_of_rows_that_may_lack_it() {
    assert_eq!(obstacle("a INT", "a INT, b INT NOT NULL"), ("b".to_owned(), Obstacle::AddedNotNull));
    assert_eq!(obstacle("a INT", "a INT NOT NULL"), ("a".to_owned(), Obstacle::MadeNotNull));
    let nested = obstacle("s STRUCT<a: INT>", "s STRUCT<a: INT, b: INT NOT NULL>");
    assert_eq!(nested, ("s.b".to_owned(), Obstacle::AddedNotNull));
    assert_eq!(differences("a INT NOT NULL", "a INT"), ["a may be NULL now"]);
}

#[test]
fn the_key_of_a_map_may_gain_a_field_and_lose_none() {
    let (from, to) = ("m MAP<STRUCT<a: INT, b: INT>, INT>", "m MAP<STRUCT<a: INT>, INT>");
    assert_eq!(obstacle(from, to), ("m.key.b".to_owned(), Obstacle::KeyFieldRemoved));
    assert_eq!(
        converted(to, from, json!({"m": [[{"a": 1}, 10], [{"a": 2}, 20]]})),
        json!({"m": [[{"a": 1, "b": null}, 10], [{"a": 2, "b": null}, 20]]})
    );
}

#[test]
fn a_row_cannot_grow_without_bound() {
    let wide: Vec<_> = (0..1_000).map(|column| format!("c{column}: INT")).collect();
    let (from, to) = ("l ARRAY<STRUCT<a: INT>>", format!("l ARRAY<STRUCT<a: INT, {}>>", wide.join(", ")));
    let layout = RowLayout::new(&Schema::parse(from).unwrap());
    let row = row_from_json(&layout, &json!({"l": vec![json!({"a": 1}); 1_000]})).unwrap();
    let mut out = Vec::new();

    let error = between(from, &to).conversion().unwrap().unwrap().convert(&row, &mut out, 1 << 20).unwrap_err();

    assert_eq!(error, ConversionError::TooLarge { bytes_max: 1 << 20 });
    assert!(out.len() < (1 << 20) + 10_000);
}

#[test]
fn damaged_rows_are_errors_not_panics() {
    let (from, to) = (
        "a STRING, l ARRAY<STRUCT<x: INT>>, m MAP<INT, STRING>, d DECIMAL(20,2)",
        "x INT, m MAP<DOUBLE, STRING>, l ARRAY<STRUCT<x: DOUBLE>>, d DECIMAL(30,4), a STRING",
    );
    let layout = RowLayout::new(&Schema::parse(from).unwrap());
    let row = json!({"a": "abc", "l": [{"x": 1}], "m": [[1, "one"], [2, "two"]], "d": "123.45"});
    let row = row_from_json(&layout, &row).unwrap();
    let conversion = between(from, to).conversion().unwrap().unwrap();
    for at in 0..row.len() {
        for bits in [1, 0x80, 0xff] {
            let mut damaged = row.clone();
            damaged[at] ^= bits;
            let _ = conversion.convert(&damaged, &mut Vec::new(), 1 << 20);
            let _ = conversion.convert(&damaged[..at], &mut Vec::new(), 1 << 20);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn rows_of_any_schema_that_may_be_followed_become_what_the_model_says(
        (from, rows) in schema_and_rows(1..4),
        choices in vec(any::<u8>(), 0..80),
    ) {
        let to = Mutation { choices: choices.into_iter() }.schema(&from);
        let evolution = Evolution::between(&from, &to);
        prop_assert_eq!(evolution.differences.is_empty(), same(&from, &to));
        let Ok(conversion) = evolution.conversion() else {
            prop_assert!(!rows_fit(&from, &to, false), "{from} to {to} was refused");
            return Ok(());
        };
        prop_assert!(rows_fit(&from, &to, false), "{from} to {to} was taken");
        let [from_layout, to_layout] = [&from, &to].map(RowLayout::new);
        for (row, packed) in rows.iter().zip(pack(&from_layout, &rows)) {
            let mut out = Vec::new();
            match &conversion {
                Some(conversion) => conversion.convert(&packed, &mut out, 1 << 20).unwrap(),
                None => out.clone_from(&packed),
            }
            prop_assert_eq!(row_from_json(&to_layout, &modelled(&from, &to, row)).unwrap(), out);
        }
    }
}

fn same(from: &Schema, to: &Schema) -> bool {
    let lower = |schema: &Schema| schema.to_string().to_lowercase();
    lower(from) == lower(to)
}

/// Whether every row of `from` can be read as one of `to`.
fn rows_fit(from: &Schema, to: &Schema, in_key: bool) -> bool {
    let new = |field: &Field| from.field(&field.name).is_none();
    to.fields().iter().all(|field| match from.field(&field.name) {
        None => field.nullable,
        Some(before) => (field.nullable || !before.nullable) && fits(&before.data_type, &field.data_type, in_key),
    }) && (!in_key || from.len() == to.fields().iter().filter(|field| !new(field)).count())
}

fn fits(from: &DataType, to: &DataType, in_key: bool) -> bool {
    match (from, to) {
        (DataType::Array(from), DataType::Array(to)) => fits(from, to, in_key),
        (DataType::Map(from_key, from), DataType::Map(key, to)) => fits(from_key, key, true) && fits(from, to, in_key),
        (DataType::Struct(from), DataType::Struct(to)) => rows_fit(from, to, in_key),
        _ => widens(from, to),
    }
}

fn modelled(from: &Schema, to: &Schema, row: &Value) -> Value {
    let field = |field: &Field| {
        let value = from
            .field(&field.name)
            .map_or(Value::Null, |before| modelled_value(&before.data_type, &field.data_type, &row[&before.name]));
        (field.name.clone(), value)
    };
    Value::Object(to.fields().iter().map(field).collect::<Map<_, _>>())
}

fn modelled_value(from: &DataType, to: &DataType, value: &Value) -> Value {
    match (from, to, value) {
        (DataType::Array(from), DataType::Array(to), Value::Array(elements)) => {
            elements.iter().map(|element| modelled_value(from, to, element)).collect()
        }
        (DataType::Map(_, from), DataType::Map(_, to), Value::Object(entries)) => {
            Value::Object(entries.iter().map(|(key, value)| (key.clone(), modelled_value(from, to, value))).collect())
        }
        (DataType::Map(from_key, from), DataType::Map(key, to), Value::Array(entries)) => entries
            .iter()
            .map(|entry| json!([modelled_value(from_key, key, &entry[0]), modelled_value(from, to, &entry[1])]))
            .collect(),
        (DataType::Struct(from), DataType::Struct(to), Value::Object(_)) => modelled(from, to, value),
        _ => value.clone(),
    }
}

/// Changes schemas by a sequence of choices; without any left it changes nothing.
struct Mutation {
    choices: std::vec::IntoIter<u8>,
}

impl Mutation {
    fn one_in(&mut self, outcomes: u8) -> bool {
        self.choices.next().is_some_and(|choice| choice % outcomes == 1)
    }

    fn schema(&mut self, schema: &Schema) -> Schema {
        let mut fields = Vec::new();
        for field in schema.fields() {
            if self.one_in(8) {
                continue;
            }
            let mut field = field.clone();
            field.data_type = self.data_type(&field.data_type);
            field.nullable |= self.one_in(4);
            field.nullable &= !self.one_in(40);
            if self.one_in(12) {
                field.name = format!("{}~", field.name);
            }
            let place = if self.one_in(4) { 0 } else { fields.len() };
            fields.insert(place, field);
        }
        if self.one_in(4) {
            let nullable = !self.one_in(6);
            fields.push(Field { name: "added~".to_owned(), data_type: DataType::String, nullable });
        }
        Schema::new(fields).unwrap()
    }

    fn data_type(&mut self, data_type: &DataType) -> DataType {
        match data_type {
            DataType::Array(element) => DataType::Array(Box::new(self.data_type(element))),
            DataType::Map(key, value) => {
                let key = self.data_type(key);
                assert!(!holds_map(&key));
                DataType::Map(Box::new(key), Box::new(self.data_type(value)))
            }
            DataType::Struct(schema) => DataType::Struct(self.schema(schema)),
            _ if self.one_in(3) => self.wider(data_type),
            _ if self.one_in(30) => DataType::Binary,
            _ => data_type.clone(),
        }
    }

    fn wider(&mut self, data_type: &DataType) -> DataType {
        match data_type {
            DataType::TinyInt | DataType::SmallInt | DataType::Int if self.one_in(3) => DataType::Double,
            DataType::TinyInt => DataType::SmallInt,
            DataType::SmallInt => DataType::Int,
            DataType::Int => DataType::BigInt,
            DataType::Float => DataType::Double,
            DataType::Decimal { precision, scale } if *precision < 30 => {
                let zeros = if self.one_in(2) { 0 } else { 4 };
                DataType::Decimal { precision: precision + 4 + zeros, scale: scale + zeros }
            }
            other => other.clone(),
        }
    }
}
