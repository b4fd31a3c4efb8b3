//! The grouping keys that a session has met, by number.
//!
//! Input arrives in ascending order of (hash, key row), so a key is mostly new and greater than the last, or the last.
//! Keys out of that order, as the timer phase brings them, are found through a table that is empty until then.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::record::GroupingKey;

/// Handle of a grouping key in its session.
pub type GroupId = u32;

#[derive(Debug, Default)]
pub(super) struct Groups {
    heads: Vec<Head>,
    keys: Vec<u8>,
    /// The first so many groups ascend.
    ascending: usize,
    /// The others, by hash: the last that came with it.
    others: HashMap<u64, GroupId>,
}

#[derive(Debug, Clone, Copy)]
struct Head {
    hash: u64,
    offset: usize,
    len: u32,
    /// The one of `others` with the same hash that came before, else [`NONE`].
    before: GroupId,
}

/// No group; one fewer is possible than its number says.
const NONE: GroupId = GroupId::MAX;

impl Groups {
    /// The handle of a key, and whether it is new.
    #[inline]
    pub(super) fn enter(&mut self, key: GroupingKey<'_>) -> (GroupId, bool) {
        if self.ascending == self.heads.len() {
            let order = self.heads.last().map_or(Ordering::Less, |last| self.compare(last, key));
            match order {
                Ordering::Less => {
                    self.ascending += 1;
                    return (self.push(key, NONE), true);
                }
                Ordering::Equal => return (self.ascending as GroupId - 1, false),
                Ordering::Greater => {}
            }
        }
        if let Some(known) = self.find(key) {
            return (known, false);
        }
        let before = self.others.get(&key.hash).copied().unwrap_or(NONE);
        let group = self.push(key, before);
        self.others.insert(key.hash, group);
        (group, true)
    }

    /// The handle of a key, if it has one.
    pub(super) fn find(&self, key: GroupingKey<'_>) -> Option<GroupId> {
        let ascending = self.heads.get(..self.ascending).unwrap_or_default();
        if let Ok(place) = ascending.binary_search_by(|head| self.compare(head, key)) {
            return Some(place as GroupId);
        }
        let mut group = self.others.get(&key.hash).copied()?;
        while let Some(head) = self.heads.get(group as usize) {
            if self.key_of(head) == key {
                return Some(group);
            }
            group = head.before;
        }
        None
    }

    /// The key of a handle; an empty one for a handle that this session never gave.
    #[inline]
    pub(super) fn key(&self, group: GroupId) -> GroupingKey<'_> {
        self.heads.get(group as usize).map_or(GroupingKey { hash: 0, row: &[] }, |head| self.key_of(head))
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    /// All groups in the order of their state keys.
    pub(super) fn in_state_key_order(&self) -> Vec<GroupId> {
        let mut order: Vec<GroupId> = (0..self.heads.len() as GroupId).collect();
        self.sort_by_state_key(&mut order);
        order
    }

    /// Sorts by hash, length of the row, row. Stable, so that an ascending run, mostly everything, is only looked at.
    pub(super) fn sort_by_state_key(&self, groups: &mut [GroupId]) {
        groups.sort_by(|a, b| {
            let (a, b) = (self.key(*a), self.key(*b));
            a.hash.cmp(&b.hash).then_with(|| a.row.len().cmp(&b.row.len())).then_with(|| a.row.cmp(b.row))
        });
    }

    /// Sorts by hash, row.
    pub(super) fn sort_by_key(&self, groups: &mut [GroupId]) {
        groups.sort_by(|a, b| self.key(*a).cmp(&self.key(*b)));
    }

    #[inline]
    fn push(&mut self, key: GroupingKey<'_>, before: GroupId) -> GroupId {
        // A group takes 24 bytes and more, a key row is shorter than 4 GiB: memory ends before either number does.
        let group = self.heads.len() as GroupId;
        self.heads.push(Head { hash: key.hash, offset: self.keys.len(), len: key.row.len() as u32, before });
        self.keys.extend_from_slice(key.row);
        group
    }

    #[inline]
    fn key_of(&self, head: &Head) -> GroupingKey<'_> {
        let row = self.keys.get(head.offset..head.offset + head.len as usize).unwrap_or_default();
        GroupingKey { hash: head.hash, row }
    }

    #[inline]
    fn compare(&self, head: &Head, key: GroupingKey<'_>) -> Ordering {
        head.hash.cmp(&key.hash).then_with(|| self.key_of(head).row.cmp(key.row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(hash: u64, row: &[u8]) -> GroupingKey<'_> {
        GroupingKey { hash, row }
    }

    #[test]
    fn a_key_has_one_handle_in_whatever_order_it_comes() {
        let mut groups = Groups::default();
        let keys = [
            (5, "a"),
            (9, "b"),
            (2, "c"),
            (9, "b"),
            (7, "d"),
            (2, "c"),
            (2, "e"),
            (10, "f"),
            (5, "a"),
            (2, "e"),
            (10, "f"),
        ];
        let handles: Vec<(GroupId, bool)> =
            keys.iter().map(|(hash, row)| groups.enter(key(*hash, row.as_bytes()))).collect();
        let expected = [
            (0, true),
            (1, true),
            (2, true),
            (1, false),
            (3, true),
            (2, false),
            (4, true),
            (5, true),
            (0, false),
            (4, false),
            (5, false),
        ];
        assert_eq!(handles, expected);
        for (hash, row) in keys {
            let key = key(hash, row.as_bytes());
            assert_eq!(groups.key(groups.find(key).unwrap()), key);
        }
        assert_eq!(groups.find(key(2, b"zz")), None);
        assert_eq!(groups.in_state_key_order(), [2, 4, 0, 3, 1, 5]);
    }

    #[test]
    fn equal_hashes_are_told_apart_by_their_rows() {
        let mut groups = Groups::default();
        let handles = [b"aaaaaaaa".as_slice(), b"b", b"a", b"aaaaaaaa"].map(|row| groups.enter(key(1, row)).0);
        assert_eq!(handles, [0, 1, 2, 0]);
        assert_eq!(groups.in_state_key_order(), [2, 1, 0], "shorter rows first, as in state keys");
    }
}
