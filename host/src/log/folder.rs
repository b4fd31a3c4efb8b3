//! The folder that a log's segments stand in: their names, and how their headers and records are read.

use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::LogError;
use super::format::{
    FRAME_HEADER_BYTES, Frame, FrameKind, HeaderDefect, Pieces, RecordEnd, SEGMENT_HEADER_BYTES, SegmentHeader,
    VERSION, crc,
};
use super::record::{Part, Piece, Record, RecordRef};
use crate::disk::{Disk, ReadSeek};

/// A log's folder. Reading never writes.
#[derive(Debug, Clone)]
pub(super) struct Folder {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    /// Made of the query's id; stands in every segment.
    pub(super) log: u64,
}

/// What stands in the folder.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Numbers of the segments, ascending.
    pub(super) segments: Vec<u64>,
    /// Segments that were never finished.
    pub(super) hidden: Vec<PathBuf>,
}

impl Folder {
    pub(super) fn new(disk: Arc<dyn Disk>, dir: &Path, query_id: &str) -> Self {
        Self { disk, dir: dir.to_owned(), log: xxhash_rust::xxh3::xxh3_64(query_id.as_bytes()) }
    }

    /// `log-<20 digits>.tlog`
    pub(super) fn path(&self, segment: u64) -> PathBuf {
        self.dir.join(format!("log-{segment:020}.tlog"))
    }

    /// Where a segment is made, before it gets its name.
    pub(super) fn hidden_path(&self, segment: u64) -> PathBuf {
        self.dir.join(format!(".log-{segment:020}.tlog.tmp"))
    }

    /// Other names are left alone.
    pub(super) fn list(&self) -> Result<Listing, LogError> {
        let mut listing = Listing::default();
        for entry in self.disk.list(&self.dir).map_err(|source| self.read_error(source))? {
            let hidden = entry.name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp"));
            if hidden.and_then(segment_of).is_some() {
                listing.hidden.push(self.dir.join(&entry.name));
            } else if let Some(segment) = segment_of(&entry.name) {
                listing.segments.push(segment);
            }
        }
        Ok(listing)
    }

    /// Opens a segment and checks its header.
    pub(super) fn open(&self, segment: u64) -> Result<SegmentReader, LogError> {
        let path = self.path(segment);
        let read = || {
            let mut file = self.disk.open(&path)?;
            let len = file.seek(SeekFrom::End(0))?;
            file.seek(SeekFrom::Start(0))?;
            let mut bytes = Vec::with_capacity(SEGMENT_HEADER_BYTES);
            Read::take(&mut file, SEGMENT_HEADER_BYTES as u64).read_to_end(&mut bytes)?;
            Ok((BufReader::new(file), len, bytes))
        };
        let (file, len, bytes) = read().map_err(|source| self.read_error(source))?;
        let corrupt = |defect| LogError::Corrupt { path: path.clone(), offset: 0, defect };
        let Ok(bytes) = bytes.as_slice().try_into() else {
            return Err(corrupt(
                "it is shorter than the header of a segment, which was durable before it got its name",
            ));
        };
        let header = SegmentHeader::decode(bytes).map_err(|defect| match defect {
            HeaderDefect::Damaged => corrupt("the header of the segment is not as it was written"),
            HeaderDefect::Newer(version) => {
                LogError::VersionUnsupported { path: path.clone(), version, supported: VERSION }
            }
        })?;
        let foreign = |defect| LogError::Foreign { path: path.clone(), defect };
        if header.log != self.log {
            return Err(foreign("it is from the log of another query"));
        }
        if header.number != segment {
            return Err(foreign("its name is that of another segment"));
        }
        Ok(SegmentReader {
            folder: self.clone(),
            seed: header.seed(),
            header,
            file,
            at: SEGMENT_HEADER_BYTES as u64,
            len,
        })
    }

    /// Reads a record piece by piece, until `visit` breaks.
    pub(super) fn read_pieces(
        &self,
        record: &RecordRef,
        visit: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>,
    ) -> Result<(), LogError> {
        let mut reader = self.open(record.segment)?;
        reader.seek(record.offset)?;
        let mut pieces = Pieces::default();
        let mut payload = Vec::new();
        loop {
            let at = reader.at;
            let damaged = LogError::Corrupt {
                path: self.path(record.segment),
                offset: at,
                defect: "a record that had been committed is not as it was written",
            };
            let Some(frame) = reader.frame()?.filter(|frame| frame.sequence == record.sequence) else {
                return Err(damaged);
            };
            if !reader.payload(&frame, &mut payload)? {
                return Err(damaged);
            }
            match (frame.kind, Part::of(frame.part)) {
                (FrameKind::Piece, Some(part)) => {
                    pieces.add(payload.len(), frame.payload_crc);
                    if visit(Piece { part, begins: frame.begins, bytes: &payload }).is_break() {
                        return Ok(());
                    }
                }
                (FrameKind::End, _) if RecordEnd::decode(&payload) == Some(pieces.end(record.kind)) => return Ok(()),
                _ => return Err(damaged),
            }
        }
    }

