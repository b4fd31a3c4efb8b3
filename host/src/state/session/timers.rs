//! Timers of a session, and the phase in which those that are due come out.
//!
//! The timers of a key are one sorted record, read whole; the time index only finds the keys that have one due. What is
//! due is fixed when the phase opens: for a key that is touched afterwards the timers as they were are set aside first.
//! So key groups can be opened one after another, and only one group's due keys are held at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};

use super::super::codec::{parse_timers_record, push_timers_record};
use super::super::error::StateError;
use super::super::keys::{TIMERS_VARIABLE, parse_timer_key, push_state_key, push_timer_key, time_range};
use super::super::store::{Family, scan_checked};
use super::finish::Output;
use super::{GroupId, Session, read_groups};
use crate::record::{GroupingKey, key_group};

/// What a timer counts as written: its place in the record of its key, and its entry in the index.
const TIMER_BYTES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Timers {
    /// By group; shorter than the number of groups where no timer was used.
    of_groups: Vec<Option<Box<KeyTimers>>>,
    phase: Option<Phase>,
    /// The keys whose timers come out, by key group, see [`Session::fire_only`].
    only: Option<BTreeMap<u16, Vec<GroupId>>>,
    /// Timers to take out when the phase opens, see [`Session::skip_timer`].
    skipped: Vec<(GroupId, i64)>,
}

/// The timers of one key.
#[derive(Debug, Default)]
struct KeyTimers {
    committed: Vec<i64>,
    /// None while nothing has changed.
    changed: Option<Vec<i64>>,
    /// Set once an operation or the phase touched the key while the phase is open.
    log: Option<Box<PhaseLog>>,
}

/// What happened to a key's timers in the phase.
#[derive(Debug, Default)]
struct PhaseLog {
    /// The timers when the phase opened.
    at_open: Vec<i64>,
    /// Timers deleted since the phase opened, or since the key came out; registering again does not undo that.
    deleted: BTreeSet<i64>,
    /// Timers whose last operation since the last delivery was a registration.
    registered: BTreeSet<i64>,
}

/// The timer phase.
#[derive(Debug)]
struct Phase {
    threshold_ms: i64,
    /// The next key group to open.
    next: u16,
    /// Keys with changed timers when the phase opened, in order of hash and row; those before `next` are taken out.
    changed: std::vec::IntoIter<GroupId>,
    /// Due keys of the open key group, in their order.
    queue: std::vec::IntoIter<GroupId>,
}

impl KeyTimers {
    fn current(&self) -> &[i64] {
        self.changed.as_deref().unwrap_or(&self.committed)
    }

    fn change(&mut self) -> &mut Vec<i64> {
        self.changed.get_or_insert_with(|| self.committed.clone())
    }

    /// Puts a timer in; false if it is there.
    fn insert(&mut self, expiry_ms: i64) -> bool {
        let found = self.current().binary_search(&expiry_ms);
        if let Err(place) = found {
            self.change().insert(place, expiry_ms);
        }
        found.is_err()
    }

    /// Takes a timer out; false if it is not there.
    fn remove(&mut self, expiry_ms: i64) -> bool {
        let found = self.current().binary_search(&expiry_ms);
        if let Ok(place) = found {
            self.change().remove(place);
        }
        found.is_ok()
    }

    /// Where operations of the phase are noted; the first call sets the timers aside as they are.
    fn log(&mut self) -> &mut PhaseLog {
        if self.log.is_none() {
            self.log = Some(Box::new(PhaseLog { at_open: self.current().to_vec(), ..PhaseLog::default() }));
        }
        self.log.get_or_insert_default()
    }

    /// The timers when the phase opened.
    fn at_open(&self) -> &[i64] {
        self.log.as_ref().map_or_else(|| self.current(), |log| &log.at_open)
    }

    /// What is due of the key, into `out`.
    fn due(&self, threshold_ms: i64, out: &mut Vec<i64>) {
        out.clear();
        let deleted = self.log.as_ref().map(|log| &log.deleted).filter(|deleted| !deleted.is_empty());
        let due = self.at_open().iter().copied().take_while(|expiry_ms| *expiry_ms <= threshold_ms);
        out.extend(due.filter(|expiry_ms| deleted.is_none_or(|deleted| !deleted.contains(expiry_ms))));
    }
}

