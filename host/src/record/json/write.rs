//! Packed rows to JSON.

use arrow_cast::base64::{BASE64_STANDARD, Engine};
use serde_json::{Map, Value};

use super::super::calendar::{date_text, full_timestamp_text};
use super::super::error::RowFault;
use super::super::packed::RowLayout;
use super::super::packed::cell::{
    SLOT_DECIMAL_PRECISION_MAX, Zero, read_boolean, read_double, read_float, read_integer, read_part_decimal,
    read_slot_decimal, read_string,
};
use super::super::packed::reader::{RowReader, array_row, map_arrays};
use super::super::schema::{DataType, Schema};
use super::number::{decimal_to_text, double_to_json, float_to_json};

/// The row as a JSON object, columns in order. The row need not have been validated.
///
/// # Errors
/// A row that does not fit the layout.
pub fn row_to_json(layout: &RowLayout, row: &[u8]) -> Result<Value, RowFault> {
    row_value(row, layout.schema())
}

fn row_value(row: &[u8], schema: &Schema) -> Result<Value, RowFault> {
    let mut reader = RowReader::new(row, schema.len())?;
    let mut object = Map::with_capacity(schema.len());
    for (column, field) in schema.fields().iter().enumerate() {
        let value = cell_value(&mut reader, column, &field.data_type).map_err(|fault| fault.within(&field.name))?;
        object.insert(field.name.clone(), value);
    }
    reader.finish()?;
    Ok(Value::Object(object))
}

fn cell_value(reader: &mut RowReader<'_>, column: usize, data_type: &DataType) -> Result<Value, RowFault> {
    let Some(slot) = reader.cell(column)? else {
        return Ok(Value::Null);
    };
    Ok(match data_type {
        DataType::Boolean => Value::from(read_boolean(slot)?),
        DataType::TinyInt => Value::from(read_integer::<i8>(slot)?),
        DataType::SmallInt => Value::from(read_integer::<i16>(slot)?),
        DataType::Int => Value::from(read_integer::<i32>(slot)?),
        DataType::BigInt => Value::from(slot.cast_signed()),
        DataType::Float => float_to_json(read_float(slot, Zero::Signed)?),
        DataType::Double => double_to_json(read_double(slot, Zero::Signed)?),
        DataType::Date => Value::from(date_text(read_integer(slot)?)),
        DataType::Timestamp => Value::from(full_timestamp_text(slot.cast_signed())),
        DataType::Decimal { precision, scale } if *precision <= SLOT_DECIMAL_PRECISION_MAX => {
            Value::from(decimal_to_text(read_slot_decimal(slot, *precision)?, *scale))
        }
        DataType::Decimal { precision, scale } => {
            Value::from(decimal_to_text(read_part_decimal(reader.part(slot)?, *precision)?, *scale))
        }
        DataType::String => Value::from(read_string(reader.part(slot)?)?),
        DataType::Binary => Value::from(BASE64_STANDARD.encode(reader.part(slot)?)),
        DataType::Array(element) => Value::Array(array_values(reader.part(slot)?, element)?),
        DataType::Map(key, value) => map_value(reader.part(slot)?, key, value)?,
        DataType::Struct(schema) => row_value(reader.part(slot)?, schema)?,
    })
}

fn array_values(part: &[u8], element: &DataType) -> Result<Vec<Value>, RowFault> {
    let (count, row) = array_row(part)?;
    let mut reader = RowReader::new(row, count)?;
    let mut values = Vec::new();
    for index in 0..count {
        let value = cell_value(&mut reader, index, element);
        values.push(value.map_err(|fault| fault.within(&format!("[{index}]")))?);
    }
    reader.finish()?;
    Ok(values)
}

fn map_value(part: &[u8], key: &DataType, value: &DataType) -> Result<Value, RowFault> {
    let (keys, values) = map_arrays(part)?;
    let keys = array_values(keys, key).map_err(|fault| fault.within("key"))?;
    let values = array_values(values, value).map_err(|fault| fault.within("value"))?;
    if keys.len() != values.len() {
        return Err(RowFault::invalid("the map has another number of keys than of values"));
    }
    let entries = keys.into_iter().zip(values);
    if *key != DataType::String {
        return Ok(Value::Array(entries.map(|(key, value)| Value::Array(vec![key, value])).collect()));
    }
    let mut object = Map::new();
    for (key, value) in entries {
        let Value::String(key) = key else {
            return Err(RowFault::invalid("a key of a map is NULL"));
        };
        if object.insert(key, value).is_some() {
            return Err(RowFault::invalid("a key of the map is there twice"));
        }
    }
    Ok(Value::Object(object))
}
