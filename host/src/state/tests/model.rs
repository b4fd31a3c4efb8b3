//! Random batches on a session and, step by step, on a plain model of what a session shall do.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::keys::{parse_timer_key, parse_ttl_key};
use super::super::{Cursor, DueIndex, Family, GroupId, MapPart, Session, SessionMetrics, VariableKind, VariableSpec};
use super::backing::Backing;
use super::world::{GROUPS, World, rest, variable};
use crate::record::{GroupingKey, key_group};

/// Keys over the key groups; some share a hash, with rows of different lengths.
const KEYS: [(u64, &[u8]); 7] = [
    (0, b"one"),
    (5, b"two"),
    (5, b"tw"),
    (5, b"twofold"),
    (1 << 61, b"three"),
    (3 << 61, b"four"),
    (u64::MAX, b"five"),
];

fn grouping_key(key: usize) -> GroupingKey<'static> {
    GroupingKey { hash: KEYS[key].0, row: KEYS[key].1 }
}

/// Variables in order: value, list and map, each without and with TTL.
const VALUES: [usize; 2] = [0, 3];
const LISTS: [usize; 2] = [1, 4];
const MAPS: [usize; 2] = [2, 5];

fn variables(ttl_ms: u64) -> Vec<VariableSpec> {
    let kinds = [VariableKind::Value, VariableKind::List, VariableKind::Map];
    let ttls = [None, None, None, Some(ttl_ms), Some(ttl_ms), Some(ttl_ms)];
    kinds
        .into_iter()
        .chain(kinds)
        .zip(ttls)
        .zip(["v", "l", "m", "vt", "lt", "mt"])
        .map(|((kind, ttl_ms), name)| variable(name, kind, ttl_ms))
        .collect()
}

#[derive(Debug, Clone)]
enum Op {
    Value(usize, usize),
    PutValue(usize, usize, u8),
    Exists(usize, usize),
    Clear(usize, usize),
    List(usize, usize, usize),
    ListPut(usize, usize, Vec<u8>),
    ListAppend(usize, usize, Vec<u8>),
    MapValue(usize, usize, u8),
    MapPut(usize, usize, u8, u8),
    MapRemove(usize, usize, u8),
    Map(usize, usize, u8, usize),
    /// Opens a read that is finished at the end of the batch.
    Keep(usize, usize),
    Register(usize, i64),
    Delete(usize, i64),
    Timers(usize),
    Prefetch(Vec<usize>),
}

#[derive(Debug, Clone)]
struct Batch {
    /// Time since the batch before.
    after_ms: i64,
    ttl_ms: u64,
    /// Bounds of the workers' ranges, between 0 and the number of key groups.
    cuts: BTreeSet<u16>,
    ops: Vec<Op>,
    /// Threshold after the batch's time, and what the handler of each timer does.
    timers: Option<(i64, Vec<Op>)>,
    /// Timers of one key that a chunk holds.
    chunk: usize,
    commit: bool,
    snapshot: bool,
    restart: bool,
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0..KEYS.len();
    let value = prop::sample::select(VALUES.to_vec());
    let list = prop::sample::select(LISTS.to_vec());
    let map = prop::sample::select(MAPS.to_vec());
    let rows = vec(any::<u8>(), 1..5);
    let map_key = 0_u8..6;
    prop_oneof![
        1 => (value.clone(), key.clone()).prop_map(|(v, k)| Op::Value(v, k)),
        1 => (value, key.clone(), any::<u8>()).prop_map(|(v, k, n)| Op::PutValue(v, k, n)),
        1 => (0..6_usize, key.clone()).prop_map(|(v, k)| Op::Exists(v, k)),
        1 => (0..6_usize, key.clone()).prop_map(|(v, k)| Op::Clear(v, k)),
        1 => (list.clone(), key.clone(), 0..60_usize).prop_map(|(v, k, bytes)| Op::List(v, k, bytes)),
        1 => (list.clone(), key.clone(), rows.clone()).prop_map(|(v, k, rows)| Op::ListPut(v, k, rows)),
        2 => (list, key.clone(), rows).prop_map(|(v, k, rows)| Op::ListAppend(v, k, rows)),
        1 => (map.clone(), key.clone(), map_key.clone()).prop_map(|(v, k, m)| Op::MapValue(v, k, m)),
        2 => (map.clone(), key.clone(), map_key.clone(), any::<u8>()).prop_map(|(v, k, m, n)| Op::MapPut(v, k, m, n)),
        1 => (map.clone(), key.clone(), map_key).prop_map(|(v, k, m)| Op::MapRemove(v, k, m)),
        1 => (map.clone(), key.clone(), 0_u8..3, 0..80_usize).prop_map(|(v, k, part, bytes)| Op::Map(v, k, part, bytes)),
        1 => (prop_oneof![map, prop::sample::select(LISTS.to_vec())], key.clone()).prop_map(|(v, k)| Op::Keep(v, k)),
        2 => (key.clone(), expiry()).prop_map(|(k, e)| Op::Register(k, e)),
        1 => (key.clone(), expiry()).prop_map(|(k, e)| Op::Delete(k, e)),
        1 => key.clone().prop_map(Op::Timers),
        1 => vec(key, 0..8).prop_map(Op::Prefetch),
    ]
}

