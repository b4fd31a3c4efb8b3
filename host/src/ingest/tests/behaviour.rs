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
