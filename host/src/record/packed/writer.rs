//! Writes the structure of a packed row at the end of a buffer.
//!
//! Cells are to be written in column order. Everything is aligned from the start of the row, so a row within a row is aligned too.
//! Rows must stay below 4 GiB: callers ensure it before they publish a row, since a nested part is never longer than its row.

/// Bytes of a slot and of a bitmap word; everything is aligned to it.
const WORD: usize = 8;

/// Columns whose null bits fit into a word.
const BITS: usize = 64;

pub(in super::super) struct RowWriter {
    /// Where the row begins in the buffer.
    start: usize,
    /// Where its slots begin in the buffer.
    slots: usize,
}

impl RowWriter {
    /// Appends bitmap and slots of a row of so many columns, all zero.
    #[inline]
    pub(in super::super) fn begin(out: &mut Vec<u8>, columns: usize) -> Self {
        let start = out.len();
        let bitmap = columns.div_ceil(BITS) * WORD;
        out.resize(start + bitmap + columns * WORD, 0);
        Self { start, slots: start + bitmap }
    }

    #[expect(clippy::indexing_slicing, reason = "`begin` made room for every column of the row")]
    #[inline]
    pub(in super::super) fn null(&self, out: &mut [u8], column: usize) {
        out[self.start + column / BITS * WORD + column % BITS / 8] |= 1 << (column % 8);
    }

    #[expect(clippy::indexing_slicing, reason = "`begin` made room for every column of the row")]
    #[inline]
    pub(in super::super) fn slot(&self, out: &mut [u8], column: usize, value: u64) {
        let at = self.slots + column * WORD;
        out[at..at + WORD].copy_from_slice(&value.to_le_bytes());
    }

    /// Appends a part by `write`, pads it, and lets the column's slot point to it.
    #[inline]
    pub(in super::super) fn part<T>(
        &self,
        out: &mut Vec<u8>,
        column: usize,
        write: impl FnOnce(&mut Vec<u8>) -> T,
    ) -> T {
        let begin = out.len();
        let written = write(out);
        let length = out.len() - begin;
        out.extend_from_slice(&[0; WORD]);
        out.truncate(begin + length.next_multiple_of(WORD));
        self.slot(out, column, (begin - self.start) as u64 | (length as u64) << u32::BITS);
        written
    }
}
