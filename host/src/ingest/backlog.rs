//! How many bytes of the log stand behind a row, from a few marks.

use std::collections::VecDeque;

/// Bytes between two marks, about: what the answer may be too large by, within a segment written since the log was opened.
const MARK_BYTES: u64 = 64 << 10;

/// Rows and the bytes before them.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    /// (row, bytes of the log before it), ascending.
    marks: VecDeque<(u64, u64)>,
    end: (u64, u64),
}

impl Backlog {
    /// Begins with this row, as far as nothing is known.
    pub(super) fn begin(&mut self, row: u64) {
        if self.marks.is_empty() {
            self.end = (row, 0);
            self.marks.push_back(self.end);
        }
    }

    /// Adds what stands in front of `end_row`.
    pub(super) fn add(&mut self, end_row: u64, bytes: u64) {
        self.end = (end_row, self.end.1.saturating_add(bytes));
        if self.marks.back().is_none_or(|(row, before)| *row < end_row && self.end.1 - before >= MARK_BYTES) {
            self.marks.push_back(self.end);
        }
    }

    /// Bytes of this row and those behind it; at most some more, never fewer.
    pub(super) fn bytes_from(&self, row: u64) -> u64 {
        if row >= self.end.0 {
            return 0;
        }
        let behind = self.marks.partition_point(|(mark, _)| *mark <= row);
        let mark = behind.checked_sub(1).and_then(|index| self.marks.get(index)).or_else(|| self.marks.front());
        self.end.1 - mark.map_or(0, |(_, bytes)| *bytes)
    }

    /// Forgets what only rows before this one need.
    pub(super) fn forget_before(&mut self, row: u64) {
        while self.marks.get(1).is_some_and(|(mark, _)| *mark <= row) {
            self.marks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stands_behind_the_last_row() {
        let mut backlog = Backlog::default();
        backlog.begin(10);
        backlog.add(20, 1000);

        assert_eq!(backlog.bytes_from(20), 0);
        assert_eq!(backlog.bytes_from(10), 1000);
    }

    #[test]
    fn an_answer_is_too_large_by_less_than_two_marks_and_never_too_small() {
        let mut backlog = Backlog::default();
        backlog.begin(0);
        for row in 1..=1000 {
            backlog.add(row, 1000);
        }
        for row in 0..1000 {
            let exact = (1000 - row) * 1000;
            let told = backlog.bytes_from(row);
            assert!(told >= exact && told < exact + MARK_BYTES + 1000, "{row}: {told}, exactly {exact}");
        }
    }

    #[test]
    fn what_is_forgotten_changes_no_answer_behind_it() {
        let mut backlog = Backlog::default();
        backlog.begin(0);
        (1..=1000).for_each(|row| backlog.add(row, 1000));
        let before: Vec<_> = (500..=1000).map(|row| backlog.bytes_from(row)).collect();

        backlog.forget_before(500);

        assert_eq!((500..=1000).map(|row| backlog.bytes_from(row)).collect::<Vec<_>>(), before);
        assert!(backlog.marks.len() < 10);
    }
}
