//! Finds the records of one segment, and where its valid part ends.

use super::error::LogError;
use super::folder::SegmentReader;
use super::format::{Frame, FrameKind, Pieces, RecordEnd, SEGMENT_HEADER_BYTES};
use super::record::RecordRef;

/// How closely a segment is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// The frames; payloads are checked when a record is read. Enough where the segment is known to be whole, and it
    /// keeps a start fast.
    Frames,
    /// Every byte.
    Payloads,
}

/// What a segment holds.
#[derive(Debug)]
pub(super) struct Scan {
    /// Committed records.
    pub(super) records: Vec<RecordRef>,
    /// Where the last committed group ends.
    pub(super) end: u64,
    /// Where valid frames end: at `end`, or further on when a group was not finished.
    pub(super) valid_end: u64,
    /// Of the next record.
    pub(super) next_sequence: u64,
}

/// Reads a segment from its first frame to the first that is not valid.
pub(super) fn scan(reader: &mut SegmentReader, depth: Depth) -> Result<Scan, LogError> {
    let mut scan = Scan {
        records: Vec::new(),
        end: SEGMENT_HEADER_BYTES as u64,
        valid_end: SEGMENT_HEADER_BYTES as u64,
        next_sequence: reader.header.first_sequence,
    };
    let mut group = Group::default();
    let mut payload = Vec::new();
    reader.seek(scan.end)?;
    while let Some(frame) = reader.frame()? {
        let at = scan.valid_end;
        if frame.kind == FrameKind::Piece && depth == Depth::Frames {
            payload.clear();
            reader.skip(&frame)?;
        } else if !reader.payload(&frame, &mut payload)? {
            break;
        }
        let fits = frame.group == scan.end
            && match frame.kind {
                FrameKind::Piece => group.piece(&frame, at, scan.next_sequence),
                FrameKind::End => group.end(&frame, &payload, reader.header.number, scan.next_sequence),
                FrameKind::Commit => group.is_whole(&frame, &payload, scan.next_sequence),
            };
        if !fits {
            break;
        }
        scan.valid_end = reader.at;
        if frame.kind == FrameKind::Commit {
            scan.next_sequence += group.records.len() as u64;
            scan.records.append(&mut group.records);
            scan.end = reader.at;
        }
    }
    Ok(scan)
}

/// The records behind the last commit frame.
#[derive(Default)]
struct Group {
    records: Vec<RecordRef>,
    /// Where the record at hand begins, and its pieces so far.
    open: Option<(u64, Pieces)>,
}

impl Group {
    fn sequence(&self, first: u64) -> u64 {
        first + self.records.len() as u64
    }

    fn piece(&mut self, frame: &Frame, at: u64, first: u64) -> bool {
        let (_, pieces) = self.open.get_or_insert_with(|| (at, Pieces::default()));
        pieces.add(frame.length as usize, frame.payload_crc);
        frame.sequence == self.sequence(first)
    }

    fn end(&mut self, frame: &Frame, payload: &[u8], segment: u64, first: u64) -> bool {
        let (Some((offset, pieces)), Some(end)) = (self.open.take(), RecordEnd::decode(payload)) else {
            return false;
        };
        let record = RecordRef { segment, offset, sequence: self.sequence(first), kind: end.kind, bytes: end.bytes };
        self.records.push(record);
        frame.sequence == record.sequence && pieces.end(end.kind) == end
    }

    fn is_whole(&self, frame: &Frame, payload: &[u8], first: u64) -> bool {
        let last = self.records.last();
        self.open.is_none()
            && last.is_some_and(|last| last.sequence == frame.sequence)
            && payload == (self.sequence(first) - first).to_le_bytes()
    }
}
