//! What a batch does to the store: puts and deletes in bytes, so that they can stand in the log and be applied again.
//!
//! Per change: family u8, length of the key as varint, key, length of the value plus one as varint (0 = delete), value.
//! With [`RANGE`] added to the family, all keys from the key on are deleted, below what stands as the value. A session's
//! changes are sorted by family and key, with each key at most once; the same operations give the same bytes.
//!
//! Changes are applied in order, and what each leaves at a key does not depend on what was there. So a store that already
//! holds some or all of them holds the same when they have been applied again.

use std::ops::Range;

use xxhash_rust::xxh3::Xxh3;

use super::error::StateError;
use super::store::Family;

/// Bit of the family's byte by which a range is deleted.
const RANGE: u8 = 0x80;

/// Puts and deletes of one worker and batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    bytes: Vec<u8>,
}

/// One put or delete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change<'a> {
    /// Where.
    pub family: Family,
    /// The key, or the first of a range.
    pub key: &'a [u8],
    /// What happens to it.
    pub operation: Operation<'a>,
}

/// What happens to a key, or to a range of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation<'a> {
    /// It holds this value.
    Put(&'a [u8]),
    /// It goes.
    Delete,
    /// It goes with all keys after it that are below this one.
    DeleteBelow(&'a [u8]),
}

impl Changes {
    /// Takes bytes that [`Changes::as_bytes`] gave, e.g. from the log. They are checked when they are read.
    #[must_use]
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// The bytes, for the log.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes the changes of another batch part behind these.
    pub fn append(&mut self, other: &Self) {
        self.bytes.extend_from_slice(&other.bytes);
    }

    /// XXH3-128 over the changes of all workers of a batch, in range order, in hex.
    #[must_use]
    pub fn digest(parts: &[Self]) -> String {
        let mut digest = Xxh3::new();
        for part in parts {
            digest.update(&part.bytes);
        }
        format!("{:032x}", digest.digest128())
    }

    /// The changes in order. After an error the iterator ends.
    pub fn iter(&self) -> impl Iterator<Item = Result<Change<'_>, StateError>> {
        let mut rest = self.bytes.as_slice();
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            match take_change(&mut rest) {
                Some(change) => Some(Ok(change)),
                None => {
                    rest = &[];
                    Some(Err(StateError::corrupt(
                        "the changes of a batch",
                        "a change is cut short or names an unknown family",
                    )))
                }
            }
        })
    }

    /// Appends a change; the caller keeps the order.
    pub(crate) fn push(&mut self, family: Family, key: &[u8], value: Option<&[u8]>) {
        self.push_key(family, key);
        self.push_value(value);
    }

    /// Appends the deletion of all keys from `from` on, below `to`.
    pub(crate) fn push_range(&mut self, family: Family, from: &[u8], to: &[u8]) {
        self.push_head(family as u8 | RANGE, from);
        self.push_value(Some(to));
    }

    fn push_key(&mut self, family: Family, key: &[u8]) {
        self.push_head(family as u8, key);
    }

    fn push_head(&mut self, head: u8, key: &[u8]) {
        self.bytes.push(head);
        push_varint(&mut self.bytes, key.len() as u64);
        self.bytes.extend_from_slice(key);
    }

    fn push_value(&mut self, value: Option<&[u8]>) {
        match value {
            None => self.bytes.push(0),
            Some(value) => {
                push_varint(&mut self.bytes, value.len() as u64 + 1);
                self.bytes.extend_from_slice(value);
            }
        }
    }
}

/// Collects the changes of one family in any order and gives them sorted. Keys that come in order cost no sorting.
#[derive(Debug)]
pub(crate) struct FamilyChanges {
    family: Family,
    changes: Changes,
    /// Where the key added last is.
    last: Range<usize>,
    sorted: bool,
}

impl FamilyChanges {
    pub(crate) fn new(family: Family) -> Self {
        Self { family, changes: Changes::default(), last: 0..0, sorted: true }
    }

    /// Deletes a key.
    pub(crate) fn delete(&mut self, key: &[u8]) {
        self.key(key);
        self.changes.push_value(None);
    }

    /// Puts a value.
    pub(crate) fn put(&mut self, key: &[u8], value: &[u8]) {
        self.key(key);
        self.changes.push_value(Some(value));
    }

    /// Puts a value of `len` bytes that `write` appends, without a copy in between.
    pub(crate) fn put_with(&mut self, key: &[u8], len: usize, write: impl FnOnce(&mut Vec<u8>)) {
        self.key(key);
        push_varint(&mut self.changes.bytes, len as u64 + 1);
        let begin = self.changes.bytes.len();
        write(&mut self.changes.bytes);
        debug_assert_eq!(self.changes.bytes.len() - begin, len, "the length announced must be the length written");
    }

