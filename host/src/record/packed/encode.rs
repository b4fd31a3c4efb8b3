//! Arrow batches to packed rows: columns are downcast once per batch, then each row is written without an allocation of its own.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType,
};
use arrow_array::{Array, BooleanArray, RecordBatch};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};

use super::super::error::{BadRow, EncodeError};
use super::super::schema::{DataType, Schema};
use super::cell::{SLOT_DECIMAL_PRECISION_MAX, Zero, double_slot, push_decimal_part};
use super::layout::RowLayout;
use super::writer::RowWriter;

/// Packs the rows of one batch. Makes every NaN the one NaN and sorts the entries of maps.
#[derive(Debug)]
pub struct RowEncoder {
    columns: Vec<Column>,
    rows: usize,
}

impl RowEncoder {
    /// Prepares a batch that has exactly the Arrow schema of the layout. Decimals are within their precision and NOT NULL columns
    /// hold no NULL, as batches from [`cast_batch`](super::super::cast_batch) are.
    ///
    /// # Errors
    /// Another schema; maps with a key twice (here rather than in [`encode`](Self::encode), since keys are sorted once per batch);
    /// a batch of more than 4 GiB.
    pub fn new(layout: &RowLayout, batch: &RecordBatch) -> Result<Self, EncodeError> {
        Self::with_zero(layout, batch, Zero::Signed)
    }

    pub(in super::super) fn with_zero(
        layout: &RowLayout,
        batch: &RecordBatch,
        zero: Zero,
    ) -> Result<Self, EncodeError> {
        if batch.schema_ref().fields() != layout.arrow_schema().fields() {
            let (found, wanted) = (batch.schema_ref().to_string(), layout.schema().to_string());
            return Err(EncodeError::SchemaMismatch { found, wanted });
        }
        let rows = batch.num_rows();
        let bytes = batch.columns().iter().fold(row_bytes(rows, batch.num_columns()), |sum, column| {
            sum.saturating_add(packed_bytes_max(column.as_ref()))
        });
        if bytes > u64::from(u32::MAX) {
            return Err(EncodeError::BatchTooLarge { bytes });
        }
        let columns = columns_of(layout.schema(), batch.columns(), zero);
        let encoder = Self { columns, rows };
        encoder.check_map_keys(layout.schema())?;
        Ok(encoder)
    }

    /// Number of rows in the batch.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends the packed row of number `row`.
    ///
    /// # Panics
    /// If the batch has no such row.
    pub fn encode(&self, row: usize, out: &mut Vec<u8>) {
        write_row(out, self.columns.iter().map(|column| (column, row)));
    }

    /// Finds the rows that a map with a repeated key is part of.
    fn check_map_keys(&self, schema: &Schema) -> Result<(), EncodeError> {
        if self.columns.iter().all(|column| !column.any_repeated_key()) {
            return Ok(());
        }
        let bad_row = |row| {
            let (field, _) =
                schema.fields().iter().zip(&self.columns).find(|(_, column)| column.repeats_key_at(row))?;
            Some(BadRow { row, column: field.name.clone(), problem: "a key of the MAP is there twice" })
        };
        let rows: Vec<_> = (0..self.rows).filter_map(bad_row).collect();
        if rows.is_empty() { Ok(()) } else { Err(EncodeError::BadRows(rows)) }
    }
}

#[derive(Debug)]
struct Column {
    nulls: Option<NullBuffer>,
    cells: Cells,
}

#[derive(Debug)]
enum Cells {
    Boolean(BooleanArray),
    Int8(ScalarBuffer<i8>),
    Int16(ScalarBuffer<i16>),
    Int32(ScalarBuffer<i32>),
    Int64(ScalarBuffer<i64>),
    Float32(ScalarBuffer<f32>, Zero),
    Float64(ScalarBuffer<f64>, Zero),
    SlotDecimal(ScalarBuffer<i128>),
    PartDecimal(ScalarBuffer<i128>),
    /// Strings and binaries.
    Bytes(OffsetBuffer<i32>, Buffer),
    Array(OffsetBuffer<i32>, Box<Column>),
    Map(Box<MapCells>),
    Struct(Vec<Column>),
}

#[derive(Debug)]
struct MapCells {
    offsets: OffsetBuffer<i32>,
    keys: Column,
    values: Column,
    /// Per map the indices of its entries in the order of their packed keys; the first map's begin at 0.
    order: Vec<u32>,
    /// Maps that have a key twice, in order.
    repeated: Vec<usize>,
}

fn columns_of(schema: &Schema, arrays: &[arrow_array::ArrayRef], zero: Zero) -> Vec<Column> {
    let fields = schema.fields().iter();
    fields.zip(arrays).map(|(field, array)| Column::new(&field.data_type, array.as_ref(), zero)).collect()
}

