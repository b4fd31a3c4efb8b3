//! The log as a specification: what it keeps, what it does with damage, and what survives a crash at any point.

mod behaviour;
mod crash;
mod damage;
mod follow;
mod versions;

use std::path::Path;
use std::sync::Arc;

use super::{Durability, LogError, LogView, NewRecord, QueryLog, Record, RecordRef, Section};
use crate::disk::testing::FaultyDisk;
use crate::disk::{Disk, RealDisk};

const QUERY: &str = "query-7";

/// The machine's disk without its syncs, as scratch folders need not survive.
fn scratch_disk() -> Arc<dyn Disk> {
    let disk = FaultyDisk::over(Arc::new(RealDisk));
    disk.drop_syncs(|_, _| true);
    Arc::new(disk)
}

fn open(dir: &Path) -> Result<(QueryLog, Vec<RecordRef>), LogError> {
    QueryLog::open(scratch_disk(), dir, QUERY)
}

fn view(dir: &Path) -> Result<LogView, LogError> {
    LogView::open(scratch_disk(), dir, QUERY)
}

/// What opening the log gives, in full.
fn recovered(dir: &Path) -> Result<Vec<Record>, LogError> {
    let (log, records) = open(dir)?;
    records.iter().map(|record| log.read(record)).collect()
}

fn append(log: &mut QueryLog, record: &Record) -> RecordRef {
    log.append(NewRecord::from(record), Durability::Synced).unwrap()
}

/// A record that differs from every other in all its parts.
fn record(number: u8, section_bytes: usize) -> Record {
    Record {
        kind: number,
        header: format!("{{\"number\":{number}}}").into_bytes(),
        sections: vec![
            Section { name: 1, bytes: vec![number; section_bytes] },
            Section { name: 255, bytes: Vec::new() },
            Section { name: 1, bytes: format!("again {number}").into_bytes() },
        ],
    }
}

/// Names in the folder of the log.
fn names(dir: &Path) -> Vec<String> {
    RealDisk.list(dir).unwrap().into_iter().map(|entry| entry.name).collect()
}

/// Name and content of everything in the folder of the log.
fn contents(dir: &Path) -> Vec<(String, Vec<u8>)> {
    names(dir).into_iter().map(|name| (name.clone(), RealDisk.read(&dir.join(name)).unwrap())).collect()
}
