//! The bytes of a segment. All integers are little-endian.
//!
//! ```text
//! segment  magic 8 | version u32 | crc u32 of these 12 | log u64 | number u64 | first sequence u64 | crc u32 of all | frames
//! frame    kind u8 | flags u8 | part u16 | length u32 | sequence u64 | group u64 | payload crc u32 | crc u32 | payload
//! ```
//!
//! A record is its pieces (part 0 is the header, part 1 + name a section; a flag marks where a section begins) and an end
//! frame. Records become valid in groups, by the commit frame behind them; a group is what one sync makes durable, and
//! the next is begun only after that sync. So any frame of a later group proves that a damaged one had been durable.
//!
//! Checksums are CRC-32. A frame's own is seeded with the log and the number of the segment, so stale bytes of another
//! file never pass for a frame; it covers that of the payload.
//! The first 16 bytes keep their meaning in every version.

use crate::disk::fields::Fields;
pub(super) use crate::disk::fields::crc;

/// The version that is written, and the newest that is read.
pub(super) const VERSION: u32 = 1;

/// Payload of one frame: bounds what a reader holds in memory, while the frame's own 32 bytes stay negligible.
pub(super) const FRAME_BYTES_MAX: usize = 1 << 20;

pub(super) const SEGMENT_HEADER_BYTES: usize = 44;
pub(super) const FRAME_HEADER_BYTES: usize = 32;

const MAGIC: [u8; 8] = *b"tidelog\n";

/// Which log a segment belongs to, and which segment it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    /// Made of the query's id.
    pub(super) log: u64,
    pub(super) number: u64,
    /// Of its first record.
    pub(super) first_sequence: u64,
}

/// Why the first bytes of a segment are not the header of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderDefect {
    Damaged,
    Newer(u32),
}

impl SegmentHeader {
    pub(super) fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = Bytes::new();
        bytes.put(&MAGIC);
        bytes.put(&VERSION.to_le_bytes());
        bytes.put_crc(0);
        bytes.put(&self.log.to_le_bytes());
        bytes.put(&self.number.to_le_bytes());
        bytes.put(&self.first_sequence.to_le_bytes());
        bytes.put_crc(0);
        bytes.finished
    }

    pub(super) fn decode(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> Result<Self, HeaderDefect> {
        let mut fields = Fields::of(bytes);
        let magic: [u8; 8] = fields.take();
        let version = fields.u32();
        let start_is_whole = fields.crc_is_right(0);
        if magic != MAGIC || !start_is_whole {
            return Err(HeaderDefect::Damaged);
        }
        if version > VERSION {
            return Err(HeaderDefect::Newer(version));
        }
        let header = Self { log: fields.u64(), number: fields.u64(), first_sequence: fields.u64() };
        if fields.crc_is_right(0) { Ok(header) } else { Err(HeaderDefect::Damaged) }
    }

    /// What the checksum of every frame in this segment starts from.
    pub(super) fn seed(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.log.to_le_bytes());
        hasher.update(&self.number.to_le_bytes());
        hasher.finalize()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// Bytes of the header or of a section.
    Piece,
    /// Ends a record: see [`RecordEnd`].
    End,
    /// Ends a group, and makes its records valid: how many they are, u32.
    Commit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: FrameKind,
    /// Whether a header or section begins with this piece.
    pub(super) begins: bool,
    pub(super) part: u16,
    pub(super) length: u32,
    /// Of the record; a commit frame has that of the group's last.
    pub(super) sequence: u64,
    /// Where in the segment the frame's group begins.
    pub(super) group: u64,
    pub(super) payload_crc: u32,
}

impl Frame {
    pub(super) fn encode(&self, seed: u32) -> [u8; FRAME_HEADER_BYTES] {
        let kind = match self.kind {
            FrameKind::Piece => 1,
            FrameKind::End => 2,
            FrameKind::Commit => 3,
        };
        let mut bytes = Bytes::new();
        bytes.put(&[kind, u8::from(self.begins)]);
        bytes.put(&self.part.to_le_bytes());
        bytes.put(&self.length.to_le_bytes());
        bytes.put(&self.sequence.to_le_bytes());
        bytes.put(&self.group.to_le_bytes());
        bytes.put(&self.payload_crc.to_le_bytes());
        bytes.put_crc(seed);
        bytes.finished
    }