    /// Appends all in order of the keys to `out`.
    pub(crate) fn append_to(self, out: &mut Changes) {
        if !self.sorted {
            self.sort_into(out);
        } else if out.is_empty() {
            *out = self.changes;
        } else {
            out.bytes.extend_from_slice(&self.changes.bytes);
        }
    }

    fn sort_into(&self, out: &mut Changes) {
        let mut rest = self.changes.bytes.as_slice();
        let mut places: Vec<(&[u8], &[u8])> = Vec::new();
        loop {
            let before = rest;
            let Some(change) = take_change(&mut rest) else { break };
            let whole = before.get(..before.len() - rest.len()).unwrap_or_default();
            places.push((change.key, whole));
        }
        places.sort_by_key(|(key, _)| *key);
        out.bytes.reserve(self.changes.bytes.len());
        for (_, whole) in places {
            out.bytes.extend_from_slice(whole);
        }
    }

    fn key(&mut self, key: &[u8]) {
        let first = self.changes.is_empty();
        self.sorted =
            self.sorted && (first || self.changes.bytes.get(self.last.clone()).is_some_and(|last| last < key));
        self.changes.push_key(self.family, key);
        let end = self.changes.bytes.len();
        self.last = end - key.len()..end;
    }
}

fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_change<'a>(rest: &mut &'a [u8]) -> Option<Change<'a>> {
    let (head, tail) = rest.split_first()?;
    *rest = tail;
    let family = Family::from_byte(*head & !RANGE)?;
    let len = take_varint(rest)?;
    let key = take(rest, len)?;
    let operation = match (take_varint(rest)?, *head & RANGE) {
        (0, 0) => Operation::Delete,
        (0, _) => return None,
        (len, 0) => Operation::Put(take(rest, len - 1)?),
        (len, _) => Operation::DeleteBelow(take(rest, len - 1)?),
    };
    Some(Change { family, key, operation })
}

fn take<'a>(rest: &mut &'a [u8], len: u64) -> Option<&'a [u8]> {
    let (taken, tail) = rest.split_at_checked(usize::try_from(len).ok()?)?;
    *rest = tail;
    Some(taken)
}

fn take_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, tail) = rest.split_first()?;
        *rest = tail;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            return None;
        }
        number |= part << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(changes: &Changes) -> Vec<Vec<u8>> {
        changes.iter().map(|change| change.unwrap().key.to_vec()).collect()
    }

    #[test]
    fn changes_read_as_they_were_written() {
        let long = vec![7; 300];
        let mut changes = Changes::default();
        changes.push(Family::State, b"a", Some(b""));
        changes.push(Family::Ttl, &long, None);
        changes.push(Family::Meta, b"", Some(&long));
        changes.push_range(Family::State, b"a", b"c");
        let read: Vec<Change<'_>> = changes.iter().map(Result::unwrap).collect();
        assert_eq!(
            read,
            [
                Change { family: Family::State, key: b"a", operation: Operation::Put(b"") },
                Change { family: Family::Ttl, key: &long, operation: Operation::Delete },
                Change { family: Family::Meta, key: b"", operation: Operation::Put(&long) },
                Change { family: Family::State, key: b"a", operation: Operation::DeleteBelow(b"c") },
            ]
        );
    }

    #[test]
    fn changes_cut_anywhere_within_are_damage_not_a_panic() {
        let mut changes = Changes::default();
        changes.push(Family::State, b"abc", Some(b"defg"));
        for len in 1..changes.as_bytes().len() {
            let cut = Changes::from_bytes(changes.as_bytes()[..len].to_vec());
            assert_eq!(cut.iter().last().unwrap().unwrap_err().code(), "STATE_CORRUPT");
        }
        for bytes in [
            vec![9, 0, 0],
            vec![RANGE | 1, 1, b'a', 0],
            vec![1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        ] {
            assert!(Changes::from_bytes(bytes).iter().next().unwrap().is_err());
        }
    }

    #[test]
    fn a_family_gives_its_changes_in_order_of_keys() {
        let mut family = FamilyChanges::new(Family::State);
        family.put(b"b", b"2");
        family.delete(b"c");
        family.put_with(b"a", 1, |out| out.push(b'1'));
        let mut out = Changes::default();
        family.append_to(&mut out);
        assert_eq!(keys(&out), [b"a", b"b", b"c"]);
    }
}
