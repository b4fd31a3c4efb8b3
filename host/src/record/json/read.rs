//! JSON to packed rows.

use std::borrow::Cow;

use arrow_cast::base64::{BASE64_STANDARD, Engine};
use serde_json::Value;

use super::super::calendar::{parse_date, parse_exact_timestamp};
use super::super::error::JsonError;
use super::super::packed::RowLayout;
use super::super::packed::cell::{Zero, double_slot, push_decimal_part};
use super::super::packed::validate::stands_in_slot;
use super::super::packed::writer::RowWriter;
use super::super::schema::{DataType, Schema};
use super::number::{decimal_from_text, double_from_json, float_from_json};

/// The packed row of a JSON object.
///
/// # Errors
/// What does not fit the layout: unknown fields, types, ranges, NULL in NOT NULL columns, map keys that are there twice.
pub fn row_from_json(layout: &RowLayout, json: &Value) -> Result<Vec<u8>, JsonError> {
    packed(layout, json, Zero::Signed)
}

/// The packed key of a JSON object: as [`row_from_json`], with -0.0 as 0.0.
///
/// # Errors
/// As [`row_from_json`].
pub fn key_from_json(layout: &RowLayout, json: &Value) -> Result<Vec<u8>, JsonError> {
    packed(layout, json, Zero::Unsigned)
}

fn packed(layout: &RowLayout, json: &Value, zero: Zero) -> Result<Vec<u8>, JsonError> {
    let mut row = Vec::new();
    write_row(json, layout.schema(), zero, &mut row)?;
    if u32::try_from(row.len()).is_err() {
        return Err(JsonError::invalid("takes more than 4 GiB when packed"));
    }
    Ok(row)
}

fn write_row(json: &Value, schema: &Schema, zero: Zero, out: &mut Vec<u8>) -> Result<(), JsonError> {
    let Value::Object(object) = json else {
        return Err(expected("an object", json));
    };
    let mut values = vec![&Value::Null; schema.len()];
    let mut given = vec![false; schema.len()];
    for (name, value) in object {
        let index = schema.index_of(name);
        let (Some(slot), Some(given)) = (index.and_then(|i| values.get_mut(i)), index.and_then(|i| given.get_mut(i)))
        else {
            return Err(JsonError::invalid(schema.unknown_column(name).to_string()));
        };
        if std::mem::replace(given, true) {
            return Err(JsonError::invalid("is there twice (upper and lower case are the same)").within(name));
        }
        *slot = value;
    }
    let row = RowWriter::begin(out, schema.len());
    for (column, (field, value)) in schema.fields().iter().zip(values).enumerate() {
        let written = if value.is_null() && !field.nullable {
            Err(JsonError::null())
        } else {
            write_cell(value, &field.data_type, zero, &row, column, out)
        };
        written.map_err(|e| e.within(&field.name))?;
    }
    Ok(())
}

fn write_cell(
    json: &Value,
    data_type: &DataType,
    zero: Zero,
    row: &RowWriter,
    column: usize,
    out: &mut Vec<u8>,
) -> Result<(), JsonError> {
    if json.is_null() {
        row.null(out, column);
        return Ok(());
    }
    if stands_in_slot(data_type) {
        row.slot(out, column, slot_of(json, data_type, zero)?);
        return Ok(());
    }
    row.part(out, column, |out| write_part(json, data_type, zero, out))
}

fn slot_of(json: &Value, data_type: &DataType, zero: Zero) -> Result<u64, JsonError> {
    let integer = |min: i64, max: i64| match json.as_i64() {
        Some(value) if (min..=max).contains(&value) => Ok(value.cast_unsigned()),
        _ => Err(expected(&format!("a whole number from {min} to {max}"), json)),
    };
    match data_type {
        DataType::Boolean => json.as_bool().map(u64::from).ok_or_else(|| expected("true or false", json)),
        DataType::TinyInt => integer(i8::MIN.into(), i8::MAX.into()),
        DataType::SmallInt => integer(i16::MIN.into(), i16::MAX.into()),
        DataType::Int => integer(i32::MIN.into(), i32::MAX.into()),
        DataType::BigInt => integer(i64::MIN, i64::MAX),
        DataType::Float => {
            let value = float_from_json(json).ok_or_else(|| expected("a number in the range of FLOAT", json))?;
            Ok(double_slot(f64::from(value), zero))
        }
        DataType::Double => {
            let value = double_from_json(json).ok_or_else(|| expected("a number", json))?;
            Ok(double_slot(value, zero))
        }
        DataType::Date => {
            let days = json.as_str().and_then(parse_date);
            days.map(|days| i64::from(days).cast_unsigned()).ok_or_else(|| expected("a date like \"2013-01-31\"", json))
        }
        DataType::Timestamp => {
            let micros = json.as_str().and_then(parse_exact_timestamp);
            micros.map(i64::cast_unsigned).ok_or_else(|| expected("a time like \"2013-01-31T05:06:07.000008Z\"", json))
        }
        DataType::Decimal { precision, scale } => {
            // Up to 18 digits fit into 64 bits.
            decimal(json, *precision, *scale).map(|unscaled| (unscaled as i64).cast_unsigned())
        }
        _ => Err(expected(&format!("a {data_type}"), json)),
    }
}