impl Column {
    /// The array has the canonical Arrow type of `data_type`; the schemas have been compared.
    fn new(data_type: &DataType, array: &dyn Array, zero: Zero) -> Self {
        let cells = match data_type {
            DataType::Boolean => Cells::Boolean(array.as_boolean().clone()),
            DataType::TinyInt => Cells::Int8(array.as_primitive::<Int8Type>().values().clone()),
            DataType::SmallInt => Cells::Int16(array.as_primitive::<Int16Type>().values().clone()),
            DataType::Int => Cells::Int32(array.as_primitive::<Int32Type>().values().clone()),
            DataType::Date => Cells::Int32(array.as_primitive::<Date32Type>().values().clone()),
            DataType::BigInt => Cells::Int64(array.as_primitive::<Int64Type>().values().clone()),
            DataType::Timestamp => Cells::Int64(array.as_primitive::<TimestampMicrosecondType>().values().clone()),
            DataType::Float => Cells::Float32(array.as_primitive::<Float32Type>().values().clone(), zero),
            DataType::Double => Cells::Float64(array.as_primitive::<Float64Type>().values().clone(), zero),
            DataType::Decimal { precision, .. } => {
                let values = array.as_primitive::<Decimal128Type>().values().clone();
                if *precision <= SLOT_DECIMAL_PRECISION_MAX {
                    Cells::SlotDecimal(values)
                } else {
                    Cells::PartDecimal(values)
                }
            }
            DataType::String => {
                let array = array.as_string::<i32>();
                Cells::Bytes(array.offsets().clone(), array.values().clone())
            }
            DataType::Binary => {
                let array = array.as_binary::<i32>();
                Cells::Bytes(array.offsets().clone(), array.values().clone())
            }
            DataType::Array(element) => {
                let array = array.as_list::<i32>();
                let child = Self::new(element, array.values().as_ref(), zero);
                Cells::Array(array.offsets().clone(), Box::new(child))
            }
            DataType::Map(key, value) => {
                let array = array.as_map();
                let keys = Self::new(key, array.keys().as_ref(), Zero::Unsigned);
                let values = Self::new(value, array.values().as_ref(), zero);
                Cells::Map(Box::new(MapCells::new(array.offsets().clone(), keys, values)))
            }
            DataType::Struct(schema) => Cells::Struct(columns_of(schema, array.as_struct().columns(), zero)),
        };
        Self { nulls: array.nulls().cloned(), cells }
    }

    /// Writes the value at `index` into the cell of `column` of the row in hand.
    #[expect(
        clippy::indexing_slicing,
        reason = "`index` is a row of the array, or comes from the offsets of its parent"
    )]
    fn write(&self, index: usize, row: &RowWriter, column: usize, out: &mut Vec<u8>) {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(index)) {
            return row.null(out, column);
        }
        let slot = match &self.cells {
            Cells::Boolean(values) => u64::from(values.value(index)),
            Cells::Int8(values) => i64::from(values[index]).cast_unsigned(),
            Cells::Int16(values) => i64::from(values[index]).cast_unsigned(),
            Cells::Int32(values) => i64::from(values[index]).cast_unsigned(),
            Cells::Int64(values) => values[index].cast_unsigned(),
            Cells::Float32(values, zero) => double_slot(f64::from(values[index]), *zero),
            Cells::Float64(values, zero) => double_slot(values[index], *zero),
            Cells::SlotDecimal(values) => (values[index] as i64).cast_unsigned(),
            Cells::PartDecimal(values) => {
                return row.part(out, column, |out| push_decimal_part(values[index], out));
            }
            Cells::Bytes(offsets, bytes) => {
                return row.part(out, column, |out| out.extend_from_slice(&bytes[range(offsets, index)]));
            }
            Cells::Array(offsets, child) => {
                return row.part(out, column, |out| write_array(out, child, range(offsets, index)));
            }
            Cells::Map(map) => return row.part(out, column, |out| map.write(index, out)),
            Cells::Struct(columns) => {
                return row.part(out, column, |out| write_row(out, columns.iter().map(|column| (column, index))));
            }
        };
        row.slot(out, column, slot);
    }

    fn any_repeated_key(&self) -> bool {
        match &self.cells {
            Cells::Array(_, child) => child.any_repeated_key(),
            Cells::Map(map) => !map.repeated.is_empty() || map.values.any_repeated_key(),
            Cells::Struct(columns) => columns.iter().any(Self::any_repeated_key),
            _ => false,
        }
    }

    /// Whether the value at `index` is or holds a map with a repeated key. What stands under a NULL does not count.
    fn repeats_key_at(&self, index: usize) -> bool {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(index)) {
            return false;
        }
        match &self.cells {
            Cells::Array(offsets, child) => range(offsets, index).any(|index| child.repeats_key_at(index)),
            Cells::Map(map) => {
                map.repeated.binary_search(&index).is_ok()
                    || range(&map.offsets, index).any(|index| map.values.repeats_key_at(index))
            }
            Cells::Struct(columns) => columns.iter().any(|column| column.repeats_key_at(index)),
            _ => false,
        }
    }
}

