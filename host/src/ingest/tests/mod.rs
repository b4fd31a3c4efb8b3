//! The ingest log as a specification.

mod behaviour;
mod crash;
mod dedup;
mod group;
mod parse;
mod source;

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::clock::ManualClock;
use crate::disk::testing::FaultyDisk;
use crate::disk::{Disk, RealDisk};
use crate::engine::source::{ReadLimits, Slice, Source};
use crate::record::Schema;

const QUERY: &str = "query-7";

const ALL: ReadLimits = ReadLimits { files_max: None, rows_max: u64::MAX, bytes_max: u64::MAX };

/// The machine's disk without its syncs, as scratch folders need not survive.
fn scratch_disk() -> Arc<dyn Disk> {
    let disk = FaultyDisk::over(Arc::new(RealDisk));
    disk.drop_syncs(|_, _| true);
    Arc::new(disk)
}

fn schema() -> Schema {
    Schema::parse("user STRING NOT NULL, n BIGINT").unwrap()
}

fn open_with(dir: &Path, settings: IngestSettings, clock: &Arc<ManualClock>) -> Result<IngestLog, IngestError> {
    let clock = Arc::<ManualClock>::clone(clock);
    IngestLog::open(scratch_disk(), dir, QUERY, &schema(), settings, clock)
}

fn open(dir: &Path) -> IngestLog {
    open_with(dir, IngestSettings::default(), &Arc::new(ManualClock::at(1_000))).unwrap()
}

/// So many rows of one request; `user` says which request it was.
fn rows(user: &str, count: u64) -> Rows {
    let lines: String = (0..count).map(|n| format!("{{\"user\":\"{user}\",\"n\":{n}}}\n")).collect();
    parse(BodyFormat::JsonLines, lines.as_bytes(), &schema(), &BodyLimits::default()).unwrap()
}

fn producer(id: &str, epoch: u64, sequence: u64) -> Dedup {
    Dedup::Producer { id: id.to_owned(), epoch, sequence }
}

fn source(dir: &Path, durable: u64) -> IngestSource {
    IngestSource::new(scratch_disk(), dir, QUERY, schema(), DurableEnd::at(durable))
}

/// `user n` of each row.
fn shown(slice: &Slice) -> Vec<String> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    let of = |batch: &arrow_array::RecordBatch| {
        let (user, n) = (batch.column(0).as_string::<i32>(), batch.column(1).as_primitive::<Int64Type>());
        user.iter().zip(n).map(|(user, n)| format!("{} {}", user.unwrap(), n.unwrap())).collect::<Vec<_>>()
    };
    slice.batches.iter().flat_map(of).collect()
}

/// All rows before the durable end, from this one on.
fn read_from(dir: &Path, first: u64, durable: u64) -> Vec<String> {
    let mut source = source(dir, durable);
    source.restore(vec![(b"position".to_vec(), first.to_string().into_bytes())], None).unwrap();
    source.next(&ALL).unwrap().map_or_else(Vec::new, |slice| shown(&slice))
}

/// All rows before the durable end.
fn read_all(dir: &Path, durable: u64) -> Vec<String> {
    read_from(dir, 0, durable)
}
