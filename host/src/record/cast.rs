//! Brings batches of foreign or narrower types to exactly the wanted schema, without loss, and finds the rows that do not fit.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowTimestampType, Date32Type, Date64Type, Decimal128Type, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, ListArray, MapArray, RecordBatch, RecordBatchOptions, StructArray, TimestampMicrosecondArray,
    UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_cast::CastOptions;
use arrow_schema::{ArrowError, DataType as ArrowType, TimeUnit};

use super::arrow::{UTC, element_field, entries_field, entry_fields, field_to_arrow, type_from_arrow, type_to_arrow};
use super::error::{BadRow, CastError, SchemaError, join_path};
use super::packed::cell::fits_precision;
use super::schema::{DataType, Field, NESTING_MAX, Schema};

const NULL_IN_NOT_NULL: &str = "is NULL, and the column is NOT NULL";
const NULL_KEY: &str = "a key of the MAP is NULL";
const OUT_OF_RANGE: &str = "the value is out of range of the type";

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// Whether every value of `from` is a value of `to`: tinyint to smallint to int to bigint; those up to int, and float, to double;
/// decimal to one with no fewer digits on either side of the point; arrays, maps and structs (same names in the same order)
/// if what they hold widens. Whether fields are NOT NULL is not compared: that is a question to the rows.
#[must_use]
pub fn widens(from: &DataType, to: &DataType) -> bool {
    use DataType::{Array, BigInt, Decimal, Double, Float, Int, Map, SmallInt, Struct, TinyInt};
    match (from, to) {
        (TinyInt, SmallInt | Int | BigInt | Double) | (SmallInt, Int | BigInt | Double) => true,
        (Int, BigInt | Double) | (Float, Double) => true,
        (Decimal { precision: p, scale: s }, Decimal { precision, scale }) => {
            scale >= s && precision.saturating_sub(*scale) >= p.saturating_sub(*s)
        }
        (Array(from), Array(to)) => widens(from, to),
        (Map(from_key, from_value), Map(key, value)) => widens(from_key, key) && widens(from_value, value),
        (Struct(from), Struct(to)) => from.len() == to.len() && from.fields().iter().zip(to.fields()).all(field_widens),
        _ => from == to,
    }
}

fn field_widens((from, to): (&Field, &Field)) -> bool {
    from.name.to_lowercase() == to.name.to_lowercase() && widens(&from.data_type, &to.data_type)
}

