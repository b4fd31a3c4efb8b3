//! Value states of a session: a slot per group and value variable, rows in two arenas.
//!
//! Rows read from the store are kept only while they are few bytes ([`READ_BYTES_KEPT`]); what has been learnt about
//! the committed record (whether it is there, when it expires) is kept, since the commit needs it.

use super::super::codec::{RowKind, StoredRow, expired, parse_row_record};
use super::super::error::StateError;
use super::super::variable::Variable;

/// Bytes of rows read that are kept; a few chunks of 128 groups with rows of some kilobytes. Past it they are read
/// again.
const READ_BYTES_KEPT: usize = 16 << 20;

#[derive(Debug, Default)]
pub(super) struct Values {
    slots: Vec<Slot>,
    /// Value variables, and so slots per group.
    width: usize,
    reads: Vec<u8>,
    /// Counts how often `reads` was emptied; older slots have lost their row.
    epoch: u32,
    writes: Vec<u8>,
}

/// What is known of the committed record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Committed {
    /// Not read yet.
    #[default]
    Unknown,
    /// There is none.
    Absent,
    /// There is one, with its expiry.
    Present(Option<i64>),
}

/// What this batch made of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Current {
    #[default]
    AsCommitted,
    Written,
    Cleared,
}

/// Kept small: a batch of a million keys touches as many.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// Where the row is: in `writes` if written, else in `reads`.
    offset: usize,
    /// Expiry of the committed record, where it has one.
    expiry_ms: i64,
    len: u32,
    capacity: u32,
    epoch: u32,
    record: Record,
    current: Current,
}

/// [`Committed`] without its number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Record {
    #[default]
    Unknown,
    Absent,
    Lasting,
    Expiring,
}

impl Slot {
    #[inline]
    fn committed(&self) -> Committed {
        match self.record {
            Record::Unknown => Committed::Unknown,
            Record::Absent => Committed::Absent,
            Record::Lasting => Committed::Present(None),
            Record::Expiring => Committed::Present(Some(self.expiry_ms)),
        }
    }
}

/// A slot that changed.
pub(super) enum Change<'a> {
    /// The row to store.
    Written(&'a [u8]),
    /// To delete.
    Cleared,
}

/// Answer to a read.
pub(super) enum Lookup {
    /// The row, see [`Values::row`].
    Row,
    /// There is none, or it has expired.
    None,
    /// The store must be asked first.
    Unread,
}

impl Values {
    pub(super) fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    /// Makes slots for the groups up to `groups`.
    #[inline]
    pub(super) fn grow(&mut self, groups: usize) {
        self.slots.resize(groups * self.width, Slot::default());
    }

    /// Number of the slot of the group's value variable `place`.
    #[inline]
    pub(super) fn slot(&self, group: u32, place: usize) -> usize {
        group as usize * self.width + place
    }

    /// Forgets rows read if they have become many. No row given out before may be in use.
    pub(super) fn recycle(&mut self) {
        if self.reads.len() > READ_BYTES_KEPT {
            self.reads.clear();
            self.epoch += 1;
        }
    }

    #[inline]
    pub(super) fn lookup(&self, slot: usize, now_ms: i64) -> Lookup {
        let Some(slot) = self.slots.get(slot) else { return Lookup::Unread };
        match (slot.current, slot.committed()) {
            (Current::Written, _) => Lookup::Row,
            (Current::Cleared, _) | (_, Committed::Absent) => Lookup::None,
            (_, Committed::Present(expiry_ms)) if expired(expiry_ms, now_ms) => Lookup::None,
            (_, Committed::Present(_)) if slot.epoch == self.epoch => Lookup::Row,
            _ => Lookup::Unread,
        }
    }

    /// The row of a slot that has one.
    #[inline]
    pub(super) fn row(&self, slot: usize) -> &[u8] {
        let Some(slot) = self.slots.get(slot) else { return &[] };
        let arena = if slot.current == Current::Written { &self.writes } else { &self.reads };
        arena.get(slot.offset..slot.offset + slot.len as usize).unwrap_or_default()
    }

    /// Takes what the store holds for a slot.
    #[inline]
    pub(super) fn loaded(&mut self, slot: usize, record: Option<&[u8]>, variable: &Variable) -> Result<(), StateError> {
        let Some(slot) = self.slots.get_mut(slot) else { return Ok(()) };
        let Some(record) = record else {
            slot.record = Record::Absent;
            return Ok(());
        };
        let stored = single_row(record)?;
        slot.record = if stored.expiry_ms.is_some() { Record::Expiring } else { Record::Lasting };
        slot.expiry_ms = stored.expiry_ms.unwrap_or_default();
        if slot.current == Current::AsCommitted {
            slot.offset = self.reads.len();
            variable.append(stored.schema_id, stored.row, &mut self.reads)?;
            slot.len = (self.reads.len() - slot.offset) as u32;
            slot.epoch = self.epoch;
        }
        Ok(())
    }

    /// Writes a row and gives the bytes by which the arena grew.
    #[inline]
    pub(super) fn put(&mut self, slot: usize, row: &[u8]) -> usize {
        let Some(slot) = self.slots.get_mut(slot) else { return 0 };
        let rewritten = slot.current == Current::Written;
        if rewritten && row.len() <= slot.capacity as usize {
            slot.len = row.len() as u32;
            if let Some(place) = self.writes.get_mut(slot.offset..slot.offset + row.len()) {
                place.copy_from_slice(row);
            }
            return 0;
        }
        // A row that outgrows its place gets room to grow, so that one rewritten many times does not fill the arena.
        let capacity = if rewritten { row.len().next_power_of_two() } else { row.len() };
        slot.offset = self.writes.len();
        slot.len = row.len() as u32;
        slot.capacity = u32::try_from(capacity).unwrap_or(slot.len);
        slot.current = Current::Written;
        self.writes.extend_from_slice(row);
        self.writes.resize(slot.offset + capacity, 0);
        capacity
    }

    #[inline]
    pub(super) fn clear(&mut self, slot: usize) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.current = Current::Cleared;
        }
    }

    pub(super) fn committed(&self, slot: usize) -> Committed {
        self.slots.get(slot).map_or(Committed::Unknown, Slot::committed)
    }

    /// What the batch made of a slot; None if nothing.
    #[inline]
    pub(super) fn change(&self, slot: usize) -> Option<Change<'_>> {
        match self.slots.get(slot)?.current {
            Current::AsCommitted => None,
            Current::Written => Some(Change::Written(self.row(slot))),
            Current::Cleared => Some(Change::Cleared),
        }
    }
}

/// Reads the record of a value or map entry.
pub(super) fn single_row(record: &[u8]) -> Result<StoredRow<'_>, StateError> {
    let stored = parse_row_record(record)?;
    if stored.kind != RowKind::Single {
        return Err(StateError::corrupt("family State", "an element of a list where a value or map entry belongs"));
    }
    Ok(stored)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_rewritten_many_times_does_not_fill_the_arena() {
        let mut values = Values::new(1);
        values.grow(1);
        let grown: usize = (0..1_000).map(|len| values.put(0, &vec![1; len])).sum();
        assert!(grown <= 4 * 1_024, "{grown} bytes for rows of at most 1000");
        assert_eq!(values.row(0), vec![1; 999]);
    }
}
