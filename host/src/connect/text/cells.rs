//! The cells of Arrow arrays of canonical types, found once per batch and printed one by one.

use std::fmt::{self, Write};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{
    Array, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, ListArray, MapArray, StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow_cast::base64::{BASE64_STANDARD, Engine};
use arrow_schema::DataType;

use super::scalar::{write_decimal, write_float};
use crate::record::{write_date, write_timestamp};

/// An array by its type.
#[derive(Debug)]
pub(crate) enum Cells<'a> {
    /// `BOOLEAN`
    Boolean(&'a BooleanArray),
    /// `TINYINT`
    TinyInt(&'a Int8Array),
    /// `SMALLINT`
    SmallInt(&'a Int16Array),
    /// `INT`
    Int(&'a Int32Array),
    /// `BIGINT`
    BigInt(&'a Int64Array),
    /// `FLOAT`
    Float(&'a Float32Array),
    /// `DOUBLE`
    Double(&'a Float64Array),
    /// `DECIMAL`
    Decimal(&'a Decimal128Array),
    /// `STRING`
    String(&'a StringArray),
    /// `BINARY`
    Binary(&'a BinaryArray),
    /// `DATE`
    Date(&'a Date32Array),
    /// `TIMESTAMP`
    Timestamp(&'a TimestampMicrosecondArray),
    /// `ARRAY` and its elements
    Array(&'a ListArray, Box<Cells<'a>>),
    /// `MAP`, its keys and values
    Map(&'a MapArray, Box<Cells<'a>>, Box<Cells<'a>>),
    /// `STRUCT` and its members with their names
    Struct(&'a StructArray, Vec<(&'a str, Cells<'a>)>),
}

impl<'a> Cells<'a> {
    /// None: not a canonical type.
    pub(crate) fn new(array: &'a dyn Array) -> Option<Self> {
        Some(match array.data_type() {
            DataType::Boolean => Self::Boolean(array.as_boolean_opt()?),
            DataType::Int8 => Self::TinyInt(array.as_primitive_opt::<Int8Type>()?),
            DataType::Int16 => Self::SmallInt(array.as_primitive_opt::<Int16Type>()?),
            DataType::Int32 => Self::Int(array.as_primitive_opt::<Int32Type>()?),
            DataType::Int64 => Self::BigInt(array.as_primitive_opt::<Int64Type>()?),
            DataType::Float32 => Self::Float(array.as_primitive_opt::<Float32Type>()?),
            DataType::Float64 => Self::Double(array.as_primitive_opt::<Float64Type>()?),
            DataType::Decimal128(..) => Self::Decimal(array.as_primitive_opt::<Decimal128Type>()?),
            DataType::Utf8 => Self::String(array.as_string_opt::<i32>()?),
            DataType::Binary => Self::Binary(array.as_binary_opt::<i32>()?),
            DataType::Date32 => Self::Date(array.as_primitive_opt::<Date32Type>()?),
            DataType::Timestamp(..) => Self::Timestamp(array.as_primitive_opt::<TimestampMicrosecondType>()?),
            DataType::List(_) => {
                let list = array.as_list_opt::<i32>()?;
                Self::Array(list, Box::new(Self::new(list.values().as_ref())?))
            }
            DataType::Map(..) => {
                let map = array.as_map_opt()?;
                let (keys, values) = (Self::new(map.keys().as_ref())?, Self::new(map.values().as_ref())?);
                Self::Map(map, Box::new(keys), Box::new(values))
            }
            DataType::Struct(fields) => {
                let rows = array.as_struct_opt()?;
                let members = fields.iter().zip(rows.columns());
                let members = members.map(|(field, column)| Some((field.name().as_str(), Self::new(column.as_ref())?)));
                Self::Struct(rows, members.collect::<Option<_>>()?)
            }
            _ => return None,
        })
    }

    /// Whether a cell is NULL.
    pub(crate) fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Boolean(array) => array.is_null(row),
            Self::TinyInt(array) => array.is_null(row),
            Self::SmallInt(array) => array.is_null(row),
            Self::Int(array) => array.is_null(row),
            Self::BigInt(array) => array.is_null(row),
            Self::Float(array) => array.is_null(row),
            Self::Double(array) => array.is_null(row),
            Self::Decimal(array) => array.is_null(row),
            Self::String(array) => array.is_null(row),
            Self::Binary(array) => array.is_null(row),
            Self::Date(array) => array.is_null(row),
            Self::Timestamp(array) => array.is_null(row),
            Self::Array(array, _) => array.is_null(row),
            Self::Map(array, ..) => array.is_null(row),
            Self::Struct(array, _) => array.is_null(row),
        }
    }

    /// Prints a single value as plain text. A nested one prints nothing.
    ///
    /// # Errors
    /// Those of `out`, which has none.
    pub(crate) fn write_text(&self, row: usize, out: &mut String) -> fmt::Result {
        match self {
            Self::Boolean(array) => out.write_str(if array.value(row) { "true" } else { "false" }),
            Self::TinyInt(array) => write!(out, "{}", array.value(row)),
            Self::SmallInt(array) => write!(out, "{}", array.value(row)),
            Self::Int(array) => write!(out, "{}", array.value(row)),
            Self::BigInt(array) => write!(out, "{}", array.value(row)),
            Self::Float(array) => write_float(f64::from(array.value(row)), &array.value(row), out),
            Self::Double(array) => write_float(array.value(row), &array.value(row), out),
            Self::Decimal(array) => write_decimal(array.value(row), array.scale().cast_unsigned(), out),
            Self::String(array) => out.write_str(array.value(row)),
            Self::Binary(array) => {
                BASE64_STANDARD.encode_string(array.value(row), out);
                Ok(())
            }
            Self::Date(array) => write_date(array.value(row), out),
            Self::Timestamp(array) => write_timestamp(array.value(row), out),
            Self::Array(..) | Self::Map(..) | Self::Struct(..) => Ok(()),
        }
    }
}