    /// None: no frame begins with these bytes.
    pub(super) fn decode(bytes: &[u8; FRAME_HEADER_BYTES], seed: u32) -> Option<Self> {
        let mut fields = Fields::of(bytes);
        let [kind, flags] = fields.take();
        let kind = match kind {
            1 => FrameKind::Piece,
            2 => FrameKind::End,
            3 => FrameKind::Commit,
            _ => return None,
        };
        let begins = match flags {
            0 => false,
            1 => true,
            _ => return None,
        };
        let frame = Self {
            kind,
            begins,
            part: fields.u16(),
            length: fields.u32(),
            sequence: fields.u64(),
            group: fields.u64(),
            payload_crc: fields.u32(),
        };
        (frame.length as usize <= FRAME_BYTES_MAX && fields.crc_is_right(seed)).then_some(frame)
    }
}

/// What an end frame says of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordEnd {
    pub(super) kind: u8,
    pub(super) pieces: u64,
    /// Payload of all pieces.
    pub(super) bytes: u64,
    /// CRC-32 of the pieces' checksums.
    pub(super) crc: u32,
}

impl RecordEnd {
    pub(super) const BYTES: usize = 21;

    pub(super) fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = Bytes::new();
        bytes.put(&[self.kind]);
        bytes.put(&self.pieces.to_le_bytes());
        bytes.put(&self.bytes.to_le_bytes());
        bytes.put(&self.crc.to_le_bytes());
        bytes.finished
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let mut fields = Fields::of(bytes);
        let [kind] = fields.take();
        Some(Self { kind, pieces: fields.u64(), bytes: fields.u64(), crc: fields.u32() })
    }
}

/// Sums up the pieces of a record, for its end frame.
#[derive(Debug, Clone, Default)]
pub(super) struct Pieces {
    pieces: u64,
    bytes: u64,
    crc: crc32fast::Hasher,
}

impl Pieces {
    pub(super) fn add(&mut self, length: usize, payload_crc: u32) {
        self.pieces += 1;
        self.bytes += length as u64;
        self.crc.update(&payload_crc.to_le_bytes());
    }

    pub(super) fn end(self, kind: u8) -> RecordEnd {
        RecordEnd { kind, pieces: self.pieces, bytes: self.bytes, crc: self.crc.finalize() }
    }
}

/// Writes fields one behind the other; the sizes of the formats above are those of their fields.
struct Bytes<const N: usize> {
    finished: [u8; N],
    at: usize,
}

impl<const N: usize> Bytes<N> {
    fn new() -> Self {
        Self { finished: [0; N], at: 0 }
    }

    fn put(&mut self, field: &[u8]) {
        if let Some(place) = self.finished.get_mut(self.at..self.at + field.len()) {
            place.copy_from_slice(field);
        }
        self.at += field.len();
    }

    fn put_crc(&mut self, seed: u32) {
        let crc = crc(seed, self.finished.get(..self.at).unwrap_or_default());
        self.put(&crc.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_header_is_read_as_it_was_written() {
        let header = SegmentHeader { log: 7, number: 3, first_sequence: 99 };
        assert_eq!(SegmentHeader::decode(&header.encode()), Ok(header));
    }

    #[test]
    fn the_bytes_of_version_1_stay_as_they_are() {
        let header = SegmentHeader { log: 1, number: 2, first_sequence: 3 };
        let frame = Frame {
            kind: FrameKind::Piece,
            begins: true,
            part: 4,
            length: 5,
            sequence: 6,
            group: 7,
            payload_crc: crc(0, b"hello"),
        };
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();

        assert_eq!(
            hex(&header.encode()),
            "746964656c6f670a01000000667dbfa40100000000000000020000000000000003000000000000004e307a08"
        );
        assert_eq!(
            hex(&frame.encode(header.seed())),
            "01010400050000000600000000000000070000000000000086a6103648411695"
        );
    }

    #[test]
    fn a_header_of_a_newer_version_is_told_from_a_damaged_one() {
        let mut bytes = SegmentHeader { log: 7, number: 3, first_sequence: 99 }.encode();
        bytes[8..12].copy_from_slice(&9_u32.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderDefect::Damaged));

        let whole = crc(0, &bytes[..12]);
        bytes[12..16].copy_from_slice(&whole.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderDefect::Newer(9)));
    }

    #[test]
    fn a_frame_of_another_segment_is_none() {
        let frame = Frame {
            kind: FrameKind::Commit,
            begins: false,
            part: 0,
            length: 4,
            sequence: 1,
            group: 44,
            payload_crc: 0,
        };
        let bytes = frame.encode(SegmentHeader { log: 1, number: 1, first_sequence: 1 }.seed());

        assert_eq!(Frame::decode(&bytes, SegmentHeader { log: 1, number: 1, first_sequence: 5 }.seed()), Some(frame));
        assert_eq!(Frame::decode(&bytes, SegmentHeader { log: 1, number: 2, first_sequence: 1 }.seed()), None);
        assert_eq!(Frame::decode(&bytes, SegmentHeader { log: 2, number: 1, first_sequence: 1 }.seed()), None);
    }
}
