//! The bytes of a segment. All integers are little-endian.
//!
//! ```text
//! segment  magic 8 | version u32 | crc u32 of these 12 | stream u64 | number u64 | crc u32 of all | frames
//! frame    kind u8 | zero u24 | length u32 | generation u32 | rows u32 | batch u64 | first u64 | payload crc u32 | crc u32 | payload
//! ```
//!
//! The first frame is the segment's beginning. Then come groups, each made durable by one sync: the rows of a batch and its end,
//! or a rollback; and behind each a mark, written after the sync, which says that what is in front of it is durable.
//!
//! Checksums are CRC-32. A frame's own is seeded with the stream and the number of the segment, so stale bytes of another file
//! never pass for a frame; it covers that of the payload. The first 16 bytes keep their meaning in every version.

use crate::disk::fields::Fields;
pub(super) use crate::disk::fields::crc;

/// The version that is written, and the newest that is read.
pub(super) const VERSION: u32 = 1;

pub(super) const SEGMENT_HEADER_BYTES: usize = 36;
pub(super) const FRAME_HEADER_BYTES: usize = 40;

/// A frame takes further rows up to here: what a reader holds at least, while the frame's own 40 bytes stay negligible.
pub(super) const FRAME_ROWS_BYTES: usize = 256 << 10;

/// Payload of one frame: the longest row and its line end.
pub(super) const FRAME_BYTES_MAX: usize = super::ROW_BYTES_MAX + 1;

const MAGIC: [u8; 8] = *b"tideres\n";

/// Which stream a segment belongs to, and which segment it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    /// Made of the query's id.
    pub(super) stream: u64,
    pub(super) number: u64,
}

/// Why the first bytes of a segment are not the header of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HeaderDefect {
    Damaged,
    Newer(u32),
}

impl SegmentHeader {
    pub(super) fn of(query_id: &str, number: u64) -> Self {
        Self { stream: xxhash_rust::xxh3::xxh3_64(query_id.as_bytes()), number }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(SEGMENT_HEADER_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(crc(0, &bytes).to_le_bytes());
        bytes.extend(self.stream.to_le_bytes());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(crc(0, &bytes).to_le_bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> Result<Self, HeaderDefect> {
        let mut fields = Fields::of(bytes);
        let magic: [u8; 8] = fields.take();
        let version = fields.u32();
        if !fields.crc_is_right(0) || magic != MAGIC {
            return Err(HeaderDefect::Damaged);
        }
        if version > VERSION {
            return Err(HeaderDefect::Newer(version));
        }
        let header = Self { stream: fields.u64(), number: fields.u64() };
        if fields.crc_is_right(0) { Ok(header) } else { Err(HeaderDefect::Damaged) }
    }

    /// What the checksum of every frame in this segment starts from.
    pub(super) fn seed(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.stream.to_le_bytes());
        hasher.update(&self.number.to_le_bytes());
        hasher.finalize()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// The first of a segment: the payload is a [`super::notes::Begin`].
    Begin,
    /// Rows of a batch as JSON Lines.
    Rows,
    /// Ends a batch: `first` is how many rows it has, the payload is the digest of its ledger entry.
    End,
    /// A rollback: the payload is a [`super::notes::RollbackRecord`].
    Rollback,
    /// What is in front of it is durable.
    Durable,
}

impl FrameKind {
    const ALL: [Self; 5] = [Self::Begin, Self::Rows, Self::End, Self::Rollback, Self::Durable];

    fn number(self) -> u8 {
        match self {
            Self::Begin => 1,
            Self::Rows => 2,
            Self::End => 3,
            Self::Rollback => 4,
            Self::Durable => 5,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) kind: FrameKind,
    pub(super) length: u32,
    pub(super) generation: u32,
    /// How many rows stand in it.
    pub(super) rows: u32,
    pub(super) batch: u64,
    /// Index of its first row in the batch.
    pub(super) first: u64,
    pub(super) payload_crc: u32,
}

impl Frame {
    /// A frame without rows; what depends on the payload is filled in when it is written.
    pub(super) fn new(kind: FrameKind, generation: u32, batch: u64) -> Self {
        Self { kind, length: 0, generation, rows: 0, batch, first: 0, payload_crc: 0 }
    }

    pub(super) fn encode(&self, seed: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FRAME_HEADER_BYTES);
        bytes.extend([self.kind.number(), 0, 0, 0]);
        bytes.extend(self.length.to_le_bytes());
        bytes.extend(self.generation.to_le_bytes());
        bytes.extend(self.rows.to_le_bytes());
        bytes.extend(self.batch.to_le_bytes());
        bytes.extend(self.first.to_le_bytes());
        bytes.extend(self.payload_crc.to_le_bytes());
        bytes.extend(crc(seed, &bytes).to_le_bytes());
        bytes
    }

    /// None: no frame begins with these bytes.
    pub(super) fn decode(bytes: &[u8; FRAME_HEADER_BYTES], seed: u32) -> Option<Self> {
        let mut fields = Fields::of(bytes);
        let [number, zeros @ ..] = fields.take::<4>();
        let kind = FrameKind::ALL.into_iter().find(|kind| kind.number() == number)?;
        let frame = Self {
            kind,
            length: fields.u32(),
            generation: fields.u32(),
            rows: fields.u32(),
            batch: fields.u64(),
            first: fields.u64(),
            payload_crc: fields.u32(),
        };
        (zeros == [0; 3] && frame.length as usize <= FRAME_BYTES_MAX && fields.crc_is_right(seed)).then_some(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> SegmentHeader {
        SegmentHeader { stream: 1, number: 2 }
    }

    #[test]
    fn the_bytes_of_version_1_stay_as_they_are() {
        let frame =
            Frame { length: 5, rows: 3, first: 6, payload_crc: crc(0, b"hello"), ..Frame::new(FrameKind::Rows, 7, 8) };
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();

        assert_eq!(hex(&header().encode()), "746964657265730a01000000bc41b9f101000000000000000200000000000000610d98e3");
        assert_eq!(
            hex(&frame.encode(header().seed())),
            "020000000500000007000000030000000800000000000000060000000000000086a610364655393e"
        );
    }

    #[test]
    fn what_was_written_is_read() {
        let frame = Frame { rows: 9, first: u64::MAX, ..Frame::new(FrameKind::Durable, u32::MAX, u64::MAX) };

        assert_eq!(SegmentHeader::decode(header().encode().as_slice().try_into().unwrap()), Ok(header()));
        assert_eq!(Frame::decode(frame.encode(5).as_slice().try_into().unwrap(), 5), Some(frame));
        assert_eq!(Frame::decode(frame.encode(5).as_slice().try_into().unwrap(), 6), None, "of another segment");
    }

    #[test]
    fn a_newer_version_is_told_from_damage() {
        let mut bytes: [u8; SEGMENT_HEADER_BYTES] = header().encode().try_into().unwrap();
        bytes[8] = 9;
        assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderDefect::Damaged));

        let whole = crc(0, &bytes[..12]);
        bytes[12..16].copy_from_slice(&whole.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&bytes), Err(HeaderDefect::Newer(9)));
    }
}
