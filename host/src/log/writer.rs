//! Writes one segment: it is made under a hidden name and gets its own once it is durable.

use std::io::{self, Read};

use super::error::LogError;
use super::folder::Folder;
use super::format::{FRAME_BYTES_MAX, Frame, FrameKind, Pieces, SEGMENT_HEADER_BYTES, SegmentHeader, crc};
use super::record::{Content, NewRecord, Part, RecordRef};
use crate::disk::DiskFile;

/// Frames are gathered to this size, so that the commit record of a small batch is one write.
const BUFFER_BYTES: usize = 1 << 18;

pub(super) struct SegmentWriter {
    file: Box<dyn DiskFile>,
    pub(super) number: u64,
    seed: u32,
    /// Bytes of the segment, with those in the buffer.
    pub(super) end: u64,
    /// Where the group at hand begins.
    group: u64,
    /// Records of the group at hand.
    group_records: u64,
    buffer: Vec<u8>,
}

impl SegmentWriter {
    pub(super) fn create(folder: &Folder, header: SegmentHeader) -> io::Result<Self> {
        Ok(Self {
            file: folder.disk.create_new(&folder.hidden_path(header.number))?,
            number: header.number,
            seed: header.seed(),
            end: SEGMENT_HEADER_BYTES as u64,
            group: SEGMENT_HEADER_BYTES as u64,
            group_records: 0,
            buffer: header.encode().to_vec(),
        })
    }

    /// Makes what was written durable, and gives the segment its name.
    pub(super) fn publish(&mut self, folder: &Folder) -> io::Result<()> {
        self.sync()?;
        folder.disk.rename(&folder.hidden_path(self.number), &folder.path(self.number))?;
        folder.disk.sync_dir(&folder.dir)
    }

    /// Writes a record that becomes valid with the group that it is in.
    pub(super) fn record(
        &mut self,
        folder: &Folder,
        record: NewRecord<'_>,
        sequence: u64,
    ) -> Result<RecordRef, LogError> {
        let offset = self.end;
        let write_error = |source| folder.write_error(source);
        let mut pieces = Pieces::default();
        self.bytes(&mut pieces, sequence, Part::Header, record.header).map_err(write_error)?;
        for section in record.sections {
            let part = Part::Section(section.name);
            match section.content {
                Content::Bytes(bytes) => self.bytes(&mut pieces, sequence, part, bytes).map_err(write_error)?,
                Content::Reader(reader) => self.stream(folder, &mut pieces, sequence, part, reader)?,
            }
        }
        let end = pieces.end(record.kind);
        self.frame(&new_frame(FrameKind::End, 0, sequence), &end.encode()).map_err(write_error)?;
        Ok(RecordRef { segment: self.number, offset, sequence, kind: record.kind, bytes: end.bytes })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.end == SEGMENT_HEADER_BYTES as u64
    }

    /// Whether records wait for a commit frame.
    pub(super) fn group_is_open(&self) -> bool {
        self.group_records > 0
    }

    /// Ends the group at hand, whose last record has this sequence.
    pub(super) fn commit(&mut self, sequence: u64) -> io::Result<()> {
        let records = self.group_records;
        self.frame(&new_frame(FrameKind::Commit, 0, sequence), &records.to_le_bytes())?;
        self.group = self.end;
        self.group_records = 0;
        Ok(())
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        self.file.sync()
    }

    /// Hands the buffer to the system; this makes nothing durable.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Writes a frame into the group at hand; length, group and checksum are filled in. Gives the checksum.
    pub(super) fn frame(&mut self, frame: &Frame, payload: &[u8]) -> io::Result<u32> {
        let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
        let frame = Frame { length, group: self.group, payload_crc: crc(0, payload), ..*frame };
        let header = frame.encode(self.seed);
        self.buffer.extend_from_slice(&header);
        if self.buffer.len() + payload.len() > BUFFER_BYTES {
            self.flush()?;
        }
        if payload.len() > BUFFER_BYTES {
            self.file.write_all(payload)?;
        } else {
            self.buffer.extend_from_slice(payload);
        }
        self.end += (header.len() + payload.len()) as u64;
        self.group_records += u64::from(frame.kind == FrameKind::End);
        Ok(frame.payload_crc)
    }

    fn bytes(&mut self, pieces: &mut Pieces, sequence: u64, part: Part, bytes: &[u8]) -> io::Result<()> {
        let (first, rest) = bytes.split_at(bytes.len().min(FRAME_BYTES_MAX));
        self.piece(pieces, sequence, part, Position::First, first)?;
        rest.chunks(FRAME_BYTES_MAX).try_for_each(|bytes| self.piece(pieces, sequence, part, Position::Later, bytes))
    }

    fn stream(
        &mut self,
        folder: &Folder,
        pieces: &mut Pieces,
        sequence: u64,
        part: Part,
        reader: &mut dyn Read,
    ) -> Result<(), LogError> {
        let mut bytes = Vec::new();
        let mut position = Position::First;
        loop {
            bytes.clear();
            let mut piece = Read::take(&mut *reader, FRAME_BYTES_MAX as u64);
            piece.read_to_end(&mut bytes).map_err(|source| LogError::Section { source })?;
            if bytes.is_empty() && position == Position::Later {
                return Ok(());
            }
            self.piece(pieces, sequence, part, position, &bytes).map_err(|source| folder.write_error(source))?;
            position = Position::Later;
        }
    }

    fn piece(
        &mut self,
        pieces: &mut Pieces,
        sequence: u64,
        part: Part,
        position: Position,
        bytes: &[u8],
    ) -> io::Result<()> {
        let frame =
            Frame { begins: position == Position::First, ..new_frame(FrameKind::Piece, part.number(), sequence) };
        pieces.add(bytes.len(), self.frame(&frame, bytes)?);
        Ok(())
    }
}

/// Of a piece in its part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    First,
    Later,
}

fn new_frame(kind: FrameKind, part: u16, sequence: u64) -> Frame {
    Frame { kind, begins: false, part, length: 0, sequence, group: 0, payload_crc: 0 }
}
