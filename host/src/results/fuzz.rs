//! Segments of any bytes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a fuzzer is told by a panic")]

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;

use super::format::{FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES, SegmentHeader, crc};
use super::{Entry, PageLimits, Position, ResultsReader, ResultsSink, open_folder, segment_name};
use crate::disk::testing::FaultyDisk;
use crate::disk::{Disk, RealDisk};
use crate::engine::sink::{Ledger, Publication, Published, Sink, Staged};
use crate::record::Schema;

const QUERY: &str = "query-7";

/// Pages of one run: a small file can hold very many entries.
const PAGES_MAX: usize = 200;

/// Whether checksums are made right, and then segments, each behind its length. Entries come in order, behind each of them only
/// later ones, a row is one line of JSON, and what a sink adds to a stream that it takes is read.
pub(crate) fn results(bytes: &[u8]) {
    let Some((mend, mut rest)) = bytes.split_first() else { return };
    let root = TempDir::new().unwrap();
    let folder = root.path().join("results");
    fs::create_dir(&folder).unwrap();
    for number in 1..=3 {
        let Some((length, after)) = rest.split_first_chunk::<2>() else { break };
        let (segment, after) = after.split_at(usize::from(u16::from_le_bytes(*length)).min(after.len()));
        let mut segment = segment.to_vec();
        if mend & 1 == 1 {
            mend_checksums(&mut segment, number);
        }
        fs::write(folder.join(segment_name(number)), segment).unwrap();
        rest = after;
    }

    let stream = read(root.path());
    if let Some(stream) = &stream {
        for pair in stream.windows(2) {
            assert!(pair[0].position() < pair[1].position());
            // Segments may contradict each other about where a position is, but nothing before it comes again.
            if let Ok(page) = reader(root.path()).read_after(Some(pair[0].position()), page(1)) {
                assert!(page.entries.iter().all(|entry| entry.position() > pair[0].position()));
            }
        }
    }

    let disk = FaultyDisk::over(Arc::new(RealDisk));
    disk.drop_syncs(|_, _| true);
    let mut sink = ResultsSink::new(Arc::new(disk) as Arc<dyn Disk>, &folder).with_sizes(200, 100);
    if sink.open(QUERY, &Schema::parse("n INT").unwrap()).is_err() {
        return;
    }
    let last = Ledger { query_id: QUERY.to_owned(), generation: u32::MAX, batch_id: u64::MAX, digest: String::new() };
    let staged = Staged::Inline(b"{\"n\":1}\n{\"n\":2}\n".to_vec());
    if sink.publish(&Publication { entry: &last, staged: &staged }).is_ok() {
        assert_eq!(sink.published().unwrap(), Published::UpTo(last));
        if let (Some(before), Some(now)) = (stream, read(root.path())) {
            assert_eq!(now.get(..before.len()), Some(before.as_slice()));
            assert!(now.len() == PAGES_MAX || now.last().map(Entry::position) == Some(LAST));
        }
    }
}

const LAST: Position = Position { generation: u32::MAX, batch: u64::MAX, index: 1 };

fn page(rows_max: usize) -> PageLimits {
    PageLimits { rows_max, bytes_max: 1 << 16 }
}

fn reader(root: &Path) -> ResultsReader {
    let root = File::open(root).unwrap();
    ResultsReader::new(open_folder(root.as_fd(), Path::new("results")).unwrap())
}

/// The entries, one to a page, as far as they are looked at. None: something is wrong with them.
fn read(root: &Path) -> Option<Vec<Entry>> {
    let (mut reader, mut next, mut stream) = (reader(root), None, Vec::new());
    for _ in 0..PAGES_MAX {
        let page = reader.read_after(next, page(1)).ok()?;
        for entry in &page.entries {
            if let Entry::Row { json, .. } = entry {
                assert!(json.starts_with('{') && !json.bytes().any(|byte| byte < b' '));
            }
        }
        stream.extend(page.entries);
        next = page.next;
        if page.end_reached {
            break;
        }
    }
    Some(stream)
}

/// Makes the checksums of a segment right, so that what stands in it is looked at.
fn mend_checksums(segment: &mut [u8], number: u64) {
    let Some(header) = segment.first_chunk_mut::<SEGMENT_HEADER_BYTES>() else { return };
    let whole = SegmentHeader::of(QUERY, number);
    header.copy_from_slice(&whole.encode());
    let mut at = SEGMENT_HEADER_BYTES;
    while let Some((head, rest)) = segment[at..].split_first_chunk_mut::<FRAME_HEADER_BYTES>() {
        let length = u32::from_le_bytes(*head[4..].first_chunk().unwrap()) as usize;
        let Some(payload) = rest.get(..length) else { return };
        head[32..36].copy_from_slice(&crc(0, payload).to_le_bytes());
        let of_frame = crc(whole.seed(), &head[..36]);
        head[36..].copy_from_slice(&of_frame.to_le_bytes());
        at += FRAME_HEADER_BYTES + length;
    }
}

/// What a sink writes, as input of the above.
#[cfg(test)]
#[test]
#[ignore = "writes fuzz/corpus/results anew"]
fn write_corpus() {
    use crate::engine::sink::{Undo, Withdrawal};

    let folder = TempDir::new().unwrap();
    let mut sink = ResultsSink::new(Arc::new(RealDisk), folder.path()).with_sizes(400, 20);
    sink.open(QUERY, &Schema::parse("n INT").unwrap()).unwrap();
    let entry = |generation, batch_id| Ledger {
        query_id: QUERY.to_owned(),
        generation,
        batch_id,
        digest: format!("digest {batch_id}"),
    };
    let mut publish = |generation, batch| {
        let staged = Staged::Inline(b"{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n".to_vec());
        sink.publish(&Publication { entry: &entry(generation, batch), staged: &staged }).unwrap();
    };
    publish(0, 1);
    publish(0, 3);
    publish(0, 4);
    let undo = Undo { batches: vec![entry(0, 3), entry(0, 4)], published: Some(entry(1, 1)) };
    let query_id = QUERY.to_owned();
    sink.withdraw(&Withdrawal { query_id, generation: 1, last_batch: 4, undo: Some(undo) }).unwrap();
    let mut names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let segments: Vec<_> = names.iter().map(|name| fs::read(name).unwrap()).collect();
    let input = |mend: u8, segments: &[Vec<u8>]| {
        let mut bytes = vec![mend];
        for segment in segments {
            bytes.extend(u16::try_from(segment.len()).unwrap().to_le_bytes());
            bytes.extend(segment);
        }
        bytes
    };
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/results");
    fs::create_dir_all(&corpus).unwrap();
    let unfinished = [segments[0][..segments[0].len() - 50].to_vec()];
    for (name, bytes) in [
        ("whole", input(0, &segments)),
        ("mended", input(1, &segments)),
        ("one", input(1, &segments[..1])),
        ("unfinished", input(0, &unfinished)),
    ] {
        fs::write(corpus.join(name), bytes).unwrap();
    }
}
