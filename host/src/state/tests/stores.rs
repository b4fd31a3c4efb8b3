//! What holds for stores, and what reads beside sessions give.

use std::ops::ControlFlow;

use super::super::{
    Applied, Changes, Contents, Family, Reader, RocksSettings, RocksStore, Store, VariableKind, for_each_row,
    for_each_timer,
};
use super::backing::Backing;
use super::world::{code, key, on_every_store, put_list, row, variable};

fn changes(puts: &[(Family, &str, Option<&str>)]) -> Changes {
    let mut changes = Changes::default();
    for (family, key, value) in puts {
        changes.push(*family, key.as_bytes(), value.map(str::as_bytes));
    }
    changes
}

fn scan(store: &dyn Store, family: Family, from: &str, to: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let visit = &mut |key: &[u8], _: &[u8]| {
        keys.push(String::from_utf8(key.to_vec()).unwrap());
        ControlFlow::Continue(())
    };
    store.scan(family, from.as_bytes(), to.as_bytes(), visit).unwrap();
    keys
}

#[test]
fn changes_may_be_applied_again() {
    for backing in Backing::all() {
        let store = backing.store();
        let batch = [
            changes(&[(Family::State, "a", Some("1")), (Family::State, "b", Some("2"))]),
            changes(&[(Family::State, "a", None)]),
        ];
        let applied = Applied { batch: Some(4), generation: 2 };
        for _ in 0..2 {
            store.apply(&batch, applied).unwrap();
            assert_eq!(scan(&*store, Family::State, "a", "z"), ["b"]);
            assert_eq!(store.applied().unwrap(), applied);
        }
    }
}

#[test]
fn a_batch_that_is_applied_in_part_is_known() {
    let dir = tempfile::TempDir::new().unwrap();
    let store = RocksStore::open(dir.path(), &RocksSettings::default()).unwrap();
    let large = "x".repeat(9 << 20);
    let batch = |last: Changes| [changes(&[(Family::State, "a", Some(&large))]), last];
    let applied = Applied { batch: Some(3), generation: 1 };

    let cut_short = Changes::from_bytes(vec![1, 5, b'b']);
    assert_eq!(store.apply(&batch(cut_short), applied).unwrap_err().code(), "STATE_CORRUPT");
    assert_eq!((store.applied().unwrap(), store.applying().unwrap()), (Applied::default(), Some(applied)));

    store.apply(&batch(changes(&[(Family::State, "b", Some("2"))])), applied).unwrap();
    assert_eq!((store.applied().unwrap(), store.applying().unwrap()), (applied, None));
}

#[test]
fn scans_keep_to_their_bounds_and_families_apart() {
    for backing in Backing::all() {
        let store = backing.store();
        let puts = ["a", "b", "c"].map(|key| (Family::State, key, Some("1")));
        store.apply(&[changes(&puts), changes(&[(Family::Ttl, "bb", Some(""))])], Applied::default()).unwrap();
        assert_eq!(scan(&*store, Family::State, "a", "c"), ["a", "b"]);
        assert_eq!(scan(&*store, Family::State, "aa", "z"), ["b", "c"]);
        assert_eq!(scan(&*store, Family::State, "c", "a"), Vec::<String>::new());
        assert_eq!(scan(&*store, Family::Ttl, "a", "z"), ["bb"]);
    }
}

#[test]
fn a_scan_ends_when_it_is_told_to() {
    for backing in Backing::all() {
        let store = backing.store();
        store.apply(&[changes(&["a", "b"].map(|key| (Family::State, key, Some("1"))))], Applied::default()).unwrap();
        let mut seen = 0;
        let visit = &mut |_: &[u8], _: &[u8]| {
            seen += 1;
            ControlFlow::Break(())
        };
        store.scan(Family::State, b"a", b"z", visit).unwrap();
        assert_eq!(seen, 1);
    }
}

#[test]
fn a_multi_get_tells_for_each_key_what_is_there() {
    for backing in Backing::all() {
        let store = backing.store();
        store.apply(&[changes(&["b", "d"].map(|key| (Family::State, key, Some(key))))], Applied::default()).unwrap();
        let mut found = Vec::new();
        let keys: [&[u8]; 4] = [b"a", b"b", b"c", b"d"];
        store
            .multi_get(Family::State, &keys, &mut |position, value| found.push((position, value.map(<[u8]>::to_vec))))
            .unwrap();
        assert_eq!(found, [(0, None), (1, Some(b"b".to_vec())), (2, None), (3, Some(b"d".to_vec()))]);
    }
}

#[test]
fn damaged_changes_are_refused() {
    for backing in Backing::all() {
        let damaged = Changes::from_bytes(vec![1, 200]);
        assert_eq!(code(backing.store().apply(&[damaged], Applied::default())), "STATE_CORRUPT");
    }
}

