//! TTL: one test per rule, for values, lists and maps.

use super::super::{Family, Session, StateLimits, VariableKind, VariableSpec};
use super::world::{
    World, append, entries, get, key, list, map, numbers, on_every_store, put_list, row, value, variable,
};

const TTL: Option<u64> = Some(60_000);

/// A variable of each kind, with the TTL given.
fn all_kinds(ttl_ms: Option<u64>) -> Vec<VariableSpec> {
    [("value", VariableKind::Value), ("list", VariableKind::List), ("map", VariableKind::Map)]
        .map(|(name, kind)| variable(name, kind, ttl_ms))
        .to_vec()
}

fn put_all(session: &mut Session, name: &'static str, n: u64) {
    let group = session.enter(key(name));
    session.put_value(0, group, &row(n)).unwrap();
    put_list(session, 1, group, &[n, n + 1]);
    session.map_put(2, group, &row(n), &row(n)).unwrap();
}

/// What reads give: the value, the list, the entries, and whether each exists.
type Seen = (Option<u64>, Vec<u64>, Vec<(u64, u64)>, [bool; 3]);

fn see(session: &mut Session, name: &'static str) -> Seen {
    let group = session.enter(key(name));
    let exists = [0, 1, 2].map(|variable| session.exists(variable, group).unwrap());
    (get(session, 0, group), numbers(session, 1, group), entries(session, 2, group), exists)
}

fn there(n: u64) -> Seen {
    (Some(n), vec![n, n + 1], vec![(n, n)], [true; 3])
}

fn gone() -> Seen {
    (None, vec![], vec![], [false; 3])
}

fn assert_empty(world: &World) {
    assert_eq!(world.records(Family::State), 0);
    assert_eq!(world.records(Family::Ttl), 0);
    assert_eq!(world.due.earliest_ttl_ms(), None);
}

#[test]
fn g1_readable_before_its_expiry_hidden_at_it_and_gone_after_that_batch() {
    on_every_store(&all_kinds(TTL), |world| {
        world.batch(1_000, |session| put_all(session, "a", 1));
        world.batch(60_999, |session| assert_eq!(see(session, "a"), there(1)));
        world.batch(61_000, |session| assert_eq!(see(session, "a"), gone()));
        assert_empty(world);
    });
}

#[test]
fn g2_expiry_survives_restarts() {
    on_every_store(&all_kinds(TTL), |world| {
        world.batch(1_000, |session| put_all(session, "a", 1));
        world.backing.snapshot();
        world.restart();
        world.batch(60_999, |session| assert_eq!(see(session, "a"), there(1)));
        world.restart();
        assert_eq!(world.due.earliest_ttl_ms(), Some(61_000));
        world.batch(61_000, |_| {});
        assert_empty(world);
    });
}

#[test]
fn g3_a_write_refreshes_and_replaces_the_index_entry() {
    on_every_store(&all_kinds(TTL), |world| {
        world.batch(1_000, |session| put_all(session, "a", 1));
        world.batch(2_000, |session| put_all(session, "a", 1));
        assert_eq!(world.records(Family::Ttl), 4);
        assert_eq!(world.due.earliest_ttl_ms(), Some(62_000));
        world.batch(61_500, |session| assert_eq!(see(session, "a"), there(1)));
        world.batch(62_000, |session| assert_eq!(see(session, "a"), gone()));
        assert_empty(world);
    });
}

#[test]
fn g4_a_batch_without_rows_evicts() {
    on_every_store(&all_kinds(TTL), |world| {
        world.batch(0, |session| put_all(session, "a", 1));
        let metrics = world.batch(100_000, |_| {});
        assert_eq!(metrics.ttl_values_removed, 4);
        assert_empty(world);
    });
}

#[test]
fn g5_only_what_has_expired_goes() {
    on_every_store(&all_kinds(TTL), |world| {
        world.batch(0, |session| put_all(session, "a", 1));
        world.batch(30_000, |session| put_all(session, "b", 2));
        world.batch(60_000, |session| {
            assert_eq!(see(session, "a"), gone());
            assert_eq!(see(session, "b"), there(2));
        });
        assert_eq!(world.records(Family::Ttl), 4);
        world.batch(60_001, |session| assert_eq!(see(session, "b"), there(2)));
    });
}

#[test]
fn g6_clear_removes_state_and_index_entries_of_its_key_only() {
    on_every_store(&all_kinds(TTL), |world| {
        world.batch(0, |session| {
            put_all(session, "a", 1);
            put_all(session, "b", 2);
        });
        world.batch(1, |session| {
            let a = session.enter(key("a"));
            for variable in 0..3 {
                session.clear(variable, a).unwrap();
            }
        });
        assert_eq!(world.records(Family::Ttl), 4);
        world.batch(2, |session| assert_eq!(see(session, "b"), there(2)));
    });
}

