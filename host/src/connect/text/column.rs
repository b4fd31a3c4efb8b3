//! One growing Arrow column of a canonical type. Every push appends exactly one cell.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder, Float64Builder, Int8Builder,
    Int16Builder, Int32Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, ListArray, MapArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Fields};

/// A column under construction.
#[derive(Debug)]
pub(crate) enum Column {
    /// `BOOLEAN`
    Boolean(BooleanBuilder),
    /// `TINYINT`
    TinyInt(Int8Builder),
    /// `SMALLINT`
    SmallInt(Int16Builder),
    /// `INT`
    Int(Int32Builder),
    /// `BIGINT`
    BigInt(Int64Builder),
    /// `FLOAT`
    Float(Float32Builder),
    /// `DOUBLE`
    Double(Float64Builder),
    /// `DECIMAL`
    Decimal {
        /// Unscaled values.
        values: Decimal128Builder,
        /// Digits in all.
        precision: u8,
        /// Digits after the point.
        scale: i8,
    },
    /// `STRING`
    String(StringBuilder),
    /// `BINARY`
    Binary(BinaryBuilder),
    /// `DATE`
    Date(Date32Builder),
    /// `TIMESTAMP`
    Timestamp(TimestampMicrosecondBuilder),
    /// `ARRAY`
    Array(ArrayColumn),
    /// `MAP`: an array of entries, structs of key and value.
    Map(ArrayColumn),
    /// `STRUCT`
    Struct(StructColumn),
}

/// Cells that are runs of elements.
#[derive(Debug)]
pub(crate) struct ArrayColumn {
    /// All elements of all cells.
    pub elements: Box<Column>,
    offsets: Vec<i32>,
    valid: NullBufferBuilder,
}

/// Cells that are rows of their own.
#[derive(Debug)]
pub(crate) struct StructColumn {
    /// Names, types and nullability.
    pub fields: Fields,
    /// One per field.
    pub columns: Vec<Column>,
    valid: NullBufferBuilder,
    len: usize,
}

impl Column {
    /// Empty. None: not a canonical type.
    pub(crate) fn new(data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Boolean => Self::Boolean(BooleanBuilder::new()),
            DataType::Int8 => Self::TinyInt(Int8Builder::new()),
            DataType::Int16 => Self::SmallInt(Int16Builder::new()),
            DataType::Int32 => Self::Int(Int32Builder::new()),
            DataType::Int64 => Self::BigInt(Int64Builder::new()),
            DataType::Float32 => Self::Float(Float32Builder::new()),
            DataType::Float64 => Self::Double(Float64Builder::new()),
            DataType::Decimal128(precision, scale) => Self::Decimal {
                values: Decimal128Builder::new().with_data_type(data_type.clone()),
                precision: *precision,
                scale: *scale,
            },
            DataType::Utf8 => Self::String(StringBuilder::new()),
            DataType::Binary => Self::Binary(BinaryBuilder::new()),
            DataType::Date32 => Self::Date(Date32Builder::new()),
            DataType::Timestamp(..) => {
                Self::Timestamp(TimestampMicrosecondBuilder::new().with_data_type(data_type.clone()))
            }
            DataType::List(element) => Self::Array(ArrayColumn::new(element.data_type())?),
            DataType::Map(entries, _) => Self::Map(ArrayColumn::new(entries.data_type())?),
            DataType::Struct(fields) => Self::Struct(StructColumn::new(fields)?),
            _ => return None,
        })
    }

    /// Cells so far.
    pub(crate) fn len(&self) -> usize {
        use arrow_array::builder::ArrayBuilder;
        match self {
            Self::Boolean(values) => values.len(),
            Self::TinyInt(values) => values.len(),
            Self::SmallInt(values) => values.len(),
            Self::Int(values) => values.len(),
            Self::BigInt(values) => values.len(),
            Self::Float(values) => values.len(),
            Self::Double(values) => values.len(),
            Self::Decimal { values, .. } => values.len(),
            Self::String(values) => values.len(),
            Self::Binary(values) => values.len(),
            Self::Date(values) => values.len(),
            Self::Timestamp(values) => values.len(),
            Self::Array(array) | Self::Map(array) => array.offsets.len() - 1,
            Self::Struct(rows) => rows.len,
        }
    }

    /// Appends NULL.
    pub(crate) fn push_null(&mut self) {
        match self {
            Self::Boolean(values) => values.append_null(),
            Self::TinyInt(values) => values.append_null(),
            Self::SmallInt(values) => values.append_null(),
            Self::Int(values) => values.append_null(),
            Self::BigInt(values) => values.append_null(),
            Self::Float(values) => values.append_null(),
            Self::Double(values) => values.append_null(),
            Self::Decimal { values, .. } => values.append_null(),
            Self::String(values) => values.append_null(),
            Self::Binary(values) => values.append_null(),
            Self::Date(values) => values.append_null(),
            Self::Timestamp(values) => values.append_null(),
            Self::Array(array) | Self::Map(array) => array.close(Cell::Null),
            Self::Struct(rows) => rows.close(Cell::Null),
        }
    }

    /// Appends a value that nobody will see, valid also where NULL is not: the cell of a row that is left out.
    pub(crate) fn push_placeholder(&mut self) {
        match self {
            Self::Boolean(values) => values.append_value(false),
            Self::TinyInt(values) => values.append_value(0),
            Self::SmallInt(values) => values.append_value(0),
            Self::Int(values) => values.append_value(0),
            Self::BigInt(values) => values.append_value(0),
            Self::Float(values) => values.append_value(0.0),
            Self::Double(values) => values.append_value(0.0),
            Self::Decimal { values, .. } => values.append_value(0),
            Self::String(values) => values.append_value(""),
            Self::Binary(values) => values.append_value(b""),
            Self::Date(values) => values.append_value(0),
            Self::Timestamp(values) => values.append_value(0),
            Self::Array(array) | Self::Map(array) => array.close(Cell::Value),
            Self::Struct(rows) => rows.close(Cell::Value),
        }
    }

    /// Takes all cells out, as an array of that type, which is the one that the column was made for.
    ///
    /// # Errors
    /// Arrow's, which would be a defect.
    pub(crate) fn take(&mut self, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Boolean(values) => Arc::new(values.finish()),
            Self::TinyInt(values) => Arc::new(values.finish()),
            Self::SmallInt(values) => Arc::new(values.finish()),
            Self::Int(values) => Arc::new(values.finish()),
            Self::BigInt(values) => Arc::new(values.finish()),
            Self::Float(values) => Arc::new(values.finish()),
            Self::Double(values) => Arc::new(values.finish()),
            Self::Decimal { values, .. } => Arc::new(values.finish()),
            Self::String(values) => Arc::new(values.finish()),
            Self::Binary(values) => Arc::new(values.finish()),
            Self::Date(values) => Arc::new(values.finish()),
            Self::Timestamp(values) => Arc::new(values.finish()),
            Self::Array(array) | Self::Map(array) => array.take(data_type)?,
            Self::Struct(rows) => Arc::new(rows.take()?),
        })
    }
}

