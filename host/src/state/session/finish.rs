//! The end of a session: everything that it wrote, as sorted changes.

use super::super::changes::{Changes, FamilyChanges};
use super::super::codec::{ListHeader, RowKind, StoredRow, push_list_header, push_row_record, row_record_len};
use super::super::error::StateError;
use super::super::keys::{push_state_key, push_ttl_key};
use super::super::store::Family;
use super::values::{Change, Committed};
use super::{GroupId, Place, Session, SessionMetrics};

/// What a session leaves behind.
#[derive(Debug)]
pub struct Finished {
    /// What to commit, sorted by family and key.
    pub changes: Changes,
    /// What happened.
    pub metrics: SessionMetrics,
}

/// Changes under way.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) state: FamilyChanges,
    pub(super) ttl: FamilyChanges,
    pub(super) timers: FamilyChanges,
    pub(super) scratch: Vec<u8>,
}

impl Default for Output {
    fn default() -> Self {
        Self {
            state: FamilyChanges::new(Family::State),
            ttl: FamilyChanges::new(Family::Ttl),
            timers: FamilyChanges::new(Family::Timers),
            scratch: Vec::new(),
        }
    }
}

impl Session {
    /// Ends the session: what it wrote, and what happened. The same operations give the same bytes.
    ///
    /// # Errors
    /// The disk, or damage; `STATE_LIMIT_EXCEEDED` where a list has become too long.
    pub fn finish(mut self) -> Result<Finished, StateError> {
        let mut out = std::mem::take(&mut self.out);
        let groups = self.groups.in_state_key_order();
        self.finish_timers(&groups, &mut out);
        let mut by_id: Vec<usize> = (0..self.variables.len()).collect();
        by_id.sort_by_key(|variable| self.variable_id(*variable));
        for variable in by_id {
            match self.places.get(variable) {
                Some(&Place::Value(place)) => self.finish_values(variable, place, &groups, &mut out)?,
                Some(&Place::List(place)) => {
                    let touched = touched(&groups, |group| self.lists.contains_key(&(group, place)));
                    self.finish_lists(variable, place, &touched, &mut out)?;
                }
                Some(&Place::Map(place)) => {
                    let touched = touched(&groups, |group| self.maps.contains_key(&(group, place)));
                    self.finish_maps(variable, place, &touched, &mut out)?;
                }
                None => {}
            }
        }
        let mut changes = Changes::default();
        for family in [out.state, out.ttl, out.timers] {
            family.append_to(&mut changes);
        }
        Ok(Finished { changes, metrics: self.metrics })
    }

    fn finish_values(
        &mut self,
        variable: usize,
        place: usize,
        groups: &[GroupId],
        out: &mut Output,
    ) -> Result<(), StateError> {
        self.load_blind_writes(variable, place, groups)?;
        let (id, schema_id) = (self.variable_id(variable), self.schema_id(variable));
        let expiry_ms = self.write_expiry(variable);
        let mut key = Vec::new();
        let mut rows_delta = 0;
        for &group in groups {
            let slot = self.values.slot(group, place);
            let Some(change) = self.values.change(slot) else { continue };
            let committed = self.values.committed(slot);
            key.clear();
            push_state_key(&mut key, self.scope.step, id, self.groups.key(group));
            match change {
                Change::Written(row) => {
                    let stored = StoredRow { kind: RowKind::Single, schema_id, expiry_ms, row };
                    out.state.put_with(&key, row_record_len(row.len(), expiry_ms), |out| push_row_record(out, stored));
                    rows_delta += i64::from(committed == Committed::Absent);
                }
                Change::Cleared if committed == Committed::Absent => continue,
                Change::Cleared => {
                    out.state.delete(&key);
                    rows_delta -= 1;
                }
            }
            let expiry_ms = expiry_ms.filter(|_| matches!(change, Change::Written(_)));
            if expiry_ms.is_some() || committed.expiry_ms().is_some() {
                out.reindex(self.key_group_of(group), committed, expiry_ms, &key);
            }
        }
        self.metrics.add_rows(id, rows_delta);
        Ok(())
    }

    /// Reads the slots that were written without a read before.
    fn load_blind_writes(&mut self, variable: usize, place: usize, groups: &[GroupId]) -> Result<(), StateError> {
        let blind: Vec<GroupId> = touched(groups, |group| {
            let slot = self.values.slot(group, place);
            self.values.committed(slot) == Committed::Unknown && self.values.change(slot).is_some()
        });
        self.load_slots(variable, place, &blind)
    }
}

impl Output {
    pub(super) fn put_header(&mut self, key: &[u8], header: ListHeader) {
        let mut record = Vec::new();
        push_list_header(&mut record, header);
        self.state.put(key, &record);
    }

    /// Brings the TTL index from what was committed to what is now; None: nothing that expires.
    pub(super) fn reindex(&mut self, key_group: u16, committed: Committed, expiry_ms: Option<i64>, state_key: &[u8]) {
        let old_ms = committed.expiry_ms();
        if old_ms == expiry_ms {
            return;
        }
        if let Some(old_ms) = old_ms {
            self.index_delete(key_group, old_ms, state_key);
        }
        if let Some(expiry_ms) = expiry_ms {
            self.index_put(key_group, expiry_ms, state_key);
        }
    }

    pub(super) fn index_put(&mut self, key_group: u16, expiry_ms: i64, state_key: &[u8]) {
        self.scratch.clear();
        push_ttl_key(&mut self.scratch, key_group, expiry_ms, state_key);
        self.ttl.put(&self.scratch, &[]);
    }

    pub(super) fn index_delete(&mut self, key_group: u16, expiry_ms: i64, state_key: &[u8]) {
        self.scratch.clear();
        push_ttl_key(&mut self.scratch, key_group, expiry_ms, state_key);
        self.ttl.delete(&self.scratch);
    }
}

fn touched(groups: &[GroupId], touched: impl Fn(GroupId) -> bool) -> Vec<GroupId> {
    groups.iter().copied().filter(|group| touched(*group)).collect()
}
