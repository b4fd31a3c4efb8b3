//! A map per grouping key.
//!
//! Writes of the group in hand that are still pending are found again by the hash of their key, so that counting in a
//! map (`get`, then `update`) costs no call once a key was written. What was applied, the host knows.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::marker::PhantomData;
use std::rc::Rc;

use super::pages::Pages;
use crate::codec::{malformed, read_u32};
use crate::contract::{Group, Part, Variable};
use crate::error::{Error, Result, code};
use crate::ops::{Code, Place};
use crate::row::{Row, from_packed, key_to_packed, to_packed};
use crate::session::Session;

/// A put begins with `key_length:u32, 0:u32`.
const PUT_HEAD_BYTES: usize = 8;

/// A map from `K` to `V` per grouping key. Two keys are the same if their packed rows are (0.0 and -0.0 are one key).
pub struct MapState<K, V> {
    session: Rc<Session>,
    variable: Variable,
    pending: RefCell<Pending>,
    rows: PhantomData<(K, V)>,
}

impl<K: Row, V: Row> MapState<K, V> {
    pub(crate) fn new(session: Rc<Session>, variable: Variable) -> Self {
        Self { session, variable, pending: RefCell::default(), rows: PhantomData }
    }

    /// The value at `key`, if there is one.
    pub fn get(&self, key: &K) -> Result<Option<V>> {
        self.look_up("mapState.getValue", key, from_packed, |group, key| {
            self.session.host.get_map_value(self.variable, group, key)?.map(|bytes| from_packed(&bytes)).transpose()
        })
    }

    /// Whether there is an entry at `key`.
    pub fn contains_key(&self, key: &K) -> Result<bool> {
        let found = self.look_up(
            "mapState.containsKey",
            key,
            |_| Ok(()),
            |group, key| Ok(self.session.host.contains_key(self.variable, group, key)?.then_some(())),
        )?;
        Ok(found.is_some())
    }

    /// Whether there is an entry.
    pub fn exists(&self) -> Result<bool> {
        let group = self.apply_pending("mapState.exists")?;
        self.session.host.exists(self.variable, group)
    }

    /// Sets the value at `key`, and starts the entry's TTL anew.
    pub fn update(&self, key: &K, value: &V) -> Result<()> {
        let group = self.session.group("mapState.updateValue")?;
        let place = self.session.write("mapState.updateValue", Code::MapPut, self.variable, |bytes| {
            let head = bytes.len();
            bytes.extend_from_slice(&[0; PUT_HEAD_BYTES]);
            write_key(key, bytes)?;
            let length = (bytes.len() - head - PUT_HEAD_BYTES) as u64;
            if let Some(slot) = bytes.get_mut(head..).and_then(|rest| rest.first_chunk_mut::<PUT_HEAD_BYTES>()) {
                *slot = length.to_le_bytes();
            }
            to_packed(value, bytes)
        })?;
        self.note(group, Write::Put(place))
    }

    /// Removes the entry at `key`, if there is one.
    pub fn remove(&self, key: &K) -> Result<()> {
        let group = self.session.group("mapState.removeKey")?;
        let place =
            self.session.write("mapState.removeKey", Code::MapRemove, self.variable, |bytes| write_key(key, bytes))?;
        self.note(group, Write::Remove(place))
    }

    /// Removes all entries.
    pub fn clear(&self) -> Result<()> {
        let group = self.session.group("mapState.clear")?;
        self.session.write("mapState.clear", Code::Clear, self.variable, |_| Ok(()))?;
        let mut pending = self.pending.borrow_mut();
        pending.belong_to(self.session.generation(), group);
        pending.writes.clear();
        pending.cleared = true;
        Ok(())
    }

    /// The entries as they are now, in an order of their own that is always the same.
    pub fn iter(&self) -> Result<MapEntries<'_, K, V>> {
        Ok(MapEntries { pages: self.read("mapState.iterator", Part::Entries)?, map: PhantomData })
    }

    /// The keys as they are now, in the order of [`MapState::iter`].
    pub fn keys(&self) -> Result<MapKeys<'_, K>> {
        Ok(MapKeys { pages: self.read("mapState.keys", Part::Keys)?, map: PhantomData })
    }

    /// The values as they are now, in the order of [`MapState::iter`].
    pub fn values(&self) -> Result<MapValues<'_, V>> {
        Ok(MapValues { pages: self.read("mapState.values", Part::Values)?, map: PhantomData })
    }

    fn read(&self, operation: &'static str, part: Part) -> Result<Pages> {
        let group = self.apply_pending(operation)?;
        let first = self.session.host.get_map(self.variable, group, part)?;
        Ok(Pages::new(Rc::clone(&self.session), first))
    }

    fn look_up<T>(
        &self,
        operation: &'static str,
        key: &K,
        own: impl FnOnce(&[u8]) -> Result<T>,
        ask: impl FnOnce(Group, &[u8]) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let group = self.session.group(operation)?;
        let mut pending = self.pending.borrow_mut();
        pending.belong_to(self.session.generation(), group);
        let mut scratch = std::mem::take(&mut pending.scratch);
        scratch.clear();
        write_key(key, &mut scratch)?;
        let answer = match pending.find(&self.session, &scratch)? {
            Found::Value(place) => self.session.payload(place, |payload| own(put_value(payload)?)).transpose(),
            Found::Removed => Ok(None),
            Found::Nothing => ask(group, &scratch),
            Found::OtherKey => {
                // Another key with this hash was written after; let the host tell them apart.
                self.session.apply()?;
                ask(group, &scratch)
            }
        };
        pending.scratch = scratch;
        answer
    }

    fn note(&self, group: Group, write: Write) -> Result<()> {
        let mut pending = self.pending.borrow_mut();
        pending.belong_to(self.session.generation(), group);
        let hash =
            self.session.payload(write.place(), |payload| write.key(payload).map(key_hash)).ok_or_else(malformed)??;
        pending.writes.insert(hash, write);
        Ok(())
    }

    fn apply_pending(&self, operation: &'static str) -> Result<Group> {
        let group = self.session.group(operation)?;
        let pending = self.pending.borrow();
        if pending.of == (self.session.generation(), group) && (pending.cleared || !pending.writes.is_empty()) {
            self.session.apply()?;
        }
        Ok(group)
    }
}

