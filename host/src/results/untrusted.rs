//! Entries of one segment, each looked at before it is given out: whoever wrote it may have been broken into.

use std::fs::File;

use serde::de::IgnoredAny;

use super::error::ResultsError;
use super::format::{Frame, FrameKind};
use super::notes::{Begin, RollbackRecord};
use super::page::{Entry, PageLimits, Rollback, RolledBackRows};
use super::position::Position;
use super::segment::SegmentReader;

/// Frames that are looked at in one go, at most: about a second. What a sink writes into one segment is far less.
const FRAMES_MAX: usize = 1 << 20;

/// One segment, open.
pub(super) struct Segment {
    reader: SegmentReader<File>,
    pub(super) extent: Extent,
}

/// What of a segment belongs to the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    /// Where what is durable ends; nothing behind it is given out.
    pub(super) durable_end: u64,
    /// Where valid frames end. An entry between the two was given out if its mark has been lost with the power since.
    valid_end: u64,
}

/// Entries, and where the next ones begin.
pub(super) struct Read {
    pub(super) entries: Vec<Entry>,
    pub(super) offset: u64,
    pub(super) after: Option<Position>,
}

impl Segment {
    /// A segment behind which another one was begun.
    pub(super) fn finished(reader: SegmentReader<File>, next: &SegmentReader<File>) -> Result<Self, ResultsError> {
        let end = next.begin.previous_end;
        if next.header.stream != reader.header.stream {
            return Err(next.corrupt(0, "it is of another stream than the one before"));
        }
        if end < reader.start || end > reader.len {
            return Err(reader.corrupt(reader.len, "it does not reach to where the next one says that it ends"));
        }
        Ok(Self { reader, extent: Extent { durable_end: end, valid_end: end } })
    }

    /// The last segment, which may still grow, and how far it was looked at before.
    pub(super) fn growing(mut reader: SegmentReader<File>, seen: Option<Extent>) -> Result<Self, ResultsError> {
        let start = Extent { durable_end: reader.start, valid_end: reader.start };
        let mut extent = seen.filter(|seen| seen.valid_end <= reader.len).unwrap_or(start);
        reader.seek(extent.valid_end)?;
        for _ in 0..FRAMES_MAX {
            let Some(frame) = reader.frame()? else { break };
            reader.skip(&frame)?;
            extent.valid_end = reader.at;
            if frame.kind == FrameKind::Durable {
                extent.durable_end = reader.at;
            }
        }
        Ok(Self { reader, extent })
    }

    pub(super) fn begin(&self) -> &Begin {
        &self.reader.begin
    }

    /// Offset of the frame with the entry of this position. None: there is no such entry.
    pub(super) fn find(&mut self, position: Position) -> Result<Option<u64>, ResultsError> {
        self.reader.seek(self.reader.start)?;
        for _ in 0..FRAMES_MAX {
            let at = self.reader.at;
            if at >= self.extent.valid_end {
                return Ok(None);
            }
            let frame = self.frame()?;
            let is_in_batch = frame.generation == position.generation && frame.batch == position.batch;
            let has_it = match frame.kind {
                FrameKind::Rows => {
                    (frame.first..frame.first.saturating_add(frame.rows.into())).contains(&position.index)
                }
                FrameKind::Rollback => position.index == 0,
                FrameKind::Begin | FrameKind::End | FrameKind::Durable => false,
            };
            if is_in_batch && has_it {
                return Ok(Some(at));
            }
            self.reader.skip(&frame)?;
        }
        Err(self.reader.corrupt(self.reader.at, "it has more frames than a query writes into one segment"))
    }

