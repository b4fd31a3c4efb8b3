//! Reads the structure of a packed row, strictly: null bits, slots, and parts in order without gaps.
//!
//! Cells are to be read in column order, each once, and [`RowReader::finish`] called after the last; only rows that have
//! been validated may be read in another way, by [`RowReader::part_at`].

use super::super::error::RowFault;

/// Bytes of a slot and of a bitmap word; everything is aligned to it.
const WORD: usize = 8;

/// Columns whose null bits fit into a word.
const BITS: usize = 64;

pub(in super::super) struct RowReader<'a> {
    bytes: &'a [u8],
    nulls: &'a [[u8; WORD]],
    slots: &'a [[u8; WORD]],
    /// Where the next part begins.
    next: usize,
}

impl<'a> RowReader<'a> {
    /// A row of so many columns at the start of which stand bitmap and slots. The number may be a claim: it is checked against the bytes.
    #[inline]
    pub(in super::super) fn new(bytes: &'a [u8], columns: usize) -> Result<Self, RowFault> {
        let (words, rest) = bytes.as_chunks::<WORD>();
        if !rest.is_empty() {
            return Err(RowFault::invalid(format!("{} bytes are not a multiple of 8", bytes.len())));
        }
        let too_short = || RowFault::invalid(format!("{} bytes are too few for {columns} columns", bytes.len()));
        let (nulls, words) = words.split_at_checked(columns.div_ceil(BITS)).ok_or_else(too_short)?;
        let slots = words.get(..columns).ok_or_else(too_short)?;
        if let Some(last) = nulls.last() {
            let used = columns % BITS;
            if used != 0 && u64::from_le_bytes(*last) >> used != 0 {
                return Err(RowFault::invalid("a null bit is set past the last column"));
            }
        }
        Ok(Self { bytes, nulls, slots, next: (nulls.len() + slots.len()) * WORD })
    }

    /// The slot of a column, or none for NULL.
    #[inline]
    pub(in super::super) fn cell(&self, column: usize) -> Result<Option<u64>, RowFault> {
        let (Some(slot), Some(nulls)) = (self.slots.get(column), self.nulls.get(column / BITS)) else {
            return Err(RowFault::invalid("has no such column"));
        };
        let slot = u64::from_le_bytes(*slot);
        if u64::from_le_bytes(*nulls) >> (column % BITS) & 1 == 0 {
            Ok(Some(slot))
        } else if slot == 0 {
            Ok(None)
        } else {
            Err(RowFault::invalid("the slot of a NULL is not zero"))
        }
    }

    /// The bytes that a slot of variable length points to. They must begin where the part before ended.
    #[inline]
    pub(in super::super) fn part(&mut self, slot: u64) -> Result<&'a [u8], RowFault> {
        let offset = (slot & u64::from(u32::MAX)) as usize;
        let length = (slot >> u32::BITS) as usize;
        if offset != self.next {
            return Err(RowFault::invalid(format!("offset {offset} where {} is expected", self.next)));
        }
        let outside = || RowFault::invalid(format!("{length} bytes at offset {offset} reach past the end of the row"));
        let end = offset.checked_add(length).ok_or_else(outside)?;
        let padded = end.checked_next_multiple_of(WORD).ok_or_else(outside)?;
        let part = self.bytes.get(offset..end).ok_or_else(outside)?;
        let padding = self.bytes.get(end..padded).ok_or_else(outside)?;
        if padding.iter().any(|byte| *byte != 0) {
            return Err(RowFault::invalid("the padding is not zero"));
        }
        self.next = padded;
        Ok(part)
    }

    /// The bytes that a slot of variable length points to, wherever they are. For rows that have been validated, whose
    /// cells may then be read in any order and without [`RowReader::finish`].
    pub(in super::super) fn part_at(&self, slot: u64) -> Result<&'a [u8], RowFault> {
        let offset = (slot & u64::from(u32::MAX)) as usize;
        let length = (slot >> u32::BITS) as usize;
        let outside = || RowFault::invalid(format!("{length} bytes at offset {offset} reach past the end of the row"));
        self.bytes.get(offset..).and_then(|bytes| bytes.get(..length)).ok_or_else(outside)
    }

    /// Checks that nothing stands after the last part.
    #[inline]
    pub(in super::super) fn finish(self) -> Result<(), RowFault> {
        if self.next == self.bytes.len() {
            Ok(())
        } else {
            Err(RowFault::invalid(format!("{} bytes after the last column", self.bytes.len() - self.next)))
        }
    }
}

/// Cuts the part of an array into its number of elements and the row that holds them.
pub(in super::super) fn array_row(part: &[u8]) -> Result<(usize, &[u8]), RowFault> {
    let Some((count, row)) = part.split_first_chunk::<WORD>() else {
        return Err(RowFault::invalid("the array has no count"));
    };
    // An element takes a slot, so a larger count is a lie.
    match usize::try_from(u64::from_le_bytes(*count)) {
        Ok(count) if count <= row.len() / WORD => Ok((count, row)),
        _ => Err(RowFault::invalid("the array counts more elements than it has bytes for")),
    }
}

/// Cuts the part of a map into the parts of its keys and its values.
pub(in super::super) fn map_arrays(part: &[u8]) -> Result<(&[u8], &[u8]), RowFault> {
    let mut reader = RowReader::new(part, 2)?;
    let mut array = |column| match reader.cell(column)? {
        Some(slot) => reader.part(slot),
        None => Err(RowFault::invalid("the keys or the values of a map are NULL as a whole")),
    };
    let arrays = (array(0)?, array(1)?);
    reader.finish()?;
    Ok(arrays)
}
