//! Opening results to go on with them.
//!
//! The segment that was written last may end with something that is not known to be durable: its process died before the mark,
//! or a sync failed, and then a sync now would prove nothing. Such a segment is left as it is. A new one says where it ends, and
//! gets what is whole behind the last mark as its first group, so that what a reader was shown before the mark was lost stays
//! in the stream. Else writing goes on behind the mark.

use std::io;
use std::ops::Range;
use std::path::Path;

use super::error::ResultsError;
use super::format::{Frame, FrameKind, SegmentHeader};
use super::notes::{Begin, RollbackRecord, SoFar};
use super::position::Position;
use super::segment::SegmentReader;
use super::writer::SegmentWriter;
use super::{segment_name, segment_number};
use crate::disk::Disk;

/// Results that are open for writing.
pub(super) struct Tail {
    query_id: String,
    number: u64,
    /// As DDL, of the rows in this segment.
    schema: String,
    pub(super) so_far: SoFar,
    pub(super) writer: SegmentWriter,
}

impl Tail {
    /// Makes what was written durable, and gives the segment its name.
    fn publish(mut self, disk: &dyn Disk, folder: &Path) -> io::Result<Self> {
        self.writer.publish(disk, folder, self.number)?;
        Ok(self)
    }

    fn create(disk: &dyn Disk, folder: &Path, number: u64, begin: Begin) -> io::Result<Self> {
        let header = SegmentHeader::of(&begin.query_id, number);
        let writer = SegmentWriter::create(disk, folder, header, &begin)?;
        Ok(Self { query_id: begin.query_id, number, schema: begin.schema, so_far: begin.so_far, writer })
    }

    /// Goes behind a batch of `end.index` rows.
    pub(super) fn batch(&mut self, end: Position, digest: String) {
        self.so_far.batch(&self.query_id, end, digest);
    }

    /// Begins the next segment.
    pub(super) fn roll(&self, disk: &dyn Disk, folder: &Path) -> io::Result<Self> {
        let begin = Begin {
            query_id: self.query_id.clone(),
            schema: self.schema.clone(),
            previous_end: self.writer.durable_end,
            so_far: self.so_far.clone(),
        };
        Self::create(disk, folder, self.number + 1, begin)?.publish(disk, folder)
    }
}

/// Opens results for a query, with the schema of the rows to come; None: that of the rows before. Answers None if there are no
/// results and no schema.
pub(super) fn recover(
    disk: &dyn Disk,
    folder: &Path,
    query_id: &str,
    schema: Option<&str>,
) -> Result<Option<Tail>, ResultsError> {
    let failed = |source| ResultsError::Write { folder: folder.to_owned(), source };
    let entries = disk.list(folder).map_err(failed)?;
    let Some(number) = entries.iter().filter_map(|entry| segment_number(&entry.name)).max() else {
        let Some(schema) = schema else { return Ok(None) };
        let begin = Begin { query_id: query_id.to_owned(), schema: schema.to_owned(), ..Begin::default() };
        let tail = Tail::create(disk, folder, 1, begin).and_then(|tail| tail.publish(disk, folder));
        return tail.map(Some).map_err(failed);
    };
    let name = segment_name(number);
    let file = disk.open(&folder.join(&name)).map_err(|source| ResultsError::unreadable(&name, source))?;
    let mut reader = SegmentReader::open(file, number)?;
    if reader.begin.query_id != query_id {
        return Err(ResultsError::OfAnotherQuery {
            folder: folder.to_owned(),
            owner: reader.begin.query_id,
            query_id: query_id.to_owned(),
        });
    }
    let scan = scan(&mut reader)?;
    let schema = schema.unwrap_or(&reader.begin.schema).to_owned();
    if scan.end == reader.len && schema == reader.begin.schema {
        // Its process may have died before it could make the name durable.
        disk.sync_dir(folder).map_err(failed)?;
        let writer = SegmentWriter::append(disk, folder, reader.header, scan.end, scan.durable_end).map_err(failed)?;
        let query_id = query_id.to_owned();
        return Ok(Some(Tail { query_id, number, schema, so_far: scan.so_far, writer }));
    }
    let begin = Begin { query_id: query_id.to_owned(), schema, previous_end: scan.durable_end, so_far: scan.so_far };
    let mut tail = Tail::create(disk, folder, number + 1, begin).map_err(failed)?;
    if let Some((group, so_far)) = scan.unmarked {
        copy(&mut reader, group, &mut tail.writer, folder)?;
        tail.so_far = so_far;
    }
    tail.publish(disk, folder).map(Some).map_err(failed)
}

