//! The earliest timer and the earliest TTL expiry of every key group, kept in memory from batch to batch, so that a
//! batch without due work scans nothing.
//!
//! Invariant: what is kept is never later than the truth. It may be earlier after a deletion; [`DueIndex::refresh`]
//! makes the earliest of all exact again, and a scan from what was known passes over no records deleted long ago.

use std::ops::ControlFlow;

use super::changes::{Change, Changes, Operation};
use super::error::StateError;
use super::keys::{parse_time, time_range};
use super::store::{Family, Reader};

/// Earliest expiries of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueIndex {
    step: u8,
    timers: Vec<Earliest>,
    ttl: Vec<Earliest>,
}

/// What is known of one key group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Earliest {
    /// No expiry is before this one; None = there is none at all.
    not_before_ms: Option<i64>,
    /// Whether `not_before_ms` is an expiry that exists.
    exact: bool,
}

impl Earliest {
    const NONE: Self = Self { not_before_ms: None, exact: true };
    const UNKNOWN: Self = Self { not_before_ms: Some(i64::MIN), exact: false };

    fn added(&mut self, expiry_ms: i64) {
        if self.not_before_ms.is_none_or(|known_ms| expiry_ms <= known_ms) {
            *self = Self { not_before_ms: Some(expiry_ms), exact: true };
        }
    }

    fn removed(&mut self, expiry_ms: i64) {
        if self.not_before_ms == Some(expiry_ms) {
            self.exact = false;
        }
    }
}

impl DueIndex {
    /// Knows nothing: anything may be due in every key group. For the first batch, and where a scan costs nothing.
    #[must_use]
    pub fn unknown(step: u8, groups: u16) -> Self {
        let unknown = vec![Earliest::UNKNOWN; groups.into()];
        Self { step, timers: unknown.clone(), ttl: unknown }
    }

    /// Reads the earliest expiries of a step, one seek per key group and index.
    ///
    /// # Errors
    /// The disk, or damage.
    pub fn load(reader: &dyn Reader, step: u8, groups: u16) -> Result<Self, StateError> {
        let mut index = Self::unknown(step, groups);
        for (family, all) in [(Family::Timers, &mut index.timers), (Family::Ttl, &mut index.ttl)] {
            for (key_group, earliest) in (0..groups).zip(all) {
                *earliest = read_earliest(reader, family, step, key_group, i64::MIN)?;
            }
        }
        Ok(index)
    }

    /// Takes note of the changes of a committed batch. Changes of other steps are passed over.
    ///
    /// # Errors
    /// Damage in `changes`.
    pub fn apply(&mut self, changes: &Changes) -> Result<(), StateError> {
        for change in changes.iter() {
            self.note(change?);
        }
        Ok(())
    }

    /// Makes [`Self::earliest_timer_ms`] and [`Self::earliest_ttl_ms`] exact; usually without a single read.
    ///
    /// # Errors
    /// The disk, or damage.
    pub fn refresh(&mut self, reader: &dyn Reader) -> Result<(), StateError> {
        refresh(reader, Family::Timers, self.step, &mut self.timers)?;
        refresh(reader, Family::Ttl, self.step, &mut self.ttl)
    }

    /// Expiry of the earliest timer; exact after [`Self::refresh`], otherwise never too late.
    #[must_use]
    pub fn earliest_timer_ms(&self) -> Option<i64> {
        earliest(&self.timers).and_then(|(_, earliest)| earliest.not_before_ms)
    }

    /// Earliest time at which a value expires; exact after [`Self::refresh`], otherwise never too late.
    #[must_use]
    pub fn earliest_ttl_ms(&self) -> Option<i64> {
        earliest(&self.ttl).and_then(|(_, earliest)| earliest.not_before_ms)
    }

    /// The earliest that a timer of the key group can be, if it is at or before the threshold; None: none is due.
    #[must_use]
    pub fn timers_due(&self, key_group: u16, threshold_ms: i64) -> Option<i64> {
        due(&self.timers, key_group, threshold_ms)
    }

    /// The earliest that a value of the key group can expire, if it is at or before `now_ms`; None: none has expired.
    #[must_use]
    pub fn ttl_due(&self, key_group: u16, now_ms: i64) -> Option<i64> {
        due(&self.ttl, key_group, now_ms)
    }

    fn note(&mut self, change: Change<'_>) {
        let all = match change.family {
            Family::Timers => &mut self.timers,
            Family::Ttl => &mut self.ttl,
            Family::Meta | Family::State => return,
        };
        let Some((step, key_group, expiry_ms)) = parse_time(change.key) else { return };
        let Some(earliest) = all.get_mut(usize::from(key_group)).filter(|_| step == self.step) else { return };
        match change.operation {
            Operation::Put(_) => earliest.added(expiry_ms),
            // Of a range, what is not before the first key; what is known may be too early then, as it may.
            Operation::Delete | Operation::DeleteBelow(_) => earliest.removed(expiry_ms),
        }
    }
}

