//! Segments of any bytes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a fuzzer is told by a panic")]

use std::fs;
use std::sync::Arc;

use tempfile::TempDir;

use super::folder::Folder;
use super::format::{FRAME_HEADER_BYTES, Pieces, RecordEnd, SEGMENT_HEADER_BYTES, SegmentHeader, crc};
use super::{Durability, LogView, NewRecord, QueryLog, Record, RecordRef};
use crate::disk::testing::FaultyDisk;
use crate::disk::{Disk, RealDisk};

const QUERY: &str = "query-7";

/// Whether checksums are made right, and then segments, each behind its length. What opens is read, and reads the same after
/// one more record.
pub(crate) fn log_segments(bytes: &[u8]) {
    let Some((mend, mut rest)) = bytes.split_first() else { return };
    let dir = TempDir::new().unwrap();
    let disk = FaultyDisk::over(Arc::new(RealDisk));
    disk.drop_syncs(|_, _| true);
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let folder = Folder::new(Arc::clone(&disk), dir.path(), QUERY);
    for number in 1..=3 {
        let Some((length, after)) = rest.split_first_chunk::<2>() else { break };
        let (segment, after) = after.split_at(usize::from(u16::from_le_bytes(*length)).min(after.len()));
        let mut segment = segment.to_vec();
        if mend & 1 == 1 {
            mend_checksums(&mut segment, folder.log, number);
        }
        fs::write(folder.path(number), segment).unwrap();
        rest = after;
    }

    let viewed = LogView::open(Arc::clone(&disk), dir.path(), QUERY);
    let Ok((mut log, records)) = QueryLog::open(Arc::clone(&disk), dir.path(), QUERY) else { return };
    assert_eq!(viewed.unwrap().records.len(), records.len());
    let read = |log: &QueryLog, records: &[RecordRef]| -> Vec<Option<Record>> {
        records.iter().map(|record| log.read(record).ok()).collect()
    };
    let mut expected = read(&log, &records);
    let one_more = Record { kind: 7, header: b"{}".to_vec(), sections: Vec::new() };
    log.append(NewRecord::from(&one_more), Durability::Synced).unwrap();
    drop(log);
    expected.push(Some(one_more));

    let (log, records) = QueryLog::open(disk, dir.path(), QUERY).unwrap();
    assert_eq!(read(&log, &records), expected);
}

/// Makes the checksums of a segment right, and what end frames sum up, so that what stands in them is looked at.
fn mend_checksums(segment: &mut [u8], log: u64, number: u64) {
    let Some(header) = segment.first_chunk_mut::<SEGMENT_HEADER_BYTES>() else { return };
    let first_sequence = u64::from_le_bytes(*header[32..].first_chunk().unwrap());
    let whole = SegmentHeader { log, number, first_sequence };
    let version: [u8; 4] = *header[8..].first_chunk().unwrap();
    *header = whole.encode();
    header[8..12].copy_from_slice(&version);
    let of_start = crc(0, &header[..12]);
    header[12..16].copy_from_slice(&of_start.to_le_bytes());
    let of_all = crc(0, &header[..SEGMENT_HEADER_BYTES - 4]);
    header[SEGMENT_HEADER_BYTES - 4..].copy_from_slice(&of_all.to_le_bytes());

    let (mut at, mut pieces) = (SEGMENT_HEADER_BYTES, Pieces::default());
    while let Some((head, rest)) = segment[at..].split_first_chunk_mut::<FRAME_HEADER_BYTES>() {
        let length = u32::from_le_bytes(*head[4..].first_chunk().unwrap()) as usize;
        let Some(payload) = rest.get_mut(..length) else { return };
        if head[0] == 2
            && let Some(end) = RecordEnd::decode(payload)
        {
            payload.copy_from_slice(&std::mem::take(&mut pieces).end(end.kind).encode());
        }
        let of_payload = crc(0, payload);
        if head[0] == 1 {
            pieces.add(length, of_payload);
        }
        head[24..28].copy_from_slice(&of_payload.to_le_bytes());
        let of_frame = crc(whole.seed(), &head[..28]);
        head[28..].copy_from_slice(&of_frame.to_le_bytes());
        at += FRAME_HEADER_BYTES + length;
    }
}