#[test]
fn g7_the_stored_expiry_is_the_batch_time_plus_the_duration() {
    on_every_store(&all_kinds(TTL), |world| {
        world.batch(1_000, |session| put_all(session, "a", 1));
        for variable in 0..3 {
            assert!(world.stored(variable).iter().all(|(.., expiry_ms)| *expiry_ms == Some(61_000)));
        }
    });
    on_every_store(&value(Some(i64::MAX as u64)), |world| {
        world.batch(1_000, |session| {
            let a = session.enter(key("a"));
            session.put_value(0, a, &row(1)).unwrap();
        });
        assert_eq!(world.stored(0), [("a".into(), 0, 1, Some(i64::MAX))]);
    });
}

#[test]
fn g8_reading_does_not_refresh() {
    on_every_store(&all_kinds(TTL), |world| {
        world.batch(0, |session| put_all(session, "a", 1));
        world.batch(59_999, |session| assert_eq!(see(session, "a"), there(1)));
        world.batch(60_000, |session| assert_eq!(see(session, "a"), gone()));
    });
}

#[test]
fn g9_variables_with_and_without_ttl_live_side_by_side() {
    let mut variables = all_kinds(TTL);
    variables.push(variable("kept", VariableKind::Value, None));
    on_every_store(&variables, |world| {
        world.batch(0, |session| {
            put_all(session, "a", 1);
            let a = session.enter(key("a"));
            session.put_value(3, a, &row(9)).unwrap();
        });
        world.batch(60_000, |session| {
            assert_eq!(see(session, "a"), gone());
            let a = session.enter(key("a"));
            assert_eq!(get(session, 3, a), Some(9));
        });
        assert_eq!(world.stored(3), [("a".into(), 0, 9, None)]);
    });
}

#[test]
fn g10_expired_elements_vanish_at_the_beginning_in_the_middle_and_at_the_end() {
    on_every_store(&list(TTL), |world| {
        // Durations that change from run to run make expiries of any order.
        for (now_ms, ttl_ms, n) in [(0, 10, 1), (1, 100, 2), (2, 10, 3), (3, 100, 4), (4, 10, 5)] {
            world.declare(&list(Some(ttl_ms)));
            world.batch(now_ms, |session| {
                let a = session.enter(key("a"));
                append(session, 0, a, &[n]);
            });
        }
        world.batch(20, |session| {
            let a = session.enter(key("a"));
            assert_eq!(numbers(session, 0, a), [2, 4]);
        });
        assert_eq!(world.stored(0), [("a".into(), 1, 2, Some(101)), ("a".into(), 3, 4, Some(103))]);
        world.batch(21, |session| {
            let a = session.enter(key("a"));
            append(session, 0, a, &[6]);
            assert_eq!(numbers(session, 0, a), [2, 4, 6]);
        });
        world.batch(200, |session| {
            let a = session.enter(key("a"));
            assert!(!session.exists(0, a).unwrap());
        });
        assert_empty(world);
    });
}

#[test]
fn g11_every_element_of_a_list_has_one_index_entry() {
    on_every_store(&list(TTL), |world| {
        world.batch(0, |session| {
            let a = session.enter(key("a"));
            append(session, 0, a, &[1, 2]);
        });
        world.batch(0, |session| {
            let a = session.enter(key("a"));
            put_list(session, 0, a, &[3, 4, 5]);
        });
        assert_eq!(world.records(Family::Ttl), 3);
        world.batch(1, |session| {
            let a = session.enter(key("a"));
            put_list(session, 0, a, &[6]);
        });
        assert_eq!(world.records(Family::Ttl), 1);
        assert_eq!(world.stored(0), [("a".into(), 0, 6, Some(60_001))]);
    });
}

#[test]
fn g12_an_append_leaves_older_elements_their_expiry_and_a_put_refreshes_all() {
    on_every_store(&list(TTL), |world| {
        for now_ms in [0, 30_000] {
            world.batch(now_ms, |session| {
                let a = session.enter(key("a"));
                append(session, 0, a, &[now_ms as u64]);
            });
        }
        world.batch(60_000, |session| {
            let a = session.enter(key("a"));
            assert_eq!(numbers(session, 0, a), [30_000]);
            put_list(session, 0, a, &[1, 2]);
        });
        assert_eq!(world.stored(0).iter().map(|(.., expiry_ms)| *expiry_ms).collect::<Vec<_>>(), [Some(120_000); 2]);
    });
}

#[test]
fn g13_a_duration_changed_at_a_restart_goes_for_new_elements_only() {
    on_every_store(&list(Some(100)), |world| {
        world.batch(0, |session| {
            let a = session.enter(key("a"));
            append(session, 0, a, &[1]);
        });
        world.restart();
        world.declare(&list(Some(10)));
        world.batch(1, |session| {
            let a = session.enter(key("a"));
            append(session, 0, a, &[2]);
        });
        world.batch(11, |session| {
            let a = session.enter(key("a"));
            assert_eq!(numbers(session, 0, a), [1]);
        });
        assert_eq!(world.due.earliest_ttl_ms(), Some(100));
    });
}

