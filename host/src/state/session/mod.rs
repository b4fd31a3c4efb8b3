//! One worker's view of one batch: committed state and, over it, the batch's own writes. Nothing reaches the store
//! before the batch is committed: [`Session::finish`] gives the changes.
//!
//! Made for many keys of few bytes: groups, rows and slots stand in flat vectors and arenas; a key costs no allocation
//! of its own until it has a list, a map or timers. The store is asked for sorted keys, many at a time.
//!
//! It knows bytes only: which rows are valid, and whether a processor may do what it does now, is decided above it.

mod cursor;
mod finish;
mod groups;
mod lists;
mod maps;
mod timers;
mod ttl;
mod values;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

pub use cursor::{Cursor, ListCursor, MapCursor};
pub use finish::Finished;
pub use groups::GroupId;
pub use maps::MapPart;

use super::due::DueIndex;
use super::error::StateError;
use super::keys::{push_state_key, state_key};
use super::limits::StateLimits;
use super::store::{Family, Reader, Store};
use super::variable::{Variable, VariableKind};
use crate::record::{GroupingKey, key_group};
use finish::Output;
use groups::Groups;
use lists::ListState;
use maps::MapState;
use timers::Timers;
use values::{Lookup, Values};

/// Keys per multi-get. Larger ones gain nothing, and their rows would push each other out of the cache.
const MULTI_GET_KEYS: usize = 128;

/// What a session covers.
#[derive(Debug, Clone)]
pub struct Scope {
    /// The step of the query.
    pub step: u8,
    /// Number of key groups of the query.
    pub groups: u16,
    /// The worker's key groups.
    pub range: Range<u16>,
    /// The batch's processing time, by which TTL goes.
    pub now_ms: i64,
    /// Bounds on what the batch may write.
    pub limits: StateLimits,
    /// Where timers and expired values may be due.
    pub due: Arc<DueIndex>,
    /// Ids of variables that are dropped with this batch or were with an earlier one.
    pub dropped: Arc<[u16]>,
}

/// What happened in a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionMetrics {
    /// Values, list elements and map entries written.
    pub rows_updated: u64,
    /// Values, list elements and map entries removed, by the processor or by TTL.
    pub rows_removed: u64,
    /// Timers registered, also those that existed.
    pub timers_registered: u64,
    /// Timers deleted, also those that did not exist, and those that fired.
    pub timers_deleted: u64,
    /// Timers that fired.
    pub timers_expired: u64,
    /// Values, list elements and map entries removed by TTL.
    pub ttl_values_removed: u64,
    /// By id of the variable: change of the number of rows, where a list is one row and each entry of a map is one.
    pub rows: BTreeMap<u16, i64>,
}

impl SessionMetrics {
    /// Adds what happened in another worker's session.
    pub fn add(&mut self, other: &Self) {
        self.rows_updated += other.rows_updated;
        self.rows_removed += other.rows_removed;
        self.timers_registered += other.timers_registered;
        self.timers_deleted += other.timers_deleted;
        self.timers_expired += other.timers_expired;
        self.ttl_values_removed += other.ttl_values_removed;
        for (variable, change) in &other.rows {
            *self.rows.entry(*variable).or_default() += change;
        }
    }

    /// Change of the number of rows over all variables.
    #[must_use]
    pub fn rows_total_change(&self) -> i64 {
        self.rows.values().sum()
    }
}

/// One worker's view of one batch.
pub struct Session {
    store: Arc<dyn Store>,
    variables: Arc<[Variable]>,
    /// By variable: where its state is kept.
    places: Vec<Place>,
    scope: Scope,
    groups: Groups,
    values: Values,
    lists: HashMap<(GroupId, u16), ListState>,
    maps: HashMap<(GroupId, u16), MapState>,
    timers: Timers,
    /// The map entry read last.
    entry_row: Vec<u8>,
    /// Map entries in overlays only because they were read.
    reads_remembered: usize,
    /// Bytes of keys and rows written and still held; a timer counts also when it is deleted again.
    write_bytes: usize,
    /// Whether the TTL sweep has run; nothing is written afterwards.
    swept: bool,
    out: Output,
    metrics: SessionMetrics,
}

