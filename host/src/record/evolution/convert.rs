//! Converts packed rows by a plan. It allocates nothing but for maps whose keys change.
//!
//! Rows were validated when they were stored, and the store has checksums: here a row only has to be safe to read.

use std::ops::Range;
use std::sync::Arc;

use super::super::error::RowFault;
use super::super::packed::cell::{POWERS_OF_TEN, push_decimal_part, read_part_decimal};
use super::super::packed::reader::{RowReader, array_row, map_arrays};
use super::super::packed::validate::stands_in_slot;
use super::super::packed::writer::RowWriter;
use super::super::schema::{DECIMAL_PRECISION_MAX, DataType};

/// From rows of one schema to rows of another.
#[derive(Debug, Clone, PartialEq)]
pub struct RowConversion(Arc<RowPlan>);

/// Why a row cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    /// It is no row of the schema that it was packed by.
    #[error(transparent)]
    Row(#[from] RowFault),
    /// It would become too large.
    #[error("the row has more than {bytes_max} bytes in its new schema")]
    TooLarge {
        /// The limit.
        bytes_max: usize,
    },
}

/// How a row is made of an earlier one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RowPlan {
    /// By column of the earlier row.
    pub(super) from: Vec<Place>,
    /// By column of the later row: the earlier column and what becomes of it. None: NULL.
    pub(super) columns: Vec<Option<(usize, Step)>>,
}

/// Where a value stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Slot,
    Part,
}

/// What becomes of a value that is not NULL.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Its bytes stay.
    Same,
    IntToDouble,
    Decimal {
        /// Digits that the scale gains.
        zeros: u8,
        /// Whether the result stands in its slot.
        in_slot: bool,
    },
    Struct(RowPlan),
    Array(Box<Element>),
    Map {
        key: Box<Element>,
        value: Box<Element>,
    },
}

/// What becomes of the elements of an array.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Element {
    from: Place,
    step: Step,
}

impl Place {
    pub(super) fn of(data_type: &DataType) -> Self {
        if stands_in_slot(data_type) { Self::Slot } else { Self::Part }
    }
}

impl Step {
    pub(super) fn array(from: &DataType, step: Self) -> Self {
        Self::Array(Box::new(Element { from: Place::of(from), step }))
    }

    pub(super) fn map((from_key, key): (&DataType, Self), (from_value, value): (&DataType, Self)) -> Self {
        let element = |from, step| Box::new(Element { from: Place::of(from), step });
        Self::Map { key: element(from_key, key), value: element(from_value, value) }
    }

    pub(super) fn changes_nothing(&self) -> bool {
        *self == Self::Same
    }
}

impl RowPlan {
    pub(super) fn changes_nothing(&self) -> bool {
        let stays = |(at, column): (usize, &Option<(usize, Step)>)| {
            column.as_ref().is_some_and(|(from, step)| *from == at && step.changes_nothing())
        };
        self.from.len() == self.columns.len() && self.columns.iter().enumerate().all(stays)
    }
}

impl RowConversion {
    pub(super) fn new(plan: RowPlan) -> Self {
        Self(Arc::new(plan))
    }

    /// Appends a row of the later schema, made of one of the earlier, to `out`, which must not grow to more than about
    /// `bytes_max` bytes by it: rows can grow a thousandfold.
    ///
    /// # Errors
    /// A row that is none of the earlier schema, or becomes too large; `out` then holds a part of it.
    pub fn convert(&self, row: &[u8], out: &mut Vec<u8>, bytes_max: usize) -> Result<(), ConversionError> {
        let end_max = out.len().saturating_add(bytes_max);
        Converter { out, end_max, bytes_max }.row(&self.0, row)
    }
}

/// A value that is not NULL.
#[derive(Clone, Copy)]
struct Cell<'a> {
    slot: u64,
    /// What the slot points to; None: the value stands in it.
    part: Option<&'a [u8]>,
}

fn cell<'a>(reader: &RowReader<'a>, column: usize, place: Place) -> Result<Option<Cell<'a>>, RowFault> {
    let Some(slot) = reader.cell(column)? else { return Ok(None) };
    let part = match place {
        Place::Slot => None,
        Place::Part => Some(reader.part_at(slot)?),
    };
    Ok(Some(Cell { slot, part }))
}

struct Converter<'o> {
    out: &'o mut Vec<u8>,
    end_max: usize,
    bytes_max: usize,
}

