//! Map states.

use super::super::{Family, MapPart, Session, StateLimits};
use super::world::{code, entries, key, map, number, on_every_store, rest, row};

fn put(session: &mut Session, name: &'static str, entries: &[(u64, u64)]) {
    let group = session.enter(key(name));
    for (map_key, n) in entries {
        session.map_put(0, group, &row(*map_key), &row(*n)).unwrap();
    }
}

fn get(session: &mut Session, name: &'static str, map_key: u64) -> Option<u64> {
    let group = session.enter(key(name));
    session.map_value(0, group, &row(map_key)).unwrap().map(number)
}

#[test]
fn entries_are_put_read_and_removed_one_by_one() {
    on_every_store(&map(None), |world| {
        world.batch(0, |session| {
            assert_eq!(get(session, "a", 1), None);
            put(session, "a", &[(1, 10), (2, 20), (3, 30)]);
            assert_eq!(get(session, "a", 1), Some(10));
        });
        world.batch(1, |session| {
            let a = session.enter(key("a"));
            assert_eq!(get(session, "a", 2), Some(20));
            session.map_remove(0, a, &row(2)).unwrap();
            session.map_remove(0, a, &row(99)).unwrap();
            assert!(!session.map_contains(0, a, &row(2)).unwrap());
            put(session, "a", &[(1, 11), (4, 40)]);
            assert_eq!(entries(session, 0, a), [(1, 11), (3, 30), (4, 40)]);
        });
        assert_eq!(world.records(Family::State), 3);
    });
}

#[test]
fn put_remove_put_in_one_batch_leaves_the_last() {
    on_every_store(&map(None), |world| {
        world.batch(0, |session| put(session, "a", &[(1, 10)]));
        world.batch(1, |session| {
            let a = session.enter(key("a"));
            put(session, "a", &[(1, 11)]);
            session.map_remove(0, a, &row(1)).unwrap();
            assert_eq!(get(session, "a", 1), None);
            put(session, "a", &[(1, 12)]);
        });
        assert_eq!(world.stored(0), [("a".into(), 1, 12, None)]);
    });
}

#[test]
fn iteration_gives_the_entries_of_one_key_in_order_of_their_bytes() {
    on_every_store(&map(None), |world| {
        world.batch(0, |session| {
            put(session, "a", &[(5, 50), (1, 10), (9, 90)]);
            // Keys whose rows begin with the other's.
            put(session, "aa", &[(3, 33)]);
        });
        world.batch(1, |session| {
            put(session, "a", &[(7, 70), (0, 1)]);
            let a = session.enter(key("a"));
            session.map_remove(0, a, &row(5)).unwrap();
            assert_eq!(entries(session, 0, a), [(0, 1), (1, 10), (7, 70), (9, 90)]);
            for (part, expected) in [(MapPart::Keys, [0, 1, 7, 9]), (MapPart::Values, [1, 10, 70, 90])] {
                let mut cursor = session.map(0, a, part).unwrap();
                let rows: Vec<u64> = rest(session, &mut cursor, 16).iter().map(|row| number(row)).collect();
                assert_eq!(rows, expected);
            }
        });
    });
}

#[test]
fn clear_removes_the_entries_of_its_key_only() {
    on_every_store(&map(None), |world| {
        world.batch(0, |session| {
            put(session, "a", &[(1, 10), (2, 20)]);
            put(session, "aa", &[(1, 11)]);
        });
        let metrics = world.batch(1, |session| {
            let a = session.enter(key("a"));
            put(session, "a", &[(3, 30)]);
            session.clear(0, a).unwrap();
            assert!(!session.exists(0, a).unwrap());
            assert_eq!(get(session, "a", 1), None);
            put(session, "a", &[(2, 21)]);
            assert!(session.exists(0, a).unwrap());
        });
        assert_eq!(world.stored(0), [("a".into(), 2, 21, None), ("aa".into(), 1, 11, None)]);
        assert_eq!((metrics.rows_updated, metrics.rows_removed, metrics.rows[&1]), (2, 3, -1));
    });
}

#[test]
fn every_entry_counts_one_row_whether_it_was_read_before_or_not() {
    on_every_store(&map(None), |world| {
        let metrics = world.batch(0, |session| put(session, "a", &[(1, 10), (2, 20), (1, 11)]));
        assert_eq!((metrics.rows_updated, metrics.rows[&1]), (3, 2));
        let metrics = world.batch(1, |session| {
            let a = session.enter(key("a"));
            assert_eq!(get(session, "a", 1), Some(11));
            put(session, "a", &[(1, 12), (2, 21), (3, 30)]);
            session.map_remove(0, a, &row(77)).unwrap();
        });
        assert_eq!((metrics.rows_updated, metrics.rows_removed, metrics.rows[&1]), (3, 1, 1));
    });
}

#[test]
fn a_read_keeps_giving_what_was_there_when_it_began() {
    on_every_store(&map(None), |world| {
        world.batch(0, |session| put(session, "a", &[(1, 10), (2, 20), (3, 30)]));
        world.batch(1, |session| {
            let a = session.enter(key("a"));
            put(session, "a", &[(4, 40)]);
            let mut cursor = session.map(0, a, MapPart::Keys).unwrap();
            let mut first = Vec::new();
            assert!(session.page(&mut cursor, 0, &mut first).unwrap());
            session.map_remove(0, a, &row(2)).unwrap();
            put(session, "a", &[(5, 50)]);
            session.clear(0, a).unwrap();
            let rows: Vec<u64> = rest(session, &mut cursor, 0).iter().map(|row| number(row)).collect();
            assert_eq!(rows, [2, 3, 4]);
        });
    });
}

#[test]
fn a_map_too_large_for_the_limits_of_a_batch_cannot_be_cleared_at_once() {
    on_every_store(&map(None), |world| {
        world.batch(0, |session| (0..100).for_each(|n| put(session, "a", &[(n, n)])));
        world.limits = StateLimits { write_bytes_max: 400, ..StateLimits::default() };
        let mut session = world.session(1);
        let a = session.enter(key("a"));
        assert_eq!(code(session.clear(0, a)), "STATE_LIMIT_EXCEEDED");
    });
}
