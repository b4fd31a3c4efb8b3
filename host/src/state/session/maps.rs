//! Map states of a session: one record per entry, and per key an overlay of the entries that the batch touched.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::super::codec::{RowKind, StoredRow, expired, push_row_record, row_record_len};
use super::super::error::StateError;
use super::super::keys::{parse_state_key, successor};
use super::super::store::{Family, get, scan_checked};
use super::cursor::{Cursor, MapCursor};
use super::finish::Output;
use super::values::{Committed, single_row};
use super::{GroupId, Session, read_sorted};

/// Entries whose absence or expiry a session remembers after a read, over all maps. Past it they are read again: at the
/// commit, if they are written.
const READS_REMEMBERED_MAX: usize = 100_000;

/// What an entry takes beside its rows, about.
const ENTRY_BYTES: usize = 64;

/// Which part of a map's entries a read gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapPart {
    /// Key rows.
    Keys,
    /// Value rows, in order of the keys.
    Values,
    /// Key row, value row, key row, value row ...
    Entries,
}

/// What a batch did to the map of one key.
#[derive(Debug, Default)]
pub(super) struct MapState {
    pub(super) entries: Arc<Entries>,
    /// Whether `entries` has all that is committed.
    pub(super) complete: bool,
}

/// By packed key row.
pub(super) type Entries = BTreeMap<Box<[u8]>, Entry>;

#[derive(Debug, Clone, Default)]
pub(super) struct Entry {
    pub(super) committed: Committed,
    pub(super) current: EntryChange,
}

#[derive(Debug, Clone, Default)]
pub(super) enum EntryChange {
    #[default]
    AsCommitted,
    Written(Box<[u8]>),
    Removed,
}

/// Answer to a lookup in the overlay.
enum Found {
    Written,
    None,
    InStore,
}

impl MapState {
    fn find(&self, key: &[u8], now_ms: i64) -> Found {
        match self.entries.get(key) {
            None if self.complete => Found::None,
            None => Found::InStore,
            Some(Entry { current: EntryChange::Written(_), .. }) => Found::Written,
            Some(Entry { current: EntryChange::Removed, .. } | Entry { committed: Committed::Absent, .. }) => {
                Found::None
            }
            Some(Entry { committed: Committed::Present(expiry_ms), .. }) if expired(*expiry_ms, now_ms) => Found::None,
            Some(_) => Found::InStore,
        }
    }

    /// The entry to write to.
    fn entry(&mut self, key: &[u8]) -> &mut Entry {
        let entries = Arc::make_mut(&mut self.entries);
        if !entries.contains_key(key) {
            let committed = if self.complete { Committed::Absent } else { Committed::Unknown };
            entries.insert(key.into(), Entry { committed, current: EntryChange::AsCommitted });
        }
        entries.entry(key.into()).or_default()
    }
}

impl Entry {
    /// Bytes that count as written.
    fn bytes(&self, key: &[u8]) -> usize {
        match &self.current {
            EntryChange::AsCommitted => 0,
            EntryChange::Written(row) => ENTRY_BYTES + key.len() + row.len(),
            EntryChange::Removed => ENTRY_BYTES + key.len(),
        }
    }
}

impl Session {
    /// The row of an entry, unless there is none or it has expired.
    ///
    /// # Errors
    /// The disk, or damage; `STATE_MISUSE` if the variable is no map.
    pub fn map_value(&mut self, variable: usize, group: GroupId, key: &[u8]) -> Result<Option<&[u8]>, StateError> {
        let place = self.map_place(variable)?;
        let found = self.find_entry(place, group, key);
        match found {
            Found::None => Ok(None),
            Found::InStore => {
                let read = self.read_entry(variable, place, group, key)?;
                Ok(read.then_some(&self.entry_row))
            }
            Found::Written => Ok(self.maps.get(&(group, place)).and_then(|map| match &map.entries.get(key)?.current {
                EntryChange::Written(row) => Some(&**row),
                EntryChange::AsCommitted | EntryChange::Removed => None,
            })),
        }
    }

    /// Whether a map has an entry that has not expired.
    ///
    /// # Errors
    /// As [`Self::map_value`].
    pub fn map_contains(&mut self, variable: usize, group: GroupId, key: &[u8]) -> Result<bool, StateError> {
        self.map_value(variable, group, key).map(|row| row.is_some())
    }

