//! Packed rows to Arrow batches. Rows need not have been validated: whatever the bytes, it answers a batch or a fault.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, ListArray, MapArray, RecordBatch, RecordBatchOptions, StringArray, StructArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::{BooleanBufferBuilder, NullBufferBuilder, OffsetBuffer};
use arrow_schema::ArrowError;

use super::super::arrow::{UTC, element_field, entries_field, entry_fields, field_to_arrow};
use super::super::error::RowFault;
use super::super::schema::{DataType, Schema};
use super::cell::{
    SLOT_DECIMAL_PRECISION_MAX, Zero, read_boolean, read_double, read_float, read_integer, read_part_decimal,
    read_slot_decimal,
};
use super::layout::RowLayout;
use super::reader::{RowReader, array_row, map_arrays};

/// Most bytes of a batch that is being decoded: in Arrow a NULL takes as much as a value, so a small hostile row (an array of NULL
/// structs) could otherwise become a thousand times larger. It also keeps Arrow's 32-bit offsets in range.
const DECODED_BYTES_MAX: usize = 1 << 30;

/// Decodes rows into one batch with the layout's Arrow schema.
///
/// # Errors
/// A row that does not fit the layout, or more than a GiB of batch; use [`RowDecoder`] to cut batches by size.
pub fn decode_rows<'a>(layout: &RowLayout, rows: impl IntoIterator<Item = &'a [u8]>) -> Result<RecordBatch, RowFault> {
    let mut decoder = RowDecoder::new(layout);
    for row in rows {
        decoder.push(row)?;
    }
    decoder.finish()
}

/// Collects rows of one layout into a batch.
#[derive(Debug)]
pub struct RowDecoder {
    layout: RowLayout,
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
}

impl RowDecoder {
    /// Without rows yet.
    #[must_use]
    pub fn new(layout: &RowLayout) -> Self {
        let columns = columns_of(layout.schema());
        Self { layout: layout.clone(), columns, rows: 0, bytes: 0 }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// A row that does not fit the layout; the decoder is then of no further use.
    pub fn push(&mut self, row: &[u8]) -> Result<(), RowFault> {
        push_row(row, self.layout.schema(), &mut self.columns, &mut self.bytes)?;
        self.rows += 1;
        Ok(())
    }

    /// Rows so far.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of Arrow memory so far, about; for cutting batches.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The batch.
    ///
    /// # Errors
    /// Strings that are not UTF-8, if rows were not validated.
    pub fn finish(self) -> Result<RecordBatch, RowFault> {
        let schema = self.layout.schema();
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows));
        let arrays = arrays_of(schema, self.columns)?;
        RecordBatch::try_new_with_options(Arc::clone(self.layout.arrow_schema()), arrays, &options)
            .map_err(|e| arrow_fault(&e))
    }
}

#[derive(Debug)]
struct Column {
    nulls: NullBufferBuilder,
    cells: Cells,
}

#[derive(Debug)]
enum Cells {
    Boolean(BooleanBufferBuilder),
    Int8(Vec<i8>),
    Int16(Vec<i16>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    Decimal(Vec<i128>),
    /// Strings and binaries: where each ends, and the bytes.
    Bytes(Vec<i32>, Vec<u8>),
    /// Where each array ends, its elements, and how many these are.
    Array(Vec<i32>, Box<Column>),
    Map(Vec<i32>, Box<[Column; 2]>),
    Struct(Vec<Column>),
}

fn columns_of(schema: &Schema) -> Vec<Column> {
    schema.fields().iter().map(|field| Column::new(&field.data_type)).collect()
}

fn push_row(row: &[u8], schema: &Schema, columns: &mut [Column], bytes: &mut usize) -> Result<(), RowFault> {
    let mut reader = RowReader::new(row, schema.len())?;
    for (position, (field, column)) in schema.fields().iter().zip(columns).enumerate() {
        let pushed = match reader.cell(position) {
            Ok(None) if !field.nullable => Err(RowFault::null()),
            Ok(cell) => column.push(cell, &mut reader, &field.data_type, bytes),
            Err(fault) => Err(fault),
        };
        pushed.map_err(|fault| fault.within(&field.name))?;
    }
    reader.finish()
}

/// Pushes the elements of an array; the answer is their number.
fn push_array(part: &[u8], element: &DataType, child: &mut Column, bytes: &mut usize) -> Result<usize, RowFault> {
    let (count, row) = array_row(part)?;
    let mut reader = RowReader::new(row, count)?;
    for index in 0..count {
        let pushed = reader.cell(index).and_then(|cell| child.push(cell, &mut reader, element, bytes));
        pushed.map_err(|fault| fault.within(&format!("[{index}]")))?;
    }
    reader.finish()?;
    Ok(count)
}

impl Column {
    fn new(data_type: &DataType) -> Self {
        let cells = match data_type {
            DataType::Boolean => Cells::Boolean(BooleanBufferBuilder::new(0)),
            DataType::TinyInt => Cells::Int8(Vec::new()),
            DataType::SmallInt => Cells::Int16(Vec::new()),
            DataType::Int | DataType::Date => Cells::Int32(Vec::new()),
            DataType::BigInt | DataType::Timestamp => Cells::Int64(Vec::new()),
            DataType::Float => Cells::Float32(Vec::new()),
            DataType::Double => Cells::Float64(Vec::new()),
            DataType::Decimal { .. } => Cells::Decimal(Vec::new()),
            DataType::String | DataType::Binary => Cells::Bytes(vec![0], Vec::new()),
            DataType::Array(element) => Cells::Array(vec![0], Box::new(Self::new(element))),
            DataType::Map(key, value) => Cells::Map(vec![0], Box::new([Self::new(key), Self::new(value)])),
            DataType::Struct(schema) => Cells::Struct(columns_of(schema)),
        };
        Self { nulls: NullBufferBuilder::new(0), cells }
    }

