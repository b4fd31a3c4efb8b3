//! Schemas to and from Arrow's. The canonical mapping is one to one; foreign Arrow types map onto the type that holds all their values.

use std::sync::Arc;

use arrow_schema::{
    DataType as ArrowType, Field as ArrowField, Fields as ArrowFields, Schema as ArrowSchema, SchemaRef, TimeUnit,
};

use super::error::{SchemaError, join_path};
use super::schema::{DECIMAL_PRECISION_MAX, DataType, Field, NESTING_MAX, Schema};

/// Zone of every timestamp column.
pub(super) const UTC: &str = "UTC";

pub(super) fn schema_to_arrow(schema: &Schema) -> SchemaRef {
    Arc::new(ArrowSchema::new(fields_to_arrow(schema)))
}

fn fields_to_arrow(schema: &Schema) -> ArrowFields {
    schema.fields().iter().map(field_to_arrow).collect()
}

pub(super) fn field_to_arrow(field: &Field) -> ArrowField {
    ArrowField::new(&field.name, type_to_arrow(&field.data_type), field.nullable)
}

pub(super) fn type_to_arrow(data_type: &DataType) -> ArrowType {
    match data_type {
        DataType::Boolean => ArrowType::Boolean,
        DataType::TinyInt => ArrowType::Int8,
        DataType::SmallInt => ArrowType::Int16,
        DataType::Int => ArrowType::Int32,
        DataType::BigInt => ArrowType::Int64,
        DataType::Float => ArrowType::Float32,
        DataType::Double => ArrowType::Float64,
        DataType::Decimal { precision, scale } => ArrowType::Decimal128(*precision, scale.cast_signed()),
        DataType::String => ArrowType::Utf8,
        DataType::Binary => ArrowType::Binary,
        DataType::Date => ArrowType::Date32,
        DataType::Timestamp => ArrowType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        DataType::Array(element) => ArrowType::List(Arc::new(element_field(element))),
        DataType::Map(key, value) => ArrowType::Map(Arc::new(entries_field(key, value)), false),
        DataType::Struct(schema) => ArrowType::Struct(fields_to_arrow(schema)),
    }
}

/// Field of the elements of a list.
pub(super) fn element_field(element: &DataType) -> ArrowField {
    ArrowField::new("element", type_to_arrow(element), true)
}

/// Field of the entries of a map.
pub(super) fn entries_field(key: &DataType, value: &DataType) -> ArrowField {
    ArrowField::new("entries", ArrowType::Struct(entry_fields(key, value)), false)
}

/// Key and value of a map's entry.
pub(super) fn entry_fields(key: &DataType, value: &DataType) -> ArrowFields {
    ArrowFields::from(vec![
        ArrowField::new("key", type_to_arrow(key), false),
        ArrowField::new("value", type_to_arrow(value), true),
    ])
}

pub(super) fn schema_from_arrow(schema: &ArrowSchema) -> Result<Schema, SchemaError> {
    fields_from_arrow(schema.fields(), "", NESTING_MAX)
}

fn fields_from_arrow(fields: &ArrowFields, path: &str, nesting_left: usize) -> Result<Schema, SchemaError> {
    let fields = fields.iter().map(|field| {
        let column = join_path(path, field.name());
        let data_type = type_from_arrow(field.data_type(), &column, nesting_left)?;
        Ok(Field { name: field.name().clone(), data_type, nullable: field.is_nullable() })
    });
    Schema::new(fields.collect::<Result<_, _>>()?)
}

/// The type that holds all values of an Arrow type. `column` is its path, for the error.
pub(super) fn type_from_arrow(
    arrow_type: &ArrowType,
    column: &str,
    nesting_left: usize,
) -> Result<DataType, SchemaError> {
    let deeper = |inner: &ArrowType| match nesting_left.checked_sub(1) {
        Some(left) => type_from_arrow(inner, column, left),
        None => Err(SchemaError::TooDeep { column: column.to_owned(), nesting_max: NESTING_MAX }),
    };
    let unsupported = |instead| SchemaError::UnsupportedArrowType {
        column: column.to_owned(),
        arrow_type: arrow_type.to_string(),
        instead,
    };
    Ok(match arrow_type {
        ArrowType::Boolean => DataType::Boolean,
        ArrowType::Int8 => DataType::TinyInt,
        ArrowType::Int16 | ArrowType::UInt8 => DataType::SmallInt,
        ArrowType::Int32 | ArrowType::UInt16 => DataType::Int,
        ArrowType::Int64 | ArrowType::UInt32 => DataType::BigInt,
        ArrowType::UInt64 => DataType::Decimal { precision: 20, scale: 0 },
        ArrowType::Float16 | ArrowType::Float32 => DataType::Float,
        ArrowType::Float64 => DataType::Double,
        ArrowType::Decimal32(precision, scale)
        | ArrowType::Decimal64(precision, scale)
        | ArrowType::Decimal128(precision, scale)
        | ArrowType::Decimal256(precision, scale) => match u8::try_from(*scale) {
            Ok(scale) if *precision <= DECIMAL_PRECISION_MAX => DataType::Decimal { precision: *precision, scale },
            _ => {
                return Err(unsupported("decimals have at most 38 digits and no negative scale"));
            }
        },
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => DataType::String,
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView | ArrowType::FixedSizeBinary(_) => {
            DataType::Binary
        }
        ArrowType::Date32 | ArrowType::Date64 => DataType::Date,
        ArrowType::Timestamp(..) => DataType::Timestamp,
        ArrowType::Dictionary(_, value) => type_from_arrow(value, column, nesting_left)?,
        ArrowType::RunEndEncoded(_, value) => type_from_arrow(value.data_type(), column, nesting_left)?,
        ArrowType::List(element) | ArrowType::LargeList(element) | ArrowType::FixedSizeList(element, _) => {
            DataType::Array(Box::new(deeper(element.data_type())?))
        }
        ArrowType::Map(entries, _) => match entries.data_type() {
            ArrowType::Struct(fields) if fields.len() == 2 => match &fields[..] {
                [key, value] => DataType::Map(Box::new(deeper(key.data_type())?), Box::new(deeper(value.data_type())?)),
                _ => return Err(unsupported("the entries of a map have a key and a value")),
            },
            _ => return Err(unsupported("the entries of a map have a key and a value")),
        },
        ArrowType::Struct(fields) => match nesting_left.checked_sub(1) {
            Some(left) => DataType::Struct(fields_from_arrow(fields, column, left)?),
            None => {
                return Err(SchemaError::TooDeep { column: column.to_owned(), nesting_max: NESTING_MAX });
            }
        },
        ArrowType::Null => {
            return Err(unsupported("it holds only NULL: give the schema, with a type for the column"));
        }
        ArrowType::Time32(_) | ArrowType::Time64(_) | ArrowType::Duration(_) | ArrowType::Interval(_) => {
            return Err(unsupported("write it as BIGINT, or leave the column out"));
        }
        ArrowType::ListView(_) | ArrowType::LargeListView(_) | ArrowType::Union(..) => {
            return Err(unsupported("write it as one of the supported types, or leave the column out"));
        }
    })
}
