//! Reads the frames of one segment. Bytes that are no frame are a finding here, not a failure.

use std::io::{BufReader, Read, Seek, SeekFrom};

use super::error::ResultsError;
use super::format::{
    FRAME_HEADER_BYTES, Frame, FrameKind, HeaderDefect, SEGMENT_HEADER_BYTES, SegmentHeader, VERSION, crc,
};
use super::notes::Begin;
use super::segment_name;

/// One open segment, from the disk or, for a reader that trusts nobody, from a folder's descriptor.
pub(super) struct SegmentReader<R> {
    pub(super) name: String,
    pub(super) header: SegmentHeader,
    pub(super) begin: Begin,
    seed: u32,
    file: BufReader<R>,
    /// Behind its first frame.
    pub(super) start: u64,
    /// Where it is read next.
    pub(super) at: u64,
    /// Its bytes, when it was opened.
    pub(super) len: u64,
}

impl<R: Read + Seek> SegmentReader<R> {
    /// Checks the header and reads the first frame. Both were durable before the segment got its name.
    pub(super) fn open(mut file: R, number: u64) -> Result<Self, ResultsError> {
        let name = segment_name(number);
        let unreadable = |source| ResultsError::unreadable(&name, source);
        let corrupt = |offset, defect| ResultsError::corrupt(&name, offset, defect);
        let len = file.seek(SeekFrom::End(0)).map_err(unreadable)?;
        file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        if len < SEGMENT_HEADER_BYTES as u64 {
            return Err(corrupt(0, "it is shorter than the header of a segment"));
        }
        let mut file = BufReader::new(file);
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        file.read_exact(&mut bytes).map_err(unreadable)?;
        let header = SegmentHeader::decode(&bytes).map_err(|defect| match defect {
            HeaderDefect::Damaged => corrupt(0, "its header is not as it was written"),
            HeaderDefect::Newer(version) => {
                ResultsError::VersionUnsupported { name: name.clone(), version, supported: VERSION }
            }
        })?;
        if header.number != number {
            return Err(corrupt(0, "its name is that of another segment"));
        }
        let at = SEGMENT_HEADER_BYTES as u64;
        let seed = header.seed();
        let nothing = Begin::default();
        let mut reader = Self { name: name.clone(), header, begin: nothing, seed, file, start: at, at, len };
        let begin = reader.frame()?.filter(|frame| frame.kind == FrameKind::Begin);
        let payload = match begin {
            Some(frame) => reader.payload(&frame)?,
            None => None,
        };
        reader.begin = payload
            .and_then(|payload| serde_json::from_slice(&payload).ok())
            .ok_or_else(|| corrupt(at, "its first frame is not as it was written"))?;
        reader.start = reader.at;
        Ok(reader)
    }

    pub(super) fn seek(&mut self, offset: u64) -> Result<(), ResultsError> {
        // Relative, as that keeps what is in the buffer.
        let distance = offset.wrapping_sub(self.at).cast_signed();
        self.file.seek_relative(distance).map_err(|source| ResultsError::unreadable(&self.name, source))?;
        self.at = offset;
        Ok(())
    }

    /// Reads the header of a frame. None: no frame that ends within the segment begins here.
    pub(super) fn frame(&mut self) -> Result<Option<Frame>, ResultsError> {
        if self.len.saturating_sub(self.at) < FRAME_HEADER_BYTES as u64 {
            return Ok(None);
        }
        let mut bytes = [0; FRAME_HEADER_BYTES];
        self.read_exact(&mut bytes)?;
        let fits = |frame: &Frame| u64::from(frame.length) <= self.len.saturating_sub(self.at);
        Ok(Frame::decode(&bytes, self.seed).filter(fits))
    }

    /// Reads the payload of a frame whose header was just read. None: it is not what was written.
    pub(super) fn payload(&mut self, frame: &Frame) -> Result<Option<Vec<u8>>, ResultsError> {
        let mut payload = vec![0; frame.length as usize];
        self.read_exact(&mut payload)?;
        Ok((crc(0, &payload) == frame.payload_crc).then_some(payload))
    }

    /// Goes behind the payload of a frame whose header was just read.
    pub(super) fn skip(&mut self, frame: &Frame) -> Result<(), ResultsError> {
        self.seek(self.at + u64::from(frame.length))
    }

    pub(super) fn corrupt(&self, offset: u64, defect: &'static str) -> ResultsError {
        ResultsError::corrupt(&self.name, offset, defect)
    }

    /// Whether a mark stands anywhere from `offset` on.
    pub(super) fn has_mark_from(&mut self, offset: u64) -> Result<bool, ResultsError> {
        /// Read at once.
        const WINDOW_BYTES: u64 = 1 << 16;
        let mut start = offset;
        while self.len.saturating_sub(start) >= FRAME_HEADER_BYTES as u64 {
            self.seek(start)?;
            let mut window = vec![0; usize::try_from((self.len - start).min(WINDOW_BYTES)).unwrap_or(0)];
            self.read_exact(&mut window)?;
            let is_mark = |bytes: &[u8; FRAME_HEADER_BYTES]| {
                Frame::decode(bytes, self.seed).is_some_and(|frame| frame.kind == FrameKind::Durable)
            };
            if window.array_windows().any(is_mark) {
                return Ok(true);
            }
            start += (window.len() - FRAME_HEADER_BYTES + 1) as u64;
        }
        Ok(false)
    }

    fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), ResultsError> {
        self.file.read_exact(bytes).map_err(|source| ResultsError::unreadable(&self.name, source))?;
        self.at += bytes.len() as u64;
        Ok(())
    }
}
