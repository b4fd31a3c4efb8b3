//! What a sink writes is what a reader reads.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;

use super::{Entry, Page, PageLimits, Position, ResultsReader, ResultsSink, open_folder};
use crate::connect::contract::{entry, rows, sink_schema};
use crate::disk::testing::FaultyDisk;
use crate::disk::{Disk, RealDisk};
use crate::engine::sink::{Ledger, Publication, Sink, Staged};

mod behaviour;
mod crash;
mod hostile;
mod paging;

const ALL: PageLimits = PageLimits { rows_max: usize::MAX, bytes_max: usize::MAX };

/// The disk of the machine, without the time that syncs take.
fn disk() -> Arc<dyn Disk> {
    let disk = FaultyDisk::over(Arc::new(RealDisk));
    disk.drop_syncs(|_, _| true);
    Arc::new(disk)
}

fn sink(folder: &Path) -> ResultsSink {
    ResultsSink::new(disk(), folder)
}

/// Opened for the query `q`.
fn open(folder: &Path) -> Result<ResultsSink, &'static str> {
    let mut sink = sink(folder);
    sink.open("q", &sink_schema()).map(|()| sink).map_err(|error| error.code)
}

fn descriptor(folder: &Path) -> OwnedFd {
    let parent = File::open(folder.parent().unwrap()).unwrap();
    open_folder(parent.as_fd(), Path::new(folder.file_name().unwrap())).unwrap()
}

fn reader(folder: &Path) -> ResultsReader {
    ResultsReader::new(descriptor(folder))
}

/// Rows as JSON Lines, so many that each tells its batch and place.
fn lines(batch: u64, count: u64) -> Vec<u8> {
    (0..count).map(|row| format!("{{\"batch\":{batch},\"row\":{row}}}\n")).collect::<String>().into_bytes()
}

fn ledger(generation: u32, batch_id: u64) -> Ledger {
    Ledger { generation, ..entry(batch_id) }
}

/// Publishes a batch of so many rows.
fn publish(sink: &mut ResultsSink, generation: u32, batch: u64, count: u64) -> Result<(), &'static str> {
    let staged = Staged::Inline(lines(batch, count));
    let entry = ledger(generation, batch);
    sink.publish(&Publication { entry: &entry, staged: &staged }).map_err(|error| error.code)
}

fn at(text: &str) -> Position {
    text.parse().unwrap()
}

/// Entries as `position json`, or `position rollback`.
fn shown(page: &Page) -> Vec<String> {
    let shown = page.entries.iter().map(|entry| match entry {
        Entry::Row { position, json } => format!("{position} {json}"),
        Entry::Rollback(rollback) => format!("{} {:?}", rollback.position, rollback.rows),
    });
    shown.collect()
}

/// Reads on from a position to the end.
fn read_on(reader: &mut ResultsReader, from: Option<Position>, limits: PageLimits) -> Vec<String> {
    let (mut all, mut next) = (Vec::new(), from);
    loop {
        let page = reader.read_after(next, limits).unwrap();
        all.extend(shown(&page));
        next = page.next;
        if page.end_reached {
            return all;
        }
    }
}

fn read_all(folder: &Path) -> Vec<String> {
    read_on(&mut reader(folder), None, ALL)
}