/// Where the state of a variable is kept, numbered within its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Value(usize),
    List(u16),
    Map(u16),
}

impl Session {
    /// A view of the store for one worker and batch.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, variables: Arc<[Variable]>, scope: Scope) -> Self {
        let (mut values, mut others) = (0, 0);
        let next = |count: &mut u16| std::mem::replace(count, *count + 1);
        let places = variables
            .iter()
            .map(|variable| match variable.spec.kind {
                VariableKind::Value => Place::Value(next(&mut values).into()),
                VariableKind::List => Place::List(next(&mut others)),
                VariableKind::Map => Place::Map(next(&mut others)),
            })
            .collect();
        Self {
            store,
            variables,
            places,
            scope,
            groups: Groups::default(),
            values: Values::new(values.into()),
            lists: HashMap::new(),
            maps: HashMap::new(),
            timers: Timers::default(),
            entry_row: Vec::new(),
            reads_remembered: 0,
            write_bytes: 0,
            swept: false,
            out: Output::default(),
            metrics: SessionMetrics::default(),
        }
    }

    /// The handle of a grouping key; always the same for the same key. Cheapest in ascending order of (hash, row).
    #[inline]
    pub fn enter(&mut self, key: GroupingKey<'_>) -> GroupId {
        let (group, new) = self.groups.enter(key);
        if new {
            self.values.grow(self.groups.len());
        }
        group
    }

    /// The grouping key of a handle.
    #[inline]
    #[must_use]
    pub fn key(&self, group: GroupId) -> GroupingKey<'_> {
        self.groups.key(group)
    }

    /// What the session covers.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The declared variables, in order.
    #[must_use]
    pub fn variables(&self) -> &Arc<[Variable]> {
        &self.variables
    }

    /// Reads value states of the groups ahead, in sorted multi-gets. Variables of other kinds are passed over.
    ///
    /// # Errors
    /// The disk, or damage.
    pub fn prefetch(&mut self, variables: &[u16], groups: &[GroupId]) -> Result<(), StateError> {
        self.values.recycle();
        for &variable in variables {
            let variable = usize::from(variable);
            let Some(Place::Value(place)) = self.places.get(variable).copied() else { continue };
            self.load_values(variable, place, groups)?;
        }
        Ok(())
    }

    /// The row of a value, unless there is none or it has expired.
    ///
    /// # Errors
    /// The disk, or damage; `STATE_MISUSE` if the variable is no value.
    #[inline]
    pub fn value(&mut self, variable: usize, group: GroupId) -> Result<Option<&[u8]>, StateError> {
        let place = self.value_place(variable)?;
        let slot = self.values.slot(group, place);
        let mut lookup = self.values.lookup(slot, self.scope.now_ms);
        if matches!(lookup, Lookup::Unread) {
            self.values.recycle();
            self.load_values(variable, place, &[group])?;
            lookup = self.values.lookup(slot, self.scope.now_ms);
        }
        Ok(matches!(lookup, Lookup::Row).then(|| self.values.row(slot)))
    }

    /// Writes a value.
    ///
    /// # Errors
    /// `STATE_LIMIT_EXCEEDED`; `STATE_MISUSE` if the variable is no value.
    #[inline]
    pub fn put_value(&mut self, variable: usize, group: GroupId, row: &[u8]) -> Result<(), StateError> {
        let place = self.value_place(variable)?;
        let slot = self.values.slot(group, place);
        self.write_bytes += self.values.put(slot, row);
        self.metrics.rows_updated += 1;
        self.check_room(variable, group)
    }

    /// Whether the group has a value, an element or an entry that has not expired.
    ///
    /// # Errors
    /// The disk, or damage; `STATE_MISUSE` for a variable that does not exist.
    pub fn exists(&mut self, variable: usize, group: GroupId) -> Result<bool, StateError> {
        match self.place(variable)? {
            Place::Value(_) => self.value(variable, group).map(|row| row.is_some()),
            Place::List(place) => self.list_exists(variable, place, group),
            Place::Map(place) => self.map_exists(variable, place, group),
        }
    }

    /// Removes a group's value, list or map.
    ///
    /// # Errors
    /// The disk, or damage; `STATE_LIMIT_EXCEEDED`; `STATE_MISUSE` for a variable that does not exist.
    pub fn clear(&mut self, variable: usize, group: GroupId) -> Result<(), StateError> {
        match self.place(variable)? {
            Place::Value(place) => {
                self.values.clear(self.values.slot(group, place));
                self.metrics.rows_removed += 1;
            }
            Place::List(place) => self.list_clear(place, group),
            Place::Map(place) => self.map_clear(variable, place, group)?,
        }
        self.check_room(variable, group)
    }

    /// Reads those slots of a value variable that were not read, or whose row was forgotten.
    fn load_values(&mut self, variable: usize, place: usize, groups: &[GroupId]) -> Result<(), StateError> {
        let now_ms = self.scope.now_ms;
        let unread =
            |group: &GroupId| matches!(self.values.lookup(self.values.slot(*group, place), now_ms), Lookup::Unread);
        let mut unread: Vec<GroupId> = groups.iter().copied().filter(unread).collect();
        self.groups.sort_by_state_key(&mut unread);
        unread.dedup();
        self.load_slots(variable, place, &unread)
    }

    /// Reads slots of a value variable; `sorted` is in the order of state keys.
    fn load_slots(&mut self, variable: usize, place: usize, sorted: &[GroupId]) -> Result<(), StateError> {
        let Self { store, values, groups, scope, variables, .. } = self;
        let Some(variable) = variables.get(variable) else { return Ok(()) };
        read_groups(&**store, groups, (scope.step, variable.id), sorted, |group, record| {
            values.loaded(values.slot(group, place), record, variable)
        })
    }

    fn state_key(&self, variable: usize, group: GroupId) -> Vec<u8> {
        state_key(self.scope.step, self.variable_id(variable), self.groups.key(group), &[])
    }

    fn key_group_of(&self, group: GroupId) -> u16 {
        key_group(self.groups.key(group).hash, self.scope.groups)
    }

    /// Expiry of what is written now.
    fn write_expiry(&self, variable: usize) -> Option<i64> {
        let ttl_ms = self.variables.get(variable)?.spec.ttl_ms?;
        Some(self.scope.now_ms.saturating_add(i64::try_from(ttl_ms).unwrap_or(i64::MAX)))
    }

    /// Id of a variable; 0, which no variable has, for one that does not exist.
    fn variable_id(&self, variable: usize) -> u16 {
        self.variables.get(variable).map_or(0, |variable| variable.id)
    }

    fn schema_id(&self, variable: usize) -> u16 {
        self.variables.get(variable).map_or(0, |variable| variable.schema_id)
    }

    #[inline]
    fn place(&self, variable: usize) -> Result<Place, StateError> {
        self.places.get(variable).copied().ok_or_else(|| self.misuse(variable, "there is no such variable"))
    }

    #[inline]
    fn value_place(&self, variable: usize) -> Result<usize, StateError> {
        match self.place(variable)? {
            Place::Value(place) => Ok(place),
            _ => Err(self.misuse(variable, "it is no value state")),
        }
    }

    fn list_place(&self, variable: usize) -> Result<u16, StateError> {
        match self.place(variable)? {
            Place::List(place) => Ok(place),
            _ => Err(self.misuse(variable, "it is no list state")),
        }
    }

    fn map_place(&self, variable: usize) -> Result<u16, StateError> {
        match self.place(variable)? {
            Place::Map(place) => Ok(place),
            _ => Err(self.misuse(variable, "it is no map state")),
        }
    }

    /// Checks, after a write, that the batch may hold what it holds.
    #[inline]
    fn check_room(&self, variable: usize, group: GroupId) -> Result<(), StateError> {
        if self.swept {
            return Err(self.misuse(variable, "the session has swept expired values and takes no more writes"));
        }
        if self.write_bytes > self.scope.limits.write_bytes_max {
            return Err(self.too_many_bytes(variable, group));
        }
        Ok(())
    }

    #[cold]
    fn too_many_bytes(&self, variable: usize, group: GroupId) -> StateError {
        let limit = self.scope.limits.write_bytes_max as u64;
        self.limit("write_bytes_max", "bytes written", limit, Some(variable), Some(group))
    }

    #[cold]
    fn limit(
        &self,
        name: &'static str,
        what: &'static str,
        limit: u64,
        variable: Option<usize>,
        group: Option<GroupId>,
    ) -> StateError {
        let variable =
            variable.and_then(|variable| self.variables.get(variable)).map(|variable| variable.spec.name.clone());
        let key = group.map(|group| self.groups.key(group).row.to_vec());
        StateError::Limit { name, what, limit, variable, key }
    }

    #[cold]
    fn misuse(&self, variable: usize, message: &'static str) -> StateError {
        let name = self.variables.get(variable).map(|variable| variable.spec.name.clone());
        StateError::Misuse { variable: name.unwrap_or_else(|| format!("number {variable}")), message }
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("scope", &self.scope)
            .field("groups", &self.groups.len())
            .finish_non_exhaustive()
    }
}