#[test]
fn changes_larger_than_one_write_are_applied_whole() {
    let backing = Backing::rocks();
    let store = backing.store();
    let large = "x".repeat(1 << 20);
    let keys: Vec<String> = (10..40).map(|n| n.to_string()).collect();
    let puts: Vec<_> = keys.iter().map(|key| (Family::State, key.as_str(), Some(large.as_str()))).collect();
    store.apply(&[changes(&puts)], Applied { batch: Some(1), generation: 0 }).unwrap();
    assert_eq!(scan(&*store, Family::State, "0", "9"), keys);
}

#[test]
fn a_store_in_use_cannot_be_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let _open = RocksStore::open(dir.path(), &RocksSettings::default()).unwrap();
    assert_eq!(code(RocksStore::open(dir.path(), &RocksSettings::default())), "STATE_LOCKED");
}

#[test]
fn a_snapshot_is_a_store_of_the_batch_at_which_it_was_made() {
    let dir = tempfile::tempdir().unwrap();
    let live = RocksStore::open(&dir.path().join("live"), &RocksSettings::default()).unwrap();
    let at = Applied { batch: Some(3), generation: 1 };
    live.apply(&[changes(&[(Family::State, "a", Some("1")), (Family::Timers, "t", Some(""))])], at).unwrap();
    live.snapshot(&dir.path().join("snapshot")).unwrap();
    live.apply(&[changes(&[(Family::State, "b", Some("1"))])], Applied { batch: Some(4), generation: 1 }).unwrap();

    let snapshot = RocksStore::open(&dir.path().join("snapshot"), &RocksSettings::default()).unwrap();

    assert_eq!(snapshot.applied().unwrap(), at);
    assert_eq!(scan(&snapshot, Family::State, "a", "z"), ["a"]);
    assert_eq!(scan(&snapshot, Family::Timers, "a", "z"), ["t"]);
}

#[test]
fn a_store_of_another_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let store = RocksStore::open(dir.path(), &RocksSettings::default()).unwrap();
    store.apply(&[changes(&[(Family::Meta, "format", Some("\u{9}\0\0\0"))])], Applied::default()).unwrap();
    store.snapshot(&dir.path().join("snapshot")).unwrap();
    let refused = RocksStore::open(&dir.path().join("snapshot"), &RocksSettings::default());
    assert_eq!(code(refused), "STATE_FORMAT_UNSUPPORTED");
}

#[test]
fn a_table_file_that_was_damaged_is_reported_with_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    let snapshot = dir.path().join("snapshot");
    let live = RocksStore::open(&dir.path().join("live"), &RocksSettings::default()).unwrap();
    live.apply(&[changes(&[(Family::State, "a", Some("1"))])], Applied::default()).unwrap();
    live.snapshot(&snapshot).unwrap();
    for file in std::fs::read_dir(&snapshot).unwrap().map(|file| file.unwrap().path()) {
        if file.extension().is_some_and(|extension| extension == "sst") {
            let mut bytes = std::fs::read(&file).unwrap();
            bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
            // The snapshot shares its files with the live store.
            std::fs::remove_file(&file).unwrap();
            std::fs::write(&file, bytes).unwrap();
        }
    }

    let read = RocksStore::open(&snapshot, &RocksSettings::default())
        .and_then(|store| store.scan(Family::State, b"a", b"z", &mut |_, _| ControlFlow::Continue(())));

    let error = read.unwrap_err();
    assert_eq!(error.code(), "STATE_CORRUPT");
    assert!(error.to_string().contains("snapshot"), "{error}");
}

#[test]
fn rows_of_one_key_or_all_are_listed_by_kind() {
    let variables = [
        variable("v", VariableKind::Value, Some(5)),
        variable("l", VariableKind::List, None),
        variable("m", VariableKind::Map, None),
    ];
    on_every_store(&variables, |world| {
        world.batch(0, |session| {
            for name in ["a", "aa"] {
                let group = session.enter(key(name));
                session.put_value(0, group, &row(1)).unwrap();
                put_list(session, 1, group, &[7, 8]);
                session.map_put(2, group, &row(3), &row(4)).unwrap();
                session.register_timer(group, 9).unwrap();
            }
        });
        assert_eq!(world.stored(0), [("a".into(), 0, 1, Some(5)), ("aa".into(), 0, 1, Some(5))]);

        let mut of_a = Vec::new();
        let store = world.store();
        for (id, kind) in [(1, VariableKind::Value), (2, VariableKind::List), (3, VariableKind::Map)] {
            for_each_row(&*store, 0, id, kind, Some(key("a")), &mut |stored| {
                of_a.push(match stored.contents {
                    Contents::Value(row) => (0, row.to_vec()),
                    Contents::Element { sequence, row } => (sequence, row.to_vec()),
                    Contents::Entry { key, row } => (9, [key, row].concat()),
                });
                ControlFlow::Continue(())
            })
            .unwrap();
        }
        let expected =
            [(0, row(1).to_vec()), (0, row(7).to_vec()), (1, row(8).to_vec()), (9, [row(3), row(4)].concat())];
        assert_eq!(of_a, expected);

        let mut timers = 0;
        for_each_timer(&*store, 0, Some(key("aa")), &mut |timer| {
            assert_eq!((timer.key, timer.expiry_ms), (key("aa"), 9));
            timers += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(timers, 1);
    });
}