/// Writes of the group in hand that were not applied.
#[derive(Default)]
struct Pending {
    /// Generation of the ops, and group.
    of: (u32, Group),
    /// The map was cleared before the writes.
    cleared: bool,
    /// By hash of the key; of two keys with one hash the later.
    writes: HashMap<u64, Write, BuildHasherDefault<Hashed>>,
    /// Room for a key that is looked up.
    scratch: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Write {
    Put(Place),
    Remove(Place),
}

enum Found {
    /// The payload of a put.
    Value(Place),
    Removed,
    Nothing,
    OtherKey,
}

impl Pending {
    /// Forgets the writes of another group, and those that were applied.
    fn belong_to(&mut self, generation: u32, group: Group) {
        if self.of != (generation, group) {
            self.of = (generation, group);
            self.cleared = false;
            self.writes.clear();
        }
    }

    fn find(&self, session: &Session, key: &[u8]) -> Result<Found> {
        let Some(write) = self.writes.get(&key_hash(key)) else {
            return Ok(if self.cleared { Found::Removed } else { Found::Nothing });
        };
        let same = session.payload(write.place(), |payload| write.key(payload).map(|written| written == key));
        Ok(match (same.transpose()?, write) {
            (Some(true), Write::Put(place)) => Found::Value(*place),
            (Some(true), Write::Remove(_)) => Found::Removed,
            _ => Found::OtherKey,
        })
    }
}

impl Write {
    fn place(self) -> Place {
        match self {
            Self::Put(place) | Self::Remove(place) => place,
        }
    }

    fn key(self, payload: &[u8]) -> Result<&[u8]> {
        match self {
            Self::Put(_) => put_halves(payload).map(|(key, _)| key),
            Self::Remove(_) => Ok(payload),
        }
    }
}

fn put_value(payload: &[u8]) -> Result<&[u8]> {
    put_halves(payload).map(|(_, value)| value)
}

fn put_halves(payload: &[u8]) -> Result<(&[u8], &[u8])> {
    let key_length = read_u32(payload, 0)? as usize;
    payload.get(PUT_HEAD_BYTES..).and_then(|rest| rest.split_at_checked(key_length)).ok_or_else(malformed)
}

/// Writes a key; one whose only column is NULL is no key.
fn write_key<K: Row>(key: &K, bytes: &mut Vec<u8>) -> Result<()> {
    let start = bytes.len();
    key_to_packed(key, bytes)?;
    if K::COLUMNS == 1 && bytes.get(start).is_some_and(|nulls| nulls & 1 == 1) {
        return Err(Error::new(code::NULL_VALUE, "the key of a map entry is NULL"));
    }
    Ok(())
}

/// Packed rows are words of 8 bytes, so a multiply and a rotate per word mix them well enough.
fn key_hash(key: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, _) = key.as_chunks::<8>();
    let mixed = words
        .iter()
        .fold(0u64, |hash, word| (hash ^ u64::from_le_bytes(*word)).wrapping_mul(MULTIPLIER).rotate_left(29));
    mixed ^ mixed >> 32
}

/// Hands on a hash that was computed already.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = key_hash(bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

/// Entries of a map; ends after an error.
pub struct MapEntries<'a, K, V> {
    pages: Pages,
    map: PhantomData<&'a MapState<K, V>>,
}

impl<K: Row, V: Row> Iterator for MapEntries<'_, K, V> {
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        let key = match self.pages.next_row(from_packed)? {
            Ok(key) => key,
            Err(error) => return Some(Err(error)),
        };
        let value = self.pages.next_row(from_packed).unwrap_or_else(|| Err(malformed()));
        Some(value.map(|value| (key, value)))
    }
}

/// Keys of a map; ends after an error.
pub struct MapKeys<'a, K> {
    pages: Pages,
    map: PhantomData<&'a K>,
}

impl<K: Row> Iterator for MapKeys<'_, K> {
    type Item = Result<K>;

    fn next(&mut self) -> Option<Result<K>> {
        self.pages.next_row(from_packed)
    }
}

/// Values of a map; ends after an error.
pub struct MapValues<'a, V> {
    pages: Pages,
    map: PhantomData<&'a V>,
}

impl<V: Row> Iterator for MapValues<'_, V> {
    type Item = Result<V>;

    fn next(&mut self) -> Option<Result<V>> {
        self.pages.next_row(from_packed)
    }
}
