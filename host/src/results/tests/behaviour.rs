//! Publishing, reading on, rolling back, trimming.

use super::super::RolledBackRows;
use super::*;
use crate::connect::contract::check_sink;
use crate::engine::sink::{Published, Undo, Withdrawal};

fn back_to(generation: u32, last_batch: u64, kept: Option<u64>, undone: &[Ledger]) -> Withdrawal {
    let published = kept.map(|batch| ledger(generation, batch));
    Withdrawal {
        query_id: "q".to_owned(),
        generation,
        last_batch,
        undo: Some(Undo { batches: undone.to_vec(), published }),
    }
}

#[test]
fn the_sink_keeps_the_contract() {
    let folder = TempDir::new().unwrap();
    check_sink(
        || Box::new(sink(folder.path())),
        || std::fs::read_dir(folder.path()).map_or(0, |_| read_len(folder.path())),
    );
}

fn read_len(folder: &Path) -> usize {
    read_all(folder).len()
}

#[test]
fn rows_are_read_with_their_positions_and_their_schema() {
    let folder = TempDir::new().unwrap();
    let mut sink = open(folder.path()).unwrap();
    let mut bytes = Vec::new();
    sink.encode(&mut std::iter::once(Ok(rows(7))), &mut bytes).unwrap();
    sink.publish(&Publication { entry: &entry(7), staged: &Staged::Inline(bytes) }).unwrap();

    let page = reader(folder.path()).read_after(None, ALL).unwrap();

    assert_eq!(page.schema, "k STRING, n BIGINT");
    assert_eq!(shown(&page), [r#"0-7-0 {"k":"a","n":1}"#, r#"0-7-1 {"k":null,"n":7}"#]);
    assert_eq!((page.next, page.end_reached), (Some(at("0-7-1")), true));
}

#[test]
fn a_reader_goes_on_behind_every_position_that_it_was_given() {
    let folder = TempDir::new().unwrap();
    let mut sink = open(folder.path()).unwrap().with_sizes(300, 100);
    for batch in [1, 2, 5, 6, 7] {
        publish(&mut sink, 0, batch, batch).unwrap();
    }
    let whole = read_all(folder.path());
    assert_eq!(whole.len(), 21);
    let mut one_reader = reader(folder.path());

    for (index, shown) in whole.iter().enumerate() {
        let position = at(shown.split(' ').next().unwrap());
        let rest = whole.get(index + 1..).unwrap();
        assert_eq!(read_on(&mut one_reader, Some(position), ALL), rest, "behind {position}");
        assert_eq!(
            read_on(&mut reader(folder.path()), Some(position), ALL),
            rest,
            "behind {position}, by a new reader"
        );
    }
}

#[test]
fn a_reader_at_the_end_sees_what_comes() {
    let folder = TempDir::new().unwrap();
    let mut reader = reader(folder.path());
    let nothing = reader.read_after(None, ALL).unwrap();
    assert_eq!((nothing.entries.len(), nothing.next, nothing.end_reached), (0, None, true));
    let mut sink = open(folder.path()).unwrap().with_sizes(300, 100);
    let mut next = reader.read_after(None, ALL).unwrap().next;

    for batch in 1..20 {
        publish(&mut sink, 0, batch, 2).unwrap();
        let mut seen = Vec::new();
        loop {
            let page = reader.read_after(next, ALL).unwrap();
            seen.extend(shown(&page));
            next = page.next;
            if page.end_reached {
                break;
            }
        }
        assert_eq!(seen, [0, 1].map(|row| format!("0-{batch}-{row} {{\"batch\":{batch},\"row\":{row}}}")));
    }
}

#[test]
fn a_position_that_was_never_given_out_is_refused() {
    let folder = TempDir::new().unwrap();
    assert_eq!(
        reader(folder.path()).read_after(Some(at("0-1-0")), ALL).unwrap_err().code(),
        "RESULTS_POSITION_UNKNOWN"
    );
    let mut sink = open(folder.path()).unwrap();
    publish(&mut sink, 0, 1, 3).unwrap();
    publish(&mut sink, 0, 3, 3).unwrap();

    for other in ["0-0-0", "0-1-3", "0-2-0", "0-3-3", "0-4-0", "1-1-0"] {
        let error = reader(folder.path()).read_after(Some(at(other)), ALL).unwrap_err();
        assert_eq!(error.code(), "RESULTS_POSITION_UNKNOWN", "{other}");
    }
}

#[test]
fn a_rollback_stands_between_the_rows() {
    let folder = TempDir::new().unwrap();
    let mut sink = open(folder.path()).unwrap();
    for batch in 1..=3 {
        publish(&mut sink, 0, batch, 1).unwrap();
    }

    sink.withdraw(&back_to(1, 4, Some(2), &[ledger(0, 3)])).unwrap();
    sink.withdraw(&back_to(1, 4, Some(2), &[ledger(0, 3)])).unwrap();
    assert_eq!(sink.published().unwrap(), Published::UpTo(ledger(1, 2)));
    publish(&mut sink, 1, 5, 1).unwrap();
    assert_eq!(publish(&mut sink, 0, 6, 1), Err("SINK_DIVERGED"), "a copy from before the rollback");
    let keeping = Withdrawal { undo: None, ..back_to(2, 5, None, &[]) };
    super::sink(folder.path()).withdraw(&keeping).unwrap();

    let withdrawn = RolledBackRows::Withdrawn { after: Some(2) };
    let expected = [
        r#"0-1-0 {"batch":1,"row":0}"#.to_owned(),
        r#"0-2-0 {"batch":2,"row":0}"#.to_owned(),
        r#"0-3-0 {"batch":3,"row":0}"#.to_owned(),
        format!("1-4-0 {withdrawn:?}"),
        r#"1-5-0 {"batch":5,"row":0}"#.to_owned(),
        format!("2-5-0 {:?}", RolledBackRows::Kept),
    ];
    assert_eq!(read_all(folder.path()), expected);
    assert_eq!(read_on(&mut reader(folder.path()), Some(at("1-4-0")), ALL), expected[4..]);
}

#[test]
fn a_rollback_that_does_not_know_the_last_rows_is_refused() {
    let folder = TempDir::new().unwrap();
    let mut sink = open(folder.path()).unwrap();
    publish(&mut sink, 0, 3, 1).unwrap();

    let error = sink.withdraw(&back_to(1, 4, Some(2), &[ledger(0, 4)])).unwrap_err();

    assert_eq!(error.code, "SINK_DIVERGED");
    assert_eq!(read_all(folder.path()).len(), 1);
    publish(&mut sink, 0, 4, 1).unwrap();
}

#[test]
fn a_rollback_of_results_that_were_never_opened_does_nothing() {
    let folder = TempDir::new().unwrap();
    sink(folder.path()).withdraw(&back_to(1, 4, None, &[])).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn rows_of_another_schema_begin_a_segment_and_a_page() {
    let folder = TempDir::new().unwrap();
    publish(&mut open(folder.path()).unwrap(), 0, 1, 1).unwrap();
    let mut evolved = sink(folder.path());
    evolved.open("q", &crate::record::Schema::parse("other BIGINT").unwrap()).unwrap();
    publish(&mut evolved, 0, 2, 1).unwrap();

    let mut reader = reader(folder.path());
    let first = reader.read_after(None, ALL).unwrap();
    let second = reader.read_after(first.next, ALL).unwrap();

    assert_eq!((first.schema.as_str(), first.entries.len(), first.end_reached), ("k STRING, n BIGINT", 1, false));
    assert_eq!((second.schema.as_str(), second.entries.len(), second.end_reached), ("other BIGINT", 1, true));
}

#[test]
fn trimming_removes_whole_segments_that_were_read_and_never_the_last() {
    let folder = TempDir::new().unwrap();
    let mut sink = open(folder.path()).unwrap().with_sizes(300, 100);
    for batch in 1..=9 {
        publish(&mut sink, 0, batch, 3).unwrap();
    }
    let whole = read_all(folder.path());
    let mut reader = reader(folder.path());
    let before = reader.bytes().unwrap();

    let trimmed = reader.trim(at("0-5-1")).unwrap();

    assert!(trimmed.segments > 0 && trimmed.entries > 0, "{trimmed:?}");
    assert_eq!(reader.bytes().unwrap(), before - trimmed.bytes);
    let left = whole.get(usize::try_from(trimmed.entries).unwrap()..).unwrap();
    assert_eq!(read_on(&mut reader, None, ALL), left);
    assert_eq!(read_on(&mut reader, Some(at("0-5-1")), ALL), whole.get(14..).unwrap());
    assert_eq!(reader.trim(at("0-1-0")).unwrap().segments, 0);
    assert_eq!(reader.trim(at("0-9-3")).unwrap_err().code(), "RESULTS_POSITION_UNKNOWN");

    reader.trim(at("0-9-2")).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(reader.bytes().unwrap(), 0, "all room is made that can be made");
    assert_eq!(read_on(&mut reader, Some(at("0-9-2")), ALL), [""; 0]);
    let error = reader.read_after(Some(at("0-1-0")), ALL).unwrap_err();
    assert_eq!(error.code(), "RESULTS_POSITION_EXPIRED");
    publish(&mut sink, 0, 10, 1).unwrap();
    assert_eq!(read_on(&mut reader, Some(at("0-9-2")), ALL).len(), 1);
}

#[test]
fn an_expired_position_names_the_oldest_row_that_is_left() {
    let folder = TempDir::new().unwrap();
    let mut sink = open(folder.path()).unwrap().with_sizes(0, 100);
    for batch in 1..=4 {
        publish(&mut sink, 0, batch, 2).unwrap();
    }
    let mut reader = reader(folder.path());

    let dropped = reader.drop_oldest(reader.bytes().unwrap() - 1).unwrap();

    assert_eq!((dropped.segments, dropped.entries), (1, 0), "the first segment was empty");
    reader.drop_oldest(reader.bytes().unwrap() - 1).unwrap();
    let error = reader.read_after(Some(at("0-1-0")), ALL).unwrap_err();
    assert!(error.to_string().contains("the oldest that is left is 0-2-0"), "{error}");
    assert_eq!(read_on(&mut reader, Some(at("0-1-1")), ALL).len(), 6, "nothing behind this one is missed");
    assert_eq!(reader.drop_oldest(0).unwrap().segments, 2);
}

#[test]
fn a_row_that_no_reader_would_take_fails_its_batch() {
    let folder = TempDir::new().unwrap();
    let sink = open(folder.path()).unwrap();
    let long = "x".repeat(super::super::ROW_BYTES_MAX);
    let columns: Vec<arrow_array::ArrayRef> =
        vec![Arc::new(arrow_array::StringArray::from(vec![long])), Arc::new(arrow_array::Int64Array::from(vec![1]))];
    let batch = arrow_array::RecordBatch::try_new(sink_schema().to_arrow(), columns).unwrap();

    let error = sink.encode(&mut std::iter::once(Ok(batch)), &mut Vec::new()).unwrap_err();

    assert_eq!(error.code, "RESULTS_ROW_TOO_LONG");
}