impl SessionMetrics {
    fn add_rows(&mut self, variable: u16, rows: i64) {
        if rows != 0 {
            *self.rows.entry(variable).or_default() += rows;
        }
    }
}

/// Reads the record without suffix of a step's variable for each group; they are in the order of state keys.
fn read_groups(
    reader: &(impl Reader + ?Sized),
    groups: &Groups,
    (step, variable): (u8, u16),
    sorted: &[GroupId],
    mut visit: impl FnMut(u32, Option<&[u8]>) -> Result<(), StateError>,
) -> Result<(), StateError> {
    let mut bytes = Vec::new();
    let mut ends = Vec::new();
    for chunk in sorted.chunks(MULTI_GET_KEYS) {
        bytes.clear();
        ends.clear();
        for group in chunk {
            push_state_key(&mut bytes, step, variable, groups.key(*group));
            ends.push(bytes.len());
        }
        let mut begin = 0;
        let keys: Vec<&[u8]> =
            ends.iter().map(|end| bytes.get(std::mem::replace(&mut begin, *end)..*end).unwrap_or_default()).collect();
        read_chunk(reader, &keys, |position, record| match chunk.get(position as usize) {
            Some(group) => visit(*group, record),
            None => Ok(()),
        })?;
    }
    Ok(())
}

/// Reads the records at sorted keys, [`MULTI_GET_KEYS`] at a time, until `visit` fails.
fn read_sorted<K: AsRef<[u8]>>(
    reader: &(impl Reader + ?Sized),
    sorted_keys: &[K],
    mut visit: impl FnMut(u32, Option<&[u8]>) -> Result<(), StateError>,
) -> Result<(), StateError> {
    let mut done = 0;
    for chunk in sorted_keys.chunks(MULTI_GET_KEYS) {
        let keys: Vec<&[u8]> = chunk.iter().map(AsRef::as_ref).collect();
        read_chunk(reader, &keys, |position, record| visit(done + position, record))?;
        done += chunk.len() as u32;
    }
    Ok(())
}

fn read_chunk(
    reader: &(impl Reader + ?Sized),
    keys: &[&[u8]],
    mut visit: impl FnMut(u32, Option<&[u8]>) -> Result<(), StateError>,
) -> Result<(), StateError> {
    let mut result = Ok(());
    reader.multi_get(Family::State, keys, &mut |position, record| {
        if result.is_ok() {
            result = visit(position as u32, record);
        }
    })?;
    result
}
