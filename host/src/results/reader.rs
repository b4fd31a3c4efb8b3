//! Reads results page by page, from a writer that is not trusted.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::OwnedFd;

use super::error::ResultsError;
use super::folder::Folder;
use super::notes::SoFar;
use super::page::{Entry, Page, PageLimits};
use super::position::Position;
use super::segment::SegmentReader;
use super::segment_name;
use super::untrusted::{Extent, Segment};

/// Places that are remembered, for consumers that go on where their last page ended.
const RECENT_MAX: usize = 64;

/// Segments that one call passes without finding an entry. A sink leaves one or two of them in a row.
const EMPTY_SEGMENTS_MAX: usize = 64;

/// Reads the results in a folder, and trims them.
pub struct ResultsReader {
    folder: Folder,
    /// Where consumers went on last, the newest in front.
    recent: VecDeque<Place>,
    /// How far the last segment was looked at, and its number.
    seen: Option<(u64, Extent)>,
}

/// Where a consumer goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    segment: u64,
    /// Of a frame; 0: that of the first. Entries of it up to `after` were given already.
    offset: u64,
    after: Option<Position>,
}

/// What was removed to make room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// Segments.
    pub segments: u64,
    /// Entries that stood in them.
    pub entries: u64,
    /// Bytes on the disk.
    pub bytes: u64,
}

impl ResultsReader {
    /// Reads the results in the folder with this descriptor, see [`super::open_folder`]; there need not be any yet.
    pub fn new(folder: OwnedFd) -> Self {
        Self { folder: Folder::new(folder), recent: VecDeque::new(), seen: None }
    }

    /// The entries behind a position, as many as the limits allow; None: from the oldest on. A page has the rows of one schema,
    /// and may be empty also before the end.
    ///
    /// # Errors
    /// `RESULTS_POSITION_EXPIRED`, `RESULTS_POSITION_UNKNOWN`; `RESULTS_CORRUPT`, `RESULTS_VERSION_UNSUPPORTED`,
    /// `RESULTS_UNREADABLE`.
    pub fn read_after(&mut self, after: Option<Position>, limits: PageLimits) -> Result<Page, ResultsError> {
        let segments = self.folder.segments()?;
        let Some(mut place) = self.place_after(after, &segments)? else {
            return Ok(Page { schema: String::new(), entries: Vec::new(), next: None, end_reached: true });
        };
        let mut passed = 0;
        loop {
            let is_last = segments.last() == Some(&place.segment);
            let mut segment = self.open(place.segment, &segments)?;
            let read = segment.read(place.offset, place.after, limits)?;
            place = Place { segment: place.segment, offset: read.offset, after: read.after };
            let is_done = read.offset >= segment.extent.durable_end;
            passed += 1;
            if !read.entries.is_empty() || is_last || !is_done || passed == EMPTY_SEGMENTS_MAX {
                self.recent.retain(|recent| recent.after != place.after);
                self.recent.push_front(place);
                self.recent.truncate(RECENT_MAX);
                return Ok(Page {
                    schema: segment.begin().schema.clone(),
                    entries: read.entries,
                    next: place.after,
                    end_reached: is_done && is_last,
                });
            }
            place = self.place_behind(place, &segments)?;
        }
    }

    /// Removes what a consumer no longer needs: whole segments with nothing behind this position, and never the last.
    ///
    /// # Errors
    /// `RESULTS_POSITION_UNKNOWN`, `RESULTS_TRIM_FAILED`, and as [`Self::read_after`].
    pub fn trim(&mut self, through: Position) -> Result<Trimmed, ResultsError> {
        let segments = self.folder.segments()?;
        match self.place_after(Some(through), &segments) {
            Err(ResultsError::PositionExpired { .. }) => return Ok(Trimmed::default()),
            place => place?,
        };
        self.remove_while(&segments, |next, _| next.end <= Some(through))
    }

    /// Removes the oldest segments until [`Self::bytes`] is no more than this.
    ///
    /// # Errors
    /// `RESULTS_TRIM_FAILED`, and as [`Self::read_after`].
    pub fn drop_oldest(&mut self, bytes_max: u64) -> Result<Trimmed, ResultsError> {
        let bytes = self.bytes()?;
        let segments = self.folder.segments()?;
        self.remove_while(&segments, |_, removed| bytes.saturating_sub(removed) > bytes_max)
    }

    /// What the results take on the disk, but for the last segment: what could be freed. Who bounds results compares this, so
    /// that a consumer who trims what it has read always makes room; and stops the query before it plans the next batch, as one
    /// that has been committed is always published.
    ///
    /// # Errors
    /// `RESULTS_CORRUPT`, `RESULTS_UNREADABLE`.
    pub fn bytes(&self) -> Result<u64, ResultsError> {
        let segments = self.folder.segments()?;
        let (_, others) = segments.split_last().unwrap_or((&0, &[]));
        others.iter().try_fold(0_u64, |bytes, segment| Ok(bytes.saturating_add(self.folder.bytes(*segment)?)))
    }

