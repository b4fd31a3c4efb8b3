//! Packed rows: reading and writing slots and variable parts. The bytes are defined in `wit/README.md`.
//!
//! Knows nothing of columns' types beyond how many bytes they take. Everything written is canonical: equal rows are
//! equal bytes.

use crate::error::{Error, Result, code};

/// Bytes of a slot, and the alignment of every part.
const WORD: usize = 8;

/// A packed row to read from.
#[derive(Clone, Copy)]
pub struct RowReader<'a> {
    bytes: &'a [u8],
    columns: usize,
}

impl<'a> RowReader<'a> {
    /// A row of `columns` columns.
    #[inline]
    pub fn new(bytes: &'a [u8], columns: usize) -> Result<Self> {
        if bytes.len() < fixed_len(columns) {
            return Err(malformed());
        }
        Ok(Self { bytes, columns })
    }

    /// Whether the column is NULL.
    #[inline]
    pub fn is_null(&self, column: usize) -> bool {
        self.bytes.get(column / 8).is_some_and(|byte| byte >> (column % 8) & 1 == 1)
    }

    /// The slot of a column that must not be NULL.
    #[inline]
    pub fn slot(&self, column: usize) -> Result<u64> {
        if self.is_null(column) {
            return Err(null_value());
        }
        read_u64(self.bytes, (null_words(self.columns) + column) * WORD)
    }

    /// The variable part of a column that must not be NULL.
    #[inline]
    pub fn part(&self, column: usize) -> Result<&'a [u8]> {
        let slot = self.slot(column)?;
        let (offset, length) = (slot as u32 as usize, (slot >> 32) as usize);
        self.bytes.get(offset..).and_then(|rest| rest.get(..length)).ok_or_else(malformed)
    }

    /// The elements of an ARRAY column, as a row with one column per element, and their number.
    #[inline]
    pub fn array(&self, column: usize) -> Result<(RowReader<'a>, usize)> {
        array_row(self.part(column)?)
    }

    /// Keys and values of a MAP column, each as the row of an array, and the number of entries.
    pub fn map(&self, column: usize) -> Result<(RowReader<'a>, RowReader<'a>, usize)> {
        let halves = RowReader::new(self.part(column)?, 2)?;
        let (keys, count) = halves.array(0)?;
        let (values, values_count) = halves.array(1)?;
        if count != values_count {
            return Err(malformed());
        }
        Ok((keys, values, count))
    }
}

fn array_row(part: &[u8]) -> Result<(RowReader<'_>, usize)> {
    let count = usize::try_from(read_u64(part, 0)?).map_err(|_| malformed())?;
    // Every element takes at least a slot, so a count that passes here is no more than the bytes there are.
    if count > part.len() / WORD {
        return Err(malformed());
    }
    let row = part.get(WORD..).ok_or_else(malformed)?;
    Ok((RowReader::new(row, count)?, count))
}

/// Which zero a floating-point number is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zero {
    /// 0.0 and -0.0 are two values.
    Signed,
    /// Both are written as 0.0: grouping keys, keys of map states and of MAP columns, so that equal keys are equal
    /// bytes.
    Unsigned,
}

/// A packed row being written at the end of a buffer. Variable parts must be written in column order.
pub struct RowWriter<'a> {
    bytes: &'a mut Vec<u8>,
    start: usize,
    columns: usize,
    zero: Zero,
}

impl<'a> RowWriter<'a> {
    /// Begins a row of `columns` columns, all of them not NULL and zero.
    #[inline]
    pub fn begin(bytes: &'a mut Vec<u8>, columns: usize, zero: Zero) -> Self {
        let start = bytes.len();
        bytes.resize(start + fixed_len(columns), 0);
        Self { bytes, start, columns, zero }
    }

    /// How floating-point zeros are written.
    #[inline]
    pub fn zero(&self) -> Zero {
        self.zero
    }

