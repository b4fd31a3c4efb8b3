//! Cuts a stream of bytes into rows, at the same places however the bytes arrive.
//!
//! Knows where rows end, never what is in them. Memory is bounded by one row of [`ROW_BYTES_MAX`] and one read.

use std::io::{self, Read};

/// Longest row that is read. A longer one is rejected without being held in memory: only its beginning is kept.
pub(crate) const ROW_BYTES_MAX: usize = 16 << 20;

/// How much of a row that is too long is kept, for the person who looks for it.
pub(crate) const EXCERPT_BYTES_MAX: usize = 64 << 10;

/// Bytes asked of the input at once: large enough that a system call costs nothing per row.
const READ_BYTES: usize = 256 << 10;

/// Where a row ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEnd {
    /// At every line feed (JSON Lines).
    LineFeed,
    /// At a line feed outside a quoted field (CSV). Only a quote at the start of a field opens one, so that a stray
    /// quote does not swallow the rows behind it.
    LineFeedOutsideQuotes {
        /// Between the fields.
        delimiter: u8,
    },
}

/// Where the scan for a CSV row's end stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CsvPlace {
    FieldStart,
    Unquoted,
    Quoted,
    /// Behind a quote in a quoted field: its end, or the first half of a doubled one.
    QuoteInQuoted,
}

/// One row as it stands in the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawRow<'a> {
    /// Its bytes with the line end, if it had one; of a row that is too long only the beginning.
    pub bytes: &'a [u8],
    /// Bytes that it takes in the stream.
    pub stream_bytes: u64,
}

impl<'a> RawRow<'a> {
    /// Whether the row exceeds [`ROW_BYTES_MAX`], so that `bytes` is only its beginning.
    pub(crate) fn is_cut(&self) -> bool {
        self.stream_bytes > self.bytes.len() as u64
    }

    /// The row without its line end, which is `\n` or `\r\n`.
    pub(crate) fn content(&self) -> &'a [u8] {
        let line = self.bytes.strip_suffix(b"\n").unwrap_or(self.bytes);
        line.strip_suffix(b"\r").unwrap_or(line)
    }
}

/// The bytes of a stream that have arrived and the place of the next row within them.
#[derive(Debug)]
pub(crate) struct RowCutter {
    end: RowEnd,
    buffer: Vec<u8>,
    /// The next row begins here.
    start: usize,
    /// No row ends between `start` and here.
    scanned: usize,
    /// What `scanned` is in the middle of.
    place: CsvPlace,
    /// Bytes of the row in hand that were thrown away because it is too long.
    discarded: u64,
    /// No more bytes will come.
    finished: bool,
}

impl RowCutter {
    /// Before the first byte of a stream, or at a row boundary within it.
    pub(crate) fn new(end: RowEnd) -> Self {
        Self {
            end,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            place: CsvPlace::FieldStart,
            discarded: 0,
            finished: false,
        }
    }