fn timer_op() -> impl Strategy<Value = Op> {
    let key = 0..KEYS.len();
    prop_oneof![
        (key.clone(), expiry()).prop_map(|(k, e)| Op::Register(k, e)),
        (key, expiry()).prop_map(|(k, e)| Op::Delete(k, e))
    ]
}

fn expiry() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0..40_i64, 1 => prop::sample::select(vec![i64::MIN, -1, i64::MAX])]
}

fn batch() -> impl Strategy<Value = Batch> {
    let timers = prop::option::of((0..20_i64, vec(timer_op(), 0..6)));
    let flags = (prop::bool::weighted(0.85), prop::bool::weighted(0.3), prop::bool::weighted(0.15));
    let times = (0..8_i64, prop::sample::select(vec![3_u64, 10, 30]));
    let cuts = prop::collection::btree_set(1..GROUPS, 0..3);
    (times, cuts, vec(op(), 0..40), timers, 1..4_usize, flags).prop_map(
        |((after_ms, ttl_ms), cuts, ops, timers, chunk, (commit, snapshot, restart))| Batch {
            after_ms,
            ttl_ms,
            cuts,
            ops,
            timers,
            chunk,
            commit,
            snapshot,
            restart,
        },
    )
}

/// A row with its expiry; `i64::MAX` without TTL.
type Row = (Vec<u8>, i64);

/// What shall be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Model {
    values: BTreeMap<(usize, usize), Row>,
    lists: BTreeMap<(usize, usize), Vec<Row>>,
    maps: BTreeMap<(usize, usize), BTreeMap<Vec<u8>, Row>>,
    timers: BTreeMap<usize, BTreeSet<i64>>,
}

impl Model {
    fn value(&self, variable: usize, key: usize, now_ms: i64) -> Option<Vec<u8>> {
        self.values.get(&(variable, key)).filter(|row| row.1 > now_ms).map(|row| row.0.clone())
    }

    fn list(&self, variable: usize, key: usize, now_ms: i64) -> Vec<Vec<u8>> {
        self.lists
            .get(&(variable, key))
            .into_iter()
            .flatten()
            .filter(|row| row.1 > now_ms)
            .map(|row| row.0.clone())
            .collect()
    }

    fn map(&self, variable: usize, key: usize, now_ms: i64) -> Vec<(Vec<u8>, Vec<u8>)> {
        let entries = self.maps.get(&(variable, key)).into_iter().flatten();
        entries.filter(|(_, row)| row.1 > now_ms).map(|(map_key, row)| (map_key.clone(), row.0.clone())).collect()
    }

    fn exists(&self, variable: usize, key: usize, now_ms: i64) -> bool {
        self.value(variable, key, now_ms).is_some()
            || !self.list(variable, key, now_ms).is_empty()
            || !self.map(variable, key, now_ms).is_empty()
    }

    fn clear(&mut self, variable: usize, key: usize) {
        self.values.remove(&(variable, key));
        self.lists.remove(&(variable, key));
        self.maps.remove(&(variable, key));
    }

    fn evict(&mut self, now_ms: i64) {
        self.values.retain(|_, row| row.1 > now_ms);
        self.lists.values_mut().for_each(|rows| rows.retain(|row| row.1 > now_ms));
        self.maps.values_mut().for_each(|entries| entries.retain(|_, row| row.1 > now_ms));
        self.tidy();
    }