    /// Entries from a frame on (0: the first), without those up to `after`.
    pub(super) fn read(
        &mut self,
        offset: u64,
        after: Option<Position>,
        limits: PageLimits,
    ) -> Result<Read, ResultsError> {
        let before = self.reader.begin.so_far.end;
        self.reader.seek(offset.max(self.reader.start))?;
        let mut page = Filling { entries: Vec::new(), bytes: 0, limits, after: after.or(before) };
        for _ in 0..FRAMES_MAX {
            let at = self.reader.at;
            if at >= self.extent.durable_end {
                break;
            }
            match self.take(&mut page) {
                Ok(Taken::All) => {}
                Ok(Taken::NotAll) => {
                    self.reader.seek(at)?;
                    break;
                }
                // What stands in front of it is given out first.
                Err(_) if !page.entries.is_empty() => {
                    self.reader.seek(at)?;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Read { entries: page.entries, offset: self.reader.at, after: page.after })
    }

    /// Takes the next frame into a page.
    fn take(&mut self, page: &mut Filling) -> Result<Taken, ResultsError> {
        let at = self.reader.at;
        let frame = self.frame()?;
        let taken = match frame.kind {
            FrameKind::Rows => page.rows(&frame, &self.payload(&frame, at)?),
            FrameKind::Rollback => page.rollback(&frame, &self.payload(&frame, at)?),
            FrameKind::End | FrameKind::Durable => {
                self.reader.skip(&frame)?;
                Ok(Taken::All)
            }
            FrameKind::Begin => Err("a segment does not begin in its middle"),
        };
        taken.map_err(|defect| self.reader.corrupt(at, defect))
    }

    fn frame(&mut self) -> Result<Frame, ResultsError> {
        let at = self.reader.at;
        self.reader.frame()?.ok_or_else(|| self.reader.corrupt(at, "a frame is not as it was written"))
    }

    fn payload(&mut self, frame: &Frame, at: u64) -> Result<String, ResultsError> {
        let payload = self.reader.payload(frame)?;
        payload
            .and_then(|payload| String::from_utf8(payload).ok())
            .ok_or_else(|| self.reader.corrupt(at, "what stands in a frame is not as it was written"))
    }
}

/// A page that is being filled.
struct Filling {
    entries: Vec<Entry>,
    bytes: usize,
    limits: PageLimits,
    /// Position of the last entry that was taken or passed over.
    after: Option<Position>,
}

/// Whether the page had room for a whole frame.
enum Taken {
    All,
    NotAll,
}

impl Filling {
    fn has_room_for(&self, bytes: usize) -> bool {
        self.entries.is_empty()
            || self.entries.len() < self.limits.rows_max && self.bytes.saturating_add(bytes) <= self.limits.bytes_max
    }

    fn rows(&mut self, frame: &Frame, payload: &str) -> Result<Taken, &'static str> {
        let given = self.given(frame).ok_or("rows do not follow those before")?;
        let lines = payload.strip_suffix('\n').ok_or("rows have no end")?.split('\n');
        let mut count = 0_u64;
        for line in lines {
            let index = frame.first.checked_add(count).ok_or("rows do not follow those before")?;
            count += 1;
            if count <= given {
                continue;
            }
            if !self.has_room_for(line.len()) {
                return Ok(Taken::NotAll);
            }
            if !is_one_object(line) {
                return Err("a row is no JSON object");
            }
            let position = Position { generation: frame.generation, batch: frame.batch, index };
            self.bytes = self.bytes.saturating_add(line.len());
            self.entries.push(Entry::Row { position, json: line.to_owned() });
            self.after = Some(position);
        }
        if count == u64::from(frame.rows) { Ok(Taken::All) } else { Err("there are other rows than it says") }
    }

    fn rollback(&mut self, frame: &Frame, payload: &str) -> Result<Taken, &'static str> {
        let position = Position { generation: frame.generation, batch: frame.batch, index: 0 };
        if self.after == Some(position) {
            return Ok(Taken::All);
        }
        if self.after > Some(position) {
            return Err("a rollback does not follow what stands before it");
        }
        if !self.has_room_for(payload.len()) {
            return Ok(Taken::NotAll);
        }
        let record: RollbackRecord =
            serde_json::from_str(payload).map_err(|_| "a rollback is not as it was written")?;
        let rows = match record.published {
            _ if !record.withdraws => RolledBackRows::Kept,
            published => RolledBackRows::Withdrawn { after: published.map(|ledger| ledger.batch_id) },
        };
        self.bytes = self.bytes.saturating_add(payload.len());
        self.entries.push(Entry::Rollback(Rollback { position, rows }));
        self.after = Some(position);
        Ok(Taken::All)
    }

    /// How many rows of a frame were given already. None: it does not follow what was given last.
    fn given(&self, frame: &Frame) -> Option<u64> {
        match self.after {
            Some(after) if (after.generation, after.batch) == (frame.generation, frame.batch) => {
                after.index.checked_add(1)?.checked_sub(frame.first).filter(|given| *given <= u64::from(frame.rows))
            }
            after => {
                let first = Position { generation: frame.generation, batch: frame.batch, index: frame.first };
                (frame.first == 0 && after < Some(first)).then_some(0)
            }
        }
    }
}

/// Whether the line can be put as it is into a JSON document, and into a stream of lines.
fn is_one_object(line: &str) -> bool {
    line.starts_with('{') && !line.bytes().any(|byte| byte < b' ') && serde_json::from_str::<IgnoredAny>(line).is_ok()
}