/// The wanted columns of a batch, found by name (upper and lower case being the same), with exactly the wanted types. Types are taken
/// as [`Schema::from_arrow`] does, then widened as [`widens`] allows. Timestamps in nanoseconds are rounded down to microseconds.
///
/// # Errors
/// A column that is missing or does not widen; [`CastError::BadRows`] with every row that has a NULL in a NOT NULL column or a
/// value out of range (those can be filtered out and the rest cast again).
pub fn cast_batch(batch: &RecordBatch, wanted: &Schema) -> Result<RecordBatch, CastError> {
    let mut arrays = Vec::with_capacity(wanted.len());
    let mut bad_rows = Vec::new();
    for field in wanted.fields() {
        let (array, bad) = cast_column(batch, field)?;
        bad_rows.extend(bad.into_iter().map(|bad| BadRow {
            row: bad.index,
            column: join_path(&field.name, &bad.path),
            problem: bad.problem,
        }));
        arrays.extend(array);
    }
    if !bad_rows.is_empty() {
        bad_rows.sort_by_key(|bad| bad.row);
        bad_rows.dedup_by_key(|bad| bad.row);
        return Err(CastError::BadRows(bad_rows));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(wanted.to_arrow(), arrays, &options).map_err(|e| arrow_error("", &e))
}

/// A value that does not fit, at an index of the array in hand.
struct Bad {
    index: usize,
    path: String,
    problem: &'static str,
}

/// The array, which is there if nothing is bad, and what is bad in it.
type Converted = (Option<ArrayRef>, Vec<Bad>);

fn cast_column(batch: &RecordBatch, wanted: &Field) -> Result<Converted, CastError> {
    let schema = batch.schema_ref();
    let index = schema.fields().iter().position(|field| *field.name() == wanted.name).or_else(|| {
        let name = wanted.name.to_lowercase();
        schema.fields().iter().position(|field| field.name().to_lowercase() == name)
    });
    let Some(array) = index.and_then(|index| batch.columns().get(index)) else {
        let there = schema.fields().iter().map(|field| field.name().as_str());
        return Err(SchemaError::unknown_column(&wanted.name, there).into());
    };
    let from = type_from_arrow(array.data_type(), &wanted.name, NESTING_MAX)?;
    if !widens(&from, &wanted.data_type) {
        let (from, to) = (from.to_string(), wanted.data_type.to_string());
        return Err(CastError::DoesNotWiden { column: wanted.name.clone(), from, to });
    }
    let (array, mut bad) = convert(array, &wanted.data_type).map_err(|e| arrow_error(&wanted.name, &e))?;
    if !wanted.nullable
        && let Some(array) = &array
    {
        bad.extend(nulls_of(array.as_ref(), "", NULL_IN_NOT_NULL));
    }
    Ok((array, bad))
}

/// Converts an array whose type has been found to widen to the wanted one.
fn convert(array: &ArrayRef, wanted: &DataType) -> Result<Converted, ArrowError> {
    if let ArrowType::Dictionary(_, value) = array.data_type() {
        return convert(&arrow_cast::cast(array, value)?, wanted);
    }
    if let ArrowType::RunEndEncoded(_, value) = array.data_type() {
        return convert(&arrow_cast::cast(array, value.data_type())?, wanted);
    }
    let canonical = type_to_arrow(wanted);
    if *array.data_type() == canonical && !holds_decimal(wanted) {
        return Ok((Some(Arc::clone(array)), Vec::new()));
    }
    match wanted {
        DataType::Array(element) => convert_array(array, element),
        DataType::Map(key, value) => convert_map(array, key, value),
        DataType::Struct(schema) => convert_struct(array, schema),
        _ => {
            let converted = convert_scalar(array, wanted, &canonical)?;
            let lost = (0..array.len()).filter(|index| array.is_valid(*index) && converted.is_null(*index));
            let bad = if converted.null_count() == array.null_count() {
                Vec::new()
            } else {
                lost.map(|index| Bad { index, path: String::new(), problem: OUT_OF_RANGE }).collect()
            };
            Ok((Some(converted), bad))
        }
    }
}

/// Converts numbers, strings and times; a value that does not fit becomes NULL.
fn convert_scalar(array: &ArrayRef, wanted: &DataType, canonical: &ArrowType) -> Result<ArrayRef, ArrowError> {
    match (array.data_type(), wanted) {
        (ArrowType::Timestamp(unit, _), _) => Ok(Arc::new(convert_timestamp(array, *unit))),
        (ArrowType::Date64, _) => {
            let days = |ms: i64| i32::try_from(ms.div_euclid(DAY_MS)).ok();
            Ok(Arc::new(array.as_primitive::<Date64Type>().unary_opt::<_, Date32Type>(days)))
        }
        (from, DataType::Decimal { precision, scale }) if from == canonical => {
            let checked = |unscaled| fits_precision(unscaled, *precision).then_some(unscaled);
            let decimals = array.as_primitive::<Decimal128Type>();
            if decimals.iter().flatten().all(|unscaled| fits_precision(unscaled, *precision)) {
                return Ok(Arc::clone(array));
            }
            let decimals = decimals.unary_opt::<_, Decimal128Type>(checked);
            Ok(Arc::new(decimals.with_precision_and_scale(*precision, scale.cast_signed())?))
        }
        _ => {
            let options = CastOptions { safe: true, ..CastOptions::default() };
            arrow_cast::cast_with_options(array, canonical, &options)
        }
    }
}

fn convert_timestamp(array: &ArrayRef, unit: TimeUnit) -> TimestampMicrosecondArray {
    fn convert<T: ArrowTimestampType>(
        array: &ArrayRef,
        micros: impl Fn(i64) -> Option<i64>,
    ) -> TimestampMicrosecondArray {
        array.as_primitive::<T>().unary_opt::<_, TimestampMicrosecondType>(micros)
    }
    match unit {
        TimeUnit::Second => convert::<TimestampSecondType>(array, |s| s.checked_mul(1_000_000)),
        TimeUnit::Millisecond => convert::<TimestampMillisecondType>(array, |ms| ms.checked_mul(1_000)),
        TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().clone(),
        TimeUnit::Nanosecond => convert::<TimestampNanosecondType>(array, |ns| Some(ns.div_euclid(1_000))),
    }
    .with_timezone(UTC)
}

fn convert_array(array: &ArrayRef, element: &DataType) -> Result<Converted, ArrowError> {
    let foreign = match array.data_type() {
        ArrowType::LargeList(field) | ArrowType::FixedSizeList(field, _) => {
            arrow_cast::cast(array, &ArrowType::List(Arc::clone(field)))?
        }
        _ => Arc::clone(array),
    };
    let foreign = without_hidden_children(foreign, |array| array.as_list::<i32>().offsets())?;
    let list = foreign.as_list::<i32>();
    let (offsets, first, count) = rebased(list.offsets());
    let (child, bad) = convert(&list.values().slice(first, count), element)?;
    let bad = bad_parents(bad, &offsets, |inner| join_path("[]", inner));
    let array = match child {
        Some(child) if bad.is_empty() => {
            let nulls = list.nulls().cloned();
            Some(Arc::new(ListArray::try_new(Arc::new(element_field(element)), offsets, child, nulls)?) as ArrayRef)
        }
        _ => None,
    };
    Ok((array, bad))
}

fn convert_map(array: &ArrayRef, key: &DataType, value: &DataType) -> Result<Converted, ArrowError> {
    let foreign = without_hidden_children(Arc::clone(array), |array| array.as_map().offsets())?;
    let map = foreign.as_map();
    let (offsets, first, count) = rebased(map.offsets());
    let (keys, bad_keys) = convert(&map.keys().slice(first, count), key)?;
    let (values, bad_values) = convert(&map.values().slice(first, count), value)?;
    let null_keys = keys.iter().flat_map(|keys| nulls_of(keys.as_ref(), "", NULL_KEY)).collect();
    let mut bad = bad_parents(bad_keys, &offsets, |inner| join_path("key", inner));
    bad.extend(bad_parents(null_keys, &offsets, |inner| join_path("key", inner)));
    bad.extend(bad_parents(bad_values, &offsets, |inner| join_path("value", inner)));
    let array = match (keys, values) {
        (Some(keys), Some(values)) if bad.is_empty() => {
            let entries = StructArray::try_new(entry_fields(key, value), vec![keys, values], None)?;
            let (field, nulls) = (Arc::new(entries_field(key, value)), map.nulls().cloned());
            Some(Arc::new(MapArray::try_new(field, offsets, entries, nulls, false)?) as ArrayRef)
        }
        _ => None,
    };
    Ok((array, bad))
}

fn convert_struct(array: &ArrayRef, schema: &Schema) -> Result<Converted, ArrowError> {
    let foreign = array.as_struct();
    let mut children = Vec::with_capacity(schema.len());
    let mut bad = Vec::new();
    for (field, child) in schema.fields().iter().zip(foreign.columns()) {
        let (child, inner) = convert(child, &field.data_type)?;
        bad.extend(inner.into_iter().map(|inner| Bad { path: join_path(&field.name, &inner.path), ..inner }));
        if !field.nullable
            && let Some(child) = &child
        {
            bad.extend(nulls_of(child.as_ref(), &field.name, NULL_IN_NOT_NULL));
        }
        children.extend(child);
    }
    // What stands under a NULL struct is not part of the row.
    bad.retain(|bad| foreign.is_valid(bad.index));
    if !bad.is_empty() || children.len() < schema.len() {
        return Ok((None, bad));
    }
    let fields = schema.fields().iter().map(field_to_arrow).collect();
    let array = StructArray::try_new_with_length(fields, children, foreign.nulls().cloned(), foreign.len())?;
    Ok((Some(Arc::new(array)), bad))
}

fn nulls_of(array: &dyn Array, path: &str, problem: &'static str) -> Vec<Bad> {
    let Some(nulls) = array.nulls().filter(|nulls| nulls.null_count() > 0) else {
        return Vec::new();
    };
    let bad = |index| Bad { index, path: path.to_owned(), problem };
    (0..nulls.len()).filter(|index| nulls.is_null(*index)).map(bad).collect()
}

/// Bad children as bad elements of the list or map with these offsets, one per element.
fn bad_parents(bad: Vec<Bad>, offsets: &OffsetBuffer<i32>, path: impl Fn(&str) -> String) -> Vec<Bad> {
    let parent = |bad: Bad| {
        // The last element that begins at or before the child.
        let begun = offsets.partition_point(|begin| *begin as usize <= bad.index);
        Bad { index: begun.saturating_sub(1), path: path(&bad.path), problem: bad.problem }
    };
    let mut parents: Vec<_> = bad.into_iter().map(parent).collect();
    parents.dedup_by_key(|bad| bad.index);
    parents
}

/// The offsets from 0 on, and the first child and the number of children that they span.
fn rebased(offsets: &OffsetBuffer<i32>) -> (OffsetBuffer<i32>, usize, usize) {
    let (first, last) = (offsets.first(), offsets.last());
    let rebased: Vec<i32> = offsets.iter().map(|offset| offset - first).collect();
    (OffsetBuffer::new(rebased.into()), first as usize, (last - first) as usize)
}

/// A list or map in which no NULL has children; Arrow allows them, and they must not count as values.
fn without_hidden_children(
    array: ArrayRef,
    offsets: impl Fn(&ArrayRef) -> &OffsetBuffer<i32>,
) -> Result<ArrayRef, ArrowError> {
    let hidden = |(index, pair): (usize, &[i32])| array.is_null(index) && pair.first() != pair.last();
    if array.null_count() == 0 || !offsets(&array).windows(2).enumerate().any(hidden) {
        return Ok(array);
    }
    let indices = UInt64Array::from_iter_values(0..array.len() as u64);
    arrow_select::take::take(array.as_ref(), &indices, None)
}

fn holds_decimal(data_type: &DataType) -> bool {
    match data_type {
        DataType::Decimal { .. } => true,
        DataType::Array(element) => holds_decimal(element),
        DataType::Map(key, value) => holds_decimal(key) || holds_decimal(value),
        DataType::Struct(schema) => schema.fields().iter().any(|field| holds_decimal(&field.data_type)),
        _ => false,
    }
}

fn arrow_error(column: &str, e: &ArrowError) -> CastError {
    CastError::Arrow { column: column.to_owned(), problem: e.to_string() }
}