impl Converter<'_> {
    fn row(&mut self, plan: &RowPlan, row: &[u8]) -> Result<(), ConversionError> {
        let reader = RowReader::new(row, plan.from.len())?;
        let writer = self.begin(plan.columns.len())?;
        for (column, source) in plan.columns.iter().enumerate() {
            let value = match source {
                Some((from, step)) => {
                    let place = plan.from.get(*from).copied().unwrap_or(Place::Slot);
                    cell(&reader, *from, place)?.map(|cell| (cell, step))
                }
                None => None,
            };
            self.value(&writer, column, value)?;
        }
        Ok(())
    }

    /// Begins a row, if there is room for it.
    fn begin(&mut self, columns: usize) -> Result<RowWriter, ConversionError> {
        if self.out.len() + columns * 8 > self.end_max {
            return Err(ConversionError::TooLarge { bytes_max: self.bytes_max });
        }
        Ok(RowWriter::begin(self.out, columns))
    }

    fn value(
        &mut self,
        writer: &RowWriter,
        column: usize,
        value: Option<(Cell<'_>, &Step)>,
    ) -> Result<(), ConversionError> {
        let Some((cell, step)) = value else {
            writer.null(self.out, column);
            return Ok(());
        };
        match (step, cell.part) {
            (Step::Same, None) => writer.slot(self.out, column, cell.slot),
            (Step::Same, Some(part)) => writer.part(self.out, column, |out| out.extend_from_slice(part)),
            (Step::IntToDouble, _) => {
                // Exact: integers of at most 32 bits.
                writer.slot(self.out, column, (cell.slot.cast_signed() as f64).to_bits());
            }
            (Step::Decimal { zeros, in_slot }, _) => {
                let unscaled = rescaled(cell, *zeros)?;
                match (in_slot, i64::try_from(unscaled)) {
                    (true, Ok(unscaled)) => writer.slot(self.out, column, unscaled.cast_unsigned()),
                    (true, Err(_)) => return Err(too_many_digits().into()),
                    (false, _) => writer.part(self.out, column, |out| push_decimal_part(unscaled, out)),
                }
            }
            (Step::Struct(plan), part) => {
                self.part(writer, column, |this| this.row(plan, part.unwrap_or_default()))?;
            }
            (Step::Array(element), part) => {
                self.part(writer, column, |this| this.array(element, part.unwrap_or_default(), None))?;
            }
            (Step::Map { key, value }, part) => {
                self.part(writer, column, |this| this.map(key, value, part.unwrap_or_default()))?;
            }
        }
        Ok(())
    }

    fn part(
        &mut self,
        writer: &RowWriter,
        column: usize,
        write: impl FnOnce(&mut Converter<'_>) -> Result<(), ConversionError>,
    ) -> Result<(), ConversionError> {
        let (end_max, bytes_max) = (self.end_max, self.bytes_max);
        writer.part(self.out, column, |out| write(&mut Converter { out, end_max, bytes_max }))
    }

    /// Converts the elements of an array, in this order if one is given.
    fn array(&mut self, element: &Element, part: &[u8], order: Option<&[usize]>) -> Result<(), ConversionError> {
        let (count, row) = array_row(part)?;
        let reader = RowReader::new(row, count)?;
        self.out.extend_from_slice(&(count as u64).to_le_bytes());
        let writer = self.begin(count)?;
        for column in 0..count {
            let from = order.and_then(|order| order.get(column)).copied().unwrap_or(column);
            let value = cell(&reader, from, element.from)?.map(|cell| (cell, &element.step));
            self.value(&writer, column, value)?;
        }
        Ok(())
    }

    fn map(&mut self, key: &Element, value: &Element, part: &[u8]) -> Result<(), ConversionError> {
        let (keys, values) = map_arrays(part)?;
        let order = if key.step.changes_nothing() { None } else { Some(self.key_order(key, keys)?) };
        let writer = self.begin(2)?;
        self.part(&writer, 0, |this| this.array(key, keys, order.as_deref()))?;
        self.part(&writer, 1, |this| this.array(value, values, order.as_deref()))
    }

    /// The order of converted keys: that of their one-column rows.
    fn key_order(&self, key: &Element, part: &[u8]) -> Result<Vec<usize>, ConversionError> {
        let (count, row) = array_row(part)?;
        let reader = RowReader::new(row, count)?;
        let mut bytes = Vec::new();
        let mut rows: Vec<Range<usize>> = Vec::with_capacity(count);
        for column in 0..count {
            let begin = bytes.len();
            let mut converter = Converter { out: &mut bytes, end_max: self.end_max, bytes_max: self.bytes_max };
            let writer = converter.begin(1)?;
            let value = cell(&reader, column, key.from)?.map(|cell| (cell, &key.step));
            converter.value(&writer, 0, value)?;
            rows.push(begin..bytes.len());
        }
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|column| rows.get(*column).and_then(|row| bytes.get(row.clone())));
        Ok(order)
    }
}

fn rescaled(cell: Cell<'_>, zeros: u8) -> Result<i128, RowFault> {
    let unscaled = match cell.part {
        None => i128::from(cell.slot.cast_signed()),
        Some(part) => read_part_decimal(part, DECIMAL_PRECISION_MAX)?,
    };
    let factor = POWERS_OF_TEN.get(usize::from(zeros)).copied().unwrap_or(1);
    unscaled.checked_mul(factor).ok_or_else(too_many_digits)
}

#[cold]
fn too_many_digits() -> RowFault {
    RowFault::invalid("a decimal of more digits than its type has")
}
