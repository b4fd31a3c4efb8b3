//! What a newer version of a processor finds of the state of an older one: rows in today's schema by every way to read
//! them, rewritten only when they are written; expiries as they were given; nothing of what was dropped.

use serde_json::{Value, json};

use super::super::{Family, GroupId, MapPart, Session, VariableKind, VariableSpec};
use super::backing::Backing;
use super::world::{World, append, entries, get, key, list, map, numbers, on_every_store, put_list, rest, row, value};
use crate::record::{RowLayout, Schema, row_from_json, row_to_json};

const OLD: &str = "n INT, gone STRING";
const NEW: &str = "added STRING, n BIGINT, inner STRUCT<x: INT>";

fn layout(ddl: &str) -> RowLayout {
    RowLayout::new(&Schema::parse(ddl).unwrap())
}

fn packed(ddl: &str, row: Value) -> Vec<u8> {
    row_from_json(&layout(ddl), &row).unwrap()
}

fn old(n: i64) -> Vec<u8> {
    packed(OLD, json!({"n": n, "gone": "x"}))
}

fn new(n: i64) -> Vec<u8> {
    packed(NEW, json!({"n": n, "added": "y"}))
}

/// What is in a row of today's schema.
fn shown(row: &[u8]) -> String {
    let row = row_to_json(&layout(NEW), row).unwrap();
    format!("{}{}", row["n"], row["added"].as_str().unwrap_or(""))
}

fn variables(ddl: &str) -> Vec<VariableSpec> {
    let value = Schema::parse(ddl).unwrap();
    let key = Schema::parse("k STRING").unwrap();
    [("v", VariableKind::Value, None), ("l", VariableKind::List, None), ("m", VariableKind::Map, Some(key))]
        .map(|(name, kind, key)| VariableSpec { name: name.into(), kind, key, value: value.clone(), ttl_ms: None })
        .into()
}

fn map_key(name: &str) -> Vec<u8> {
    packed("k STRING", json!({"k": name}))
}

fn fill(session: &mut Session, group: GroupId) {
    session.put_value(0, group, &old(1)).unwrap();
    session.list_put(1, group, &mut [old(2), old(3)].iter().map(Vec::as_slice)).unwrap();
    session.map_put(2, group, &map_key("a"), &old(4)).unwrap();
    session.map_put(2, group, &map_key("b"), &old(5)).unwrap();
}

fn listed(session: &mut Session, group: GroupId) -> Vec<String> {
    let mut cursor = session.list(1, group).unwrap();
    rest(session, &mut cursor, 60).iter().map(|row| shown(row)).collect()
}

fn mapped(session: &mut Session, group: GroupId) -> Vec<String> {
    let mut cursor = session.map(2, group, MapPart::Values).unwrap();
    rest(session, &mut cursor, 60).iter().map(|row| shown(row)).collect()
}

fn evolved(test: impl Fn(&mut World)) {
    on_every_store(&variables(OLD), |world| {
        world.batch(0, |session| {
            let group = session.enter(key("a"));
            fill(session, group);
        });
        world.declare(&variables(NEW));
        test(world);
    });
}

#[test]
fn every_read_gives_rows_in_todays_schema() {
    evolved(|world| {
        let mut session = world.session(0);
        let group = session.enter(key("a"));
        session.prefetch(&[0], &[group]).unwrap();
        assert_eq!(session.value(0, group).unwrap().map(shown).unwrap(), "1");
        assert_eq!(session.map_value(2, group, &map_key("b")).unwrap().map(shown).unwrap(), "5");
        assert_eq!(listed(&mut session, group), ["2", "3"]);
        assert_eq!(mapped(&mut session, group), ["4", "5"]);
        assert!(session.exists(0, group).unwrap() && session.map_contains(2, group, &map_key("a")).unwrap());
    });
}

#[test]
fn rows_are_rewritten_only_when_they_are_written_so_several_schemas_live_together() {
    evolved(|world| {
        let read_only = world.batch(0, |session| {
            let group = session.enter(key("a"));
            session.prefetch(&[0], &[group]).unwrap();
            listed(session, group);
            mapped(session, group);
        });
        assert_eq!(read_only.rows_updated, 0);
        world.batch(0, |session| {
            let group = session.enter(key("a"));
            session.list_append(1, group, &mut std::iter::once(new(7).as_slice())).unwrap();
            session.map_put(2, group, &map_key("b"), &new(8)).unwrap();
        });
        world.restart();
        world.declare(&variables(NEW));
        let mut session = world.session(0);
        let group = session.enter(key("a"));
        assert_eq!(listed(&mut session, group), ["2", "3", "7y"]);
        assert_eq!(mapped(&mut session, group), ["4", "8y"]);
        assert_eq!(session.value(0, group).unwrap().map(shown).unwrap(), "1");
    });
}