    fn tidy(&mut self) {
        self.lists.retain(|_, rows| !rows.is_empty());
        self.maps.retain(|_, entries| !entries.is_empty());
        self.timers.retain(|_, timers| !timers.is_empty());
    }

    /// Rows by variable, as numRowsTotal counts.
    fn rows(&self) -> [i64; 6] {
        let mut rows = [0; 6];
        self.values.keys().chain(self.lists.keys()).for_each(|(variable, _)| rows[*variable] += 1);
        self.maps.iter().for_each(|((variable, _), entries)| rows[*variable] += entries.len() as i64);
        rows
    }
}

/// The workers of a batch, and the model beside them.
struct Run {
    sessions: Vec<Session>,
    ranges: Vec<Range<u16>>,
    model: Model,
    now_ms: i64,
    ttl_ms: u64,
    kept: Vec<(usize, Cursor, Vec<Vec<u8>>)>,
    /// While the timer phase is open, by key: deleted since it opened or the key came out; registered last in the
    /// chunk.
    deleted: BTreeMap<usize, BTreeSet<i64>>,
    registered: BTreeMap<usize, BTreeSet<i64>>,
}

fn row(n: u8) -> Vec<u8> {
    vec![n; if n.is_multiple_of(3) { 16 } else { 8 }]
}

fn map_key(n: u8) -> Vec<u8> {
    vec![n; 8 + 8 * usize::from(n % 2)]
}

impl Run {
    fn worker(&self, key: usize) -> usize {
        let group = key_group(grouping_key(key).hash, GROUPS);
        self.ranges.iter().position(|range| range.contains(&group)).unwrap()
    }

    fn session(&mut self, key: usize) -> (&mut Session, GroupId) {
        let worker = self.worker(key);
        let session = &mut self.sessions[worker];
        let group = session.enter(grouping_key(key));
        (session, group)
    }

    fn expiry(&self, variable: usize) -> i64 {
        if variable < 3 { i64::MAX } else { self.now_ms + self.ttl_ms as i64 }
    }

    fn rows(&self, variable: usize, key: usize) -> Vec<Vec<u8>> {
        if LISTS.contains(&variable) {
            return self.model.list(variable, key, self.now_ms);
        }
        self.model.map(variable, key, self.now_ms).into_iter().flat_map(|(map_key, row)| [map_key, row]).collect()
    }

