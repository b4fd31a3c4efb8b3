//! A store in memory: for runs that keep nothing, and for tests.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use super::changes::{Changes, Operation};
use super::error::StateError;
use super::keys::APPLIED;
use super::store::{Applied, Family, Reader, Store, StoreMetrics, Visit, get};

/// Ordered maps, one per family. Everything is gone when it is dropped.
#[derive(Debug, Default)]
pub struct MemoryStore {
    families: RwLock<Families>,
}

type Records = BTreeMap<Box<[u8]>, Box<[u8]>>;

#[derive(Debug, Default)]
struct Families {
    meta: Records,
    state: Records,
    ttl: Records,
    timers: Records,
    /// Of all keys and values.
    bytes: u64,
}

impl Families {
    fn of(&self, family: Family) -> &Records {
        match family {
            Family::Meta => &self.meta,
            Family::State => &self.state,
            Family::Ttl => &self.ttl,
            Family::Timers => &self.timers,
        }
    }

    fn set(&mut self, family: Family, key: &[u8], value: Option<&[u8]>) {
        let records = match family {
            Family::Meta => &mut self.meta,
            Family::State => &mut self.state,
            Family::Ttl => &mut self.ttl,
            Family::Timers => &mut self.timers,
        };
        let size = |value: &[u8]| (key.len() + value.len()) as u64;
        let before = match value {
            Some(value) => {
                self.bytes += size(value);
                records.insert(key.into(), value.into())
            }
            None => records.remove(key),
        };
        self.bytes -= before.map_or(0, |value| size(&value));
    }

    fn delete_range(&mut self, family: Family, from: &[u8], to: &[u8]) {
        if from >= to {
            return;
        }
        let range = (Bound::Included(from), Bound::Excluded(to));
        let keys: Vec<_> = self.of(family).range::<[u8], _>(range).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.set(family, &key, None);
        }
    }
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn read(&self) -> RwLockReadGuard<'_, Families> {
        // A panic while the lock was held cannot leave a map half changed in a way that reading it would break.
        self.families.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader for MemoryStore {
    fn multi_get(
        &self,
        family: Family,
        sorted_keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), StateError> {
        debug_assert!(sorted_keys.is_sorted(), "multi_get wants sorted keys");
        let families = self.read();
        let records = families.of(family);
        for (position, key) in sorted_keys.iter().enumerate() {
            visit(position, records.get(*key).map(|value| &**value));
        }
        Ok(())
    }

    fn scan(&self, family: Family, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), StateError> {
        if from >= to {
            return Ok(());
        }
        for (key, value) in self.read().of(family).range::<[u8], _>((Bound::Included(from), Bound::Excluded(to))) {
            if visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl Store for MemoryStore {
    fn apply(&self, changes: &[Changes], applied: Applied) -> Result<(), StateError> {
        let mut families = self.families.write().unwrap_or_else(PoisonError::into_inner);
        for change in changes.iter().flat_map(Changes::iter) {
            let change = change?;
            match change.operation {
                Operation::Put(value) => families.set(change.family, change.key, Some(value)),
                Operation::Delete => families.set(change.family, change.key, None),
                Operation::DeleteBelow(to) => families.delete_range(change.family, change.key, to),
            }
        }
        families.set(Family::Meta, APPLIED, Some(&applied.to_bytes()));
        Ok(())
    }

    fn applied(&self) -> Result<Applied, StateError> {
        get(self, Family::Meta, APPLIED)?.map_or(Ok(Applied::default()), |bytes| Applied::from_bytes(&bytes))
    }

    fn metrics(&self) -> StoreMetrics {
        StoreMetrics { memory_bytes: self.read().bytes, ..StoreMetrics::default() }
    }
}
