//! What a log does: records in order, groups, segments, removal, reading.

use std::io::{self, Read};
use std::ops::ControlFlow;

use proptest::prelude::*;
use tempfile::TempDir;

use super::super::{Content, NewSection, Part};
use super::*;
use crate::disk::testing::{Failure, RecordingDisk};

#[test]
fn a_new_log_is_empty() {
    let dir = TempDir::new().unwrap();
    assert_eq!(open(&dir.path().join("checkpoint/log")).unwrap().1, []);
}

#[test]
fn records_are_read_at_once_and_after_the_log_is_opened_again() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path()).unwrap();
    let written = [record(1, 10), record(2, 0), record(3, 3000)];
    for record in &written {
        let at = append(&mut log, record);
        assert_eq!(&log.read(&at).unwrap(), record);
    }
    drop(log);

    let (log, records) = open(dir.path()).unwrap();

    assert_eq!(
        records.iter().map(|record| (record.sequence, record.kind)).collect::<Vec<_>>(),
        [(1, 1), (2, 2), (3, 3)]
    );
    for (at, record) in records.iter().zip(&written) {
        assert_eq!(&log.read(at).unwrap(), record);
        assert_eq!(log.reader().read_header(at).unwrap(), record.header);
    }
}

#[test]
fn sections_are_streamed_from_readers_in_bounded_pieces() {
    const BYTES: usize = (5 << 20) + 7;
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path()).unwrap();
    let mut reader = io::repeat(9).take(BYTES as u64);
    let mut nothing = io::empty();
    let sections = vec![
        NewSection { name: 4, content: Content::Reader(&mut reader) },
        NewSection { name: 5, content: Content::Reader(&mut nothing) },
    ];

    let at = log.append(NewRecord { kind: 1, header: b"{}", sections }, Durability::Synced).unwrap();

    let mut seen = Vec::new();
    log.reader()
        .read_pieces(&at, &mut |piece| {
            seen.push((piece.part, piece.begins, piece.bytes.len()));
            ControlFlow::Continue(())
        })
        .unwrap();
    let section = |begins, bytes| (Part::Section(4), begins, bytes);
    let mut expected = vec![(Part::Header, true, 2), section(true, 1 << 20)];
    expected.extend([section(false, 1 << 20); 4]);
    expected.extend([section(false, 7), (Part::Section(5), true, 0)]);
    assert_eq!(seen, expected);
    let whole = log.read(&at).unwrap();
    assert_eq!(whole.sections[0].bytes, vec![9; BYTES]);
    assert_eq!(whole.sections[1].bytes, b"");
}

#[test]
fn reading_stops_where_the_visitor_breaks() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path()).unwrap();
    let at = append(&mut log, &record(1, 10));

    let mut pieces = 0;
    log.reader()
        .read_pieces(&at, &mut |_| {
            pieces += 1;
            ControlFlow::Break(())
        })
        .unwrap();

    assert_eq!(pieces, 1);
}

#[test]
fn a_synced_append_costs_exactly_one_sync_and_one_write() {
    let dir = TempDir::new().unwrap();
    let disk = Arc::new(RecordingDisk::over(&[dir.path()]).unwrap());
    let (mut log, _) = QueryLog::open(Arc::<RecordingDisk>::clone(&disk), &dir.path().join("log"), QUERY).unwrap();
    let (operations, syncs) = (disk.operations(), disk.syncs());

    for number in 0..10 {
        append(&mut log, &record(number, 1000));
    }

    assert_eq!((disk.operations() - operations, disk.syncs() - syncs), (20, 10));
}

#[test]
fn a_record_that_waits_for_the_next_is_readable_and_becomes_durable_with_it() {
    let dir = TempDir::new().unwrap();
    let disk = Arc::new(RecordingDisk::over(&[dir.path()]).unwrap());
    let (mut log, _) = QueryLog::open(Arc::<RecordingDisk>::clone(&disk), &dir.path().join("log"), QUERY).unwrap();
    let syncs = disk.syncs();

    let first = log.append(NewRecord::from(&record(1, 10)), Durability::WithNext).unwrap();
    assert_eq!(log.read(&first).unwrap(), record(1, 10));
    assert_eq!(disk.syncs(), syncs);
    assert_eq!(view(&dir.path().join("log")).unwrap().records, []);

    append(&mut log, &record(2, 10));
    assert_eq!(disk.syncs(), syncs + 1);
    assert_eq!(recovered(&dir.path().join("log")).unwrap(), [record(1, 10), record(2, 10)]);
}