    fn perform(&mut self, op: &Op) {
        let now_ms = self.now_ms;
        match op.clone() {
            Op::Value(variable, key) => {
                let expected = self.model.value(variable, key, now_ms);
                let (session, group) = self.session(key);
                assert_eq!(session.value(variable, group).unwrap(), expected.as_deref());
            }
            Op::PutValue(variable, key, n) => {
                let (session, group) = self.session(key);
                session.put_value(variable, group, &row(n)).unwrap();
                self.model.values.insert((variable, key), (row(n), self.expiry(variable)));
            }
            Op::Exists(variable, key) => {
                let expected = self.model.exists(variable, key, now_ms);
                let (session, group) = self.session(key);
                assert_eq!(session.exists(variable, group).unwrap(), expected);
            }
            Op::Clear(variable, key) => {
                let (session, group) = self.session(key);
                session.clear(variable, group).unwrap();
                self.model.clear(variable, key);
            }
            Op::List(variable, key, bytes_max) => {
                let expected = self.model.list(variable, key, now_ms);
                let (session, group) = self.session(key);
                let mut cursor = session.list(variable, group).unwrap();
                assert_eq!(rest(session, &mut cursor, bytes_max), expected);
            }
            Op::ListPut(variable, key, rows) => {
                let rows: Vec<Vec<u8>> = rows.into_iter().map(row).collect();
                let (session, group) = self.session(key);
                session.list_put(variable, group, &mut rows.iter().map(Vec::as_slice)).unwrap();
                let expiry_ms = self.expiry(variable);
                self.model.lists.insert((variable, key), rows.into_iter().map(|row| (row, expiry_ms)).collect());
            }
            Op::ListAppend(variable, key, rows) => {
                let rows: Vec<Vec<u8>> = rows.into_iter().map(row).collect();
                let (session, group) = self.session(key);
                session.list_append(variable, group, &mut rows.iter().map(Vec::as_slice)).unwrap();
                let expiry_ms = self.expiry(variable);
                self.model
                    .lists
                    .entry((variable, key))
                    .or_default()
                    .extend(rows.into_iter().map(|row| (row, expiry_ms)));
            }
            Op::MapValue(variable, key, n) => {
                let entries: BTreeMap<_, _> = self.model.map(variable, key, now_ms).into_iter().collect();
                let expected = entries.get(&map_key(n));
                let (session, group) = self.session(key);
                assert_eq!(session.map_value(variable, group, &map_key(n)).unwrap(), expected.map(Vec::as_slice));
                assert_eq!(session.map_contains(variable, group, &map_key(n)).unwrap(), expected.is_some());
            }
            Op::MapPut(variable, key, n, m) => {
                let (session, group) = self.session(key);
                session.map_put(variable, group, &map_key(n), &row(m)).unwrap();
                let expiry_ms = self.expiry(variable);
                self.model.maps.entry((variable, key)).or_default().insert(map_key(n), (row(m), expiry_ms));
            }
            Op::MapRemove(variable, key, n) => {
                let (session, group) = self.session(key);
                session.map_remove(variable, group, &map_key(n)).unwrap();
                self.model.maps.entry((variable, key)).or_default().remove(&map_key(n));
            }
            Op::Map(variable, key, part, bytes_max) => {
                let entries = self.model.map(variable, key, now_ms).into_iter();
                let (part, expected): (_, Vec<Vec<u8>>) = match part {
                    0 => (MapPart::Keys, entries.map(|entry| entry.0).collect()),
                    1 => (MapPart::Values, entries.map(|entry| entry.1).collect()),
                    _ => (MapPart::Entries, entries.flat_map(|entry| [entry.0, entry.1]).collect()),
                };
                let (session, group) = self.session(key);
                let mut cursor = session.map(variable, group, part).unwrap();
                assert_eq!(rest(session, &mut cursor, bytes_max), expected);
            }
            Op::Keep(variable, key) => {
                let expected = self.rows(variable, key);
                let worker = self.worker(key);
                let (session, group) = self.session(key);
                let mut cursor = if LISTS.contains(&variable) {
                    session.list(variable, group).unwrap()
                } else {
                    session.map(variable, group, MapPart::Entries).unwrap()
                };
                let mut begun = Vec::new();
                session.page(&mut cursor, 0, &mut begun).unwrap();
                let rows_per_page = if LISTS.contains(&variable) { 1 } else { 2 };
                self.kept.push((worker, cursor, expected.into_iter().skip(rows_per_page).collect()));
            }
            Op::Register(key, expiry_ms) => {
                let (session, group) = self.session(key);
                session.register_timer(group, expiry_ms).unwrap();
                self.model.timers.entry(key).or_default().insert(expiry_ms);
                self.registered.entry(key).or_default().insert(expiry_ms);
            }
            Op::Delete(key, expiry_ms) => {
                let (session, group) = self.session(key);
                session.delete_timer(group, expiry_ms).unwrap();
                self.model.timers.entry(key).or_default().remove(&expiry_ms);
                self.registered.entry(key).or_default().remove(&expiry_ms);
                self.deleted.entry(key).or_default().insert(expiry_ms);
            }
            Op::Timers(key) => {
                let expected: Vec<i64> = self.model.timers.get(&key).into_iter().flatten().copied().collect();
                let (session, group) = self.session(key);
                assert_eq!(session.timers(group).unwrap(), expected);
            }
            Op::Prefetch(keys) => {
                for worker in 0..self.sessions.len() {
                    let of_worker: Vec<usize> =
                        keys.iter().copied().filter(|key| self.worker(*key) == worker).collect();
                    let session = &mut self.sessions[worker];
                    let groups: Vec<GroupId> = of_worker.iter().map(|key| session.enter(grouping_key(*key))).collect();
                    session.prefetch(&[0, 3], &groups).unwrap();
                    session.prefetch_timers(&groups).unwrap();
                }
            }
        }
    }

