//! Value states.

use super::super::{StateError, StateLimits, VariableKind};
use super::world::{code, get, key, on_every_store, row, value, variable};

#[test]
fn a_value_is_absent_until_it_is_put_and_after_it_is_cleared() {
    on_every_store(&value(None), |world| {
        world.batch(0, |session| {
            let a = session.enter(key("a"));
            assert_eq!(get(session, 0, a), None);
            assert!(!session.exists(0, a).unwrap());
            session.put_value(0, a, &row(1)).unwrap();
            assert_eq!(get(session, 0, a), Some(1));
            assert!(session.exists(0, a).unwrap());
            session.clear(0, a).unwrap();
            assert_eq!(get(session, 0, a), None);
            session.put_value(0, a, &row(2)).unwrap();
        });
        assert_eq!(world.stored(0), [("a".into(), 0, 2, None)]);
    });
}

#[test]
fn a_value_lives_on_in_later_batches_and_after_a_restart() {
    on_every_store(&value(None), |world| {
        world.batch(0, |session| {
            let a = session.enter(key("a"));
            session.put_value(0, a, &row(7)).unwrap();
        });
        world.backing.snapshot();
        world.restart();
        world.batch(1, |session| {
            let a = session.enter(key("a"));
            assert_eq!(get(session, 0, a), Some(7));
        });
    });
}

#[test]
fn values_of_other_keys_and_variables_are_left_alone() {
    let two = [variable("x", VariableKind::Value, None), variable("y", VariableKind::Value, None)];
    on_every_store(&two, |world| {
        world.batch(0, |session| {
            let (a, b) = (session.enter(key("a")), session.enter(key("b")));
            for (variable, group, n) in [(0, a, 1), (1, a, 2), (0, b, 3)] {
                session.put_value(variable, group, &row(n)).unwrap();
            }
        });
        world.batch(1, |session| {
            let a = session.enter(key("a"));
            session.clear(0, a).unwrap();
        });
        assert_eq!(world.stored(0), [("b".into(), 0, 3, None)]);
        assert_eq!(world.stored(1), [("a".into(), 0, 2, None)]);
    });
}

#[test]
fn a_prefetch_and_single_reads_see_the_same() {
    let two = [variable("x", VariableKind::Value, None), variable("y", VariableKind::Value, None)];
    on_every_store(&two, |world| {
        world.batch(0, |session| {
            for name in ["a", "c", "e"] {
                let group = session.enter(key(name));
                session.put_value(0, group, &row(1)).unwrap();
                session.put_value(1, group, &row(2)).unwrap();
            }
        });
        world.batch(1, |session| {
            let groups = ["e", "b", "a"].map(|name| session.enter(key(name)));
            session.put_value(0, groups[0], &row(9)).unwrap();
            session.prefetch(&[0, 1], &groups).unwrap();
            assert_eq!(groups.map(|group| get(session, 0, group)), [Some(9), None, Some(1)]);
            assert_eq!(groups.map(|group| get(session, 1, group)), [Some(2), None, Some(2)]);
        });
    });
}

#[test]
fn large_rows_survive_being_forgotten_and_read_again() {
    on_every_store(&value(None), |world| {
        let large = |n: u8| vec![n; 4 << 20];
        let names = ["a", "b", "c", "d", "e", "f"];
        world.batch(0, |session| {
            for (name, n) in names.into_iter().zip(0..) {
                let group = session.enter(key(name));
                session.put_value(0, group, &large(n)).unwrap();
            }
        });
        world.batch(1, |session| {
            let groups = names.map(|name| session.enter(key(name)));
            for group in groups.into_iter().chain(groups) {
                assert_eq!(session.value(0, group).unwrap(), Some(&*large(group as u8)));
            }
        });
    });
}

#[test]
fn rows_count_once_however_often_they_are_written() {
    on_every_store(&value(None), |world| {
        let metrics = world.batch(0, |session| {
            let (a, b) = (session.enter(key("a")), session.enter(key("b")));
            session.put_value(0, a, &row(1)).unwrap();
            session.put_value(0, a, &row(2)).unwrap();
            session.put_value(0, b, &row(3)).unwrap();
            session.clear(0, b).unwrap();
        });
        assert_eq!((metrics.rows_updated, metrics.rows_removed), (3, 1));
        assert_eq!(metrics.rows.get(&1), Some(&1));

        // Written blindly: whether a put adds a row shows at the commit only.
        let metrics = world.batch(1, |session| {
            for name in ["a", "b", "c"] {
                let group = session.enter(key(name));
                session.put_value(0, group, &row(5)).unwrap();
            }
        });
        assert_eq!(metrics.rows.get(&1), Some(&2));
    });
}

#[test]
fn a_batch_that_writes_more_than_it_may_is_refused_with_variable_and_key() {
    on_every_store(&value(None), |world| {
        world.limits = StateLimits { write_bytes_max: 20, ..StateLimits::default() };
        let mut session = world.session(0);
        let (a, b, c) = (session.enter(key("a")), session.enter(key("b")), session.enter(key("c")));
        session.put_value(0, a, &row(1)).unwrap();
        session.put_value(0, a, &row(2)).unwrap();
        session.put_value(0, b, &row(1)).unwrap();
        let error = session.put_value(0, c, &row(1)).unwrap_err();
        assert_eq!(error.code(), "STATE_LIMIT_EXCEEDED");
        let expected = "bytes written of state variable \"value\" exceed the limit of 20; \
                        write less in one batch, or raise limits.state.write_bytes_max";
        assert_eq!(error.to_string(), expected);
        assert!(matches!(error, StateError::Limit { key: Some(key), .. } if key == b"c"));
    });
}

#[test]
fn a_variable_used_as_another_kind_is_a_misuse() {
    on_every_store(&value(None), |world| {
        let mut session = world.session(0);
        let a = session.enter(key("a"));
        assert_eq!(code(session.list(0, a)), "STATE_MISUSE");
        assert_eq!(code(session.map_put(0, a, &row(1), &row(1))), "STATE_MISUSE");
        assert_eq!(code(session.value(5, a)), "STATE_MISUSE");
    });
}