    /// Removes segments, oldest first, each durably before the next, so that no crash leaves a gap. `goes` is told how far the
    /// stream had come behind a segment, and what has been removed so far, in bytes.
    fn remove_while(&mut self, segments: &[u64], goes: impl Fn(&SoFar, u64) -> bool) -> Result<Trimmed, ResultsError> {
        let mut trimmed = Trimmed::default();
        for pair in segments.windows(2) {
            let &[segment, next] = pair else { break };
            let before = self.open(segment, segments)?.begin().so_far.entries;
            let next = self.open(next, segments)?;
            let so_far = &next.begin().so_far;
            if !goes(so_far, trimmed.bytes) {
                break;
            }
            let bytes = self.folder.bytes(segment)?;
            self.folder.remove(segment)?;
            trimmed.segments += 1;
            trimmed.entries = trimmed.entries.saturating_add(so_far.entries.saturating_sub(before));
            trimmed.bytes = trimmed.bytes.saturating_add(bytes);
        }
        Ok(trimmed)
    }

    /// Where a consumer goes on that has come to the end of a segment. It may find there what it was given already: what had lost
    /// its mark was written anew.
    fn place_behind(&mut self, end: Place, segments: &[u64]) -> Result<Place, ResultsError> {
        let next = Place { segment: end.segment + 1, offset: 0, after: end.after };
        if self.open(next.segment, segments)?.begin().so_far.end == end.after {
            return Ok(next);
        }
        match end.after.map(|position| self.look_up(position, segments)) {
            Some(Ok(place)) if place.segment > end.segment => Ok(place),
            None | Some(Ok(_) | Err(ResultsError::PositionUnknown { .. })) => {
                let name = segment_name(next.segment);
                Err(ResultsError::corrupt(&name, 0, "it does not go on where the one before it ends"))
            }
            Some(Err(error)) => Err(error),
        }
    }

    /// Where the entries behind a position begin. None: nothing was ever written.
    fn place_after(&mut self, after: Option<Position>, segments: &[u64]) -> Result<Option<Place>, ResultsError> {
        let Some(position) = after else {
            return Ok(segments.first().map(|oldest| Place { segment: *oldest, offset: 0, after: None }));
        };
        if let Some(place) = self.recent.iter().find(|place| place.after == after).copied()
            && segments.contains(&place.segment)
            && place.offset <= self.open(place.segment, segments)?.extent.durable_end
        {
            return Ok(Some(place));
        }
        self.look_up(position, segments).map(Some)
    }

    fn look_up(&mut self, position: Position, segments: &[u64]) -> Result<Place, ResultsError> {
        let after = Some(position);
        // The last segment that begins at or before the position.
        let (mut low, mut high) = (0, segments.len());
        while low < high {
            let middle = low.midpoint(high);
            match segments.get(middle) {
                Some(number) if self.open(*number, segments)?.begin().so_far.end > after => high = middle,
                _ => low = middle + 1,
            }
        }
        let Some(&segment) = low.checked_sub(1).and_then(|index| segments.get(index)) else {
            return Err(match segments.first() {
                None => ResultsError::PositionUnknown { position },
                Some(oldest) => {
                    let one = PageLimits { rows_max: 1, bytes_max: 0 };
                    let read = self.open(*oldest, segments)?.read(0, None, one)?;
                    ResultsError::PositionExpired { position, oldest: read.entries.first().map(Entry::position) }
                }
            });
        };
        let mut open = self.open(segment, segments)?;
        if open.begin().so_far.end == after {
            return Ok(Place { segment, offset: 0, after });
        }
        match open.find(position)? {
            Some(offset) => Ok(Place { segment, offset, after }),
            None => Err(ResultsError::PositionUnknown { position }),
        }
    }

    fn open(&mut self, number: u64, segments: &[u64]) -> Result<Segment, ResultsError> {
        if segments.last() == Some(&number) {
            let seen = self.seen.filter(|(seen, _)| *seen == number).map(|(_, extent)| extent);
            let segment = Segment::growing(self.segment(number)?, seen)?;
            self.seen = Some((number, segment.extent));
            return Ok(segment);
        }
        let next = self.segment(number + 1)?;
        Segment::finished(self.segment(number)?, &next)
    }

    fn segment(&self, number: u64) -> Result<SegmentReader<File>, ResultsError> {
        match self.folder.open(number)? {
            Some(file) => SegmentReader::open(file, number),
            None => Err(ResultsError::corrupt(&segment_name(number), 0, "it is gone, but others before it are there")),
        }
    }
}
