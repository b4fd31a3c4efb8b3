//! Timers: one test per rule.

use super::super::{GroupId, Session, StateLimits};
use super::world::{World, code, key, on_every_store};
use crate::record::GroupingKey;

fn register(session: &mut Session, name: &'static str, expiries_ms: &[i64]) -> GroupId {
    let group = session.enter(key(name));
    for expiry_ms in expiries_ms {
        session.register_timer(group, *expiry_ms).unwrap();
    }
    group
}

fn name(key: GroupingKey<'_>) -> String {
    String::from_utf8(key.row.to_vec()).unwrap()
}

/// Runs the timer phase as an SDK does: before a handler runs, the timer that fires is deleted.
fn fire(
    session: &mut Session,
    threshold_ms: i64,
    mut handler: impl FnMut(&mut Session, GroupId, i64),
) -> Vec<(String, i64)> {
    let mut fired = Vec::new();
    let mut due = Vec::new();
    session.open_due(threshold_ms).unwrap();
    while let Some(group) = session.next_due(&mut due).unwrap() {
        for expiry_ms in due.clone() {
            session.delete_timer(group, expiry_ms).unwrap();
            handler(session, group, expiry_ms);
            fired.push((name(session.key(group)), expiry_ms));
        }
        session.delivered(group, &due);
    }
    fired
}

fn fire_only(session: &mut Session, threshold_ms: i64) -> Vec<(String, i64)> {
    fire(session, threshold_ms, |_, _, _| {})
}

fn fired(expected: &[(&str, i64)]) -> Vec<(String, i64)> {
    expected.iter().map(|(name, expiry_ms)| ((*name).to_owned(), *expiry_ms)).collect()
}

fn next_batch(world: &mut World, threshold_ms: i64) -> Vec<(String, i64)> {
    let mut all = Vec::new();
    world.batch(0, |session| all = fire_only(session, threshold_ms));
    all
}

#[test]
fn a_timer_fires_when_the_threshold_reaches_it_and_only_once() {
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            register(session, "a", &[100]);
        });
        assert_eq!(next_batch(world, 99), []);
        assert_eq!(next_batch(world, 100), fired(&[("a", 100)]));
        assert_eq!(next_batch(world, 1_000), []);
        assert!(world.stored_timers().is_empty());
    });
}

#[test]
fn a_timer_registered_in_the_past_by_a_row_fires_in_the_same_batch() {
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            register(session, "a", &[5, -7]);
            assert_eq!(fire_only(session, 10), fired(&[("a", -7), ("a", 5)]));
        });
        assert_eq!(world.due.earliest_timer_ms(), None);
    });
}

#[test]
fn key_groups_come_in_order_then_the_earliest_due_expiry_then_the_key() {
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            register(session, "b", &[1]);
            register(session, "ad", &[30]);
            register(session, "ac", &[40, 20]);
        });
        world.batch(1, |session| {
            register(session, "aa", &[20, 99]);
            register(session, "ab", &[10]);
            let expected = [("ab", 10), ("aa", 20), ("ac", 20), ("ac", 40), ("ad", 30), ("b", 1)];
            assert_eq!(fire_only(session, 50), fired(&expected));
        });
        assert_eq!(world.stored_timers(), fired(&[("aa", 99)]));
    });
}

#[test]
fn equal_expiries_of_different_keys_all_fire() {
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            for name in ["a", "b", "aa"] {
                register(session, name, &[100]);
            }
        });
        assert_eq!(next_batch(world, 100), fired(&[("a", 100), ("aa", 100), ("b", 100)]));
    });
}

#[test]
fn the_least_and_the_greatest_expiry_and_negative_ones_are_kept_and_fire() {
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            register(session, "a", &[i64::MAX, 0, -1, i64::MIN]);
        });
        assert_eq!(world.due.earliest_timer_ms(), Some(i64::MIN));
        assert_eq!(next_batch(world, i64::MIN), fired(&[("a", i64::MIN)]));
        assert_eq!(next_batch(world, 0), fired(&[("a", -1), ("a", 0)]));
        assert_eq!(world.due.earliest_timer_ms(), Some(i64::MAX));
        assert_eq!(next_batch(world, i64::MAX - 1), []);
        assert_eq!(next_batch(world, i64::MAX), fired(&[("a", i64::MAX)]));
    });
}

#[test]
fn of_one_key_alone_only_its_timers_come_out_of_whichever_batch() {
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            register(session, "a", &[1, 9]);
            register(session, "b", &[1]);
        });
        let mut session = world.session(0);
        register(&mut session, "a", &[2]);
        register(&mut session, "c", &[2]);

        session.fire_only([key("a")]);

        assert_eq!(fire_only(&mut session, 5), fired(&[("a", 1), ("a", 2)]));
    });
}

