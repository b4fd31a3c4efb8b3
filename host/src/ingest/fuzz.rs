//! Bodies of requests, and records of a log, of any bytes.

#![allow(clippy::unwrap_used, reason = "a fuzzer is told by a panic")]

use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;

use super::format::record;
use super::writer::log_id;
use super::{BodyFormat, BodyLimits, Dedup, DurableEnd, IngestLog, IngestSettings, IngestSource, Rows, parse};
use crate::clock::ManualClock;
use crate::disk::testing::FaultyDisk;
use crate::disk::{Disk, RealDisk};
use crate::engine::source::{ReadLimits, Slice, Source};
use crate::log::{Durability, QueryLog};
use crate::record::Schema;

const QUERY: &str = "q";

/// Many types, some nested.
fn schema() -> Schema {
    Schema::parse(
        "a STRING, b BIGINT, c BOOLEAN, d DECIMAL(20,2), e ARRAY<STRING>, f MAP<STRING, INT>, g STRUCT<x: INT, y: BINARY>, \
         h TIMESTAMP",
    )
    .unwrap()
}

/// The format, and a body. Rows that are taken are bounded, and are read from the log as they are.
pub(crate) fn ingest_bodies(bytes: &[u8]) {
    let Some((format, body)) = bytes.split_first() else { return };
    let format = if format & 1 == 0 { BodyFormat::JsonLines } else { BodyFormat::ArrowStream };
    let limits = BodyLimits { rows_max: 1_000, bytes_max: 1 << 20 };
    let Ok(rows) = parse(format, body, &schema(), &limits) else { return };
    assert!(rows.count() <= limits.rows_max && rows.packed().len() as u64 <= limits.packed_bytes_max());

    let dir = TempDir::new().unwrap();
    let log = open(dir.path()).unwrap();
    let accepted = log.append(rows.clone(), Dedup::None).unwrap();
    let read = read(dir.path(), accepted.end).unwrap();
    assert_eq!(read.map(|slice| slice.rows()).unwrap_or_default(), rows.count());
}

/// Records: kind, length of the header, length of the content, both. Whatever they are, what opens takes one more request, and
/// what is read is read the same again.
pub(crate) fn ingest_records(bytes: &[u8]) {
    let dir = TempDir::new().unwrap();
    let (mut log, _) = QueryLog::open(scratch_disk(), dir.path(), &log_id(QUERY)).unwrap();
    let mut rest = bytes;
    while let Some(([kind, header, low, high], after)) = rest.split_first_chunk::<4>() {
        let (header, after) = after.split_at(usize::from(*header).min(after.len()));
        let (content, after) = after.split_at(usize::from(u16::from_le_bytes([*low, *high])).min(after.len()));
        log.append(record(*kind, header, content), Durability::Synced).unwrap();
        rest = after;
    }
    drop(log);
    // Also a log that no writer would open.
    drop(read(dir.path(), u64::MAX));

    let Ok(log) = open(dir.path()) else { return };
    let Ok(accepted) = log.append(one_row(), Dedup::None) else { return };
    assert_eq!(accepted.end, log.end());
    let Ok(Some(slice)) = read(dir.path(), log.end()) else { return };
    let again = source(dir.path(), log.end()).read_again(&slice.range).unwrap();
    assert_eq!(again.batches, slice.batches);
}

fn one_row() -> Rows {
    parse(BodyFormat::JsonLines, b"{\"b\":1}", &schema(), &BodyLimits::default()).unwrap()
}

fn scratch_disk() -> Arc<dyn Disk> {
    let disk = FaultyDisk::over(Arc::new(RealDisk));
    disk.drop_syncs(|_, _| true);
    Arc::new(disk)
}

fn open(dir: &Path) -> Result<IngestLog, super::IngestError> {
    let clock = Arc::new(ManualClock::at(0));
    IngestLog::open(scratch_disk(), dir, QUERY, &schema(), IngestSettings::default(), clock)
}

fn source(dir: &Path, durable: u64) -> IngestSource {
    IngestSource::new(scratch_disk(), dir, QUERY, schema(), DurableEnd::at(durable))
}

fn read(dir: &Path, durable: u64) -> Result<Option<Slice>, crate::engine::source::SourceError> {
    let limits = ReadLimits { files_max: None, rows_max: 1_000, bytes_max: u64::MAX };
    source(dir, durable).next(&limits)
}