#[test]
fn g14_entries_of_a_map_expire_one_by_one() {
    on_every_store(&map(Some(10)), |world| {
        for now_ms in 0..3 {
            world.batch(now_ms, |session| {
                let a = session.enter(key("a"));
                session.map_put(0, a, &row(now_ms as u64), &row(7)).unwrap();
            });
        }
        for (now_ms, left) in [(10, 2), (11, 1), (12, 0)] {
            world.batch(now_ms, |session| {
                let a = session.enter(key("a"));
                assert_eq!(entries(session, 0, a).len(), left);
                assert_eq!(session.exists(0, a).unwrap(), left > 0);
                assert!(!session.map_contains(0, a, &row(now_ms as u64 - 10)).unwrap());
            });
        }
        assert_empty(world);
    });
}

#[test]
fn g15_an_entry_removed_and_put_again_keeps_its_new_expiry() {
    on_every_store(&map(TTL), |world| {
        let put = |session: &mut Session| {
            let a = session.enter(key("a"));
            session.map_put(0, a, &row(1), &row(1)).unwrap();
        };
        let remove = |session: &mut Session| {
            let a = session.enter(key("a"));
            session.map_remove(0, a, &row(1)).unwrap();
        };
        world.batch(0, put);
        world.batch(47_000, |session| {
            remove(session);
            put(session);
        });
        world.batch(64_000, |_| {});
        assert_eq!(world.stored(0), [("a".into(), 1, 1, Some(107_000))]);
        world.batch(64_001, remove);
        assert_empty(world);
    });
}

#[test]
fn g16_writing_again_in_one_batch_leaves_one_index_entry() {
    on_every_store(&all_kinds(TTL), |world| {
        world.batch(0, |session| {
            put_all(session, "a", 1);
            put_all(session, "a", 1);
        });
        assert_eq!(world.records(Family::Ttl), 4);
        world.batch(0, |session| put_all(session, "a", 1));
        assert_eq!(world.records(Family::Ttl), 4);
        assert!(!world.log[1].0[0].iter().any(|change| change.unwrap().family == Family::Ttl), "nothing to index anew");
    });
}

#[test]
fn g19_evictions_count_as_removals_and_take_rows_away() {
    on_every_store(&all_kinds(TTL), |world| {
        world.batch(0, |session| put_all(session, "a", 1));
        let metrics = world.batch(60_000, |session| {
            let b = session.enter(key("b"));
            session.put_value(0, b, &row(1)).unwrap();
        });
        assert_eq!((metrics.ttl_values_removed, metrics.rows_removed), (4, 4));
        let rows = metrics.rows.into_iter().filter(|(_, rows)| *rows != 0).collect::<Vec<_>>();
        assert_eq!(rows, [(2, -1), (3, -1)], "the value of b makes up for that of a");
    });
}

#[test]
fn g21_what_had_expired_and_is_written_again_in_the_batch_lives_on() {
    on_every_store(&all_kinds(TTL), |world| {
        world.batch(0, |session| put_all(session, "a", 1));
        let metrics = world.batch(60_000, |session| {
            assert_eq!(see(session, "a"), gone());
            put_all(session, "a", 1);
            assert_eq!(see(session, "a"), there(1));
        });
        assert_eq!(metrics.ttl_values_removed, 0);
        world.batch(60_001, |session| assert_eq!(see(session, "a"), there(1)));
        assert_eq!(world.records(Family::Ttl), 4);
    });
}

#[test]
fn g22_a_sweep_stops_at_its_limit_and_the_next_goes_on() {
    on_every_store(&list(Some(10)), |world| {
        world.limits = StateLimits { ttl_evictions_max: 3, ..StateLimits::default() };
        world.batch(0, |session| {
            for name in ["a", "b"] {
                let group = session.enter(key(name));
                append(session, 0, group, &[1, 2]);
            }
        });
        assert_eq!(world.batch(10, |_| {}).ttl_values_removed, 3);
        assert_eq!(world.due.earliest_ttl_ms(), Some(10), "still due");
        world.batch(11, |session| {
            let b = session.enter(key("b"));
            assert!(numbers(session, 0, b).is_empty(), "hidden all the same");
        });
        assert_empty(world);
    });
}

#[test]
fn what_a_variable_that_is_no_longer_declared_left_behind_expires_too() {
    on_every_store(&all_kinds(TTL), |world| {
        world.batch(0, |session| put_all(session, "a", 1));
        world.declare(&[]);
        let metrics = world.batch(60_000, |_| {});
        assert_eq!(metrics.rows.into_values().collect::<Vec<_>>(), [-1, -1, -1]);
        assert_empty(world);
    });
}

#[test]
fn an_append_to_a_list_whose_elements_are_being_evicted_keeps_the_rest() {
    on_every_store(&list(Some(10)), |world| {
        for now_ms in [0, 5] {
            world.batch(now_ms, |session| {
                let a = session.enter(key("a"));
                append(session, 0, a, &[now_ms as u64, now_ms as u64 + 1]);
            });
        }
        let metrics = world.batch(10, |session| {
            let a = session.enter(key("a"));
            append(session, 0, a, &[10]);
        });
        assert_eq!(metrics.ttl_values_removed, 2);
        let rows: Vec<u64> = world.stored(0).iter().map(|(_, _, n, _)| *n).collect();
        assert_eq!(rows, [5, 6, 10]);
        world.batch(20, |_| {});
        assert_empty(world);
    });
}