fn write_part(json: &Value, data_type: &DataType, zero: Zero, out: &mut Vec<u8>) -> Result<(), JsonError> {
    match data_type {
        DataType::String => {
            let text = json.as_str().ok_or_else(|| expected("a string", json))?;
            out.extend_from_slice(text.as_bytes());
        }
        DataType::Binary => {
            let bytes = json.as_str().and_then(|text| BASE64_STANDARD.decode(text).ok());
            out.extend(bytes.ok_or_else(|| expected("a string in base64", json))?);
        }
        DataType::Decimal { precision, scale } => push_decimal_part(decimal(json, *precision, *scale)?, out),
        DataType::Array(element) => {
            let values = json.as_array().ok_or_else(|| expected("an array", json))?;
            write_array(values.iter(), element, zero, out)?;
        }
        DataType::Map(key, value) => {
            write_map(json, key, value, zero, out)?;
        }
        DataType::Struct(schema) => write_row(json, schema, zero, out)?,
        _ => return Err(expected(&format!("a {data_type}"), json)),
    }
    Ok(())
}

fn write_array<'v>(
    values: impl ExactSizeIterator<Item = &'v Value>,
    element: &DataType,
    zero: Zero,
    out: &mut Vec<u8>,
) -> Result<(), JsonError> {
    out.extend_from_slice(&(values.len() as u64).to_le_bytes());
    let row = RowWriter::begin(out, values.len());
    for (index, value) in values.enumerate() {
        write_cell(value, element, zero, &row, index, out).map_err(|e| e.within(&format!("[{index}]")))?;
    }
    Ok(())
}

fn write_map(json: &Value, key: &DataType, value: &DataType, zero: Zero, out: &mut Vec<u8>) -> Result<(), JsonError> {
    let entries = map_entries(json, key)?;
    let mut sorted = Vec::with_capacity(entries.len());
    for (position, (key_json, value_json)) in entries.iter().enumerate() {
        let packed = packed_map_key(key_json, key).map_err(|e| e.within(&format!("[{position}]")).within("key"))?;
        sorted.push((packed, key_json.as_ref(), *value_json));
    }
    sorted.sort_unstable_by(|(a, ..), (b, ..)| a.cmp(b));
    for pair in sorted.windows(2) {
        if let [(a, repeated, _), (b, ..)] = pair
            && a == b
        {
            return Err(JsonError::invalid(format!("the key {repeated} is there twice")));
        }
    }
    let keys = sorted.iter().map(|(_, key, _)| *key);
    let values = sorted.iter().map(|(.., value)| *value);
    let arrays = RowWriter::begin(out, 2);
    arrays.part(out, 0, |out| write_array(keys, key, Zero::Unsigned, out)).map_err(|e| e.within("key"))?;
    arrays.part(out, 1, |out| write_array(values, value, zero, out)).map_err(|e| e.within("value"))
}

/// The one-column packed row of a key, by which entries are sorted.
fn packed_map_key(json: &Value, key: &DataType) -> Result<Vec<u8>, JsonError> {
    if json.is_null() {
        return Err(JsonError::invalid("a key of a map cannot be NULL"));
    }
    let mut packed = Vec::new();
    let row = RowWriter::begin(&mut packed, 1);
    write_cell(json, key, Zero::Unsigned, &row, 0, &mut packed)?;
    Ok(packed)
}

/// Keys and values of an object, or of an array of `[key, value]`.
fn map_entries<'v>(json: &'v Value, key: &DataType) -> Result<Vec<(Cow<'v, Value>, &'v Value)>, JsonError> {
    match (json, key) {
        (Value::Object(object), DataType::String) => {
            Ok(object.iter().map(|(key, value)| (Cow::Owned(Value::from(key.as_str())), value)).collect())
        }
        (_, DataType::String) => Err(expected("an object", json)),
        (Value::Array(pairs), _) => pairs.iter().map(map_entry).collect(),
        _ => Err(expected("an array of [key, value]", json)),
    }
}

fn map_entry(pair: &Value) -> Result<(Cow<'_, Value>, &Value), JsonError> {
    match pair.as_array().map(Vec::as_slice) {
        Some([key, value]) => Ok((Cow::Borrowed(key), value)),
        _ => Err(expected("an array of [key, value]", pair)),
    }
}

fn decimal(json: &Value, precision: u8, scale: u8) -> Result<i128, JsonError> {
    json.as_str().and_then(|text| decimal_from_text(text, precision, scale)).ok_or_else(|| {
        expected(&format!("a decimal as a string, of at most {precision} digits, {scale} after the point"), json)
    })
}

/// What was found is shown shortened.
fn expected(what: &str, found: &Value) -> JsonError {
    const FOUND_CHARS_MAX: usize = 60;
    let text = match found {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        Value::String(text) => format!("{:?}", text.chars().take(FOUND_CHARS_MAX).collect::<String>()),
        scalar => scalar.to_string(),
    };
    JsonError::invalid(format!("expected {what}, found {text}"))
}