impl MapCells {
    /// Sorts the entries of every map by the bytes of the one-column packed row of the key.
    #[expect(clippy::indexing_slicing, reason = "the ranges lie within the buffer that the keys were written to")]
    fn new(offsets: OffsetBuffer<i32>, keys: Column, values: Column) -> Self {
        let mut order = Vec::with_capacity(entries(&offsets));
        let mut repeated = Vec::new();
        let mut packed = Vec::new();
        let mut sorted: Vec<(std::ops::Range<usize>, u32)> = Vec::new();
        for map in 0..offsets.len().saturating_sub(1) {
            packed.clear();
            sorted.clear();
            for index in range(&offsets, map) {
                let begin = packed.len();
                write_row(&mut packed, std::iter::once((&keys, index)));
                sorted.push((begin..packed.len(), index as u32));
            }
            sorted.sort_unstable_by(|(a, _), (b, _)| packed[a.clone()].cmp(&packed[b.clone()]));
            if sorted.windows(2).any(|pair| packed[pair[0].0.clone()] == packed[pair[1].0.clone()]) {
                repeated.push(map);
            }
            order.extend(sorted.iter().map(|(_, index)| *index));
        }
        Self { offsets, keys, values, order, repeated }
    }

    #[expect(clippy::indexing_slicing, reason = "`order` has an entry for each that the offsets span")]
    fn write(&self, index: usize, out: &mut Vec<u8>) {
        let entries = range(&self.offsets, index);
        let first = self.offsets.first() as usize;
        let order = &self.order[entries.start - first..entries.end - first];
        let arrays = RowWriter::begin(out, 2);
        for (column, child) in [&self.keys, &self.values].into_iter().enumerate() {
            arrays.part(out, column, |out| {
                out.extend_from_slice(&(order.len() as u64).to_le_bytes());
                write_row(out, order.iter().map(|index| (child, *index as usize)));
            });
        }
    }
}

fn write_array(out: &mut Vec<u8>, child: &Column, elements: std::ops::Range<usize>) {
    out.extend_from_slice(&(elements.len() as u64).to_le_bytes());
    write_row(out, elements.map(|index| (child, index)));
}

/// Writes a row whose cells are each a value of a column.
fn write_row<'c>(out: &mut Vec<u8>, cells: impl ExactSizeIterator<Item = (&'c Column, usize)>) {
    let row = RowWriter::begin(out, cells.len());
    for (position, (column, index)) in cells.enumerate() {
        column.write(index, &row, position, out);
    }
}

/// The children of element `index` of a list, map, string or binary array.
#[expect(clippy::indexing_slicing, reason = "an offset buffer has one entry more than the array has elements")]
fn range(offsets: &OffsetBuffer<i32>, index: usize) -> std::ops::Range<usize> {
    offsets[index] as usize..offsets[index + 1] as usize
}

/// Number of children that the offsets span.
fn entries(offsets: &OffsetBuffer<i32>) -> usize {
    (offsets.last() - offsets.first()) as usize
}

/// Bytes of bitmap, slots and padding of parts of `rows` rows of `columns` columns, at most.
fn row_bytes(rows: usize, columns: usize) -> u64 {
    (rows as u64).saturating_mul(columns.div_ceil(64) as u64 * 8 + columns as u64 * 16)
}

/// Upper bound of the bytes that the parts of a column take when packed; slots are counted where the row is.
fn packed_bytes_max(array: &dyn Array) -> u64 {
    use arrow_schema::DataType as ArrowType;
    const COUNT_AND_BITMAP_BYTES: u64 = 16;
    const MAP_ROW_BYTES: u64 = 40;
    let rows = array.len() as u64;
    let elements = |values: &dyn Array| row_bytes(values.len(), 1).saturating_add(packed_bytes_max(values));
    match array.data_type() {
        ArrowType::Decimal128(..) => rows * 16,
        ArrowType::Utf8 => entries(array.as_string::<i32>().offsets()) as u64,
        ArrowType::Binary => entries(array.as_binary::<i32>().offsets()) as u64,
        ArrowType::List(_) => {
            (rows * COUNT_AND_BITMAP_BYTES).saturating_add(elements(array.as_list::<i32>().values().as_ref()))
        }
        ArrowType::Map(..) => {
            let map = array.as_map();
            (rows * (2 * COUNT_AND_BITMAP_BYTES + MAP_ROW_BYTES))
                .saturating_add(elements(map.keys().as_ref()))
                .saturating_add(elements(map.values().as_ref()))
        }
        ArrowType::Struct(_) => {
            let columns = array.as_struct().columns();
            columns.iter().fold(row_bytes(array.len(), columns.len()), |sum, column| {
                sum.saturating_add(packed_bytes_max(column.as_ref()))
            })
        }
        _ => 0,
    }
}
