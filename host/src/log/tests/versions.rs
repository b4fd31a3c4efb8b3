//! Logs as earlier versions wrote them, which every later version must open.

use std::fs;

use tempfile::TempDir;

use super::*;

const VERSION_1: &[u8] = include_bytes!("fixtures/version-1.tlog");

/// What the fixtures hold: two groups, the first of two records.
fn written() -> [Record; 3] {
    [1, 2, 3].map(|number| record(number, 20))
}

#[test]
fn a_log_of_version_1_is_read() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("log-00000000000000000001.tlog"), VERSION_1).unwrap();

    assert_eq!(recovered(dir.path()).unwrap(), written());
}

#[test]
fn version_1_is_what_is_written_now() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path()).unwrap();
    for (record, durability) in written().iter().zip([Durability::WithNext, Durability::Synced, Durability::Synced]) {
        log.append(NewRecord::from(record), durability).unwrap();
    }

    assert_eq!(fs::read(dir.path().join("log-00000000000000000001.tlog")).unwrap(), VERSION_1);
}
