//! Writes the frames of one segment.

use std::io;
use std::path::Path;

use super::format::{Frame, FrameKind, SegmentHeader, crc};
use super::notes::Begin;
use super::segment_name;
use crate::disk::{Disk, DiskFile};

/// Frames are handed to the system once this much has come together.
const BUFFER_BYTES: usize = 256 << 10;

/// The segment that is written to.
pub(super) struct SegmentWriter {
    file: Box<dyn DiskFile>,
    seed: u32,
    buffer: Vec<u8>,
    /// Where the next frame begins.
    pub(super) end: u64,
    /// Where what is known to be durable ends; a mark follows.
    pub(super) durable_end: u64,
}

impl SegmentWriter {
    /// Begins a segment, which has no name before [`Self::publish`].
    pub(super) fn create(disk: &dyn Disk, folder: &Path, header: SegmentHeader, begin: &Begin) -> io::Result<Self> {
        let hidden = folder.join(hidden_name(header.number));
        if disk.exists(&hidden)? {
            disk.remove_file(&hidden)?;
        }
        let file = disk.create_new(&hidden)?;
        let buffer = header.encode();
        let end = buffer.len() as u64;
        let mut writer = Self { file, seed: header.seed(), buffer, end, durable_end: end };
        let begin = serde_json::to_vec(begin).map_err(io::Error::other)?;
        writer.frame(&Frame::new(FrameKind::Begin, 0, 0), &begin)?;
        writer.durable_end = writer.end;
        Ok(writer)
    }

    /// Makes a new segment durable and gives it its name. What stands in it already is marked only then.
    pub(super) fn publish(&mut self, disk: &dyn Disk, folder: &Path, number: u64) -> io::Result<()> {
        self.flush()?;
        self.file.sync()?;
        disk.rename(&folder.join(hidden_name(number)), &folder.join(segment_name(number)))?;
        disk.sync_dir(folder)?;
        if self.end > self.durable_end { self.mark() } else { Ok(()) }
    }

    /// Goes on with a segment that ends with a mark, or that holds no group yet.
    pub(super) fn append(
        disk: &dyn Disk,
        folder: &Path,
        header: SegmentHeader,
        end: u64,
        durable_end: u64,
    ) -> io::Result<Self> {
        let file = disk.open_append(&folder.join(segment_name(header.number)))?;
        Ok(Self { file, seed: header.seed(), buffer: Vec::new(), end, durable_end })
    }

    /// Writes a frame; its length and the checksum of its payload are filled in.
    pub(super) fn frame(&mut self, frame: &Frame, payload: &[u8]) -> io::Result<()> {
        let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
        let header = Frame { length, payload_crc: crc(0, payload), ..*frame }.encode(self.seed);
        self.buffer.extend_from_slice(&header);
        self.buffer.extend_from_slice(payload);
        self.end += (header.len() + payload.len()) as u64;
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Ends a group: makes it durable, then marks it as such. The mark itself may be lost.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        self.file.sync()?;
        self.mark()
    }

    fn mark(&mut self) -> io::Result<()> {
        self.durable_end = self.end;
        self.frame(&Frame::new(FrameKind::Durable, 0, 0), &[])?;
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// Where a segment is made, before it gets its name.
fn hidden_name(number: u64) -> String {
    format!(".{}.tmp", segment_name(number))
}