    fn timer_phase(&mut self, threshold_ms: i64, handler: &[Op], chunk: usize) {
        let mut due: Vec<(u16, i64, usize, Vec<i64>)> = Vec::new();
        for (key, timers) in &self.model.timers {
            let expiries: Vec<i64> =
                timers.iter().copied().take_while(|expiry_ms| *expiry_ms <= threshold_ms).collect();
            if let Some(first) = expiries.first() {
                due.push((key_group(grouping_key(*key).hash, GROUPS), *first, *key, expiries));
            }
        }
        due.sort_by(|a, b| (a.0, a.1, grouping_key(a.2)).cmp(&(b.0, b.1, grouping_key(b.2))));
        self.deleted.clear();
        self.registered.clear();
        self.sessions.iter_mut().for_each(|session| session.open_due(threshold_ms).unwrap());
        let mut ops = handler.iter().cycle();
        let mut expiries = Vec::new();
        for (_, _, key, mut expected) in due {
            expected.retain(|expiry_ms| !self.deleted.entry(key).or_default().contains(expiry_ms));
            if expected.is_empty() {
                continue;
            }
            let worker = self.worker(key);
            let group = self.sessions[worker].next_due(&mut expiries).unwrap().unwrap();
            assert_eq!(self.sessions[worker].key(group), grouping_key(key));
            assert_eq!(expiries, expected);
            self.deleted.remove(&key);
            self.registered.remove(&key);
            while !expected.is_empty() {
                let delivered: Vec<i64> = expected.drain(..chunk.min(expected.len())).collect();
                for (nth, expiry_ms) in delivered.iter().enumerate() {
                    // An SDK deletes the timer before its handler runs; a bare guest does not.
                    if nth % 2 == 0 {
                        self.perform(&Op::Delete(key, *expiry_ms));
                    }
                    ops.by_ref().take(2).for_each(|op| self.perform(op));
                }
                let registered = self.registered.remove(&key).unwrap_or_default();
                let timers = self.model.timers.entry(key).or_default();
                delivered.iter().filter(|expiry_ms| !registered.contains(expiry_ms)).for_each(|expiry_ms| {
                    timers.remove(expiry_ms);
                });
                self.sessions[worker].delivered(group, &delivered);
                let deleted = self.deleted.entry(key).or_default();
                expected.retain(|expiry_ms| !deleted.contains(expiry_ms));
                expiries.drain(
                    ..expiries
                        .iter()
                        .position(|expiry_ms| *expiry_ms > *delivered.last().unwrap())
                        .unwrap_or(expiries.len()),
                );
                self.sessions[worker].still_due(group, &mut expiries);
                assert_eq!(expiries, expected);
            }
        }
        for session in &mut self.sessions {
            assert_eq!(session.next_due(&mut expiries).unwrap(), None);
        }
    }
}

fn run(backing: Backing, batches: &[Batch]) {
    let mut world = World::new(backing, &variables(10));
    let mut model = Model::default();
    let mut rows = [0; 6];
    let mut now_ms = 0;
    for batch in batches {
        now_ms += batch.after_ms;
        world.declare(&variables(batch.ttl_ms));
        let bounds: Vec<u16> = std::iter::once(0).chain(batch.cuts.iter().copied()).chain([GROUPS]).collect();
        let ranges: Vec<Range<u16>> = bounds.windows(2).map(|bounds| bounds[0]..bounds[1]).collect();
        let mut run = Run {
            sessions: ranges.iter().map(|range| world.session_over(range.clone(), now_ms)).collect(),
            ranges,
            model: model.clone(),
            now_ms,
            ttl_ms: batch.ttl_ms,
            kept: Vec::new(),
            deleted: BTreeMap::new(),
            registered: BTreeMap::new(),
        };
        batch.ops.iter().for_each(|op| run.perform(op));
        if let Some((threshold_ms, handler)) = &batch.timers {
            run.timer_phase(*threshold_ms, handler, batch.chunk);
        }
        for (worker, mut cursor, expected) in std::mem::take(&mut run.kept) {
            assert_eq!(rest(&run.sessions[worker], &mut cursor, 30), expected);
        }
        if batch.commit {
            run.sessions.iter_mut().for_each(|session| session.evict_expired().unwrap());
            let metrics = world.commit(run.sessions);
            add_rows(&mut rows, &metrics);
            model = run.model;
            model.evict(now_ms);
        }
        if batch.snapshot {
            world.backing.snapshot();
        }
        if batch.restart {
            world.restart();
        }
        assert_eq!(stored(&world), model);
        assert_eq!(rows, model.rows());
        assert_indexes_agree(&world, &model);
    }
}