/// What a nested cell is, once its elements are in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cell {
    /// NULL
    Null,
    /// A value
    Value,
}

impl ArrayColumn {
    fn new(element: &DataType) -> Option<Self> {
        let elements = Box::new(Column::new(element)?);
        Some(Self { elements, offsets: vec![0], valid: NullBufferBuilder::new(0) })
    }

    /// Ends the cell in hand: all elements pushed since the last one are its own.
    pub(crate) fn close(&mut self, cell: Cell) {
        // Elements are fewer than the bytes of text that a batch is made from, far below 2^31.
        self.offsets.push(i32::try_from(self.elements.len()).unwrap_or(i32::MAX));
        self.valid.append(cell == Cell::Value);
    }

    fn take(&mut self, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
        let offsets = OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(&mut self.offsets, vec![0])));
        let valid = self.valid.finish();
        match data_type {
            DataType::List(element) => {
                let elements = self.elements.take(element.data_type())?;
                Ok(Arc::new(ListArray::try_new(Arc::clone(element), offsets, elements, valid)?))
            }
            DataType::Map(entries, sorted) => {
                let Column::Struct(rows) = &mut *self.elements else {
                    return Err(ArrowError::SchemaError("the entries of a map are no struct".to_owned()));
                };
                let rows = rows.take()?;
                Ok(Arc::new(MapArray::try_new(Arc::clone(entries), offsets, rows, valid, *sorted)?))
            }
            _ => Err(ArrowError::SchemaError(format!("not a nested type: {data_type}"))),
        }
    }
}

impl StructColumn {
    fn new(fields: &Fields) -> Option<Self> {
        let columns = fields.iter().map(|field| Column::new(field.data_type())).collect::<Option<_>>()?;
        Some(Self { fields: fields.clone(), columns, valid: NullBufferBuilder::new(0), len: 0 })
    }

    /// Cells so far, the one in hand not counted.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Ends the cell in hand. Members that got no value become NULL where they may be, placeholders where not.
    pub(crate) fn close(&mut self, cell: Cell) {
        for (column, field) in self.columns.iter_mut().zip(&self.fields) {
            if column.len() > self.len {
                continue;
            }
            if field.is_nullable() {
                column.push_null();
            } else {
                column.push_placeholder();
            }
        }
        self.valid.append(cell == Cell::Value);
        self.len += 1;
    }

    fn take(&mut self) -> Result<StructArray, ArrowError> {
        let len = std::mem::take(&mut self.len);
        let valid = self.valid.finish();
        let arrays = self
            .columns
            .iter_mut()
            .zip(&self.fields)
            .map(|(column, field)| column.take(field.data_type()))
            .collect::<Result<Vec<_>, _>>()?;
        StructArray::try_new_with_length(self.fields.clone(), arrays, valid, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_and_placeholders_fill_every_type() {
        let schema = crate::record::Schema::parse(
            "a BOOLEAN, b TINYINT, c SMALLINT, d INT, e BIGINT, f FLOAT, g DOUBLE, h DECIMAL(38,2), i STRING, j BINARY, \
             k DATE, l TIMESTAMP, m ARRAY<ARRAY<INT>>, n MAP<STRING, STRUCT<x: INT NOT NULL, y: STRING>>",
        )
        .unwrap();
        for field in schema.to_arrow().fields() {
            let mut column = Column::new(field.data_type()).unwrap();
            column.push_null();
            column.push_placeholder();
            assert_eq!(column.len(), 2, "{field}");
            let array = column.take(field.data_type()).unwrap();
            assert_eq!((array.len(), array.is_null(0), array.is_null(1)), (2, true, false), "{field}");
            assert_eq!(array.data_type(), field.data_type());
            assert_eq!(column.len(), 0);
        }
    }
}