    /// Takes bytes that have arrived.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.make_room();
        self.buffer.extend_from_slice(bytes);
    }

    /// Tells that no more bytes will come; the last row needs no line end.
    pub(crate) fn finish(&mut self) {
        self.finished = true;
    }

    /// Whether the stream has ended and every row of it was taken.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.finished && !self.has_bytes()
    }

    /// Whether bytes of a next row are here.
    pub(crate) fn has_bytes(&self) -> bool {
        self.start < self.buffer.len() || self.discarded > 0
    }

    /// Reads once from the input. False: it has ended and every row was taken.
    ///
    /// # Errors
    /// Those of the input; the rows that arrived before stay.
    pub(crate) fn read_from(&mut self, input: &mut dyn Read) -> io::Result<bool> {
        if self.is_exhausted() {
            return Ok(false);
        }
        self.make_room();
        let held = self.buffer.len();
        self.buffer.resize(held + READ_BYTES, 0);
        let target = self.buffer.get_mut(held..).unwrap_or_default();
        let read = loop {
            match input.read(target) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        self.buffer.truncate(held + read.as_ref().map_or(0, |read| *read));
        self.finished |= read? == 0;
        Ok(true)
    }

    /// The next row. None: it has not arrived as a whole yet, or the stream has ended.
    pub(crate) fn next_row(&mut self) -> Option<RawRow<'_>> {
        let end = match self.scan() {
            Some(end) => end,
            None if self.finished && self.has_bytes() => self.buffer.len(),
            None => {
                self.shorten_row_in_hand();
                return None;
            }
        };
        let start = std::mem::replace(&mut self.start, end);
        (self.scanned, self.place) = (end, CsvPlace::FieldStart);
        let stream_bytes = (end - start) as u64 + std::mem::take(&mut self.discarded);
        let held = if stream_bytes > ROW_BYTES_MAX as u64 { start + EXCERPT_BYTES_MAX.min(end - start) } else { end };
        Some(RawRow { bytes: self.buffer.get(start..held).unwrap_or_default(), stream_bytes })
    }

    /// The end of the row in hand, if it is in the buffer.
    fn scan(&mut self) -> Option<usize> {
        let unseen = self.buffer.get(self.scanned..).unwrap_or_default();
        let found = match self.end {
            RowEnd::LineFeed => memchr::memchr(b'\n', unseen),
            RowEnd::LineFeedOutsideQuotes { delimiter } => {
                let mut place = self.place;
                let found = unseen.iter().position(|byte| {
                    place = match (place, *byte) {
                        (CsvPlace::Quoted, b'"') => CsvPlace::QuoteInQuoted,
                        (CsvPlace::Quoted, _) => CsvPlace::Quoted,
                        (_, b'\n') => return true,
                        (CsvPlace::FieldStart | CsvPlace::QuoteInQuoted, b'"') => CsvPlace::Quoted,
                        (_, byte) if byte == delimiter => CsvPlace::FieldStart,
                        _ => CsvPlace::Unquoted,
                    };
                    false
                });
                self.place = place;
                found
            }
        };
        match found {
            Some(position) => Some(self.scanned + position + 1),
            None => {
                self.scanned = self.buffer.len();
                None
            }
        }
    }

    /// Forgets all but the beginning of a row that is already too long.
    fn shorten_row_in_hand(&mut self) {
        let held = self.buffer.len() - self.start;
        if held > ROW_BYTES_MAX || (self.discarded > 0 && held > EXCERPT_BYTES_MAX) {
            let kept = self.start + EXCERPT_BYTES_MAX;
            self.discarded += (self.buffer.len() - kept) as u64;
            self.buffer.truncate(kept);
            self.scanned = kept;
        }
    }

    /// Drops the rows that were taken.
    fn make_room(&mut self) {
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CSV: RowEnd = RowEnd::LineFeedOutsideQuotes { delimiter: b',' };

    fn cut(end: RowEnd, pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut cutter = RowCutter::new(end);
        let mut rows = Vec::new();
        for piece in pieces {
            cutter.push(piece);
            while let Some(row) = cutter.next_row() {
                rows.push(row.bytes.to_vec());
            }
        }
        cutter.finish();
        while let Some(row) = cutter.next_row() {
            rows.push(row.bytes.to_vec());
        }
        assert!(cutter.is_exhausted());
        rows
    }

    #[test]
    fn a_row_ends_at_a_line_feed_and_the_last_one_at_the_end() {
        assert_eq!(cut(RowEnd::LineFeed, &[b"a\r\n\nb"]), [&b"a\r\n"[..], b"\n", b"b"]);
        assert_eq!(RawRow { bytes: b"a\r\n", stream_bytes: 3 }.content(), b"a");
    }

    #[test]
    fn a_csv_row_does_not_end_inside_quotes() {
        let rows = cut(CSV, &[b"1,\"x\n\"\"y\"\n2,z\n3,5\" disk\n4,\n"]);
        assert_eq!(rows, [&b"1,\"x\n\"\"y\"\n"[..], b"2,z\n", b"3,5\" disk\n", b"4,\n"]);
    }

    #[test]
    fn a_row_that_is_too_long_is_cut_and_the_next_one_whole() {
        for end in [RowEnd::LineFeed, CSV] {
            let long = vec![b'x'; 3 * ROW_BYTES_MAX];
            let mut cutter = RowCutter::new(end);
            let mut input = io::Cursor::new([&long[..], b"\nnext\n"].concat());
            let mut rows = Vec::new();
            while !cutter.is_exhausted() {
                cutter.read_from(&mut input).unwrap();
                assert!(cutter.buffer.len() <= ROW_BYTES_MAX + 2 * READ_BYTES);
                while let Some(row) = cutter.next_row() {
                    rows.push((row.is_cut(), row.bytes.len(), row.stream_bytes));
                }
            }
            assert_eq!(rows, [(true, EXCERPT_BYTES_MAX, 3 * ROW_BYTES_MAX as u64 + 1), (false, 5, 5)]);
        }
    }

    proptest! {
        #[test]
        fn rows_do_not_depend_on_how_bytes_arrive(text in "[ab\",\r\n]{0,60}", cuts in prop::collection::vec(0usize..60, 0..6)) {
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|at| *at <= text.len()).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|ends| &text.as_bytes()[ends[0]..ends[1]]).collect();
            for end in [RowEnd::LineFeed, CSV] {
                let whole = cut(end, &[text.as_bytes()]);
                prop_assert_eq!(&cut(end, &pieces), &whole);
                prop_assert_eq!(whole.concat(), text.as_bytes());
            }
        }
    }
}
