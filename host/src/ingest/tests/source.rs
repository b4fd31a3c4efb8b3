//! The log as a source of the engine.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::connect::contract::check_source;
use crate::engine::source::SourceRange;

fn filled(dir: &Path) -> IngestLog {
    let settings = IngestSettings { segment_bytes: 500, ..IngestSettings::default() };
    let log = open_with(dir, settings, &Arc::new(ManualClock::at(0))).unwrap();
    for number in 0..12 {
        log.append(rows(&number.to_string(), number % 4), Dedup::None).unwrap();
    }
    log
}

#[test]
fn the_source_keeps_the_contract() {
    let dir = TempDir::new().unwrap();
    let log = filled(dir.path());

    let content = check_source(|| Box::new(source(dir.path(), log.end())));

    assert_eq!(content.rows.len() as u64, log.end());
}

#[test]
fn a_null_that_the_processor_does_not_want_is_a_rejected_row() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    let body = b"{\"user\":\"a\",\"n\":1}\n{\"user\":\"b\"}\n{\"user\":\"c\",\"n\":3}\n";
    let body = parse(BodyFormat::JsonLines, body, &schema(), &BodyLimits::default()).unwrap();
    log.append(body, Dedup::None).unwrap();
    let mut source = source(dir.path(), 3);
    source.project(&Schema::parse("n BIGINT NOT NULL, user STRING NOT NULL").unwrap()).unwrap();

    let slice = source.next(&ALL).unwrap().unwrap();

    assert_eq!(slice.rows(), 2);
    let rejected: Vec<_> = slice.rejected.iter().map(|row| (row.row, row.code.as_str(), row.text.as_str())).collect();
    assert_eq!(rejected, [(2, "NULL_IN_NOT_NULL_COLUMN", r#"{"user":"b","n":null}"#)]);
}

#[test]
fn rows_of_an_earlier_schema_are_read_as_rows_of_todays() {
    let dir = TempDir::new().unwrap();
    let narrow = Schema::parse("user STRING NOT NULL, n INT").unwrap();
    let clock = Arc::new(ManualClock::at(0));
    let settings = IngestSettings::default();
    let old = IngestLog::open(scratch_disk(), dir.path(), QUERY, &narrow, settings, clock).unwrap();
    let body = parse(BodyFormat::JsonLines, b"{\"user\":\"old\",\"n\":0}", &narrow, &BodyLimits::default()).unwrap();
    old.append(body, Dedup::None).unwrap();
    drop(old);

    let log = open(dir.path());
    log.append(rows("new", 1), Dedup::None).unwrap();

    assert_eq!(read_all(dir.path(), 2), ["old 0", "new 0"]);
}

#[test]
fn rows_that_were_trimmed_are_said_to_be_gone() {
    let dir = TempDir::new().unwrap();
    let log = filled(dir.path());
    let range = source(dir.path(), log.end()).next(&ReadLimits { rows_max: 1, ..ALL }).unwrap().unwrap().range;

    log.trim(log.end()).unwrap();

    assert!(log.first_row() > 0);
    assert_eq!(source(dir.path(), log.end()).read_again(&range).unwrap_err().code, "INGEST_ROWS_GONE");
}

#[test]
fn rows_that_are_not_those_that_were_committed_are_refused() {
    let dir = TempDir::new().unwrap();
    let log = filled(dir.path());
    let mut range = source(dir.path(), log.end()).next(&ALL).unwrap().unwrap().range;
    range.at["digest"] = "0".repeat(32).into();

    assert_eq!(source(dir.path(), log.end()).read_again(&range).unwrap_err().code, "INGEST_ROWS_CHANGED");
    assert_eq!(source(dir.path(), log.end()).verify(&range).unwrap_err().code, "INGEST_ROWS_CHANGED");
}

#[test]
fn a_position_that_is_none_is_refused() {
    let dir = TempDir::new().unwrap();
    for at in [serde_json::json!(null), serde_json::json!({"first": 2, "end": 1, "digest": ""})] {
        let error = source(dir.path(), 9).read_again(&SourceRange { at, inline: None }).unwrap_err();
        assert_eq!(error.code, "SOURCE_POSITION_INVALID");
    }
}

#[test]
fn a_byte_that_has_changed_is_found_wherever_it_stands() {
    let dir = TempDir::new().unwrap();
    let log = filled(dir.path());
    let whole = read_all(dir.path(), log.end());
    let segment = crate::disk::RealDisk.list(dir.path()).unwrap().swap_remove(1);
    let path = dir.path().join(&segment.name);
    let bytes = fs::read(&path).unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        fs::write(&path, damaged).unwrap();

        let read = source(dir.path(), log.end()).next(&ALL);

        // A frame that ends a group holds nothing that a reader needs.
        let as_before = read.as_ref().is_ok_and(|slice| shown(slice.as_ref().unwrap()) == whole);
        let refused = read.as_ref().is_err_and(|error| error.code.starts_with("LOG_"));
        assert!(as_before || refused, "byte {at}: {read:?}");
    }
}