impl Timers {
    fn get(&self, group: GroupId) -> Option<&KeyTimers> {
        self.of_groups.get(group as usize)?.as_deref()
    }

    fn get_mut(&mut self, group: GroupId) -> Option<&mut KeyTimers> {
        self.of_groups.get_mut(group as usize)?.as_deref_mut()
    }

    fn loaded(&mut self, group: GroupId, record: Option<&[u8]>) -> Result<(), StateError> {
        let place = group as usize;
        if self.of_groups.len() <= place {
            self.of_groups.resize_with(place + 1, || None);
        }
        let mut timers = KeyTimers::default();
        if let Some(record) = record {
            parse_timers_record(record, &mut timers.committed)?;
        }
        if let Some(slot) = self.of_groups.get_mut(place) {
            *slot = Some(Box::new(timers));
        }
        Ok(())
    }

    fn changed(&self) -> Vec<GroupId> {
        let groups = (0..).zip(&self.of_groups);
        groups
            .filter(|(_, timers)| timers.as_ref().is_some_and(|timers| timers.changed.is_some()))
            .map(|(group, _)| group)
            .collect()
    }
}

impl Session {
    /// Reads the timers of the groups ahead, in sorted multi-gets.
    ///
    /// # Errors
    /// The disk, or damage.
    pub fn prefetch_timers(&mut self, groups: &[GroupId]) -> Result<(), StateError> {
        let mut unread: Vec<GroupId> =
            groups.iter().copied().filter(|group| self.timers.get(*group).is_none()).collect();
        self.groups.sort_by_state_key(&mut unread);
        unread.dedup();
        let Self { store, timers, groups, scope, .. } = self;
        read_groups(&**store, groups, (scope.step, TIMERS_VARIABLE), &unread, |group, record| {
            timers.loaded(group, record)
        })
    }

    /// The group's timers as applied so far, ascending.
    ///
    /// # Errors
    /// The disk, or damage.
    pub fn timers(&mut self, group: GroupId) -> Result<&[i64], StateError> {
        self.load_timers(group)?;
        Ok(self.timers.get(group).map_or(&[], KeyTimers::current))
    }

    /// Registers a timer; one that exists stays as it is. Any expiry is legal, also in the past.
    ///
    /// # Errors
    /// `STATE_LIMIT_EXCEEDED`; the disk, or damage.
    pub fn register_timer(&mut self, group: GroupId, expiry_ms: i64) -> Result<(), StateError> {
        self.load_timers(group)?;
        let open = self.timers.phase.is_some();
        self.metrics.timers_registered += 1;
        let Some(timers) = self.timers.get_mut(group) else { return Ok(()) };
        if open {
            timers.log().registered.insert(expiry_ms);
        }
        if timers.insert(expiry_ms) {
            self.write_bytes += TIMER_BYTES;
        }
        let timers_max = self.scope.limits.timers_per_key_max;
        if timers.current().len() > timers_max {
            return Err(self.limit("timers_per_key_max", "timers of one key", timers_max as u64, None, Some(group)));
        }
        let bytes_max = self.scope.limits.write_bytes_max;
        if self.write_bytes > bytes_max {
            return Err(self.limit("write_bytes_max", "bytes written", bytes_max as u64, None, Some(group)));
        }
        Ok(())
    }

    /// Deletes a timer; one that is not there counts as deleted too.
    ///
    /// # Errors
    /// The disk, or damage.
    pub fn delete_timer(&mut self, group: GroupId, expiry_ms: i64) -> Result<(), StateError> {
        self.load_timers(group)?;
        let open = self.timers.phase.is_some();
        self.metrics.timers_deleted += 1;
        let Some(timers) = self.timers.get_mut(group) else { return Ok(()) };
        if open {
            let log = timers.log();
            log.deleted.insert(expiry_ms);
            log.registered.remove(&expiry_ms);
        }
        timers.remove(expiry_ms);
        Ok(())
    }

