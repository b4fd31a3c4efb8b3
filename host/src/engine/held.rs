//! Keys that are held: after a dead letter their rows become dead letters too, until they are released. The set is in
//! the state store, so it goes with snapshots, a rollback and a fork, and changes with the commit of a batch.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::dead_letters::{DeadLetter, DeadOf, KEY_HELD};
use super::error::QueryError;
use super::route::Routed;
use crate::record::GroupingKey;
use crate::state::{Changes, Family, Store};

/// The held keys of one step: packed key rows, each with the id of the dead letter that it is held since.
#[derive(Debug, Default)]
pub(super) struct HeldKeys {
    prefix: Vec<u8>,
    keys: BTreeMap<Vec<u8>, String>,
}

impl HeldKeys {
    /// Those of a step, as committed.
    ///
    /// # Errors
    /// The disk, or damage.
    pub(super) fn load(store: &dyn Store, step: &str) -> Result<Self, QueryError> {
        let prefix = format!("held/{step}/").into_bytes();
        // Behind the slash comes 0.
        let end = format!("held/{step}0").into_bytes();
        let mut keys = BTreeMap::new();
        store.scan(Family::Meta, &prefix, &end, &mut |key, id| {
            let key = key.get(prefix.len()..).unwrap_or_default().to_vec();
            keys.insert(key, String::from_utf8_lossy(id).into_owned());
            ControlFlow::Continue(())
        })?;
        Ok(Self { prefix, keys })
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &[u8]> {
        self.keys.keys().map(Vec::as_slice)
    }

    /// Rows that are held back.
    pub(super) fn rows(&self, routed: &Routed) -> Vec<DeadLetter> {
        let of_key = |(key, id): (&Vec<u8>, &String)| {
            let rows = routed.of_key(GroupingKey::new(key));
            rows.rows.iter().map(|row| held_row(rows.key.clone(), routed.number(row), id)).collect::<Vec<_>>()
        };
        self.keys.iter().flat_map(of_key).collect()
    }

    /// Holds a key from the next batch on; one that is held stays so since its first dead letter.
    pub(super) fn hold(&mut self, key: &[u8], id: &str, changes: &mut Changes) {
        if !self.keys.contains_key(key) {
            changes.push(Family::Meta, &self.place(key), Some(id.as_bytes()));
            self.keys.insert(key.to_vec(), id.to_owned());
        }
    }

    /// Releases a key; false if it was not held.
    pub(super) fn release(&mut self, key: &[u8], changes: &mut Changes) -> bool {
        let was_held = self.keys.remove(key).is_some();
        if was_held {
            changes.push(Family::Meta, &self.place(key), None);
        }
        was_held
    }

    /// Releases all of them.
    pub(super) fn release_all(&mut self, changes: &mut Changes) {
        for key in std::mem::take(&mut self.keys).into_keys() {
            changes.push(Family::Meta, &self.place(&key), None);
        }
    }

    fn place(&self, key: &[u8]) -> Vec<u8> {
        [self.prefix.as_slice(), key].concat()
    }
}

/// A row that is not processed since a dead letter of its key.
pub(super) fn held_row(key: Vec<u8>, number: u64, since: &str) -> DeadLetter {
    DeadLetter {
        of: DeadOf::HeldRow(number),
        key,
        code: KEY_HELD.to_owned(),
        message: format!("the key is held since {since}"),
        fuel: None,
        attempts: 0,
    }
}