fn add_rows(rows: &mut [i64; 6], metrics: &[SessionMetrics]) {
    for (variable, change) in metrics.iter().flat_map(|metrics| &metrics.rows) {
        rows[usize::from(*variable) - 1] += change;
    }
}

/// What the store holds, as a model.
fn stored(world: &World) -> Model {
    use super::super::{Contents, for_each_row, for_each_timer};
    let mut model = Model::default();
    let key = |key: GroupingKey<'_>| (0..KEYS.len()).find(|known| grouping_key(*known) == key).unwrap();
    let store = world.store();
    for (place, variable) in world.variables.iter().enumerate() {
        for_each_row(&*store, 0, variable.id, variable.spec.kind, None, &mut |stored| {
            let place = (place, key(stored.key));
            let expiry_ms = stored.expiry_ms.unwrap_or(i64::MAX);
            match stored.contents {
                Contents::Value(row) => drop(model.values.insert(place, (row.to_vec(), expiry_ms))),
                Contents::Element { row, .. } => model.lists.entry(place).or_default().push((row.to_vec(), expiry_ms)),
                Contents::Entry { key, row } => {
                    drop(model.maps.entry(place).or_default().insert(key.to_vec(), (row.to_vec(), expiry_ms)));
                }
            }
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    }
    for_each_timer(&*store, 0, None, &mut |timer| {
        model.timers.entry(key(timer.key)).or_default().insert(timer.expiry_ms);
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    model
}

/// The indexes hold exactly what the records say, and the index in memory knows their earliest entries.
fn assert_indexes_agree(world: &World, model: &Model) {
    let store = world.store();
    let mut ttl = Vec::new();
    let mut timers = BTreeMap::<_, BTreeSet<i64>>::new();
    let all: (&[u8], &[u8]) = (&[0], &[1]);
    let visit_ttl = &mut |key: &[u8], _: &[u8]| {
        ttl.push(parse_ttl_key(key).unwrap());
        std::ops::ControlFlow::Continue(())
    };
    store.scan(Family::Ttl, all.0, all.1, visit_ttl).unwrap();
    let visit_timers = &mut |key: &[u8], _: &[u8]| {
        let (expiry_ms, key) = parse_timer_key(key).unwrap();
        timers.entry((key.hash, key.row.to_vec())).or_default().insert(expiry_ms);
        std::ops::ControlFlow::Continue(())
    };
    store.scan(Family::Timers, all.0, all.1, visit_timers).unwrap();

    let expected: BTreeMap<_, _> =
        model.timers.iter().map(|(key, timers)| ((KEYS[*key].0, KEYS[*key].1.to_vec()), timers.clone())).collect();
    assert_eq!(timers, expected);
    let mut expiries: Vec<i64> = model
        .values
        .values()
        .chain(model.lists.values().flatten())
        .chain(model.maps.values().flat_map(BTreeMap::values))
        .map(|row| row.1)
        .filter(|expiry_ms| *expiry_ms < i64::MAX)
        .collect();
    expiries.sort_unstable();
    let mut indexed: Vec<i64> = ttl.iter().map(|(expiry_ms, _)| *expiry_ms).collect();
    indexed.sort_unstable();
    assert_eq!(indexed, expiries);
    for (expiry_ms, record_key) in ttl {
        let record = super::super::store::get(&*store, Family::State, &record_key).unwrap().unwrap();
        assert_eq!(super::super::codec::parse_row_record(&record).unwrap().expiry_ms, Some(expiry_ms));
    }

    let earliest_timer_ms = model.timers.values().flatten().min().copied();
    for due in [&*world.due, &DueIndex::load(&*store, 0, GROUPS).unwrap()] {
        assert_eq!(due.earliest_timer_ms(), earliest_timer_ms);
        assert_eq!(due.earliest_ttl_ms(), expiries.first().copied());
        for (key, timers) in &model.timers {
            let group = key_group(KEYS[*key].0, GROUPS);
            assert!(due.timers_due(group, *timers.first().unwrap()).is_some(), "what is due is never missed");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_shrink_iters: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn a_session_over_memory_does_what_the_model_does(batches in vec(batch(), 1..12)) {
        run(Backing::memory(), &batches);
    }
}

proptest! {
    // Opening RocksDB takes a while: fewer cases.
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn a_session_over_rocksdb_does_what_the_model_does(batches in vec(batch(), 1..12)) {
        run(Backing::rocks(), &batches);
    }
}
