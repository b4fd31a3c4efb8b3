//! Snapshots and the log as a start finds them: damaged, lost, cut off, trimmed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tidemill_host::connect::memory::MemoryTable;
use tidemill_host::engine::settings::{QuerySettings, Retention};
use tidemill_host::engine::view::QueryView;

use super::{Place, real};
use crate::native_query::{MemoryQuery, code, drain, settings};

#[test]
fn a_damaged_snapshot_is_passed_over_for_an_older_one() {
    let place = Place::new();
    place.first_batches(5);
    let [.., older, newest] = &snapshots(&place)[..] else { panic!("there are not two snapshots") };
    damage(&newest.join("manifest.json"));

    let running = place.open().unwrap();

    assert_eq!(running.recovered().snapshot.as_deref(), older.file_name().unwrap().to_str());
    running.close().unwrap();
    let mut running = place.open().unwrap();
    assert_eq!(running.recovered().applied, 0, "the damaged one was made anew");
    drain(&mut running).unwrap();
    assert!(place.published() == Place::undisturbed());
}

#[test]
fn damage_within_the_tables_of_a_snapshot_lets_a_start_take_an_older_one() {
    let place = Place::new();
    place.first_batches(2);
    place.first_batches(2);
    let [older, newest] = &snapshots(&place)[..] else { panic!("there are not two snapshots") };
    let tables = |folder: &Path| -> BTreeSet<PathBuf> {
        let names = fs::read_dir(folder).unwrap().map(|entry| PathBuf::from(entry.unwrap().file_name()));
        names.filter(|name| name.extension().is_some_and(|ending| ending == "sst")).collect()
    };
    let shared = tables(older);
    for table in tables(newest).difference(&shared) {
        let mut bytes = fs::read(newest.join(table)).unwrap();
        bytes[10] ^= 1;
        fs::write(newest.join(table), bytes).unwrap();
    }

    // Met while the snapshot is opened, it is passed over at once; met in a batch, by the start after that.
    let started = || {
        let mut running = place.open()?;
        let snapshot = running.recovered().snapshot.clone();
        drain(&mut running)?;
        running.close().map(|()| snapshot)
    };
    let started = started().or_else(|_| started()).unwrap();

    assert_eq!(started.as_deref(), older.file_name().unwrap().to_str());
    assert!(place.published() == Place::undisturbed());
    assert_eq!(place.open().unwrap().recovered().applied, 0, "the damaged one was made anew");
}

#[test]
fn runs_of_one_batch_each_keep_no_more_of_the_log_than_is_retained() {
    let mut place = Place::new();
    place.query.settings.retention.batches = 2;
    (0..6).for_each(|_| place.first_batches(1));

    let view = QueryView::open(real(), &place.query.checkpoint).unwrap();

    let retained: Vec<u64> = view.history().batches.iter().map(|batch| batch.batch_id).collect();
    assert_eq!(retained, [3, 4, 5], "the snapshot of batch 3 reaches the two after it");
}

#[test]
fn without_a_snapshot_the_state_is_rebuilt_from_the_log_if_that_goes_back_far_enough() {
    for (batches, outcome) in [(100, None), (1, Some("SNAPSHOT_MISSING"))] {
        let mut place = Place::new();
        place.query.settings.retention.batches = batches;
        (0..3).for_each(|_| place.first_batches(2));
        snapshots(&place).iter().for_each(|snapshot| damage(&snapshot.join("manifest.json")));

        match outcome {
            None => {
                drain(&mut place.open().unwrap()).unwrap();
                assert!(place.published() == Place::undisturbed());
            }
            Some(expected) => assert_eq!(code(place.open()), expected),
        }
    }
}

#[test]
fn an_unfinished_tail_of_the_log_is_cut_and_damage_in_its_middle_is_not() {
    let mut place = Place::new();
    place.query.settings.retention.snapshot_batches = u64::MAX;
    let mut running = place.open().unwrap();
    running.step().unwrap();
    drop(running);
    let whole = fs::read(last_segment(&place)).unwrap();

    fs::write(last_segment(&place), [&whole[..], b"half a record"].concat()).unwrap();
    let mut running = place.open().unwrap();
    assert_eq!(running.head().last_batch, Some(0));
    running.step().unwrap();
    drop(running);

    let segment = last_segment(&place);
    let mut bytes = fs::read(&segment).unwrap();
    bytes[whole.len() / 2] ^= 1;
    fs::write(&segment, &bytes).unwrap();
    assert_eq!(code(place.open()), "LOG_CORRUPT");
    assert_eq!(fs::read(&segment).unwrap(), bytes, "nothing was cut");
}

#[test]
fn a_log_that_has_lost_batches_which_a_snapshot_holds_is_noticed() {
    let query = MemoryQuery::new(settings());
    query.feed(&[("a", 0, 1)]);
    let mut running = query.open().unwrap();
    drain(&mut running).unwrap();
    running.close().unwrap();
    fs::remove_dir_all(query.checkpoint().join("log")).unwrap();
    // Without a ledger nothing but the snapshot tells.
    let query = MemoryQuery { table: MemoryTable::default(), ..query };

    assert_eq!(code(query.open()), "LOG_BEHIND_SNAPSHOT");
}

#[test]
fn a_query_that_is_dropped_amid_a_snapshot_can_be_opened_at_once() {
    let often = Retention { snapshot_batches: 1, snapshot_bytes: u64::MAX, batches: 3 };
    let query = MemoryQuery::new(QuerySettings { retention: often, ..settings() });
    for n in 1..=15 {
        query.feed(&[("a", 0, n)]);
        query.open().unwrap().step().unwrap();
    }
    assert_eq!(query.emitted().last().unwrap(), "a row 1000 15 120");
}

/// Oldest first.
fn snapshots(place: &Place) -> Vec<PathBuf> {
    let folder = place.query.checkpoint.join("snapshots");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn last_segment(place: &Place) -> PathBuf {
    let folder = place.query.checkpoint.join("log");
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).max().unwrap()
}

fn damage(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}