    /// Reads a whole record into memory.
    pub(super) fn read(&self, record: &RecordRef) -> Result<Record, LogError> {
        let mut whole = Record { kind: record.kind, ..Record::default() };
        self.read_pieces(record, &mut |piece| {
            whole.add(piece.part, piece.begins, piece.bytes);
            ControlFlow::Continue(())
        })?;
        Ok(whole)
    }

    /// Reads the header of a record alone.
    pub(super) fn read_header(&self, record: &RecordRef) -> Result<Vec<u8>, LogError> {
        let mut header = Vec::new();
        self.read_pieces(record, &mut |piece| match piece.part {
            Part::Header => {
                header.extend_from_slice(piece.bytes);
                ControlFlow::Continue(())
            }
            Part::Section(_) => ControlFlow::Break(()),
        })?;
        Ok(header)
    }

    pub(super) fn read_error(&self, source: io::Error) -> LogError {
        LogError::Read { dir: self.dir.clone(), source }
    }

    pub(super) fn write_error(&self, source: io::Error) -> LogError {
        LogError::Write { dir: self.dir.clone(), source }
    }
}

/// Reads the frames of one segment. Bytes that are no frame are a finding here; only the disk fails.
pub(super) struct SegmentReader {
    folder: Folder,
    pub(super) header: SegmentHeader,
    seed: u32,
    file: BufReader<Box<dyn ReadSeek>>,
    /// Where the file is read next.
    pub(super) at: u64,
    /// Bytes of the segment when it was opened.
    pub(super) len: u64,
}

impl SegmentReader {
    pub(super) fn seek(&mut self, offset: u64) -> Result<(), LogError> {
        // Relative, as that keeps what is in the buffer.
        let distance = offset.wrapping_sub(self.at).cast_signed();
        self.file.seek_relative(distance).map_err(|source| self.folder.read_error(source))?;
        self.at = offset;
        Ok(())
    }

    /// Looks again how long the segment is, while another process appends to it.
    pub(super) fn refresh(&mut self) -> Result<(), LogError> {
        // In the buffer nothing is lost by this, as the file is only ever appended to.
        let len = self.file.get_mut().seek(SeekFrom::End(0)).map_err(|source| self.folder.read_error(source))?;
        let behind = self.at + self.file.buffer().len() as u64;
        self.file.get_mut().seek(SeekFrom::Start(behind)).map_err(|source| self.folder.read_error(source))?;
        self.len = len;
        Ok(())
    }

    pub(super) fn corrupt(&self, defect: &'static str) -> LogError {
        LogError::Corrupt { path: self.folder.path(self.header.number), offset: self.at, defect }
    }

    /// Reads the header of a frame. None: no frame that ends within the segment begins here.
    pub(super) fn frame(&mut self) -> Result<Option<Frame>, LogError> {
        if self.len.saturating_sub(self.at) < FRAME_HEADER_BYTES as u64 {
            return Ok(None);
        }
        let start = self.at;
        let mut bytes = [0; FRAME_HEADER_BYTES];
        self.read_exact(&mut bytes)?;
        let fits = |frame: &Frame| frame.group <= start && self.at + u64::from(frame.length) <= self.len;
        Ok(Frame::decode(&bytes, self.seed).filter(fits))
    }

    /// Reads the payload of a frame whose header was just read. False: it is not what was written.
    pub(super) fn payload(&mut self, frame: &Frame, payload: &mut Vec<u8>) -> Result<bool, LogError> {
        payload.resize(frame.length as usize, 0);
        self.read_exact(payload)?;
        Ok(crc(0, payload) == frame.payload_crc)
    }

    pub(super) fn skip(&mut self, frame: &Frame) -> Result<(), LogError> {
        self.seek(self.at + u64::from(frame.length))
    }

    /// Where, from `offset` on, the first frame of a group begins that was begun after the one at `group`.
    pub(super) fn find_later_group(&mut self, offset: u64, group: u64) -> Result<Option<u64>, LogError> {
        /// Read at once.
        const WINDOW_BYTES: u64 = 1 << 16;
        let mut window = Vec::new();
        let mut start = offset;
        while self.len.saturating_sub(start) >= FRAME_HEADER_BYTES as u64 {
            self.seek(start)?;
            window.resize(usize::try_from((self.len - start).min(WINDOW_BYTES)).unwrap_or(0), 0);
            self.read_exact(&mut window)?;
            for (at, bytes) in (start..).zip(window.array_windows()) {
                let later = |frame: &Frame| group < frame.group && frame.group <= at;
                if Frame::decode(bytes, self.seed).as_ref().is_some_and(later) {
                    return Ok(Some(at));
                }
            }
            start += (window.len() - FRAME_HEADER_BYTES + 1) as u64;
        }
        Ok(None)
    }

    fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), LogError> {
        self.file.read_exact(bytes).map_err(|source| self.folder.read_error(source))?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}

fn segment_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("log-")?.strip_suffix(".tlog")?;
    (digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit())).then(|| digits.parse().ok())?
}