#[test]
fn a_sync_makes_waiting_records_durable_and_costs_nothing_when_there_are_none() {
    let dir = TempDir::new().unwrap();
    let disk = Arc::new(RecordingDisk::over(&[dir.path()]).unwrap());
    let (mut log, _) = QueryLog::open(Arc::<RecordingDisk>::clone(&disk), &dir.path().join("log"), QUERY).unwrap();
    let syncs = disk.syncs();

    log.sync().unwrap();
    assert_eq!(disk.syncs(), syncs);
    log.append(NewRecord::from(&record(1, 10)), Durability::WithNext).unwrap();
    log.sync().unwrap();
    log.sync().unwrap();

    assert_eq!(disk.syncs(), syncs + 1);
    assert_eq!(recovered(&dir.path().join("log")).unwrap(), [record(1, 10)]);
}

#[test]
fn a_grown_segment_is_followed_by_a_new_one() {
    let dir = TempDir::new().unwrap();
    let mut log = open(dir.path()).unwrap().0.with_segment_bytes(500);
    let segments: Vec<_> = (0..4).map(|number| append(&mut log, &record(number, 200)).segment).collect();
    drop(log);

    assert_eq!(segments, [1, 1, 2, 2]);
    assert_eq!(recovered(dir.path()).unwrap(), [0, 1, 2, 3].map(|number| record(number, 200)));
}

#[test]
fn old_segments_are_removed_up_to_the_one_of_a_record() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path()).unwrap();
    append(&mut log, &record(1, 10));
    log.roll().unwrap();
    log.roll().unwrap();
    append(&mut log, &record(2, 10));
    log.roll().unwrap();
    append(&mut log, &record(3, 10));
    let last = append(&mut log, &record(4, 10));

    log.remove_segments_before(&last).unwrap();
    assert_eq!(names(dir.path()), ["log-00000000000000000003.tlog"]);
    append(&mut log, &record(5, 10));
    drop(log);

    let (log, records) = open(dir.path()).unwrap();
    assert_eq!(records.iter().map(|record| record.sequence).collect::<Vec<_>>(), [3, 4, 5]);
    assert_eq!(log.read(&records[0]).unwrap(), record(3, 10));
}

#[test]
fn sequence_numbers_go_on_when_all_records_are_removed() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path()).unwrap();
    append(&mut log, &record(1, 10));
    log.roll().unwrap();
    let active = RecordRef { segment: 2, offset: 0, sequence: 2, kind: 0, bytes: 0 };
    log.remove_segments_before(&active).unwrap();
    drop(log);

    let (mut log, records) = open(dir.path()).unwrap();

    assert_eq!(records, []);
    assert_eq!(append(&mut log, &record(2, 10)).sequence, 2);
}

#[test]
fn opening_a_log_copies_its_last_segment_and_leaves_one_file_for_it() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path()).unwrap();
    append(&mut log, &record(1, 10));
    log.roll().unwrap();
    append(&mut log, &record(2, 10));
    drop(log);

    drop(open(dir.path()).unwrap());

    assert_eq!(names(dir.path()), ["log-00000000000000000001.tlog", "log-00000000000000000003.tlog"]);
}

#[test]
fn files_with_other_names_are_left_alone() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("log-1.tlog"), b"note").unwrap();
    std::fs::write(dir.path().join(".log-00000000000000000009.tlog.tmp"), b"unfinished").unwrap();

    drop(open(dir.path()).unwrap());

    assert_eq!(names(dir.path()), ["log-00000000000000000001.tlog", "log-1.tlog"]);
}

#[test]
fn looking_at_a_log_changes_nothing() {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path()).unwrap();
    append(&mut log, &record(1, 10));
    log.append(NewRecord::from(&record(2, 10)), Durability::WithNext).unwrap();
    drop(log);
    std::fs::write(dir.path().join(".log-00000000000000000009.tlog.tmp"), b"unfinished").unwrap();
    let before = contents(dir.path());

    let view = view(dir.path()).unwrap();

    assert_eq!(view.records.len(), 1);
    assert_eq!(view.reader.read(&view.records[0]).unwrap(), record(1, 10));
    assert!(view.unfinished_bytes > 0);
    assert_eq!(contents(dir.path()), before);
}

#[test]
fn a_log_is_not_looked_at_where_there_is_none() {
    let dir = TempDir::new().unwrap();
    let error = view(&dir.path().join("absent")).unwrap_err();
    assert_eq!(error.code(), "LOG_READ_FAILED");
}