/// The key group with the earliest expiry; among equals an inexact one, so that it is looked at.
fn earliest(all: &[Earliest]) -> Option<(usize, Earliest)> {
    all.iter()
        .copied()
        .enumerate()
        .filter(|(_, earliest)| earliest.not_before_ms.is_some())
        .min_by_key(|(_, earliest)| (earliest.not_before_ms, earliest.exact))
}

fn due(all: &[Earliest], key_group: u16, threshold_ms: i64) -> Option<i64> {
    all.get(usize::from(key_group))?.not_before_ms.filter(|not_before_ms| *not_before_ms <= threshold_ms)
}

fn refresh(reader: &dyn Reader, family: Family, step: u8, all: &mut [Earliest]) -> Result<(), StateError> {
    while let Some((place, Earliest { not_before_ms: Some(from_ms), exact: false })) = earliest(all) {
        let found = read_earliest(reader, family, step, place as u16, from_ms)?;
        all.iter_mut().skip(place).take(1).for_each(|earliest| *earliest = found);
    }
    Ok(())
}

fn read_earliest(
    reader: &dyn Reader,
    family: Family,
    step: u8,
    key_group: u16,
    from_ms: i64,
) -> Result<Earliest, StateError> {
    let (from, to) = time_range(step, key_group, from_ms, i64::MAX);
    let mut found = Earliest::NONE;
    reader.scan(family, &from, &to, &mut |key, _| {
        if let Some((_, _, expiry_ms)) = parse_time(key) {
            found.added(expiry_ms);
        }
        ControlFlow::Break(())
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::keys::push_timer_key;
    use super::super::memory::MemoryStore;
    use super::super::store::{Applied, Store};
    use super::*;
    use crate::record::GroupingKey;

    fn timers(ops: &[(u16, i64, bool)]) -> Changes {
        let mut changes = Changes::default();
        for &(key_group, expiry_ms, put) in ops {
            let mut key = Vec::new();
            push_timer_key(&mut key, 0, key_group, expiry_ms, GroupingKey { hash: 0, row: b"" });
            changes.push(Family::Timers, &key, put.then_some(b""));
        }
        changes
    }

    fn commit(store: &MemoryStore, index: &mut DueIndex, changes: Changes) {
        index.apply(&changes).unwrap();
        store.apply(&[changes], Applied::default()).unwrap();
        index.refresh(store).unwrap();
    }

    #[test]
    fn the_earliest_timer_follows_registration_and_deletion() {
        let store = MemoryStore::new();
        let mut index = DueIndex::load(&store, 0, 4).unwrap();
        assert_eq!(index.earliest_timer_ms(), None);

        commit(&store, &mut index, timers(&[(1, 50, true), (1, 70, true), (2, 60, true)]));
        assert_eq!(index.earliest_timer_ms(), Some(50));

        commit(&store, &mut index, timers(&[(1, 50, false)]));
        assert_eq!(index.earliest_timer_ms(), Some(60));
        assert_eq!(index.timers_due(1, 69), None);

        commit(&store, &mut index, timers(&[(1, 70, false), (2, 60, false)]));
        assert_eq!(index.earliest_timer_ms(), None);
    }

    #[test]
    fn a_key_group_that_is_not_the_earliest_is_looked_at_only_when_it_matters() {
        let store = MemoryStore::new();
        let mut index = DueIndex::load(&store, 0, 2).unwrap();
        commit(&store, &mut index, timers(&[(0, 10, true), (1, 50, true), (1, 70, true)]));

        commit(&store, &mut index, timers(&[(1, 50, false)]));
        assert_eq!(index.timers_due(1, 60), Some(50), "never too late, but possibly too early");

        commit(&store, &mut index, timers(&[(0, 10, false)]));
        assert_eq!(index.earliest_timer_ms(), Some(70));
    }

    #[test]
    fn loading_finds_what_following_would_have_found() {
        let store = MemoryStore::new();
        let mut index = DueIndex::load(&store, 0, 3).unwrap();
        commit(&store, &mut index, timers(&[(0, i64::MIN, true), (2, i64::MAX, true)]));
        assert_eq!(DueIndex::load(&store, 0, 3).unwrap(), index);
        assert_eq!(index.earliest_timer_ms(), Some(i64::MIN));
        commit(&store, &mut index, timers(&[(0, i64::MIN, false)]));
        assert_eq!(index.earliest_timer_ms(), Some(i64::MAX));
    }

    #[test]
    fn a_deletion_and_registration_in_one_batch_leave_it_exact() {
        let store = MemoryStore::new();
        let mut index = DueIndex::load(&store, 0, 1).unwrap();
        commit(&store, &mut index, timers(&[(0, 10, true)]));
        commit(&store, &mut index, timers(&[(0, 5, true), (0, 10, false)]));
        assert_eq!(index.timers_due(0, 5), Some(5));
        assert_eq!(index.timers_due(0, 4), None);
    }
}
