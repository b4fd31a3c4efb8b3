//! Opening a log: what its segments hold, and making the tail durable.
//!
//! A process may have died between a write and its sync, or after a sync that failed, so that what can be read now is
//! not known to be durable, and a sync now would prove nothing. So the last segment's committed records are copied to a
//! new segment, which gets its name once it is durable; only then the old one goes. A segment is *superseded* when a
//! later one begins with the same record.
//!
//! Invariants:
//! - A segment under its final name has a durable header, and every segment but the last is whole. Anything else is
//!   damage, for which nothing is changed.
//! - What recovery itself leaves behind at any point of a crash is recovered in the same way.

use super::error::LogError;
use super::folder::{Folder, SegmentReader};
use super::format::{FrameKind, SegmentHeader};
use super::record::RecordRef;
use super::scan::{Depth, Scan, scan};
use super::writer::SegmentWriter;

/// What the folder holds, without any change to it.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// Committed records.
    pub(super) records: Vec<RecordRef>,
    /// Numbers of the segments that hold them.
    pub(super) segments: Vec<u64>,
    /// Numbers of the segments that later ones have replaced, ascending.
    pub(super) superseded: Vec<u64>,
    /// What was written behind the last commit, and never finished.
    pub(super) unfinished_bytes: u64,
    /// Of the next record; None: there is no segment.
    next_sequence: Option<u64>,
    /// Where the committed records of the last segment end.
    end: u64,
}

/// An open log.
pub(super) struct Recovered {
    /// Committed records.
    pub(super) records: Vec<RecordRef>,
    /// Numbers of the segments that hold them, the writer's last.
    pub(super) segments: Vec<u64>,
    pub(super) writer: SegmentWriter,
    pub(super) next_sequence: u64,
}

/// Reads the whole log.
pub(super) fn survey(folder: &Folder) -> Result<Survey, LogError> {
    let mut survey = Survey::default();
    let mut live = Vec::new();
    let mut first_sequence = u64::MAX;
    for segment in folder.list()?.segments.into_iter().rev() {
        let reader = folder.open(segment)?;
        if reader.header.first_sequence < first_sequence {
            first_sequence = reader.header.first_sequence;
            live.push(segment);
        } else {
            survey.superseded.push(segment);
        }
    }
    live.reverse();
    survey.superseded.reverse();
    let last = live.last().copied();
    for segment in live {
        let mut reader = folder.open(segment)?;
        check_continuity(folder, &survey, &reader)?;
        let depth = if Some(segment) == last { Depth::Payloads } else { Depth::Frames };
        let found = scan(&mut reader, depth)?;
        check_tail(folder, &mut reader, &found, Some(segment) == last)?;
        survey.unfinished_bytes = reader.len - found.end;
        survey.end = found.end;
        survey.next_sequence = Some(found.next_sequence);
        survey.records.extend(found.records);
        survey.segments.push(segment);
    }
    Ok(survey)
}

/// Reads the whole log and makes it ready for writing.
pub(super) fn recover(folder: &Folder) -> Result<Recovered, LogError> {
    let Survey { mut records, mut segments, superseded, next_sequence, end, .. } = survey(folder)?;
    for path in folder.list()?.hidden {
        folder.disk.remove_file(&path).map_err(|source| folder.write_error(source))?;
    }
    let number = segments.iter().chain(&superseded).max().map_or(1, |newest| newest + 1);
    let last = segments.pop();
    let (writer, replaced) = match last {
        None => (start(folder, number, 1)?, None),
        Some(last) => {
            for record in records.iter_mut().filter(|record| record.segment == last) {
                record.segment = number;
            }
            (copy(folder, last, end, number)?, Some(last))
        }
    };
    segments.push(number);
    remove(folder, superseded.into_iter().chain(replaced))?;
    Ok(Recovered { records, segments, writer, next_sequence: next_sequence.unwrap_or(1) })
}

/// Starts an empty segment, durably.
pub(super) fn start(folder: &Folder, number: u64, first_sequence: u64) -> Result<SegmentWriter, LogError> {
    let header = SegmentHeader { log: folder.log, number, first_sequence };
    let begin = || {
        let mut writer = SegmentWriter::create(folder, header)?;
        writer.publish(folder)?;
        Ok(writer)
    };
    begin().map_err(|source| folder.write_error(source))
}

/// Removes segments, oldest first, each durably before the next, so that no crash leaves a gap.
pub(super) fn remove(folder: &Folder, segments: impl IntoIterator<Item = u64>) -> Result<(), LogError> {
    for segment in segments {
        let removed = folder.disk.remove_file(&folder.path(segment)).and_then(|()| folder.disk.sync_dir(&folder.dir));
        removed.map_err(|source| folder.write_error(source))?;
    }
    Ok(())
}

fn check_continuity(folder: &Folder, survey: &Survey, reader: &SegmentReader) -> Result<(), LogError> {
    let (Some(before), Some(expected)) = (survey.segments.last(), survey.next_sequence) else { return Ok(()) };
    let found = reader.header.first_sequence;
    if expected < found {
        return Err(LogError::MissingSegment {
            before: folder.path(*before),
            after: folder.path(reader.header.number),
            first: expected,
            last: found - 1,
        });
    }
    if expected > found {
        let defect = "its first record stands in an earlier segment as well";
        return Err(LogError::Foreign { path: folder.path(reader.header.number), defect });
    }
    Ok(())
}

/// Tells a tail that was never finished, which is cut, from damage.
fn check_tail(folder: &Folder, reader: &mut SegmentReader, scan: &Scan, is_last: bool) -> Result<(), LogError> {
    let corrupt = |offset, defect| Err(LogError::Corrupt { path: folder.path(reader.header.number), offset, defect });
    if scan.end == reader.len {
        return Ok(());
    }
    if !is_last {
        return corrupt(scan.valid_end, "a record is not as it was written, and a later segment follows");
    }
    if scan.valid_end < reader.len && reader.find_later_group(scan.valid_end + 1, scan.end)?.is_some() {
        let path = folder.path(reader.header.number);
        let defect = "a record is not as it was written, and later ones follow";
        return Err(LogError::Corrupt { path, offset: scan.valid_end, defect });
    }
    Ok(())
}

fn copy(folder: &Folder, from: u64, end: u64, to: u64) -> Result<SegmentWriter, LogError> {
    let mut reader = folder.open(from)?;
    let header = SegmentHeader { number: to, ..reader.header };
    let mut writer = SegmentWriter::create(folder, header).map_err(|source| folder.write_error(source))?;
    let mut payload = Vec::new();
    while reader.at < end {
        let at = reader.at;
        let changed = LogError::Corrupt {
            path: folder.path(from),
            offset: at,
            defect: "it does not read the same twice; the disk may be failing",
        };
        let Some(frame) = reader.frame()? else { return Err(changed) };
        if !reader.payload(&frame, &mut payload)? {
            return Err(changed);
        }
        let copied = match frame.kind {
            FrameKind::Commit => writer.commit(frame.sequence),
            FrameKind::Piece | FrameKind::End => writer.frame(&frame, &payload).map(|_| ()),
        };
        copied.map_err(|source| folder.write_error(source))?;
    }
    writer.publish(folder).map_err(|source| folder.write_error(source))?;
    Ok(writer)
}
