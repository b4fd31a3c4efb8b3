//! A query in small: variables, batches at given times, commits.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::super::{
    Applied, Catalog, Contents, Cursor, DueIndex, Family, GroupId, MapPart, Scope, Session, SessionMetrics, StateError,
    StateLimits, Store, Variable, VariableKind, VariableSpec, drop_variable, for_each_row, for_each_timer,
};
use super::backing::{Backing, Log};
use crate::record::{GroupingKey, Schema};

pub(super) const GROUPS: u16 = 8;

/// Keys by name: their hash spreads them over the key groups in order of the alphabet, from `a` to `h`.
pub(super) fn key(name: &'static str) -> GroupingKey<'static> {
    let letter = name.bytes().next().unwrap() - b'a';
    GroupingKey { hash: u64::from(letter) << 61, row: name.as_bytes() }
}

/// A row of 8 bytes.
pub(super) fn row(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

pub(super) fn number(row: &[u8]) -> u64 {
    u64::from_be_bytes(row.try_into().unwrap())
}

pub(super) fn variable(name: &str, kind: VariableKind, ttl_ms: Option<u64>) -> VariableSpec {
    let schema = Schema::parse("n BIGINT").unwrap();
    VariableSpec {
        name: name.into(),
        kind,
        key: (kind == VariableKind::Map).then(|| schema.clone()),
        value: schema,
        ttl_ms,
    }
}

pub(super) fn value(ttl_ms: Option<u64>) -> Vec<VariableSpec> {
    vec![variable("value", VariableKind::Value, ttl_ms)]
}

pub(super) fn list(ttl_ms: Option<u64>) -> Vec<VariableSpec> {
    vec![variable("list", VariableKind::List, ttl_ms)]
}

pub(super) fn map(ttl_ms: Option<u64>) -> Vec<VariableSpec> {
    vec![variable("map", VariableKind::Map, ttl_ms)]
}

/// Runs a test on a new world on each store.
pub(super) fn on_every_store(variables: &[VariableSpec], test: impl Fn(&mut World)) {
    for backing in Backing::all() {
        test(&mut World::new(backing, variables));
    }
}

pub(super) struct World {
    pub(super) backing: Backing,
    pub(super) due: Arc<DueIndex>,
    pub(super) log: Log,
    pub(super) catalog: Catalog,
    pub(super) variables: Arc<[Variable]>,
    pub(super) limits: StateLimits,
    dropped: Arc<[u16]>,
    pending: Vec<super::super::Changes>,
}

impl World {
    pub(super) fn new(backing: Backing, variables: &[VariableSpec]) -> Self {
        let mut world = Self {
            due: Arc::new(DueIndex::load(&*backing.store(), 0, GROUPS).unwrap()),
            backing,
            log: Log::new(),
            catalog: Catalog::default(),
            variables: Arc::new([]),
            limits: StateLimits::default(),
            dropped: Arc::new([]),
            pending: Vec::new(),
        };
        world.declare(variables);
        world
    }

    /// What the processor declares from the next batch on.
    pub(super) fn declare(&mut self, variables: &[VariableSpec]) {
        let resolution = self.catalog.resolve(0, variables, &[], &self.limits).unwrap();
        self.dropped = Arc::new([]);
        self.catalog = resolution.catalog;
        self.variables = resolution.variables;
        self.pending.push(resolution.changes);
    }

    /// What it drops with the next batch; the answer is the number of rows that go.
    pub(super) fn drop_variables(&mut self, names: &[&str]) -> u64 {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let kept: Vec<_> = self.variables.iter().map(|variable| variable.spec.clone()).collect();
        let kept: Vec<_> = kept.into_iter().filter(|spec| !names.contains(&spec.name)).collect();
        let resolution = self.catalog.resolve(0, &kept, &names, &self.limits).unwrap();
        self.catalog = resolution.catalog;
        self.variables = resolution.variables;
        self.dropped = resolution.dropped.iter().map(|dropped| dropped.id).collect();
        self.pending.push(resolution.changes);
        let mut rows = 0;
        for dropped in &resolution.dropped {
            let records = drop_variable(&*self.store(), 0, dropped.id).unwrap();
            self.pending.push(records.changes);
            rows += records.rows;
        }
        rows
    }

    pub(super) fn store(&self) -> Arc<dyn Store> {
        self.backing.store()
    }

    pub(super) fn session(&self, now_ms: i64) -> Session {
        self.session_over(0..GROUPS, now_ms)
    }

    pub(super) fn session_over(&self, range: std::ops::Range<u16>, now_ms: i64) -> Session {
        let scope = Scope {
            step: 0,
            groups: GROUPS,
            range,
            now_ms,
            limits: self.limits,
            due: Arc::clone(&self.due),
            dropped: Arc::clone(&self.dropped),
        };
        Session::new(self.store(), Arc::clone(&self.variables), scope)
    }

    /// One batch: what `work` does, the TTL sweep, the commit.
    pub(super) fn batch(&mut self, now_ms: i64, work: impl FnOnce(&mut Session)) -> SessionMetrics {
        let mut session = self.session(now_ms);
        work(&mut session);
        session.evict_expired().unwrap();
        self.commit(vec![session]).remove(0)
    }

    pub(super) fn commit(&mut self, sessions: Vec<Session>) -> Vec<SessionMetrics> {
        let mut changes = std::mem::take(&mut self.pending);
        let mut metrics = Vec::new();
        for session in sessions {
            let finished = session.finish().unwrap();
            changes.push(finished.changes);
            metrics.push(finished.metrics);
        }
        self.apply(changes);
        metrics
    }

    pub(super) fn apply(&mut self, changes: Vec<super::super::Changes>) {
        let applied = Applied { batch: Some(self.log.len() as u64), generation: 0 };
        let store = self.store();
        store.apply(&changes, applied).unwrap();
        let due = Arc::make_mut(&mut self.due);
        changes.iter().for_each(|changes| due.apply(changes).unwrap());
        due.refresh(&*store).unwrap();
        self.log.push((changes, applied));
    }

    /// A crash and a start: nothing in memory survives.
    pub(super) fn restart(&mut self) {
        self.backing.recover(&self.log);
        let store = self.store();
        self.due = Arc::new(DueIndex::load(&*store, 0, GROUPS).unwrap());
        self.catalog = Catalog::load(&*store).unwrap();
    }

    /// Everything a variable holds: key, map key or sequence number, row, expiry.
    pub(super) fn stored(&self, variable: usize) -> Vec<(String, u64, u64, Option<i64>)> {
        let mut rows = Vec::new();
        let variable = &self.variables[variable];
        for_each_row(&*self.store(), 0, variable.id, variable.spec.kind, None, &mut |stored| {
            let (place, row) = match stored.contents {
                Contents::Value(row) => (0, row),
                Contents::Element { sequence, row } => (sequence, row),
                Contents::Entry { key, row } => (number(key), row),
            };
            rows.push((name(stored.key), place, number(row), stored.expiry_ms));
            ControlFlow::Continue(())
        })
        .unwrap();
        rows
    }

    pub(super) fn stored_timers(&self) -> Vec<(String, i64)> {
        let mut timers = Vec::new();
        for_each_timer(&*self.store(), 0, None, &mut |timer| {
            timers.push((name(timer.key), timer.expiry_ms));
            ControlFlow::Continue(())
        })
        .unwrap();
        timers
    }

    /// Number of records in a family.
    pub(super) fn records(&self, family: Family) -> usize {
        let mut records = 0;
        self.store()
            .scan(family, &[0], &[u8::MAX], &mut |_, _| {
                records += 1;
                ControlFlow::Continue(())
            })
            .unwrap();
        records
    }
}

fn name(key: GroupingKey<'_>) -> String {
    String::from_utf8(key.row.to_vec()).unwrap()
}

/// All rows that a read still gives, in pages of `bytes_max`.
pub(super) fn rest(session: &Session, cursor: &mut Cursor, bytes_max: usize) -> Vec<Vec<u8>> {
    let mut rows = Vec::new();
    loop {
        let mut page = Vec::new();
        let more = session.page(cursor, bytes_max, &mut page).unwrap();
        let rows_before = rows.len();
        let mut bytes = page.as_slice();
        while let Some((head, tail)) = bytes.split_at_checked(8) {
            let (row, tail) = tail.split_at(u64::from_le_bytes(head.try_into().unwrap()) as usize);
            rows.push(row.to_vec());
            bytes = tail;
        }
        if !more {
            return rows;
        }
        assert!(rows.len() > rows_before, "a page with more to follow is not empty");
    }
}

pub(super) fn numbers(session: &mut Session, variable: usize, group: GroupId) -> Vec<u64> {
    let mut cursor = session.list(variable, group).unwrap();
    rest(session, &mut cursor, 20).iter().map(|row| number(row)).collect()
}

pub(super) fn entries(session: &mut Session, variable: usize, group: GroupId) -> Vec<(u64, u64)> {
    let mut cursor = session.map(variable, group, MapPart::Entries).unwrap();
    let rows = rest(session, &mut cursor, 40);
    rows.chunks(2).map(|entry| (number(&entry[0]), number(&entry[1]))).collect()
}

pub(super) fn put_list(session: &mut Session, variable: usize, group: GroupId, numbers: &[u64]) {
    let rows: Vec<[u8; 8]> = numbers.iter().map(|n| row(*n)).collect();
    session.list_put(variable, group, &mut rows.iter().map(|row| row.as_slice())).unwrap();
}

pub(super) fn append(session: &mut Session, variable: usize, group: GroupId, numbers: &[u64]) {
    let rows: Vec<[u8; 8]> = numbers.iter().map(|n| row(*n)).collect();
    session.list_append(variable, group, &mut rows.iter().map(|row| row.as_slice())).unwrap();
}

pub(super) fn get(session: &mut Session, variable: usize, group: GroupId) -> Option<u64> {
    session.value(variable, group).unwrap().map(number)
}

pub(super) fn code<T>(result: Result<T, StateError>) -> &'static str {
    result.err().map_or("OK", |error| error.code())
}