#[test]
fn a_timer_that_is_skipped_is_gone_without_having_come_out() {
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            register(session, "a", &[1, 2]);
        });
        world.batch(1, |session| {
            register(session, "b", &[1]);
            session.skip_timer(key("a"), 1);
            session.skip_timer(key("b"), 1);
            assert_eq!(fire_only(session, 1), []);
        });
        assert_eq!(next_batch(world, 5), fired(&[("a", 2)]));
    });
}

#[test]
fn a_timer_registered_twice_fires_once_and_counts_twice() {
    on_every_store(&[], |world| {
        let metrics = world.batch(0, |session| {
            register(session, "a", &[5, 5]);
        });
        assert_eq!(metrics.timers_registered, 2);
        let metrics = world.batch(1, |session| {
            register(session, "a", &[5]);
            assert_eq!(fire_only(session, 5), fired(&[("a", 5)]));
        });
        assert_eq!((metrics.timers_expired, metrics.timers_deleted), (1, 1));
    });
}

#[test]
fn deleting_a_timer_that_is_not_there_is_harmless_and_counts() {
    on_every_store(&[], |world| {
        let metrics = world.batch(0, |session| {
            let a = session.enter(key("a"));
            session.delete_timer(a, 5).unwrap();
        });
        assert_eq!(metrics.timers_deleted, 1);
        assert!(world.log[0].0[1].is_empty());
    });
}

#[test]
fn a_timer_moved_by_a_row_of_this_batch_fires_at_the_new_time_only() {
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            register(session, "a", &[10]);
        });
        world.batch(1, |session| {
            let a = register(session, "a", &[30]);
            session.delete_timer(a, 10).unwrap();
            assert_eq!(fire_only(session, 20), []);
        });
        assert_eq!(next_batch(world, 30), fired(&[("a", 30)]));
    });
}

#[test]
fn a_timer_registered_in_the_past_by_a_handler_fires_in_the_next_batch() {
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            register(session, "a", &[10]);
            let all =
                fire(session, 20, |session, group, expiry_ms| session.register_timer(group, expiry_ms - 5).unwrap());
            assert_eq!(all, fired(&[("a", 10)]));
        });
        assert_eq!(world.due.earliest_timer_ms(), Some(5));
        assert_eq!(next_batch(world, 20), fired(&[("a", 5)]));
    });
}

#[test]
fn a_handler_that_registers_the_firing_expiry_again_keeps_it() {
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            register(session, "a", &[10]);
            let all = fire(session, 20, |session, group, expiry_ms| session.register_timer(group, expiry_ms).unwrap());
            assert_eq!(all, fired(&[("a", 10)]));
        });
        assert_eq!(next_batch(world, 20), fired(&[("a", 10)]));
        assert_eq!(next_batch(world, 20), []);
    });
}

#[test]
fn a_handler_that_deletes_the_firing_timer_does_no_harm() {
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            register(session, "a", &[10, 15]);
            let all = fire(session, 20, |session, group, expiry_ms| session.delete_timer(group, expiry_ms).unwrap());
            assert_eq!(all, fired(&[("a", 10), ("a", 15)]));
        });
        assert!(world.stored_timers().is_empty());
    });
}

#[test]
fn a_due_timer_of_another_key_deleted_before_its_turn_does_not_fire_and_registered_again_fires_in_the_next_batch() {
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            register(session, "b", &[10]);
            register(session, "c", &[10]);
        });
        world.batch(1, |session| {
            register(session, "a", &[10]);
            let (b, c) = (session.enter(key("b")), session.enter(key("c")));
            let all = fire(session, 20, |session, _, _| {
                session.delete_timer(b, 10).unwrap();
                session.delete_timer(c, 10).unwrap();
                session.register_timer(c, 10).unwrap();
            });
            assert_eq!(all, fired(&[("a", 10)]));
        });
        assert_eq!(next_batch(world, 20), fired(&[("c", 10)]));
    });
}

#[test]
fn registering_a_due_timer_that_still_exists_changes_nothing_it_fires_in_its_turn() {
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            register(session, "a", &[10, 15]);
            let all = fire(session, 20, |session, group, expiry_ms| {
                if expiry_ms == 10 {
                    session.register_timer(group, 15).unwrap();
                }
            });
            assert_eq!(all, fired(&[("a", 10), ("a", 15)]));
        });
        assert!(world.stored_timers().is_empty());
    });
}

