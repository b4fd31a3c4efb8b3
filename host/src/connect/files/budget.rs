//! How much one batch may still read.

use crate::engine::source::ReadLimits;

/// What is left of a batch's limits. Spent at a row boundary, and never before the first row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    rows: u64,
    bytes: u64,
    /// Stops before this row of the file, from 0.
    row_end: u64,
}

impl Budget {
    /// The limits of a new batch.
    pub(super) fn of(limits: &ReadLimits) -> Self {
        Self { rows: limits.rows_max.max(1), bytes: limits.bytes_max.max(1), row_end: u64::MAX }
    }

    /// Everything before one row of a file.
    pub(super) fn up_to_row(row_end: u64) -> Self {
        Self { rows: u64::MAX, bytes: u64::MAX, row_end }
    }

    /// Whether the row of a file may be read.
    pub(super) fn allows(&self, row: u64) -> bool {
        self.rows > 0 && self.bytes > 0 && row < self.row_end
    }

    /// Whether nothing more may be read.
    pub(super) fn is_spent(&self) -> bool {
        !self.allows(0)
    }

    /// How many rows of a file may be read from this one on, if each has so many bytes.
    pub(super) fn rows_from(&self, row: u64, row_bytes: u64) -> u64 {
        let rows = self.rows.min(self.bytes.div_ceil(row_bytes.max(1)));
        rows.min(self.row_end.saturating_sub(row))
    }

    /// Takes account of rows that were read.
    pub(super) fn spend(&mut self, rows: u64, bytes: u64) {
        self.rows = self.rows.saturating_sub(rows);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}