/// What the last segment holds.
struct Scan {
    /// As of the last mark.
    so_far: SoFar,
    /// Where what is known to be durable ends, and where the mark behind it does.
    durable_end: u64,
    end: u64,
    /// A whole group behind the last mark, and how far the stream has come with it.
    unmarked: Option<(Range<u64>, SoFar)>,
}

fn scan<R: io::Read + io::Seek>(reader: &mut SegmentReader<R>) -> Result<Scan, ResultsError> {
    let start = reader.start;
    let mut scan = Scan { so_far: reader.begin.so_far.clone(), durable_end: start, end: start, unmarked: None };
    let mut stream = Stream::new(reader.begin.query_id.clone(), scan.so_far.clone());
    let mut valid_end = start;
    while let Some(frame) = reader.frame()? {
        let small = matches!(frame.kind, FrameKind::End | FrameKind::Rollback);
        let payload = if small {
            let Some(payload) = reader.payload(&frame)? else { break };
            payload
        } else {
            reader.skip(&frame)?;
            Vec::new()
        };
        match stream.follow(&frame, &payload) {
            Some(Step::Within) => {}
            Some(Step::GroupEnds) => scan.unmarked = Some((scan.end..reader.at, stream.so_far.clone())),
            Some(Step::Durable) => {
                if let Some((group, so_far)) = scan.unmarked.take() {
                    (scan.durable_end, scan.so_far) = (group.end, so_far);
                }
                scan.end = reader.at;
            }
            None => break,
        }
        valid_end = reader.at;
    }
    if valid_end < reader.len && reader.has_mark_from(valid_end)? {
        return Err(reader.corrupt(valid_end, "a frame is not as it was written, and later ones follow"));
    }
    if let Some((group, _)) = scan.unmarked.clone()
        && !is_whole(reader, group)?
    {
        scan.unmarked = None;
    }
    Ok(scan)
}

/// Whether the payloads of these frames are as they were written.
fn is_whole<R: io::Read + io::Seek>(reader: &mut SegmentReader<R>, group: Range<u64>) -> Result<bool, ResultsError> {
    reader.seek(group.start)?;
    while reader.at < group.end {
        let Some(frame) = reader.frame()? else { return Ok(false) };
        if reader.payload(&frame)?.is_none() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn copy<R: io::Read + io::Seek>(
    reader: &mut SegmentReader<R>,
    group: Range<u64>,
    writer: &mut SegmentWriter,
    folder: &Path,
) -> Result<(), ResultsError> {
    reader.seek(group.start)?;
    while reader.at < group.end {
        let at = reader.at;
        let frame = reader.frame()?;
        let payload = frame.map(|frame| reader.payload(&frame)).transpose()?.flatten();
        let (Some(frame), Some(payload)) = (frame, payload) else {
            return Err(reader.corrupt(at, "it does not read the same twice; the disk may be failing"));
        };
        let written = writer.frame(&frame, &payload);
        written.map_err(|source| ResultsError::Write { folder: folder.to_owned(), source })?;
    }
    Ok(())
}

/// Follows the frames of a stream, and knows how far it has come.
struct Stream {
    query_id: String,
    so_far: SoFar,
    /// The batch at hand, and how many rows of it have come.
    batch: Option<Position>,
    group_is_open: bool,
}

/// What a frame is to the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Within,
    GroupEnds,
    Durable,
}

impl Stream {
    fn new(query_id: String, so_far: SoFar) -> Self {
        Self { query_id, so_far, batch: None, group_is_open: false }
    }

    /// None: the sink does not write such a frame here.
    fn follow(&mut self, frame: &Frame, payload: &[u8]) -> Option<Step> {
        let at = Position { generation: frame.generation, batch: frame.batch, index: frame.first };
        match (frame.kind, self.batch) {
            (FrameKind::Rows, batch) => {
                let is_next = match batch {
                    Some(batch) => batch == at,
                    None => at.index == 0 && Some(at) > self.so_far.end && !self.group_is_open,
                };
                self.batch = Some(Position { index: at.index + u64::from(frame.rows), ..at });
                (is_next && frame.rows > 0).then_some(Step::Within)
            }
            (FrameKind::End, Some(batch)) if batch == at => {
                let digest = String::from_utf8(payload.to_vec()).ok()?;
                self.batch = None;
                self.so_far.batch(&self.query_id, at, digest);
                self.group_is_open = true;
                Some(Step::GroupEnds)
            }
            (FrameKind::Rollback, None) if Some(at) > self.so_far.end && at.index == 0 && !self.group_is_open => {
                let record: RollbackRecord = serde_json::from_slice(payload).ok()?;
                self.so_far.rollback(at, &record);
                self.group_is_open = true;
                Some(Step::GroupEnds)
            }
            (FrameKind::Durable, None) => {
                self.group_is_open = false;
                Some(Step::Durable)
            }
            _ => None,
        }
    }
}
