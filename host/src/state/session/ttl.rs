//! The sweep at the end of a batch: removes what has expired and was not written anew.
//!
//! Every index entry is held against the record that it names before anything is removed. What expired is hidden from
//! reads all the same, so a sweep may stop at its limit and leave the rest to the next.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use super::super::codec::{RowKind, parse_list_header, parse_row_record};
use super::super::error::StateError;
use super::super::keys::{StateKey, parse_sequence, parse_state_key, parse_ttl_key, state_key, time_range};
use super::super::store::{Family, scan_checked};
use super::lists::Base;
use super::maps::EntryChange;
use super::values::Change;
use super::{Place, Session, read_sorted};

/// An entry of the index: key of the record, expiry.
type Expired = (Vec<u8>, i64);

impl Session {
    /// Removes the values, elements and entries of this worker's key groups that have expired, also of variables that
    /// are no longer declared, but none that this batch wrote. The last operation before [`Self::finish`].
    ///
    /// # Errors
    /// The disk, or damage.
    pub fn evict_expired(&mut self) -> Result<(), StateError> {
        self.swept = true;
        let mut left = self.scope.limits.ttl_evictions_max;
        // Lists that the batch did not touch: header key and the elements that go.
        let mut lists: BTreeMap<Vec<u8>, Vec<u64>> = BTreeMap::new();
        for key_group in self.scope.range.clone() {
            let expired = self.expired(key_group, left)?;
            left -= expired.len();
            self.evict(key_group, &expired, &mut lists)?;
        }
        self.evict_from_lists(lists)
    }

    /// At most `entries_max` index entries of a key group that are over, in order of their records.
    fn expired(&self, key_group: u16, entries_max: usize) -> Result<Vec<Expired>, StateError> {
        let mut expired = Vec::new();
        let Some(from_ms) = self.scope.due.ttl_due(key_group, self.scope.now_ms).filter(|_| entries_max > 0) else {
            return Ok(expired);
        };
        let (from, to) = time_range(self.scope.step, key_group, from_ms, self.scope.now_ms);
        scan_checked(&*self.store, Family::Ttl, &from, &to, &mut |key, _| {
            let (expiry_ms, record_key) = parse_ttl_key(key)?;
            expired.push((record_key, expiry_ms));
            Ok(if expired.len() < entries_max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        expired.sort_unstable();
        Ok(expired)
    }

    fn evict(
        &mut self,
        key_group: u16,
        expired: &[Expired],
        lists: &mut BTreeMap<Vec<u8>, Vec<u64>>,
    ) -> Result<(), StateError> {
        // A record may have a stale entry beside its own: it is looked up for each.
        let keys: Vec<&[u8]> = expired.iter().map(|(key, _)| key.as_slice()).collect();
        let mut kinds: Vec<Option<RowKind>> = Vec::with_capacity(keys.len());
        read_sorted(&*self.store, &keys, |position, record| {
            let stored = record.map(parse_row_record).transpose()?;
            let expiry_ms = expired.get(position as usize).map(|(_, expiry_ms)| *expiry_ms);
            kinds.push(stored.filter(|stored| stored.expiry_ms == expiry_ms).map(|stored| stored.kind));
            Ok(())
        })?;
        for ((key, expiry_ms), kind) in expired.iter().zip(kinds) {
            let Some(kind) = kind else {
                self.out.index_delete(key_group, *expiry_ms, key);
                continue;
            };
            let record = parse_state_key(key)?;
            // What goes with its variable has been counted with it.
            if self.scope.dropped.contains(&record.variable) || self.rewritten(record, kind) {
                continue;
            }
            self.out.state.delete(key);
            self.out.index_delete(key_group, *expiry_ms, key);
            self.metrics.rows_removed += 1;
            self.metrics.ttl_values_removed += 1;
            match kind {
                RowKind::Single => self.metrics.add_rows(record.variable, -1),
                RowKind::Element => self.evict_element(record, lists)?,
            }
        }
        Ok(())
    }

    /// Whether the batch wrote over the record or deleted it, so that the commit takes care of it and its index entry.
    fn rewritten(&self, record: StateKey<'_>, kind: RowKind) -> bool {
        let Some(group) = self.groups.find(record.key) else { return false };
        let Some(variable) = self.variables.iter().position(|variable| variable.id == record.variable) else {
            return false;
        };
        match (self.places.get(variable), kind) {
            (Some(Place::Value(place)), _) => {
                matches!(
                    self.values.change(self.values.slot(group, *place)),
                    Some(Change::Written(_) | Change::Cleared)
                )
            }
            (Some(Place::Map(place)), _) => self
                .maps
                .get(&(group, *place))
                .and_then(|map| map.entries.get(record.suffix))
                .is_some_and(|entry| !matches!(entry.current, EntryChange::AsCommitted)),
            (Some(Place::List(place)), _) => {
                self.lists.get(&(group, *place)).is_some_and(|list| list.base != Base::Kept)
            }
            (None, _) => false,
        }
    }

    /// Notes that an element goes: with the batch's own changes of the list, or else in `lists`.
    fn evict_element(
        &mut self,
        record: StateKey<'_>,
        lists: &mut BTreeMap<Vec<u8>, Vec<u64>>,
    ) -> Result<(), StateError> {
        let sequence = parse_sequence(record.suffix)?;
        let place = self
            .variables
            .iter()
            .position(|variable| variable.id == record.variable)
            .and_then(|variable| self.places.get(variable));
        if let (Some(Place::List(place)), Some(group)) = (place, self.groups.find(record.key))
            && let Some(list) = self.lists.get_mut(&(group, *place))
        {
            list.evicted.push(sequence);
            return Ok(());
        }
        let header_key = state_key(self.scope.step, record.variable, record.key, &[]);
        lists.entry(header_key).or_default().push(sequence);
        Ok(())
    }

    fn evict_from_lists(&mut self, lists: BTreeMap<Vec<u8>, Vec<u64>>) -> Result<(), StateError> {
        let (keys, mut evicted): (Vec<Vec<u8>>, Vec<Vec<u64>>) = lists.into_iter().unzip();
        let mut headers = Vec::with_capacity(keys.len());
        read_sorted(&*self.store, &keys, |_, record| {
            headers.push(record.map(parse_list_header).transpose()?);
            Ok(())
        })?;
        for ((key, sequences), header) in keys.iter().zip(&mut evicted).zip(headers) {
            let Some(header) = header else {
                return Err(StateError::corrupt("family State", "a list has elements but no header"));
            };
            sequences.sort_unstable();
            match header.without(sequences) {
                Some(header) => self.out.put_header(key, header),
                None => {
                    self.out.state.delete(key);
                    self.metrics.add_rows(parse_state_key(key)?.variable, -1);
                }
            }
        }
        Ok(())
    }
}