#[test]
fn timers_of_a_key_that_do_not_fit_a_chunk_are_asked_for_again_without_those_deleted_since() {
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            register(session, "a", &[1, 2, 3, 4]);
            session.open_due(10).unwrap();
            let mut due = Vec::new();
            let a = session.next_due(&mut due).unwrap().unwrap();
            assert_eq!(due, [1, 2, 3, 4]);

            session.delete_timer(a, 3).unwrap();
            session.register_timer(a, 3).unwrap();
            session.delivered(a, &due.drain(..1).collect::<Vec<_>>());
            session.still_due(a, &mut due);
            assert_eq!(due, [2, 4]);

            session.delivered(a, &due);
            assert_eq!(session.next_due(&mut due).unwrap(), None);
        });
        assert_eq!(world.stored_timers(), fired(&[("a", 3)]));
    });
}

#[test]
fn a_delivered_timer_goes_unless_its_last_operation_in_the_chunk_registers_it() {
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            register(session, "a", &[1, 2, 3]);
            session.open_due(10).unwrap();
            let mut due = Vec::new();
            let a = session.next_due(&mut due).unwrap().unwrap();
            session.register_timer(a, 1).unwrap();
            session.delete_timer(a, 1).unwrap();
            session.delete_timer(a, 2).unwrap();
            session.register_timer(a, 2).unwrap();
            session.delivered(a, &due);
        });
        assert_eq!(world.stored_timers(), fired(&[("a", 2)]), "1 was deleted last, 3 not touched");
    });
}

#[test]
fn a_registration_in_an_earlier_chunk_does_not_keep_a_timer_that_a_later_one_delivers() {
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            register(session, "a", &[1, 2]);
            session.open_due(10).unwrap();
            let mut due = Vec::new();
            let a = session.next_due(&mut due).unwrap().unwrap();
            session.register_timer(a, 2).unwrap();
            session.delivered(a, &[1]);
            session.delivered(a, &[2]);
        });
        assert!(world.stored_timers().is_empty());
    });
}

#[test]
fn timers_shows_what_has_been_applied_for_the_key_alone_in_order() {
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            register(session, "a", &[30, 10]);
            register(session, "aa", &[77]);
        });
        world.batch(1, |session| {
            let a = register(session, "a", &[20]);
            assert_eq!(session.timers(a).unwrap(), [10, 20, 30]);
            session.delete_timer(a, 10).unwrap();
            assert_eq!(session.timers(a).unwrap(), [20, 30]);
            let b = session.enter(key("b"));
            assert!(session.timers(b).unwrap().is_empty());
        });
    });
}

#[test]
fn timers_survive_a_restart_and_are_known_to_be_due_without_new_rows() {
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            register(session, "a", &[50]);
            register(session, "h", &[40]);
        });
        world.restart();
        assert_eq!(world.due.earliest_timer_ms(), Some(40));
        assert_eq!(next_batch(world, 60), fired(&[("a", 50), ("h", 40)]));
    });
}

#[test]
fn a_hundred_thousand_timers_due_at_once_come_out_in_order() {
    let names: Vec<[u8; 8]> = (0..100_000_u64).map(u64::to_be_bytes).collect();
    on_every_store(&[], |world| {
        world.batch(0, |session| {
            for (n, row) in (0_u64..).zip(&names) {
                let group = session.enter(GroupingKey { hash: n << 45, row });
                session.register_timer(group, 7).unwrap();
            }
        });
        let metrics = world.batch(1, |session| {
            let mut seen = 0;
            let mut due = Vec::new();
            session.open_due(7).unwrap();
            while let Some(group) = session.next_due(&mut due).unwrap() {
                assert_eq!(session.key(group).row, names[seen]);
                session.delivered(group, &due);
                seen += 1;
            }
            assert_eq!(seen, names.len());
        });
        assert_eq!(metrics.timers_expired, 100_000);
        assert!(world.stored_timers().is_empty());
    });
}

#[test]
fn more_timers_than_a_key_may_have_are_refused() {
    on_every_store(&[], |world| {
        world.limits = StateLimits { timers_per_key_max: 2, ..StateLimits::default() };
        let mut session = world.session(0);
        let a = register(&mut session, "a", &[1, 2]);
        session.register_timer(a, 2).unwrap();
        assert_eq!(code(session.register_timer(a, 3)), "STATE_LIMIT_EXCEEDED");
    });
}

#[test]
fn timers_count_among_the_bytes_that_a_batch_may_write() {
    on_every_store(&[], |world| {
        world.limits = StateLimits { write_bytes_max: 1_000, ..StateLimits::default() };
        let mut session = world.session(0);
        let a = session.enter(key("a"));
        let refused = (0..100).find(|expiry_ms| session.register_timer(a, *expiry_ms).is_err());
        assert_eq!(refused, Some(15));
    });
}

#[test]
fn the_phase_must_be_open_before_it_gives_timers() {
    on_every_store(&[], |world| {
        assert_eq!(code(world.session(0).next_due(&mut Vec::new())), "STATE_MISUSE");
    });
}
