//! Checks packed rows from guests against a schema, byte for byte: a valid row is the one that this host would write.

use super::super::error::RowFault;
use super::super::schema::{DataType, Schema};
use super::cell::{
    SLOT_DECIMAL_PRECISION_MAX, Zero, read_boolean, read_double, read_float, read_integer, read_part_decimal,
    read_slot_decimal, read_string,
};
use super::reader::{RowReader, array_row, map_arrays};

pub(in super::super) fn validate_row(row: &[u8], schema: &Schema, zero: Zero) -> Result<(), RowFault> {
    let mut reader = RowReader::new(row, schema.len())?;
    for (column, field) in schema.fields().iter().enumerate() {
        let checked = match reader.cell(column) {
            Ok(Some(slot)) => validate_value(slot, &mut reader, &field.data_type, zero).map(drop),
            Ok(None) if field.nullable => Ok(()),
            Ok(None) => Err(RowFault::null()),
            Err(fault) => Err(fault),
        };
        checked.map_err(|fault| fault.within(&field.name))?;
    }
    reader.finish()
}

/// Checks a value that is not NULL. The answer is its part, empty for types that stand in the slot.
#[inline]
fn validate_value<'a>(
    slot: u64,
    reader: &mut RowReader<'a>,
    data_type: &DataType,
    zero: Zero,
) -> Result<&'a [u8], RowFault> {
    match data_type {
        DataType::Boolean => {
            read_boolean(slot)?;
        }
        DataType::TinyInt => {
            read_integer::<i8>(slot)?;
        }
        DataType::SmallInt => {
            read_integer::<i16>(slot)?;
        }
        DataType::Int | DataType::Date => {
            read_integer::<i32>(slot)?;
        }
        DataType::BigInt | DataType::Timestamp => {}
        DataType::Float => {
            read_float(slot, zero)?;
        }
        DataType::Double => {
            read_double(slot, zero)?;
        }
        DataType::Decimal { precision, .. } if *precision <= SLOT_DECIMAL_PRECISION_MAX => {
            read_slot_decimal(slot, *precision)?;
        }
        _ => {
            let part = reader.part(slot)?;
            validate_part(part, data_type, zero)?;
            return Ok(part);
        }
    }
    Ok(&[])
}

fn validate_part(part: &[u8], data_type: &DataType, zero: Zero) -> Result<(), RowFault> {
    match data_type {
        DataType::String => read_string(part).map(drop),
        DataType::Decimal { precision, .. } => read_part_decimal(part, *precision).map(drop),
        DataType::Array(element) => validate_array(part, element, zero),
        DataType::Map(key, value) => validate_map(part, key, value, zero),
        DataType::Struct(schema) => validate_row(part, schema, zero),
        _ => Ok(()),
    }
}

fn validate_array(part: &[u8], element: &DataType, zero: Zero) -> Result<(), RowFault> {
    let (count, row) = array_row(part)?;
    let mut reader = RowReader::new(row, count)?;
    for index in 0..count {
        let checked = match reader.cell(index) {
            Ok(Some(slot)) => validate_value(slot, &mut reader, element, zero).map(drop),
            Ok(None) => Ok(()),
            Err(fault) => Err(fault),
        };
        checked.map_err(|fault| fault.within(&format!("[{index}]")))?;
    }
    reader.finish()
}

fn validate_map(part: &[u8], key: &DataType, value: &DataType, zero: Zero) -> Result<(), RowFault> {
    let (keys, values) = map_arrays(part)?;
    if keys.first_chunk::<8>() != values.first_chunk::<8>() {
        return Err(RowFault::invalid("the map has another number of keys than of values"));
    }
    validate_map_keys(keys, key).map_err(|fault| fault.within("key"))?;
    validate_array(values, value, zero).map_err(|fault| fault.within("value"))
}

/// Checks the keys of a map and that each is above the one before, in the order of the bytes of one-column packed rows.
///
/// Those rows begin with an empty bitmap and a slot; a part follows at offset 16. So keys compare as the slot's bytes, with that
/// offset in place of the one they have here, then as their parts.
fn validate_map_keys(part: &[u8], key: &DataType) -> Result<(), RowFault> {
    const PART_OFFSET: u64 = 16;
    let (count, row) = array_row(part)?;
    let mut reader = RowReader::new(row, count)?;
    let mut before: Option<([u8; 8], &[u8])> = None;
    for index in 0..count {
        let checked = reader.cell(index).and_then(|cell| {
            let slot = cell.ok_or_else(|| RowFault::invalid("a key of a map is NULL"))?;
            let part = validate_value(slot, &mut reader, key, Zero::Unsigned)?;
            let slot = if stands_in_slot(key) { slot } else { slot & !u64::from(u32::MAX) | PART_OFFSET };
            let this = (slot.to_le_bytes(), part);
            if before.is_some_and(|before| before >= this) {
                return Err(RowFault::invalid("the keys of a map are not in order, or one is there twice"));
            }
            before = Some(this);
            Ok(())
        });
        checked.map_err(|fault| fault.within(&format!("[{index}]")))?;
    }
    reader.finish()
}

/// Whether values of the type stand in the slot, without a part.
pub(in super::super) fn stands_in_slot(data_type: &DataType) -> bool {
    match data_type {
        DataType::Decimal { precision, .. } => *precision <= SLOT_DECIMAL_PRECISION_MAX,
        DataType::String | DataType::Binary | DataType::Array(_) | DataType::Map(..) | DataType::Struct(_) => false,
        _ => true,
    }
}
