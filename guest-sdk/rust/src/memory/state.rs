//! State variables and timers of all keys, in plain maps.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};

/// A packed grouping key.
pub(crate) type Key = Vec<u8>;

/// The kinds of state variables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Value,
    List,
    Map,
}

/// A row with the time from which it is not seen.
#[derive(Clone)]
pub(crate) struct Stored {
    pub(crate) row: Vec<u8>,
    pub(crate) expiry_ms: Option<i64>,
}

impl Stored {
    fn is_alive(&self, now_ms: i64) -> bool {
        self.expiry_ms.is_none_or(|expiry_ms| now_ms < expiry_ms)
    }
}

/// What a query keeps from batch to batch.
#[derive(Clone, Default)]
pub(crate) struct State {
    kinds: BTreeMap<String, Kind>,
    values: BTreeMap<(String, Key), Stored>,
    lists: BTreeMap<(String, Key), Vec<Stored>>,
    maps: BTreeMap<(String, Key), BTreeMap<Vec<u8>, Stored>>,
    timers: BTreeMap<Key, BTreeSet<i64>>,
}

impl State {
    pub(crate) fn declare(&mut self, name: &str, kind: Kind) -> Result<()> {
        match self.kinds.insert(name.to_owned(), kind) {
            Some(before) if before != kind => Err(Error::new(
                "STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE",
                format!("`{name}` was a {before:?} state and is declared as a {kind:?} state"),
            )),
            _ => Ok(()),
        }
    }

    pub(crate) fn drop_variable(&mut self, name: &str) {
        self.kinds.remove(name);
        self.values.retain(|(variable, _), _| variable != name);
        self.lists.retain(|(variable, _), _| variable != name);
        self.maps.retain(|(variable, _), _| variable != name);
    }

    pub(crate) fn value(&self, name: &str, key: &Key, now_ms: i64) -> Option<&[u8]> {
        let stored = self.values.get(&place(name, key)).filter(|stored| stored.is_alive(now_ms))?;
        Some(&stored.row)
    }

    pub(crate) fn list(&self, name: &str, key: &Key, now_ms: i64) -> impl Iterator<Item = &[u8]> {
        let elements = self.lists.get(&place(name, key)).into_iter().flatten();
        elements.filter(move |stored| stored.is_alive(now_ms)).map(|stored| stored.row.as_slice())
    }

    pub(crate) fn map(&self, name: &str, key: &Key, now_ms: i64) -> impl Iterator<Item = (&[u8], &[u8])> {
        let entries = self.maps.get(&place(name, key)).into_iter().flatten();
        entries
            .filter(move |(_, stored)| stored.is_alive(now_ms))
            .map(|(key, stored)| (key.as_slice(), stored.row.as_slice()))
    }

    pub(crate) fn timers(&self, key: &Key) -> impl Iterator<Item = i64> {
        self.timers.get(key).into_iter().flatten().copied()
    }

    pub(crate) fn put_value(&mut self, name: &str, key: Key, stored: Stored) {
        self.values.insert((name.to_owned(), key), stored);
    }

    pub(crate) fn append(&mut self, name: &str, key: Key, elements: &mut Vec<Stored>) {
        self.lists.entry((name.to_owned(), key)).or_default().append(elements);
    }

    pub(crate) fn put_entry(&mut self, name: &str, key: Key, entry: Vec<u8>, stored: Stored) {
        self.maps.entry((name.to_owned(), key)).or_default().insert(entry, stored);
    }

    pub(crate) fn remove_entry(&mut self, name: &str, key: &Key, entry: &[u8]) {
        if let Some(map) = self.maps.get_mut(&place(name, key)) {
            map.remove(entry);
        }
    }

    pub(crate) fn clear(&mut self, name: &str, key: &Key) {
        let place = place(name, key);
        self.values.remove(&place);
        self.lists.remove(&place);
        self.maps.remove(&place);
    }

    pub(crate) fn register_timer(&mut self, key: Key, expiry_ms: i64) {
        self.timers.entry(key).or_default().insert(expiry_ms);
    }

    pub(crate) fn delete_timer(&mut self, key: &Key, expiry_ms: i64) {
        if let Some(timers) = self.timers.get_mut(key) {
            timers.remove(&expiry_ms);
        }
    }

    /// The timers that are due, by key in the order of their earliest, a key's timers in order.
    pub(crate) fn due_timers(&self, threshold_ms: i64) -> Vec<(Key, Vec<i64>)> {
        let mut due: Vec<(Key, Vec<i64>)> = self
            .timers
            .iter()
            .map(|(key, timers)| (key.clone(), timers.range(..=threshold_ms).copied().collect::<Vec<_>>()))
            .filter(|(_, timers)| !timers.is_empty())
            .collect();
        due.sort_by(|(_, left), (_, right)| left.first().cmp(&right.first()));
        due
    }

    /// Removes what has expired.
    pub(crate) fn evict(&mut self, now_ms: i64) {
        self.values.retain(|_, stored| stored.is_alive(now_ms));
        for list in self.lists.values_mut() {
            list.retain(|stored| stored.is_alive(now_ms));
        }
        for map in self.maps.values_mut() {
            map.retain(|_, stored| stored.is_alive(now_ms));
        }
    }
}

fn place(name: &str, key: &Key) -> (String, Key) {
    (name.to_owned(), key.clone())
}
