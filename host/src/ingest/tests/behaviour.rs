//! What is taken, what is answered, what is read.

use tempfile::TempDir;

use super::*;

#[test]
fn rows_are_read_in_the_order_in_which_they_were_taken() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());

    let first = log.append(rows("a", 2), Dedup::None).unwrap();
    let second = log.append(rows("b", 1), Dedup::None).unwrap();

    assert_eq!(first, Accepted { first_row: 0, rows: 2, end: 2, repeated: false });
    assert_eq!(second, Accepted { first_row: 2, rows: 1, end: 3, repeated: false });
    assert_eq!(log.end(), 3);
    assert_eq!(read_all(dir.path(), 3), ["a 0", "a 1", "b 0"]);
}

#[test]
fn no_row_behind_the_durable_end_is_read() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    log.append(rows("a", 5), Dedup::None).unwrap();
    let durable = DurableEnd::default();
    let mut source = IngestSource::new(scratch_disk(), dir.path(), QUERY, schema(), durable.clone());

    assert!(source.next(&ALL).unwrap().is_none());
    durable.set(3);
    assert_eq!(shown(&source.next(&ALL).unwrap().unwrap()), ["a 0", "a 1", "a 2"]);
    assert!(source.next(&ALL).unwrap().is_none());
    durable.set(5);
    assert_eq!(shown(&source.next(&ALL).unwrap().unwrap()), ["a 3", "a 4"]);
}

#[test]
fn a_log_goes_on_where_it_was_when_it_is_opened_again() {
    let dir = TempDir::new().unwrap();
    open(dir.path()).append(rows("a", 2), Dedup::None).unwrap();

    let log = open(dir.path());
    assert_eq!(log.end(), 2);
    log.append(rows("b", 1), Dedup::None).unwrap();

    assert_eq!(read_all(dir.path(), 3), ["a 0", "a 1", "b 0"]);
}

#[test]
fn more_than_may_wait_for_the_query_is_refused_until_it_has_read_some() {
    let dir = TempDir::new().unwrap();
    let settings = IngestSettings { backlog_bytes_max: 1_000, ..IngestSettings::default() };
    let log = open_with(dir.path(), settings, &Arc::new(ManualClock::at(0))).unwrap();
    let large = log.append(rows("larger than the limit", 100), Dedup::None).unwrap();

    let refused = log.append(rows("a", 1), producer("p", 0, 0)).unwrap_err();
    assert_eq!(refused.code(), "INGEST_BACKLOG_FULL");
    log.consumed(large.end);

    assert_eq!(log.unread_bytes(), 0);
    log.append(rows("a", 1), producer("p", 0, 0)).unwrap();
}

#[test]
fn a_log_that_is_opened_again_counts_what_waits_until_it_is_told() {
    let dir = TempDir::new().unwrap();
    let settings = IngestSettings { segment_bytes: 100_000, ..IngestSettings::default() };
    let clock = Arc::new(ManualClock::at(0));
    let log = open_with(dir.path(), settings, &clock).unwrap();
    for _ in 0..10 {
        log.append(rows("a", 1_000), Dedup::None).unwrap();
    }
    let all = log.unread_bytes();
    drop(log);

    let log = open_with(dir.path(), settings, &clock).unwrap();
    assert_eq!(log.unread_bytes(), all);
    log.consumed(5_000);
    assert!((all / 2..all * 4 / 5).contains(&log.unread_bytes()), "{} of {all}", log.unread_bytes());
    log.consumed(10_000);
    assert_eq!(log.unread_bytes(), 0);
}

#[test]
fn whole_segments_go_once_nobody_needs_their_rows() {
    let dir = TempDir::new().unwrap();
    let settings = IngestSettings { segment_bytes: 500, ..IngestSettings::default() };
    let log = open_with(dir.path(), settings, &Arc::new(ManualClock::at(0))).unwrap();
    for sequence in 0..20 {
        log.append(rows("a", 5), producer("p", 0, sequence)).unwrap();
    }
    let files = || RealDisk.list(dir.path()).unwrap().len();
    let before = files();

    log.trim(50).unwrap();

    assert!(files() < before && (1..=50).contains(&log.first_row()), "{} files, from {}", files(), log.first_row());
    log.trim(100).unwrap();
    assert_eq!(files(), 1);
    assert!(log.append(rows("a", 5), producer("p", 0, 19)).unwrap().repeated, "what is known stays");
}

#[test]
fn a_start_without_anything_new_adds_no_segment() {
    let dir = TempDir::new().unwrap();
    drop(open(dir.path()));
    let bytes = || RealDisk.list(dir.path()).unwrap().iter().map(|entry| entry.len).collect::<Vec<_>>();
    let before = bytes();

    drop(open(dir.path()));

    assert_eq!(bytes(), before);
}

#[test]
fn the_log_of_another_query_is_refused() {
    let dir = TempDir::new().unwrap();
    open(dir.path()).append(rows("a", 1), Dedup::None).unwrap();

    let clock = Arc::new(ManualClock::at(0));
    let other = IngestLog::open(scratch_disk(), dir.path(), "other", &schema(), IngestSettings::default(), clock);

    assert_eq!(other.unwrap_err().code(), "LOG_FOREIGN");
}
