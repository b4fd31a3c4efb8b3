//! Requests that come while a sync is under way share the next one.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tempfile::TempDir;

use super::*;
use crate::disk::testing::{RecordingDisk, SyncKind};

fn yield_until(mut done: impl FnMut() -> bool) {
    while !done() {
        thread::yield_now();
    }
}

#[test]
fn all_who_wait_for_a_sync_share_the_next() {
    const WAITING: usize = 20;
    let dir = TempDir::new().unwrap();
    let recording = Arc::new(RecordingDisk::over(&[dir.path()]).unwrap());
    let folder = dir.path().join("ingest");
    let disk = Arc::new(FaultyDisk::over(Arc::<RecordingDisk>::clone(&recording)));
    let clock = Arc::new(ManualClock::at(0));
    let settings = IngestSettings::default();
    let log = IngestLog::open(Arc::<FaultyDisk>::clone(&disk), &folder, QUERY, &schema(), settings, clock).unwrap();
    let before = recording.syncs();
    let (in_sync, go_on) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (entered, released) = (Arc::clone(&in_sync), Arc::clone(&go_on));
    // No sync is dropped, but the first waits.
    disk.drop_syncs(move |kind, _| {
        assert_eq!(kind, SyncKind::File);
        entered.store(true, Ordering::SeqCst);
        yield_until(|| released.load(Ordering::SeqCst));
        false
    });

    thread::scope(|scope| {
        scope.spawn(|| log.append(rows("first", 1), Dedup::None).unwrap());
        yield_until(|| in_sync.load(Ordering::SeqCst));
        for number in 0..WAITING {
            let log = &log;
            scope.spawn(move || log.append(rows(&number.to_string(), 1), Dedup::None).unwrap());
        }
        yield_until(|| log.waiting() == WAITING);
        go_on.store(true, Ordering::SeqCst);
    });

    assert_eq!(recording.syncs() - before, 2);
    assert_eq!(log.end(), 1 + WAITING as u64);
}

#[test]
fn a_request_that_two_threads_send_at_once_is_taken_once() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    for sequence in 0..50 {
        let barrier = Barrier::new(2);
        let send = || {
            barrier.wait();
            log.append(rows("a", 1), producer("p", 0, sequence)).unwrap()
        };
        let (one, other) = thread::scope(|scope| {
            let (one, other) = (scope.spawn(send), scope.spawn(send));
            (one.join().unwrap(), other.join().unwrap())
        });

        assert_eq!((one.first_row, other.first_row), (sequence, sequence));
        assert_ne!(one.repeated, other.repeated);
    }
    assert_eq!(log.end(), 50);
}

#[test]
fn a_reader_follows_many_writers_over_segments_and_misses_nothing() {
    const WRITERS: u64 = 4;
    const REQUESTS: u64 = 100;
    let dir = TempDir::new().unwrap();
    let settings = IngestSettings { segment_bytes: 2_000, ..IngestSettings::default() };
    let log = open_with(dir.path(), settings, &Arc::new(ManualClock::at(0))).unwrap();
    let durable = DurableEnd::default();
    let mut source = IngestSource::new(scratch_disk(), dir.path(), QUERY, schema(), durable.clone());
    let mut seen = Vec::new();

    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (log, durable) = (&log, durable.clone());
            scope.spawn(move || {
                for sequence in 0..REQUESTS {
                    let id = writer.to_string();
                    let accepted = log.append(rows(&format!("{id}/{sequence}"), 1), producer(&id, 0, sequence));
                    durable.set(accepted.unwrap().end);
                }
            });
        }
        while (seen.len() as u64) < WRITERS * REQUESTS {
            match source.next(&ALL).unwrap() {
                Some(slice) => {
                    seen.extend(shown(&slice));
                    log.consumed(rows_of(&slice.range).unwrap().end);
                    log.trim(rows_of(&slice.range).unwrap().start).unwrap();
                }
                None => thread::yield_now(),
            }
        }
    });

    for writer in 0..WRITERS {
        let own: Vec<_> = seen.iter().filter(|row| row.starts_with(&format!("{writer}/"))).cloned().collect();
        assert_eq!(own, (0..REQUESTS).map(|sequence| format!("{writer}/{sequence} 0")).collect::<Vec<_>>());
    }
    assert_eq!(log.unread_bytes(), 0);
}
