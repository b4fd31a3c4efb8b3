//! What the store promises.

use super::*;
use crate::server::meta::view::{Family, View};

const THINGS: Family<u32> = Family::new("things");

fn open() -> (tempfile::TempDir, Meta) {
    let place = tempfile::tempdir().unwrap();
    let meta = Meta::open(&place.path().join("meta.redb")).unwrap();
    (place, meta)
}

fn put(meta: &Meta, records: &[(&str, u32)]) {
    meta.write(|writing| records.iter().try_for_each(|(key, value)| writing.put(&THINGS, key, value))).unwrap();
}

#[test]
fn a_transaction_that_fails_changes_nothing() {
    let (_place, meta) = open();
    put(&meta, &[("a", 1)]);

    let failed: Result<(), MetaError> = meta.write(|writing| {
        writing.put(&THINGS, "a", &2)?;
        Err(MetaError::Record { family: "things", defect: "made up".to_owned() })
    });

    assert!(failed.is_err());
    assert_eq!(meta.read(|view| view.get(&THINGS, "a")).unwrap(), Some(1));
}

#[test]
fn what_was_written_is_there_after_the_store_is_opened_again() {
    let (place, meta) = open();
    put(&meta, &[("a", 1)]);
    drop(meta);

    let meta = Meta::open(&place.path().join("meta.redb")).unwrap();

    assert_eq!(meta.read(|view| view.get(&THINGS, "a")).unwrap(), Some(1));
}

#[test]
fn pages_stay_within_their_prefix_and_go_on_where_the_last_one_ended() {
    let (_place, meta) = open();
    put(&meta, &[("s/9", 9), ("t/1", 1), ("t/2", 2), ("t/3", 3), ("u/1", 0)]);
    let page = |after, limit| meta.read(|view| view.page(&THINGS, "t/", after, limit)).unwrap();

    let first = page(None, 2);
    let second = page(Some("2"), 2);

    assert_eq!(first.records, [("1".to_owned(), 1), ("2".to_owned(), 2)]);
    assert!(first.more);
    assert_eq!(second.records, [("3".to_owned(), 3)]);
    assert!(!second.more);
}

#[test]
fn a_record_of_a_newer_version_is_refused() {
    let (_place, meta) = open();
    let raw = redb::TableDefinition::<&str, &[u8]>::new("things");
    let transaction = meta.0.begin_write().unwrap();
    transaction.open_table(raw).unwrap().insert("a", [2, b'1'].as_slice()).unwrap();
    transaction.commit().unwrap();

    let error = meta.read(|view| view.get(&THINGS, "a")).unwrap_err();

    assert_eq!(error.code(), "META_VERSION_UNSUPPORTED");
}