    /// Puts an entry.
    ///
    /// # Errors
    /// `STATE_LIMIT_EXCEEDED`; `STATE_MISUSE` if the variable is no map.
    pub fn map_put(&mut self, variable: usize, group: GroupId, key: &[u8], row: &[u8]) -> Result<(), StateError> {
        self.change_entry(variable, group, key, EntryChange::Written(row.into()))?;
        self.metrics.rows_updated += 1;
        self.check_room(variable, group)
    }

    /// Removes an entry; one that is not there counts as removed too.
    ///
    /// # Errors
    /// `STATE_LIMIT_EXCEEDED`; `STATE_MISUSE` if the variable is no map.
    pub fn map_remove(&mut self, variable: usize, group: GroupId, key: &[u8]) -> Result<(), StateError> {
        self.change_entry(variable, group, key, EntryChange::Removed)?;
        self.metrics.rows_removed += 1;
        self.check_room(variable, group)
    }

    /// Opens a read of a map, in order of the bytes of its keys, without expired entries.
    ///
    /// # Errors
    /// `STATE_MISUSE` if the variable is no map.
    pub fn map(&mut self, variable: usize, group: GroupId, part: MapPart) -> Result<Cursor, StateError> {
        let place = self.map_place(variable)?;
        let state_key = self.state_key(variable, group);
        let map = self.maps.entry((group, place)).or_default();
        let base = (!map.complete).then_some(state_key);
        Ok(Cursor::Map(MapCursor::new(variable, base, Arc::clone(&map.entries), part)))
    }

    pub(super) fn map_exists(&mut self, variable: usize, place: u16, group: GroupId) -> Result<bool, StateError> {
        if let Some(map) = self.maps.get(&(group, place))
            && map.entries.values().any(|entry| matches!(entry.current, EntryChange::Written(_)))
        {
            return Ok(true);
        }
        let mut cursor = self.map(variable, group, MapPart::Keys)?;
        let mut first = Vec::new();
        self.page(&mut cursor, 0, &mut first)?;
        Ok(!first.is_empty())
    }

    pub(super) fn map_clear(&mut self, variable: usize, place: u16, group: GroupId) -> Result<(), StateError> {
        self.complete_map(variable, place, group)?;
        let now_ms = self.scope.now_ms;
        let map = self.maps.entry((group, place)).or_default();
        let mut removed = 0;
        let write_bytes = &mut self.write_bytes;
        Arc::make_mut(&mut map.entries).retain(|key, entry| {
            *write_bytes -= entry.bytes(key);
            let there = match (&entry.current, entry.committed) {
                (EntryChange::Written(_), _) => true,
                (EntryChange::AsCommitted, Committed::Present(expiry_ms)) => !expired(expiry_ms, now_ms),
                _ => false,
            };
            removed += u64::from(there);
            entry.current = EntryChange::Removed;
            let stored = matches!(entry.committed, Committed::Present(_));
            *write_bytes += if stored { entry.bytes(key) } else { 0 };
            stored
        });
        self.metrics.rows_removed += removed;
        self.check_room(variable, group)
    }

    fn change_entry(
        &mut self,
        variable: usize,
        group: GroupId,
        key: &[u8],
        change: EntryChange,
    ) -> Result<(), StateError> {
        let place = self.map_place(variable)?;
        let entry = self.maps.entry((group, place)).or_default().entry(key);
        self.write_bytes -= entry.bytes(key);
        entry.current = change;
        self.write_bytes += entry.bytes(key);
        Ok(())
    }

    fn find_entry(&self, place: u16, group: GroupId, key: &[u8]) -> Found {
        self.maps.get(&(group, place)).map_or(Found::InStore, |map| map.find(key, self.scope.now_ms))
    }

    /// Reads an entry into `entry_row`; false if it is not there.
    fn read_entry(&mut self, variable: usize, place: u16, group: GroupId, key: &[u8]) -> Result<bool, StateError> {
        let mut state_key = self.state_key(variable, group);
        state_key.extend_from_slice(key);
        let record = get(&*self.store, Family::State, &state_key)?;
        self.entry_row.clear();
        let (committed, there) = match &record {
            None => (Committed::Absent, false),
            Some(record) => {
                let stored = single_row(record)?;
                if let Some(variable) = self.variables.get(variable) {
                    variable.append(stored.schema_id, stored.row, &mut self.entry_row)?;
                }
                (Committed::Present(stored.expiry_ms), !stored.expired(self.scope.now_ms))
            }
        };
        let map = self.maps.entry((group, place)).or_default();
        // An overlay that a cursor looks at is not copied for this.
        if let Some(entries) = Arc::get_mut(&mut map.entries)
            && (self.reads_remembered < READS_REMEMBERED_MAX || entries.contains_key(key))
        {
            self.reads_remembered += 1;
            entries.entry(key.into()).or_default().committed = committed;
        }
        Ok(there)
    }