    /// Sets the slot of a column.
    #[inline]
    pub fn set_slot(&mut self, column: usize, slot: u64) {
        let at = self.start + (null_words(self.columns) + column) * WORD;
        if let Some(bytes) = self.bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<WORD>()) {
            *bytes = slot.to_le_bytes();
        }
    }

    /// Marks a column as NULL; its slot stays zero.
    #[inline]
    pub fn set_null(&mut self, column: usize) {
        if let Some(byte) = self.bytes.get_mut(self.start + column / 8) {
            *byte |= 1 << (column % 8);
        }
    }

    /// Writes bytes as the variable part of a column.
    #[inline]
    pub fn put_bytes(&mut self, column: usize, part: &[u8]) -> Result<()> {
        self.put_part(column, |bytes, _| {
            bytes.extend_from_slice(part);
            Ok(())
        })
    }

    /// Writes a nested row (STRUCT) of `columns` columns as the variable part of a column.
    pub fn put_row(
        &mut self,
        column: usize,
        columns: usize,
        write: impl FnOnce(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<()> {
        self.put_part(column, |bytes, zero| write(&mut RowWriter::begin(bytes, columns, zero)))
    }

    /// Writes an ARRAY of `count` elements as the variable part of a column.
    pub fn put_array(
        &mut self,
        column: usize,
        count: usize,
        write: impl FnOnce(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<()> {
        self.put_part(column, |bytes, zero| {
            bytes.extend_from_slice(&(count as u64).to_le_bytes());
            write(&mut RowWriter::begin(bytes, count, zero))
        })
    }

    /// Writes a MAP as the variable part of a column. The entries come in the order of `write_key`'s bytes, as
    /// [`map_order`] gives it.
    pub fn put_map(
        &mut self,
        column: usize,
        count: usize,
        write_keys: impl FnOnce(&mut RowWriter<'_>) -> Result<()>,
        write_values: impl FnOnce(&mut RowWriter<'_>) -> Result<()>,
    ) -> Result<()> {
        self.put_part(column, |bytes, zero| {
            let mut halves = RowWriter::begin(bytes, 2, Zero::Unsigned);
            halves.put_array(0, count, write_keys)?;
            halves.zero = zero;
            halves.put_array(1, count, write_values)
        })
    }

    #[inline]
    fn put_part(&mut self, column: usize, write: impl FnOnce(&mut Vec<u8>, Zero) -> Result<()>) -> Result<()> {
        let at = self.bytes.len();
        write(self.bytes, self.zero)?;
        let length = self.bytes.len() - at;
        pad(self.bytes, self.start);
        let (offset, length) = (u32::try_from(at - self.start), u32::try_from(length));
        let (Ok(offset), Ok(length)) = (offset, length) else { return Err(too_long()) };
        self.set_slot(column, u64::from(offset) | u64::from(length) << 32);
        Ok(())
    }
}

/// Writes the one-column row that orders the entries of a MAP column: ascending by these bytes (memcmp).
pub fn map_order(bytes: &mut Vec<u8>, write_key: impl FnOnce(&mut RowWriter<'_>) -> Result<()>) -> Result<()> {
    write_key(&mut RowWriter::begin(bytes, 1, Zero::Unsigned))
}

#[inline]
pub(crate) fn read_u64(bytes: &[u8], at: usize) -> Result<u64> {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()).map(|word| u64::from_le_bytes(*word)).ok_or_else(malformed)
}

#[inline]
pub(crate) fn read_u32(bytes: &[u8], at: usize) -> Result<u32> {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).map(|word| u32::from_le_bytes(*word)).ok_or_else(malformed)
}

#[inline]
fn pad(bytes: &mut Vec<u8>, start: usize) {
    let length = bytes.len() - start;
    // A whole word at first: no call for a length that is known only now.
    bytes.extend_from_slice(&[0; WORD]);
    bytes.truncate(start + length.next_multiple_of(WORD));
}

/// Bytes of null bitmap and slots.
#[inline]
const fn fixed_len(columns: usize) -> usize {
    (null_words(columns) + columns) * WORD
}

#[inline]
const fn null_words(columns: usize) -> usize {
    columns.div_ceil(64)
}

#[cold]
pub(crate) fn malformed() -> Error {
    Error::new(
        code::MALFORMED_ROW,
        "a packed row does not have the columns that the type names: was it written by another type?",
    )
}

#[cold]
fn null_value() -> Error {
    Error::new(code::NULL_VALUE, "NULL in a field that is no `Option`")
}

#[cold]
fn too_long() -> Error {
    Error::new(code::MALFORMED_ROW, "a row is longer than 4 GiB")
}
