//! What holds for sessions of any kind: determinism, ranges, what is emitted.

use super::super::{Family, Session, VariableKind, VariableSpec};
use super::backing::Backing;
use super::world::{World, append, key, on_every_store, row, value, variable};

fn variables() -> Vec<VariableSpec> {
    vec![
        variable("value", VariableKind::Value, Some(50)),
        variable("list", VariableKind::List, None),
        variable("map", VariableKind::Map, Some(70)),
    ]
}

const NAMES: [&str; 8] = ["h", "a", "ab", "c", "aa", "g", "d", "b"];

fn work(session: &mut Session, name: &'static str, n: u64) {
    let group = session.enter(key(name));
    session.put_value(0, group, &row(n)).unwrap();
    append(session, 1, group, &[n, n + 1]);
    session.map_put(2, group, &row(n), &row(n)).unwrap();
    session.map_put(2, group, &row(0), &row(n)).unwrap();
    session.register_timer(group, n as i64).unwrap();
}

#[test]
fn the_same_operations_give_the_same_bytes() {
    let run = || {
        let mut world = World::new(Backing::memory(), &variables());
        for now_ms in 0..3 {
            world.batch(now_ms * 40, |session| NAMES.iter().zip(1..).for_each(|(name, n)| work(session, name, n)));
        }
        world.log
    };
    assert_eq!(run(), run());
}

#[test]
fn changes_are_sorted_with_each_key_once_whatever_the_order_of_the_keys() {
    on_every_store(&variables(), |world| {
        for now_ms in 0..3 {
            world.batch(now_ms * 40, |session| NAMES.iter().zip(1..).for_each(|(name, n)| work(session, name, n)));
        }
        for (changes, _) in &world.log {
            let keys: Vec<(Family, Vec<u8>)> = changes
                .last()
                .unwrap()
                .iter()
                .map(|change| change.map(|change| (change.family, change.key.to_vec())).unwrap())
                .collect();
            assert!(keys.len() > 20 && keys.is_sorted_by(|a, b| a < b));
        }
    });
}

#[test]
fn two_workers_and_three_leave_the_same_state() {
    let run = |ranges: &[std::ops::Range<u16>]| {
        let mut world = World::new(Backing::memory(), &variables());
        for now_ms in 0..3 {
            let mut sessions: Vec<Session> =
                ranges.iter().map(|range| world.session_over(range.clone(), now_ms * 40)).collect();
            for (name, n) in NAMES.iter().zip(1..) {
                let group = (key(name).hash >> 61) as u16;
                let worker = ranges.iter().position(|range| range.contains(&group)).unwrap();
                work(&mut sessions[worker], name, n);
            }
            sessions.iter_mut().for_each(|session| session.evict_expired().unwrap());
            world.commit(sessions);
        }
        let families = Family::ALL.map(|family| world.records(family));
        (families, [0, 1, 2].map(|variable| world.stored(variable)), world.stored_timers())
    };
    assert_eq!(run(&[0..4, 4..8]), run(&[0..1, 1..5, 5..8]));
}

#[test]
fn a_session_that_only_reads_changes_nothing() {
    on_every_store(&variables(), |world| {
        world.batch(0, |session| work(session, "a", 1));
        world.batch(1, |session| {
            let a = session.enter(key("a"));
            session.value(0, a).unwrap();
            session.list(1, a).unwrap();
            session.map_value(2, a, &row(0)).unwrap();
            session.map_value(2, a, &row(9)).unwrap();
            session.timers(a).unwrap();
        });
        assert!(world.log[1].0[0].is_empty());
    });
}

#[test]
fn a_session_that_is_dropped_leaves_no_trace() {
    on_every_store(&value(None), |world| {
        let mut session = world.session(0);
        let a = session.enter(key("a"));
        session.put_value(0, a, &row(1)).unwrap();
        session.register_timer(a, 5).unwrap();
        drop(session);
        assert_eq!(world.records(Family::State) + world.records(Family::Timers), 0);
    });
}

#[test]
fn nothing_is_written_after_the_sweep() {
    on_every_store(&value(None), |world| {
        let mut session = world.session(0);
        let a = session.enter(key("a"));
        session.evict_expired().unwrap();
        assert_eq!(session.put_value(0, a, &row(1)).unwrap_err().code(), "STATE_MISUSE");
    });
}