    /// Takes all committed entries of a map into its overlay.
    fn complete_map(&mut self, variable: usize, place: u16, group: GroupId) -> Result<(), StateError> {
        let from = self.state_key(variable, group);
        let bytes_max = self.scope.limits.write_bytes_max;
        let map = self.maps.entry((group, place)).or_default();
        if map.complete {
            return Ok(());
        }
        let to = successor(from.clone());
        let entries = Arc::make_mut(&mut map.entries);
        let mut bytes = self.write_bytes;
        scan_checked(&*self.store, Family::State, &from, &to, &mut |key, record| {
            let suffix = parse_state_key(key)?.suffix;
            let committed = Committed::Present(single_row(record)?.expiry_ms);
            bytes += ENTRY_BYTES + suffix.len();
            entries.entry(suffix.into()).or_default().committed = committed;
            Ok(if bytes > bytes_max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        if bytes > bytes_max {
            return Err(self.too_many_bytes(variable, group));
        }
        for entry in entries.values_mut().filter(|entry| entry.committed == Committed::Unknown) {
            entry.committed = Committed::Absent;
        }
        map.complete = true;
        Ok(())
    }

    /// Emits what the batch did to the maps of one variable; `groups` are those with one, in key order.
    pub(super) fn finish_maps(
        &mut self,
        variable: usize,
        place: u16,
        groups: &[GroupId],
        out: &mut Output,
    ) -> Result<(), StateError> {
        let unknown = self.unknown_entries(variable, place, groups)?;
        let mut unknown = unknown.into_iter();
        let (id, schema_id) = (self.variable_id(variable), self.schema_id(variable));
        let expiry_ms = self.write_expiry(variable);
        for &group in groups {
            let Some(map) = self.maps.remove(&(group, place)) else { continue };
            let key_group = self.key_group_of(group);
            let mut key = self.state_key(variable, group);
            let prefix_len = key.len();
            for (map_key, entry) in map.entries.iter() {
                let committed = match (&entry.current, entry.committed) {
                    (EntryChange::AsCommitted, _) => continue,
                    (_, Committed::Unknown) => unknown.next().unwrap_or_default(),
                    (_, known) => known,
                };
                key.truncate(prefix_len);
                key.extend_from_slice(map_key);
                match &entry.current {
                    EntryChange::AsCommitted => {}
                    EntryChange::Written(row) => {
                        let stored = StoredRow { kind: RowKind::Single, schema_id, expiry_ms, row };
                        out.state
                            .put_with(&key, row_record_len(row.len(), expiry_ms), |out| push_row_record(out, stored));
                        out.reindex(key_group, committed, expiry_ms, &key);
                        self.metrics.add_rows(id, i64::from(committed == Committed::Absent));
                    }
                    EntryChange::Removed if committed != Committed::Absent => {
                        out.state.delete(&key);
                        out.reindex(key_group, committed, None, &key);
                        self.metrics.add_rows(id, -1);
                    }
                    EntryChange::Removed => {}
                }
            }
        }
        Ok(())
    }

    /// What is committed of the entries that were written blindly, in order.
    fn unknown_entries(&self, variable: usize, place: u16, groups: &[GroupId]) -> Result<Vec<Committed>, StateError> {
        let mut keys = Vec::new();
        for &group in groups {
            let Some(map) = self.maps.get(&(group, place)) else { continue };
            let state_key = self.state_key(variable, group);
            keys.extend(
                map.entries
                    .iter()
                    .filter(|(_, entry)| {
                        entry.committed == Committed::Unknown && !matches!(entry.current, EntryChange::AsCommitted)
                    })
                    .map(|(map_key, _)| [state_key.as_slice(), map_key].concat()),
            );
        }
        let mut found = Vec::with_capacity(keys.len());
        read_sorted(&*self.store, &keys, |_, record| {
            found.push(match record {
                None => Committed::Absent,
                Some(record) => Committed::Present(single_row(record)?.expiry_ms),
            });
            Ok(())
        })?;
        Ok(found)
    }
}
