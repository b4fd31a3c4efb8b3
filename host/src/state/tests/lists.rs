//! List states.

use super::super::{Family, StateLimits};
use super::world::{append, code, key, list, number, numbers, on_every_store, put_list, rest, row};

#[test]
fn put_and_append_keep_the_order_and_put_replaces() {
    on_every_store(&list(None), |world| {
        world.batch(0, |session| {
            let a = session.enter(key("a"));
            assert!(numbers(session, 0, a).is_empty());
            assert!(!session.exists(0, a).unwrap());
            append(session, 0, a, &[1]);
            append(session, 0, a, &[2, 3]);
            assert_eq!(numbers(session, 0, a), [1, 2, 3]);
        });
        world.batch(1, |session| {
            let a = session.enter(key("a"));
            append(session, 0, a, &[4]);
            assert_eq!(numbers(session, 0, a), [1, 2, 3, 4]);
        });
        world.batch(2, |session| {
            let a = session.enter(key("a"));
            assert_eq!(numbers(session, 0, a), [1, 2, 3, 4]);
            put_list(session, 0, a, &[8, 9]);
            assert_eq!(numbers(session, 0, a), [8, 9]);
            append(session, 0, a, &[10]);
        });
        world.batch(3, |session| {
            let a = session.enter(key("a"));
            assert_eq!(numbers(session, 0, a), [8, 9, 10]);
        });
        assert_eq!(world.records(Family::State), 4, "one header, three elements");
    });
}

#[test]
fn clear_removes_the_elements_of_its_key_only_and_append_begins_anew() {
    on_every_store(&list(None), |world| {
        world.batch(0, |session| {
            for name in ["a", "b"] {
                let group = session.enter(key(name));
                append(session, 0, group, &[1, 2]);
            }
        });
        world.batch(1, |session| {
            let a = session.enter(key("a"));
            session.clear(0, a).unwrap();
            assert!(!session.exists(0, a).unwrap());
            append(session, 0, a, &[7]);
            assert_eq!(numbers(session, 0, a), [7]);
        });
        assert_eq!(world.stored(0), [("a".into(), 0, 7, None), ("b".into(), 0, 1, None), ("b".into(), 1, 2, None)]);
        world.batch(2, |session| {
            for name in ["a", "b"] {
                let group = session.enter(key(name));
                session.clear(0, group).unwrap();
            }
        });
        assert_eq!(world.records(Family::State), 0);
    });
}

#[test]
fn a_list_counts_one_row_and_each_element_one_update_or_removal() {
    on_every_store(&list(None), |world| {
        let metrics = world.batch(0, |session| {
            for name in ["a", "b"] {
                let group = session.enter(key(name));
                put_list(session, 0, group, &[1, 2, 3]);
            }
        });
        assert_eq!((metrics.rows_updated, metrics.rows_removed, metrics.rows[&1]), (6, 0, 2));

        let metrics = world.batch(1, |session| {
            let a = session.enter(key("a"));
            append(session, 0, a, &[4]);
            session.clear(0, a).unwrap();
            let b = session.enter(key("b"));
            put_list(session, 0, b, &[1]);
        });
        assert_eq!((metrics.rows_updated, metrics.rows_removed, metrics.rows[&1]), (2, 4, -1));
    });
}

#[test]
fn a_read_keeps_giving_what_was_there_when_it_began() {
    on_every_store(&list(None), |world| {
        world.batch(0, |session| {
            let a = session.enter(key("a"));
            append(session, 0, a, &[1, 2]);
        });
        world.batch(1, |session| {
            let a = session.enter(key("a"));
            append(session, 0, a, &[3]);
            let mut cursor = session.list(0, a).unwrap();
            let mut first = Vec::new();
            assert!(session.page(&mut cursor, 0, &mut first).unwrap());
            append(session, 0, a, &[4]);
            session.clear(0, a).unwrap();
            let rows: Vec<u64> = rest(session, &mut cursor, 0).iter().map(|row| number(row)).collect();
            assert_eq!((number(&first[8..]), rows), (1, vec![2, 3]));
        });
    });
}

#[test]
fn ten_thousand_elements_appended_one_by_one_are_read_in_pages() {
    on_every_store(&list(None), |world| {
        world.batch(0, |session| {
            let a = session.enter(key("a"));
            (0..10_000).for_each(|n| append(session, 0, a, &[n]));
        });
        world.batch(1, |session| {
            let a = session.enter(key("a"));
            append(session, 0, a, &[10_000]);
            let mut cursor = session.list(0, a).unwrap();
            let rows = rest(session, &mut cursor, 1_000);
            assert!(rows.iter().map(|row| number(row)).eq(0..=10_000));
        });
    });
}

#[test]
fn a_list_longer_than_it_may_be_is_refused_over_batches_too() {
    on_every_store(&list(None), |world| {
        world.limits = StateLimits { list_elements_max: 3, ..StateLimits::default() };
        world.batch(0, |session| {
            let a = session.enter(key("a"));
            append(session, 0, a, &[1, 2]);
        });
        let mut session = world.session(1);
        let a = session.enter(key("a"));
        append(&mut session, 0, a, &[3, 4]);
        assert_eq!(code(session.finish()), "STATE_LIMIT_EXCEEDED");
    });
}

#[test]
fn a_put_or_append_without_rows_is_a_misuse_that_changes_nothing() {
    on_every_store(&list(None), |world| {
        world.batch(0, |session| {
            let a = session.enter(key("a"));
            append(session, 0, a, &[1]);
            assert_eq!(code(session.list_put(0, a, &mut std::iter::empty())), "STATE_MISUSE");
            assert_eq!(code(session.list_append(0, a, &mut std::iter::empty())), "STATE_MISUSE");
            assert_eq!(numbers(session, 0, a), [1]);
            assert_eq!(code(session.put_value(0, a, &row(1))), "STATE_MISUSE");
        });
    });
}