    /// Leaves the due timers of all other keys alone. Before [`Self::open_due`].
    pub fn fire_only<'k>(&mut self, keys: impl IntoIterator<Item = GroupingKey<'k>>) {
        let mut only = BTreeMap::<_, Vec<_>>::new();
        for key in keys {
            let group = self.enter(key);
            only.entry(self.key_group_of(group)).or_default().push(group);
        }
        self.timers.only = Some(only);
    }

    /// Takes a timer out when the phase opens, whether it is committed or of this batch: as if it had been deleted last of
    /// all that happened before.
    pub fn skip_timer(&mut self, key: GroupingKey<'_>, expiry_ms: i64) {
        let group = self.enter(key);
        self.timers.skipped.push((group, expiry_ms));
    }

    /// Opens the timer phase, after all input: due is every timer that now exists with an expiry at or before the
    /// threshold.
    ///
    /// # Errors
    /// The disk, or damage.
    pub fn open_due(&mut self, threshold_ms: i64) -> Result<(), StateError> {
        for (group, expiry_ms) in std::mem::take(&mut self.timers.skipped) {
            self.delete_timer(group, expiry_ms)?;
        }
        self.timers.of_groups.iter_mut().flatten().for_each(|timers| timers.log = None);
        let mut changed = self.timers.changed();
        self.groups.sort_by_key(&mut changed);
        let next = self.scope.range.start;
        self.timers.phase =
            Some(Phase { threshold_ms, next, changed: changed.into_iter(), queue: Vec::new().into_iter() });
        Ok(())
    }

    /// The next key with due timers and these, ascending, in `out`; None at the end. Key groups come in order, within
    /// one the keys by their earliest due expiry when the phase opened, then by hash and row. Timers deleted since the
    /// phase opened are left out, and keys that have no other.
    ///
    /// # Errors
    /// The disk, or damage; `STATE_MISUSE` before [`Self::open_due`].
    pub fn next_due(&mut self, out: &mut Vec<i64>) -> Result<Option<GroupId>, StateError> {
        out.clear();
        loop {
            let Some(phase) = &mut self.timers.phase else {
                return Err(StateError::Misuse {
                    variable: "(timers)".to_owned(),
                    message: "the timer phase is not open",
                });
            };
            let threshold_ms = phase.threshold_ms;
            if let Some(group) = phase.queue.next() {
                let Some(timers) = self.timers.get_mut(group) else { continue };
                timers.due(threshold_ms, out);
                if !out.is_empty() {
                    timers.log = Some(Box::default());
                    return Ok(Some(group));
                }
                continue;
            }
            if phase.next >= self.scope.range.end {
                return Ok(None);
            }
            let key_group = phase.next;
            phase.next += 1;
            let queue = self.due_keys(key_group, threshold_ms)?;
            if let Some(phase) = &mut self.timers.phase {
                phase.queue = queue.into_iter();
            }
        }
    }

    /// Takes out of `undelivered` the timers deleted since their key came out of [`Self::next_due`]. For a key whose
    /// timers do not fit one chunk: before each further one.
    pub fn still_due(&self, group: GroupId, undelivered: &mut Vec<i64>) {
        if let Some(log) = self.timers.get(group).and_then(|timers| timers.log.as_ref()) {
            undelivered.retain(|expiry_ms| !log.deleted.contains(expiry_ms));
        }
    }

    /// Ends a chunk that brought these timers of a key: each is deleted, unless its last operation in the chunk
    /// registered it.
    pub fn delivered(&mut self, group: GroupId, expiries_ms: &[i64]) {
        self.metrics.timers_expired += expiries_ms.len() as u64;
        let Some(timers) = self.timers.get_mut(group) else { return };
        let registered = std::mem::take(&mut timers.log().registered);
        let mut deleted = 0;
        for expiry_ms in expiries_ms {
            if !registered.contains(expiry_ms) && timers.remove(*expiry_ms) {
                deleted += 1;
            }
        }
        self.metrics.timers_deleted += deleted;
    }

    fn load_timers(&mut self, group: GroupId) -> Result<(), StateError> {
        if self.timers.get(group).is_some() { Ok(()) } else { self.prefetch_timers(&[group]) }
    }

    /// The keys of a key group that have timers due, in their order.
    fn due_keys(&mut self, key_group: u16, threshold_ms: i64) -> Result<Vec<GroupId>, StateError> {
        let mut groups = match &self.timers.only {
            Some(only) => only.get(&key_group).cloned().unwrap_or_default(),
            None => self.keys_with_timers(key_group, threshold_ms)?,
        };
        self.prefetch_timers(&groups)?;
        groups.sort_unstable();
        groups.dedup();
        self.groups.sort_by_key(&mut groups);
        let mut due: Vec<(i64, GroupId)> = groups
            .into_iter()
            .filter_map(|group| {
                let earliest_ms = *self.timers.get(group)?.at_open().first()?;
                (earliest_ms <= threshold_ms).then_some((earliest_ms, group))
            })
            .collect();
        // Stable: equal expiries stay in the order of the keys.
        due.sort_by_key(|(earliest_ms, _)| *earliest_ms);
        Ok(due.into_iter().map(|(_, group)| group).collect())
    }

    /// Keys with a committed timer due, and those whose timers the batch had changed when the phase opened.
    fn keys_with_timers(&mut self, key_group: u16, threshold_ms: i64) -> Result<Vec<GroupId>, StateError> {
        let mut groups = self.indexed_keys(key_group, threshold_ms)?;
        groups.extend(self.changed_keys(key_group));
        Ok(groups)
    }

    /// Keys with a committed timer due.
    fn indexed_keys(&mut self, key_group: u16, threshold_ms: i64) -> Result<Vec<GroupId>, StateError> {
        let Some(from_ms) = self.scope.due.timers_due(key_group, threshold_ms) else {
            return Ok(Vec::new());
        };
        let (from, to) = time_range(self.scope.step, key_group, from_ms, threshold_ms);
        let mut rows = Vec::new();
        let mut found: Vec<(u64, Range<usize>)> = Vec::new();
        scan_checked(&*self.store, Family::Timers, &from, &to, &mut |key, _| {
            let (_, key) = parse_timer_key(key)?;
            let begin = rows.len();
            rows.extend_from_slice(key.row);
            found.push((key.hash, begin..rows.len()));
            Ok(ControlFlow::Continue(()))
        })?;
        let row = |place: &Range<usize>| rows.get(place.clone()).unwrap_or_default();
        found.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| row(&a.1).cmp(row(&b.1))));
        found.dedup_by(|a, b| a.0 == b.0 && row(&a.1) == row(&b.1));
        Ok(found.into_iter().map(|(hash, place)| self.enter(GroupingKey { hash, row: row(&place) })).collect())
    }

    /// Keys of the key group, and of those before, whose timers the batch had changed when the phase opened.
    fn changed_keys(&mut self, last: u16) -> Vec<GroupId> {
        let mut keys = Vec::new();
        let Some(phase) = &mut self.timers.phase else { return keys };
        while let Some(&group) = phase.changed.as_slice().first() {
            let of = key_group(self.groups.key(group).hash, self.scope.groups);
            if of > last {
                break;
            }
            phase.changed.next();
            if of == last {
                keys.push(group);
            }
        }
        keys
    }

    /// Emits what the batch did to timers; `groups` are all groups in key order.
    pub(super) fn finish_timers(&mut self, groups: &[GroupId], out: &mut Output) {
        let mut state_key = Vec::new();
        let mut record = Vec::new();
        for &group in groups {
            let Some(timers) = self.timers.get(group) else { continue };
            let Some(changed) = timers.changed.as_ref().filter(|changed| **changed != timers.committed) else {
                continue;
            };
            let key = self.groups.key(group);
            let key_group = self.key_group_of(group);
            state_key.clear();
            push_state_key(&mut state_key, self.scope.step, TIMERS_VARIABLE, key);
            if changed.is_empty() {
                out.state.delete(&state_key);
            } else {
                record.clear();
                push_timers_record(&mut record, changed);
                out.state.put(&state_key, &record);
            }
            let mut index = |expiry_ms: i64, put: bool| {
                out.scratch.clear();
                push_timer_key(&mut out.scratch, self.scope.step, key_group, expiry_ms, key);
                if put { out.timers.put(&out.scratch, &[]) } else { out.timers.delete(&out.scratch) }
            };
            only_in(&timers.committed, changed).for_each(|expiry_ms| index(expiry_ms, false));
            only_in(changed, &timers.committed).for_each(|expiry_ms| index(expiry_ms, true));
        }
    }
}

/// What is in `a` and not in `b`, both sorted.
fn only_in<'a>(a: &'a [i64], b: &'a [i64]) -> impl Iterator<Item = i64> + 'a {
    a.iter().copied().filter(|number| b.binary_search(number).is_err())
}
