//! What a log says of damage: cut anywhere, flipped anywhere, lost in a power failure.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

/// Three records, the second and third in one group, in one segment.
fn small_log(dir: &Path) -> PathBuf {
    let (mut log, _) = open(dir).unwrap();
    append(&mut log, &record(1, 5));
    log.append(NewRecord::from(&record(2, 5)), Durability::WithNext).unwrap();
    append(&mut log, &record(3, 5));
    append(&mut log, &record(4, 5));
    dir.join("log-00000000000000000001.tlog")
}

fn all() -> [Record; 4] {
    [1, 2, 3, 4].map(|number| record(number, 5))
}

/// What opening a log with this segment gives; when it is refused, nothing may have changed.
fn opened_with(segment: &[u8]) -> Result<Vec<Record>, LogError> {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("log-00000000000000000001.tlog"), segment).unwrap();
    let before = contents(dir.path());
    let looked_at = view(dir.path());
    assert_eq!(contents(dir.path()), before);
    let opened = recovered(dir.path());
    assert_eq!(looked_at.is_ok(), opened.is_ok(), "looking at a log and opening it agree");
    if opened.is_err() {
        assert_eq!(contents(dir.path()), before);
    }
    opened
}

#[test]
fn a_log_cut_at_any_byte_gives_the_records_before_the_cut() {
    let dir = TempDir::new().unwrap();
    let bytes = fs::read(small_log(dir.path())).unwrap();

    let mut counts = Vec::new();
    for cut in 0..=bytes.len() {
        match opened_with(&bytes[..cut]) {
            Ok(records) => {
                assert_eq!(records, all()[..records.len()]);
                counts.push(records.len());
            }
            // The header is durable before the segment has its name: this is damage.
            Err(error) => assert!(error.code() == "LOG_CORRUPT" && cut < 44, "{error}"),
        }
    }

    counts.dedup();
    assert_eq!(counts, [0, 1, 3, 4], "a group is cut whole");
}

#[test]
fn a_flipped_bit_is_refused_or_in_the_last_group_cut_and_never_a_wrong_record() {
    let dir = TempDir::new().unwrap();
    let bytes = fs::read(small_log(dir.path())).unwrap();

    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        match opened_with(&damaged) {
            Ok(records) => assert_eq!(records, all()[..3], "byte {at}"),
            Err(error) => assert_eq!(error.code(), "LOG_CORRUPT", "byte {at}: {error}"),
        }
    }
}

#[test]
fn a_damaged_middle_says_where_and_what_to_do() {
    let dir = TempDir::new().unwrap();
    let path = small_log(dir.path());
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, bytes).unwrap();

    let message = open(dir.path()).unwrap_err().to_string();

    assert!(message.starts_with(&format!("{} is damaged at byte ", path.display())), "{message}");
    assert!(message.contains("nothing was cut or changed"), "{message}");
}

#[test]
fn damage_before_an_unfinished_group_is_not_taken_for_a_tail() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path()).unwrap();
    append(&mut log, &record(1, 5));
    log.append(NewRecord::from(&record(2, 5)), Durability::WithNext).unwrap();
    drop(log);
    let mut bytes = fs::read(dir.path().join("log-00000000000000000001.tlog")).unwrap();
    assert_eq!(opened_with(&bytes).unwrap(), [record(1, 5)]);
    bytes[60] ^= 1;

    assert_eq!(opened_with(&bytes).unwrap_err().code(), "LOG_CORRUPT");
}

#[test]
fn damage_in_an_earlier_segment_is_found_when_the_log_is_opened_or_the_record_read() {
    let dir = TempDir::new().unwrap();
    let path = small_log(dir.path());
    let mut log = open(dir.path()).unwrap().0;
    log.roll().unwrap();
    append(&mut log, &record(5, 5));
    drop(log);
    let path = path.with_file_name("log-00000000000000000002.tlog");
    let bytes = fs::read(&path).unwrap();

    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, damaged).unwrap();
        let view = view(dir.path());
        let read =
            view.and_then(|view| view.records.iter().map(|at| view.reader.read(at)).collect::<Result<Vec<_>, _>>());
        assert_eq!(read.unwrap_err().code(), "LOG_CORRUPT", "byte {at}");
    }
    for cut in 0..bytes.len() {
        fs::write(&path, &bytes[..cut]).unwrap();
        assert_eq!(open(dir.path()).unwrap_err().code(), "LOG_CORRUPT", "cut at {cut}");
    }
}

#[test]
fn a_missing_segment_is_named_by_its_neighbours() {
    let dir = TempDir::new().unwrap();
    let mut log = open(dir.path()).unwrap().0;
    for number in 1..=5 {
        append(&mut log, &record(number, 5));
        if number != 2 {
            log.roll().unwrap();
        }
    }
    drop(log);
    fs::remove_file(dir.path().join("log-00000000000000000002.tlog")).unwrap();
    let before = contents(dir.path());

    let error = open(dir.path()).unwrap_err();

    assert_eq!(error.code(), "LOG_CORRUPT");
    let message = error.to_string();
    assert!(message.contains("misses the records 2 to 3"), "{message}");
    assert!(message.contains("log-00000000000000000001.tlog and "), "{message}");
    assert!(message.contains("log-00000000000000000003.tlog"), "{message}");
    assert_eq!(contents(dir.path()), before);
}

#[test]
fn a_segment_of_another_query_or_under_another_name_is_refused() {
    let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let path = small_log(dir.path());
    drop(QueryLog::open(scratch_disk(), other.path(), "query-8").unwrap());
    fs::copy(other.path().join("log-00000000000000000001.tlog"), &path).unwrap();
    assert_eq!(open(dir.path()).unwrap_err().code(), "LOG_FOREIGN");

    fs::remove_file(&path).unwrap();
    small_log(dir.path());
    fs::copy(&path, dir.path().join("log-00000000000000000002.tlog")).unwrap();
    assert_eq!(open(dir.path()).unwrap_err().code(), "LOG_FOREIGN");
}

#[test]
fn a_segment_of_a_newer_version_is_refused_with_advice() {
    let dir = TempDir::new().unwrap();
    let path = small_log(dir.path());
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = 2;
    let whole = crc32fast::hash(&bytes[..12]);
    bytes[12..16].copy_from_slice(&whole.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    let before = contents(dir.path());

    let error = open(dir.path()).unwrap_err();

    assert_eq!(error.code(), "LOG_VERSION_UNSUPPORTED");
    assert!(error.to_string().contains("format version 2, this program reads up to 1: use a newer version"));
    assert_eq!(contents(dir.path()), before);
}

#[test]
fn a_long_garbage_tail_is_cut() {
    let dir = TempDir::new().unwrap();
    let mut bytes = fs::read(small_log(dir.path())).unwrap();
    let stale = bytes[44..].to_vec();
    bytes.extend((0..300_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]));
    // Frames of this very segment are no proof of a later group.
    bytes.extend(stale);

    assert_eq!(opened_with(&bytes).unwrap(), all());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_that_are_no_log_are_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert_eq!(opened_with(&bytes).unwrap_err().code(), "LOG_CORRUPT");
    }

    #[test]
    fn several_damages_never_give_a_wrong_record(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let dir = TempDir::new().unwrap();
        let mut bytes = fs::read(small_log(dir.path())).unwrap();
        for (at, byte) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        match opened_with(&bytes) {
            Ok(records) => prop_assert_eq!(&records, &all()[..records.len()]),
            Err(error) => prop_assert!(matches!(error.code(), "LOG_CORRUPT" | "LOG_VERSION_UNSUPPORTED")),
        }
    }
}