    fn push(
        &mut self,
        cell: Option<u64>,
        reader: &mut RowReader<'_>,
        data_type: &DataType,
        bytes: &mut usize,
    ) -> Result<(), RowFault> {
        let Some(slot) = cell else {
            return self.push_null(bytes);
        };
        charge(self.cells.value_bytes(), bytes)?;
        match (&mut self.cells, data_type) {
            (Cells::Boolean(values), _) => values.append(read_boolean(slot)?),
            (Cells::Int8(values), _) => values.push(read_integer(slot)?),
            (Cells::Int16(values), _) => values.push(read_integer(slot)?),
            (Cells::Int32(values), _) => values.push(read_integer(slot)?),
            (Cells::Int64(values), _) => values.push(slot.cast_signed()),
            (Cells::Float32(values), _) => values.push(read_float(slot, Zero::Signed)?),
            (Cells::Float64(values), _) => values.push(read_double(slot, Zero::Signed)?),
            (Cells::Decimal(values), DataType::Decimal { precision, .. }) => {
                values.push(if *precision <= SLOT_DECIMAL_PRECISION_MAX {
                    read_slot_decimal(slot, *precision)?
                } else {
                    read_part_decimal(reader.part(slot)?, *precision)?
                });
            }
            (Cells::Bytes(ends, values), _) => {
                let part = reader.part(slot)?;
                charge(part.len(), bytes)?;
                values.extend_from_slice(part);
                push_end(ends, part.len())?;
            }
            (Cells::Array(ends, child), DataType::Array(element)) => {
                push_end(ends, push_array(reader.part(slot)?, element, child, bytes)?)?;
            }
            (Cells::Map(ends, children), DataType::Map(key, value)) => {
                let (keys, values) = map_arrays(reader.part(slot)?)?;
                let [key_column, value_column] = children.as_mut();
                let count = push_array(keys, key, key_column, bytes).map_err(|fault| fault.within("key"))?;
                if push_array(values, value, value_column, bytes).map_err(|fault| fault.within("value"))? != count {
                    return Err(RowFault::invalid("the map has another number of keys than of values"));
                }
                push_end(ends, count)?;
            }
            (Cells::Struct(columns), DataType::Struct(schema)) => {
                push_row(reader.part(slot)?, schema, columns, bytes)?;
            }
            _ => return Err(RowFault::invalid("the type is not the column's")),
        }
        self.nulls.append_non_null();
        Ok(())
    }

    fn push_null(&mut self, bytes: &mut usize) -> Result<(), RowFault> {
        charge(self.cells.value_bytes(), bytes)?;
        match &mut self.cells {
            Cells::Boolean(values) => values.append(false),
            Cells::Int8(values) => values.push(0),
            Cells::Int16(values) => values.push(0),
            Cells::Int32(values) => values.push(0),
            Cells::Int64(values) => values.push(0),
            Cells::Float32(values) => values.push(0.0),
            Cells::Float64(values) => values.push(0.0),
            Cells::Decimal(values) => values.push(0),
            Cells::Bytes(ends, _) | Cells::Array(ends, _) | Cells::Map(ends, _) => push_end(ends, 0)?,
            Cells::Struct(columns) => columns.iter_mut().try_for_each(|column| column.push_null(bytes))?,
        }
        self.nulls.append_null();
        Ok(())
    }