#[test]
fn an_older_version_reads_what_a_newer_one_wrote() {
    evolved(|world| {
        world.batch(0, |session| {
            let group = session.enter(key("b"));
            session.put_value(0, group, &new(9)).unwrap();
        });
        let older = "n BIGINT, gone STRING";
        world.declare(&variables(older));
        let mut session = world.session(0);
        let [a, b] = ["a", "b"].map(|name| session.enter(key(name)));
        session.prefetch(&[0], &[a, b]).unwrap();
        let mut read =
            |group| row_to_json(&layout(older), session.value(0, group).unwrap().unwrap()).unwrap().to_string();
        assert_eq!(read(a), r#"{"n":1,"gone":"x"}"#, "a field that was removed and comes back is in rows that had it");
        assert_eq!(read(b), r#"{"n":9,"gone":null}"#);
    });
}

#[test]
fn a_row_of_a_schema_that_there_never_was_is_damage() {
    evolved(|world| {
        world.batch(0, |session| {
            let group = session.enter(key("a"));
            session.put_value(0, group, &new(1)).unwrap();
        });
        // The catalog of the first version knows nothing of the second.
        world.catalog = super::super::Catalog::default();
        world.declare(&variables(OLD));
        let mut session = world.session(0);
        let group = session.enter(key("a"));
        assert_eq!(session.value(0, group).unwrap_err().code(), "STATE_CORRUPT");
    });
}

#[test]
fn a_ttl_that_is_added_holds_for_what_is_written_from_then_on() {
    on_every_store(&list(None), |world| {
        world.batch(0, |session| {
            let group = session.enter(key("a"));
            append(session, 0, group, &[1, 2]);
        });
        world.declare(&list(Some(10)));
        world.batch(100, |session| {
            let group = session.enter(key("a"));
            append(session, 0, group, &[3]);
        });
        world.batch(200, |session| {
            let group = session.enter(key("a"));
            assert_eq!(numbers(session, 0, group), [1, 2]);
            assert!(session.exists(0, group).unwrap());
        });
        assert_eq!(world.stored(0), [("a".into(), 0, 1, None), ("a".into(), 1, 2, None)]);
        assert_eq!(world.records(Family::Ttl), 0);
    });
}

#[test]
fn a_ttl_that_is_taken_away_leaves_stored_expiries_and_gives_no_new_ones() {
    on_every_store(&value(Some(10)), |world| {
        world.batch(0, |session| {
            for name in ["a", "b"] {
                let group = session.enter(key(name));
                session.put_value(0, group, &row(1)).unwrap();
            }
        });
        world.declare(&value(None));
        world.batch(5, |session| {
            let group = session.enter(key("b"));
            session.put_value(0, group, &row(2)).unwrap();
        });
        let evicted = world.batch(10, |session| {
            let [a, b] = ["a", "b"].map(|name| session.enter(key(name)));
            assert_eq!((get(session, 0, a), get(session, 0, b)), (None, Some(2)));
        });
        assert_eq!(evicted.ttl_values_removed, 1);
        assert_eq!(world.stored(0), [("b".into(), 0, 2, None)]);
        assert_eq!(world.records(Family::Ttl), 0);
    });
}

#[test]
fn lists_and_maps_of_mixed_expiries_lose_their_index_entries_when_they_are_replaced() {
    for variables in [list(None), map(None)] {
        on_every_store(&variables, |world| {
            let write = |session: &mut Session, numbers: &[u64]| {
                let group = session.enter(key("a"));
                match variables[0].kind {
                    VariableKind::List => append(session, 0, group, numbers),
                    _ => numbers.iter().for_each(|n| session.map_put(0, group, &row(*n), &row(*n)).unwrap()),
                }
            };
            let with_ttl = |ttl_ms| vec![VariableSpec { ttl_ms, ..variables[0].clone() }];
            world.batch(0, |session| write(session, &[1]));
            world.declare(&with_ttl(Some(1_000)));
            world.batch(0, |session| write(session, &[2]));
            world.declare(&with_ttl(Some(2_000)));
            world.batch(0, |session| write(session, &[3]));
            world.declare(&with_ttl(None));
            assert_eq!(
                world.stored(0).into_iter().map(|(.., n, expiry_ms)| (n, expiry_ms)).collect::<Vec<_>>(),
                [(1, None), (2, Some(1_000)), (3, Some(2_000))]
            );
            world.batch(10, |session| {
                let group = session.enter(key("a"));
                match variables[0].kind {
                    VariableKind::List => put_list(session, 0, group, &[9]),
                    _ => {
                        session.clear(0, group).unwrap();
                        session.map_put(0, group, &row(9), &row(9)).unwrap();
                    }
                }
            });
            assert_eq!(
                world.stored(0).into_iter().map(|(.., n, expiry_ms)| (n, expiry_ms)).collect::<Vec<_>>(),
                [(9, None)]
            );
            assert_eq!(world.records(Family::Ttl), 0);
            if variables[0].kind == VariableKind::Map {
                world.batch(10, |session| {
                    let group = session.enter(key("a"));
                    assert_eq!(entries(session, 0, group), [(9, 9)]);
                });
            }
        });
    }
}

#[test]
fn a_dropped_variable_goes_whole_and_comes_back_empty_as_another_kind() {
    let all = [value(Some(5)), list(Some(5)), map(None)].concat();
    on_every_store(&all, |world| {
        world.batch(0, |session| {
            for name in ["a", "b"] {
                let group = session.enter(key(name));
                session.put_value(0, group, &row(1)).unwrap();
                append(session, 1, group, &[1, 2]);
                session.map_put(2, group, &row(3), &row(3)).unwrap();
            }
        });
        assert_eq!(world.drop_variables(&["value", "list", "unknown"]), 4, "rows, a list being one");
        let metrics = world.batch(1, |_| {});
        assert_eq!(metrics.rows_removed, 0);
        assert_eq!(world.records(Family::State), 2, "what is left is the map");

        let renamed = VariableSpec { name: "value".into(), ..map(None).remove(0) };
        world.declare(&[map(None), vec![renamed]].concat());
        let mut session = world.session(1);
        let group = session.enter(key("a"));
        assert_eq!(entries(&mut session, 0, group), [(3, 3)]);
        assert_eq!(entries(&mut session, 1, group), []);
    });
}

#[test]
fn index_entries_that_a_dropped_variable_leaves_go_at_their_time_and_count_for_nothing() {
    for drop_at_ms in [0, 5] {
        on_every_store(&value(Some(5)), |world| {
            world.batch(0, |session| {
                let group = session.enter(key("a"));
                session.put_value(0, group, &row(1)).unwrap();
            });
            assert_eq!(world.drop_variables(&["value"]), 1);
            let dropping = world.batch(drop_at_ms, |_| {});
            world.restart();
            world.declare(&[]);
            assert_eq!(
                (dropping.rows_total_change(), dropping.ttl_values_removed),
                (0, 0),
                "the drop itself counts it"
            );
            assert_eq!((world.records(Family::State), world.records(Family::Ttl)), (0, 1));

            let sweep = world.batch(5, |_| {});

            assert_eq!((sweep.rows_removed, sweep.ttl_values_removed, world.records(Family::Ttl)), (0, 0, 0));
            assert_eq!(world.due.earliest_ttl_ms(), None);
        });
    }
}

#[test]
fn the_space_of_a_dropped_variable_is_given_back() {
    let mut world = World::new(Backing::rocks(), &map(None));
    let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
    world.batch(0, |session| {
        let group = session.enter(key("a"));
        for n in 0..20_000 {
            let bytes: Vec<u8> = (0..25)
                .flat_map(|_| {
                    noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    noise.to_be_bytes()
                })
                .collect();
            session.map_put(0, group, &row(n), &bytes).unwrap();
        }
    });
    world.backing.snapshot();
    let before = world.store().metrics().disk_bytes;
    assert!(before > 3_000_000, "{before}");

    assert_eq!(world.drop_variables(&["map"]), 20_000);
    world.batch(1, |_| {});

    assert!(world.store().metrics().disk_bytes < before / 10, "{}", world.store().metrics().disk_bytes);
    let bytes: usize = world.log.last().unwrap().0.iter().map(|changes| changes.as_bytes().len()).sum();
    assert!(bytes < 1_000, "{bytes} bytes of changes");
}