#[test]
fn after_a_failed_write_or_sync_the_log_refuses_records_and_still_reads() {
    for failure in [Failure::DiskFull, Failure::DeviceError] {
        for step in 0..2 {
            let dir = TempDir::new().unwrap();
            let disk = Arc::new(FaultyDisk::over(scratch_disk()));
            let (mut log, _) = QueryLog::open(Arc::<FaultyDisk>::clone(&disk), dir.path(), QUERY).unwrap();
            let first = append(&mut log, &record(1, 10));
            disk.fail_at(disk.operations() + step, failure);

            let failed = log.append(NewRecord::from(&record(2, 10)), Durability::Synced).unwrap_err();
            assert_eq!(failed.code(), "LOG_WRITE_FAILED");
            let refused = log.append(NewRecord::from(&record(3, 10)), Durability::Synced).unwrap_err();
            assert_eq!(refused.code(), "LOG_POISONED");
            assert_eq!(log.sync().unwrap_err().code(), "LOG_POISONED");
            assert_eq!(log.roll().unwrap_err().code(), "LOG_POISONED");
            assert_eq!(log.read(&first).unwrap(), record(1, 10));

            drop(log);
            let found = recovered(dir.path()).unwrap();
            // Whether a record whose append failed is in the log is not known.
            assert!(found == [record(1, 10)] || found == [record(1, 10), record(2, 10)]);
        }
    }
}

#[test]
fn a_section_whose_reader_fails_never_becomes_a_record() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the spilled rows are gone"))
        }
    }
    let dir = TempDir::new().unwrap();
    let (mut log, _) = open(dir.path()).unwrap();
    append(&mut log, &record(1, 10));
    let mut broken = Broken;
    let sections = vec![NewSection { name: 1, content: Content::Reader(&mut broken) }];

    let error = log.append(NewRecord { kind: 2, header: b"", sections }, Durability::Synced).unwrap_err();

    assert_eq!(error.code(), "LOG_SECTION_FAILED");
    assert_eq!(log.sync().unwrap_err().code(), "LOG_POISONED");
    drop(log);
    assert_eq!(recovered(dir.path()).unwrap(), [record(1, 10)]);
}

#[test]
fn a_full_disk_while_opening_loses_nothing() {
    let dir = TempDir::new().unwrap();
    let mut log = open(dir.path()).unwrap().0.with_segment_bytes(100);
    for number in 0..3 {
        append(&mut log, &record(number, 100));
    }
    drop(log);

    for operation in 0.. {
        let disk = FaultyDisk::over(scratch_disk());
        disk.fail_at(operation, Failure::DiskFull);
        match QueryLog::open(Arc::new(disk), dir.path(), QUERY) {
            Err(error) => assert_eq!(error.code(), "LOG_WRITE_FAILED"),
            Ok(_) => break,
        }
        assert_eq!(recovered(dir.path()).unwrap(), [0, 1, 2].map(|number| record(number, 100)));
    }
}

fn any_record() -> impl Strategy<Value = Record> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..300);
    let section = (any::<u8>(), bytes()).prop_map(|(name, bytes)| Section { name, bytes });
    (any::<u8>(), bytes(), prop::collection::vec(section, 0..4)).prop_map(|(kind, header, sections)| Record {
        kind,
        header,
        sections,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_records_are_read_as_they_were_written(
        records in prop::collection::vec((any_record(), any::<bool>()), 0..12),
        segment_bytes in 0_u64..2000,
        reopen_after in 0_usize..12,
    ) {
        let dir = TempDir::new().unwrap();
        let mut log = open(dir.path()).unwrap().0.with_segment_bytes(segment_bytes);
        for (index, (record, synced)) in records.iter().enumerate() {
            let durability = if *synced { Durability::Synced } else { Durability::WithNext };
            log.append(NewRecord::from(record), durability).unwrap();
            if index == reopen_after {
                log.sync().unwrap();
                drop(log);
                log = open(dir.path()).unwrap().0.with_segment_bytes(segment_bytes);
            }
        }
        log.sync().unwrap();
        drop(log);

        let looked_at = view(dir.path()).unwrap();
        let looked_at: Vec<_> = looked_at.records.iter().map(|at| looked_at.reader.read(at).unwrap()).collect();
        let written: Vec<_> = records.into_iter().map(|(record, _)| record).collect();
        prop_assert_eq!(&looked_at, &written);
        prop_assert_eq!(recovered(dir.path()).unwrap(), written);
    }
}