    /// The array of the column, of the canonical Arrow type of `data_type`.
    fn finish(mut self, data_type: &DataType) -> Result<ArrayRef, RowFault> {
        let length = self.nulls.len();
        let nulls = self.nulls.finish();
        let array: Result<ArrayRef, ArrowError> = match (self.cells, data_type) {
            (Cells::Boolean(mut values), _) => Ok(Arc::new(BooleanArray::new(values.finish(), nulls))),
            (Cells::Int8(values), _) => Ok(Arc::new(Int8Array::new(values.into(), nulls))),
            (Cells::Int16(values), _) => Ok(Arc::new(Int16Array::new(values.into(), nulls))),
            (Cells::Int32(values), DataType::Date) => Ok(Arc::new(Date32Array::new(values.into(), nulls))),
            (Cells::Int32(values), _) => Ok(Arc::new(Int32Array::new(values.into(), nulls))),
            (Cells::Int64(values), DataType::Timestamp) => {
                Ok(Arc::new(TimestampMicrosecondArray::new(values.into(), nulls).with_timezone(UTC)))
            }
            (Cells::Int64(values), _) => Ok(Arc::new(Int64Array::new(values.into(), nulls))),
            (Cells::Float32(values), _) => Ok(Arc::new(Float32Array::new(values.into(), nulls))),
            (Cells::Float64(values), _) => Ok(Arc::new(Float64Array::new(values.into(), nulls))),
            (Cells::Decimal(values), DataType::Decimal { precision, scale }) => {
                Decimal128Array::new(values.into(), nulls)
                    .with_precision_and_scale(*precision, scale.cast_signed())
                    .map(|array| Arc::new(array) as ArrayRef)
            }
            (Cells::Bytes(ends, values), DataType::String) => {
                StringArray::try_new(offsets(ends), values.into(), nulls).map(|array| Arc::new(array) as ArrayRef)
            }
            (Cells::Bytes(ends, values), _) => {
                BinaryArray::try_new(offsets(ends), values.into(), nulls).map(|array| Arc::new(array) as ArrayRef)
            }
            (Cells::Array(ends, child), DataType::Array(element)) => {
                let field = Arc::new(element_field(element));
                ListArray::try_new(field, offsets(ends), child.finish(element)?, nulls)
                    .map(|array| Arc::new(array) as ArrayRef)
            }
            (Cells::Map(ends, children), DataType::Map(key, value)) => {
                let [keys, values] = *children;
                let arrays = vec![keys.finish(key)?, values.finish(value)?];
                StructArray::try_new(entry_fields(key, value), arrays, None)
                    .and_then(|entries| {
                        MapArray::try_new(Arc::new(entries_field(key, value)), offsets(ends), entries, nulls, false)
                    })
                    .map(|array| Arc::new(array) as ArrayRef)
            }
            (Cells::Struct(columns), DataType::Struct(schema)) => {
                let fields = schema.fields().iter().map(field_to_arrow).collect();
                let arrays = arrays_of(schema, columns)?;
                StructArray::try_new_with_length(fields, arrays, nulls, length).map(|array| Arc::new(array) as ArrayRef)
            }
            _ => return Err(RowFault::invalid("the type is not the column's")),
        };
        array.map_err(|e| arrow_fault(&e))
    }
}

impl Cells {
    /// Bytes that every value takes, NULL or not.
    fn value_bytes(&self) -> usize {
        match self {
            Self::Boolean(_) | Self::Int8(_) | Self::Struct(_) => 1,
            Self::Int16(_) => 2,
            Self::Int32(_) | Self::Float32(_) | Self::Bytes(..) | Self::Array(..) | Self::Map(..) => 4,
            Self::Int64(_) | Self::Float64(_) => 8,
            Self::Decimal(_) => 16,
        }
    }
}

fn arrays_of(schema: &Schema, columns: Vec<Column>) -> Result<Vec<ArrayRef>, RowFault> {
    let fields = schema.fields().iter();
    let array = |(column, field): (Column, &super::super::schema::Field)| {
        column.finish(&field.data_type).map_err(|fault| fault.within(&field.name))
    };
    columns.into_iter().zip(fields).map(array).collect()
}

fn charge(more: usize, bytes: &mut usize) -> Result<(), RowFault> {
    *bytes = bytes.saturating_add(more);
    if *bytes <= DECODED_BYTES_MAX {
        Ok(())
    } else {
        Err(RowFault::invalid("the decoded rows take more than 1 GiB; decode fewer at once"))
    }
}

fn push_end(ends: &mut Vec<i32>, length: usize) -> Result<(), RowFault> {
    let end = i32::try_from(length).ok().and_then(|length| ends.last()?.checked_add(length));
    ends.push(end.ok_or_else(|| RowFault::invalid("the decoded rows take more than 2 GiB; decode fewer at once"))?);
    Ok(())
}

/// The ends were made by [`push_end`] from 0, so they only grow.
fn offsets(ends: Vec<i32>) -> OffsetBuffer<i32> {
    OffsetBuffer::new(ends.into())
}

fn arrow_fault(e: &ArrowError) -> RowFault {
    RowFault::invalid(e.to_string())
}
