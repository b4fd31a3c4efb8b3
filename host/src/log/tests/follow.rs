//! A log that one process writes and another follows.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::log::{LogFollower, SegmentStart};

fn follower(dir: &Path) -> LogFollower {
    LogFollower::new(scratch_disk(), dir, QUERY)
}

#[test]
fn records_are_read_as_they_come() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path()).unwrap();
    let segment = follower(dir.path()).segments().unwrap()[0].segment;
    let mut stream = follower(dir.path()).open(segment).unwrap();

    assert_eq!(stream.next_record().unwrap(), None);
    append(&mut log, &record(1, 10));
    append(&mut log, &record(2, 3_000_000));
    assert_eq!(stream.next_record().unwrap(), Some(record(1, 10)));
    assert_eq!(stream.next_record().unwrap(), Some(record(2, 3_000_000)));
    assert_eq!(stream.next_record().unwrap(), None);
    append(&mut log, &record(3, 0));
    assert_eq!(stream.next_record().unwrap(), Some(record(3, 0)));
}

#[test]
fn segments_are_told_in_the_order_of_their_records() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path()).unwrap();
    append(&mut log, &record(1, 10));
    append(&mut log, &record(2, 10));
    log.roll().unwrap();

    let sequences: Vec<_> = follower(dir.path()).segments().unwrap().iter().map(|start| start.sequence).collect();

    assert_eq!(sequences, [1, 3]);
}

#[test]
fn a_segment_that_a_recovery_replaced_is_left_out() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path()).unwrap();
    append(&mut log, &record(1, 10));
    let [(old, bytes)] = contents(dir.path()).try_into().unwrap();
    drop(open(dir.path()).unwrap());
    // As a crash leaves it, before the old one goes.
    fs::write(dir.path().join(old), bytes).unwrap();

    assert_eq!(follower(dir.path()).segments().unwrap(), [SegmentStart { segment: 2, sequence: 1 }]);
}

#[test]
fn a_record_that_is_cut_or_changed_is_not_read() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path()).unwrap();
    append(&mut log, &record(1, 10));
    let written = append(&mut log, &record(2, 10));
    let path = dir.path().join(&names(dir.path())[0]);
    let whole = fs::read(&path).unwrap();
    let first = usize::try_from(written.offset).unwrap();
    // Behind the record are 40 bytes that end its group.
    for at in first..whole.len() - 40 {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        for damaged in [&changed, &whole[..at]] {
            fs::write(&path, damaged).unwrap();
            let mut stream = follower(dir.path()).open(written.segment).unwrap();
            assert_eq!(stream.next_record().unwrap(), Some(record(1, 10)));

            assert_eq!(stream.next_record().unwrap(), None, "byte {at}");
            assert_eq!(stream.missing().code(), "LOG_CORRUPT");
        }
    }
}
