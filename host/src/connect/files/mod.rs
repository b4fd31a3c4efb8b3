//! Files as a source: a single one, or all those of a directory, also those that come later.
//!
//! - Files go in the order of (modification time, path). One that appears later is read later, however old it is.
//! - Directories within the directory, and files whose names begin with `.` or `_`, are left alone. A link to nothing is
//!   warned about once, and read once it leads to a file.
//! - A source that is [fixed](FileSource::fixed) reads what the directory holds at the first read: the list and its
//!   fingerprints are committed with the first batch. What comes later is not read; what has changed or gone is an error.
//! - A file must be complete when it appears under its name: write it under a hidden name, then rename it. A file that
//!   changes while it is read is an error.
//! - A batch may end in the middle of a file, at a row. Until the file is finished it must stay as it is.
//! - The files that are finished are part of the committed state. One that vanishes later does not matter. One that
//!   changes is not read again; it is warned about once per run, and [`Source::verify`] and [`Source::read_again`] fail.
//! - A file that cannot be read ends a batch before its first row, so the rows of files before it are not held up.
//! - Rows are numbered from 1: in JSON Lines the lines, in CSV the rows below the header; blank ones count.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::clock::Stopwatch;
use crate::connect::error::ReadError;
use crate::connect::format::Format;
use crate::connect::text::Columns;
use crate::engine::source::{Outlook, ReadLimits, Slice, Source, SourceError, SourceRange};
use crate::record::Schema;

mod budget;
mod fingerprint;
mod listing;
mod open_file;
mod parquet_file;
mod range;
mod sample;
mod text_file;

use budget::Budget;
use fingerprint::{Fingerprint, check_stamp, missing_or, open_known};
use listing::{Candidate, list, not_found_or};
pub use open_file::FileFormat;
use open_file::{Layout, OpenFile};
pub(crate) use parquet_file::bad_row_code;
use range::{FilePart, FilesRange, Finished, Kept, POSITION_KEY, Place, Position, finished_key, listed_key, to_json};

/// From this many finished files on, listing the directory costs so much that an idle query does it less often.
const LISTING_COSTS_FROM_FILES: usize = 1_000;

/// An idle query spends at most one part in this many of its time with listing.
const LISTING_TIME_SHARE: u32 = 10;

/// Finished files whose stamps are looked at with each listing, to warn of changes.
const CHECKS_PER_LISTING: usize = 64;

/// Rows that are read and forgotten at a time on the way to a row number; bounds the memory that takes.
const ROWS_PASSED_AT_A_TIME: u64 = 8_192;

/// Files as a source.
pub struct FileSource {
    /// The directory, or the one that holds the file.
    root: PathBuf,
    extent: Extent,
    layout: Layout,
    schema: Schema,
    finished: BTreeMap<String, Finished>,
    /// Where the next row is, if that is in a file that was begun.
    position: Option<Position>,
    /// That file, open at the position.
    current: Option<OpenFile>,
    /// Files that are known but not begun.
    pending: VecDeque<Candidate>,
    last_listing: Option<Listing>,
    /// The finished file whose stamp is looked at next.
    next_check: String,
    warned: BTreeSet<String>,
    /// A committed file that is being read again, behind the range that was read last.
    again: Option<OpenFile>,
}

enum Extent {
    /// This file only.
    File(String),
    Directory,
    /// The files that were in the directory when it was first read, as they were then.
    Fixed {
        /// Those that are not finished; None: it was not read yet.
        left: Option<BTreeMap<String, Fingerprint>>,
    },
}

struct Listing {
    since: Stopwatch,
    took: std::time::Duration,
}

impl FileSource {
    /// Opens the file or directory at the path. Without a schema, that of the first file is taken.
    ///
    /// # Errors
    /// `SOURCE_NOT_FOUND`, `SOURCE_UNREADABLE`, `SOURCE_SCHEMA_REQUIRED`, `SOURCE_SCHEMA_UNSUPPORTED`.
    pub fn open(path: &Path, format: FileFormat, schema: Option<Schema>) -> Result<Self, ReadError> {
        let path = std::path::absolute(path).map_err(|error| ReadError::unreadable(path, error))?;
        let metadata = fs::metadata(&path).map_err(|error| not_found_or(&path, error))?;
        let (root, extent) = if metadata.is_dir() {
            (path.clone(), Extent::Directory)
        } else {
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.ok_or_else(|| ReadError::NameNotUnicode { path: path.clone() })?;
            (path.parent().unwrap_or(Path::new("/")).to_owned(), Extent::File(name.to_owned()))
        };
        let schema = match (schema, &extent) {
            (Some(schema), _) => schema,
            (None, Extent::File(_)) => sample::schema_of(&path, &format)?,
            (None, Extent::Directory | Extent::Fixed { .. }) => sample::first_schema(&root, &format)?,
        };
        let columns = Columns { all: schema.to_arrow(), wanted: schema.to_arrow() };
        if let FileFormat::Text(text) = &format
            && let Some(column) = text.unsupported_column(&columns.all)
        {
            return Err(ReadError::Nested { column: column.to_owned() });
        }
        Ok(Self {
            root,
            extent,
            layout: Layout { format, columns, wanted: schema.clone() },
            schema,
            finished: BTreeMap::new(),
            position: None,
            current: None,
            pending: VecDeque::new(),
            last_listing: None,
            next_check: String::new(),
            warned: BTreeSet::new(),
            again: None,
        })
    }

    /// Restricts a directory to the files that are there when it is first read.
    #[must_use]
    pub fn fixed(self) -> Self {
        match self.extent {
            Extent::Directory => Self { extent: Extent::Fixed { left: None }, ..self },
            _ => self,
        }
    }

    /// The format that the name of the file says, or that of the first file in the directory. None: it says none.
    ///
    /// # Errors
    /// `SOURCE_NOT_FOUND`, `SOURCE_UNREADABLE`.
    pub fn format_of(path: &Path) -> Result<Option<Format>, ReadError> {
        let metadata = fs::metadata(path).map_err(|error| not_found_or(path, error))?;
        let name = match metadata.is_dir() {
            true => list(path, &|_| true)?.files.into_iter().next().map(|candidate| candidate.name),
            false => path.file_name().map(|name| name.to_string_lossy().into_owned()),
        };
        Ok(name.and_then(|name| Format::of_name(&name)))
    }

    /// What is wrong with a path that cannot be opened any more, if that is that the file is gone in which this committed
    /// range ended.
    pub fn gone_since(path: &Path, last: &SourceRange) -> Option<ReadError> {
        let part = FilesRange::of(last, "").ok()?.files.pop().filter(|part| !part.finished)?;
        let path = if path.is_dir() { path.join(part.path) } else { path.to_owned() };
        (!path.exists()).then_some(ReadError::Missing { path, row: part.end.row + 1 })
    }

    fn place(&self) -> String {
        match &self.extent {
            Extent::File(name) => self.root.join(name).display().to_string(),
            Extent::Directory | Extent::Fixed { .. } => self.root.display().to_string(),
        }
    }

    /// Reads the next part of one file and moves behind it. None: there is no file to read.
    fn read_part(
        &mut self,
        budget: &mut Budget,
        files_left: &mut u64,
        slice: &mut Slice,
    ) -> Result<Option<FilePart>, ReadError> {
        let Some((mut file, fingerprint)) = self.file_in_hand(files_left)? else { return Ok(None) };
        let path = file.name().to_owned();
        let first = file.place();
        file.read(budget, slice)?;
        let finished = file.is_exhausted();
        let end = file.place();
        if finished {
            file.check_unchanged(&fingerprint)?;
            self.position = None;
            self.finish(&path, &fingerprint, end, slice)?;
        } else {
            self.position = Some(Position { path: path.clone(), fingerprint: fingerprint.clone(), place: end });
            self.current = Some(file);
        }
        Ok(Some(FilePart { path, fingerprint, first, end, finished }))
    }

    fn finish(
        &mut self,
        path: &str,
        fingerprint: &Fingerprint,
        end: Place,
        slice: &mut Slice,
    ) -> Result<(), ReadError> {
        let finished = Finished { fingerprint: fingerprint.clone(), rows: end.row };
        let value = to_json(&finished, path)?.to_string().into_bytes();
        self.finished.insert(path.to_owned(), finished);
        slice.bookkeeping.push((finished_key(path), Some(value)));
        if let Extent::Fixed { left: Some(left) } = &mut self.extent {
            left.remove(path);
            slice.bookkeeping.push((listed_key(path), None));
        }
        Ok(())
    }

    /// The file at the position, else the next one.
    fn file_in_hand(&mut self, files_left: &mut u64) -> Result<Option<(OpenFile, Fingerprint)>, ReadError> {
        if let Some(position) = &self.position {
            let (path, row) = (self.root.join(&position.path), position.place.row);
            let file = match self.current.take() {
                Some(file) => {
                    check_stamp(&path, &position.fingerprint.stamp, row)?;
                    file
                }
                None => {
                    let handle = open_known(&path, &position.fingerprint, row)?;
                    OpenFile::open(&path, handle, &position.path, &self.layout, position.place)?
                }
            };
            return Ok(Some((file, position.fingerprint.clone())));
        }
        if *files_left == 0 {
            return Ok(None);
        }
        if self.pending.is_empty() {
            self.look_for_files()?;
        }
        while let Some(candidate) = self.pending.front() {
            let path = self.root.join(&candidate.name);
            let mut handle = match (File::open(&path), &self.extent) {
                (_, Extent::Fixed { left: Some(left) }) if let Some(listed) = left.get(&candidate.name) => {
                    open_known(&path, listed, 0)?
                }
                // A file that was not begun may go.
                (Err(error), Extent::Directory) if error.kind() == io::ErrorKind::NotFound => {
                    self.pending.pop_front();
                    continue;
                }
                (handle, _) => handle.map_err(|error| not_found_or(&path, error))?,
            };
            let fingerprint = Fingerprint::of(&mut handle).map_err(|error| ReadError::unreadable(&path, error))?;
            let file = OpenFile::open(&path, handle, &candidate.name, &self.layout, Place::default())?;
            self.pending.pop_front();
            *files_left -= 1;
            return Ok(Some((file, fingerprint)));
        }
        Ok(None)
    }

    fn look_for_files(&mut self) -> Result<(), ReadError> {
        match &self.extent {
            Extent::File(name) => {
                let unread = !self.finished.contains_key(name);
                self.pending.extend(unread.then(|| Candidate { modified_ns: 0, name: name.clone() }));
                self.warn_of_changes();
            }
            Extent::Directory => {
                let costs = self.finished.len() >= LISTING_COSTS_FROM_FILES;
                let soon = |last: &Listing| last.since.elapsed() < last.took * LISTING_TIME_SHARE;
                if costs && self.last_listing.as_ref().is_some_and(soon) {
                    return Ok(());
                }
                let since = Stopwatch::start();
                let entries = list(&self.root, &|name| !self.finished.contains_key(name))?;
                self.pending = entries.files.into();
                self.last_listing = Some(Listing { since, took: since.elapsed() });
                self.warn_of_others(entries.others);
                self.warn_of_changes();
            }
            Extent::Fixed { left: None } => {
                let entries = list(&self.root, &|_| true)?;
                if let Some(name) = entries.others.first() {
                    return Err(ReadError::NotAFile { path: self.root.join(name) });
                }
                let print =
                    |file: &Candidate| Ok((file.name.clone(), Fingerprint::of_path(&self.root.join(&file.name))?));
                self.fix(entries.files.iter().map(print).collect::<Result<_, ReadError>>()?);
            }
            Extent::Fixed { left: Some(_) } => {}
        }
        Ok(())
    }

    /// Takes these files and no others.
    fn fix(&mut self, left: BTreeMap<String, Fingerprint>) {
        let begun = self.position.as_ref().map(|position| &position.path);
        let files = left.iter().filter(|(name, _)| Some(*name) != begun);
        let mut files: Vec<_> =
            files.map(|(name, print)| Candidate { modified_ns: print.stamp.modified_ns, name: name.clone() }).collect();
        files.sort_unstable();
        self.pending = files.into();
        self.extent = Extent::Fixed { left: Some(left) };
    }

    /// What a link to nothing should lead to may still come.
    fn warn_of_others(&mut self, names: Vec<String>) {
        for name in names {
            let error = ReadError::NotAFile { path: self.root.join(&name) };
            if self.warned.insert(name) {
                tracing::warn!(code = error.code(), "{error}. It is passed over until it is a file");
            }
        }
    }

    /// Looks at some finished files, others each time.
    fn warn_of_changes(&mut self) {
        let mut last = None;
        for (name, finished) in self.finished.range(self.next_check.clone()..).take(CHECKS_PER_LISTING) {
            last = Some(name.clone());
            let path = self.root.join(name);
            if let Err(error @ ReadError::Changed { .. }) =
                check_stamp(&path, &finished.fingerprint.stamp, finished.rows)
                && self.warned.insert(name.clone())
            {
                tracing::warn!(code = error.code(), "{error}. It was read before and is not read again");
            }
        }
        // Behind the last one, or at the start again.
        self.next_check = last.map(|name| name + "\0").unwrap_or_default();
    }

    fn read_slice(&mut self, limits: &ReadLimits) -> Result<Option<Slice>, ReadError> {
        let mut budget = Budget::of(limits);
        let mut files_left = limits.files_max.map_or(u64::MAX, |files| files.max(1));
        let mut slice = Slice::default();
        let mut range = FilesRange::default();
        let is_first = self.finished.is_empty() && self.position.is_none();
        while !budget.is_spent() {
            let mut part_slice = Slice::default();
            match self.read_part(&mut budget, &mut files_left, &mut part_slice) {
                Ok(Some(part)) => {
                    range.files.push(part);
                    slice.batches.append(&mut part_slice.batches);
                    slice.rejected.append(&mut part_slice.rejected);
                    slice.bookkeeping.append(&mut part_slice.bookkeeping);
                    slice.bytes += part_slice.bytes;
                }
                Ok(None) => break,
                // The rows before it are good. The same error comes first in the next batch.
                Err(_) if !range.files.is_empty() => break,
                Err(error) => return Err(error),
            }
        }
        if range.files.is_empty() {
            return Ok(None);
        }
        let place = self.place();
        if let (true, Extent::Fixed { left: Some(left) }) = (is_first, &self.extent) {
            for (name, fingerprint) in left {
                let value = to_json(fingerprint, &place)?.to_string().into_bytes();
                slice.bookkeeping.push((listed_key(name), Some(value)));
            }
        }
        let position = self.position.as_ref().map(|position| to_json(position, &place)).transpose()?;
        slice.bookkeeping.push((POSITION_KEY.to_vec(), position.map(|position| position.to_string().into_bytes())));
        slice.range = SourceRange { at: to_json(&range, &place)?, inline: None };
        Ok(Some(slice))
    }

    fn read_part_again(&mut self, part: &FilePart, slice: &mut Slice) -> Result<(), ReadError> {
        let path = self.root.join(&part.path);
        let handle = open_known(&path, &part.fingerprint, part.end.row)?;
        let at_hand = self.again.take().filter(|file| file.name() == part.path && file.place() == part.first);
        let mut file = match at_hand {
            Some(file) => file,
            None => OpenFile::open(&path, handle, &part.path, &self.layout, part.first)?,
        };
        file.read(&mut Budget::up_to_row(part.end.row), slice)?;
        if file.place() != part.end {
            let detail = format!("its row {} ends elsewhere", part.end.row);
            return Err(ReadError::Changed { path, row: part.end.row, detail });
        }
        self.again = Some(file);
        Ok(())
    }

    /// The rows are found by their numbers: bytes may have moved.
    fn read_changed_part(&mut self, part: &FilePart, slice: &mut Slice) -> Result<(), ReadError> {
        let path = self.root.join(&part.path);
        let at_hand = self.again.take().filter(|file| file.name() == part.path && file.place().row == part.first.row);
        let mut file = match at_hand {
            Some(file) => file,
            None => {
                let handle = File::open(&path).map_err(|error| missing_or(&path, part.end.row, error))?;
                OpenFile::open(&path, handle, &part.path, &self.layout, Place::default())?
            }
        };
        while file.place().row < part.first.row && !file.is_exhausted() {
            let row_end = part.first.row.min(file.place().row + ROWS_PASSED_AT_A_TIME);
            file.read(&mut Budget::up_to_row(row_end), &mut Slice::default())?;
        }
        file.read(&mut Budget::up_to_row(part.end.row), slice)?;
        self.again = Some(file);
        Ok(())
    }
}

impl Source for FileSource {
    fn describe(&self) -> String {
        self.place()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn project(&mut self, columns: &Schema) -> Result<(), SourceError> {
        check_projection(&self.schema, columns, &self.place())?;
        self.layout.columns.wanted = columns.to_arrow();
        self.layout.wanted = columns.clone();
        self.again = None;
        Ok(())
    }

    fn restore(
        &mut self,
        bookkeeping: Vec<(Vec<u8>, Vec<u8>)>,
        _last: Option<&SourceRange>,
    ) -> Result<(), SourceError> {
        let was_read = !bookkeeping.is_empty();
        let mut listed = BTreeMap::new();
        for (key, value) in bookkeeping {
            match Kept::of(&key, &value, &self.place())? {
                Kept::Finished(path, finished) => drop(self.finished.insert(path, finished)),
                Kept::Listed(path, fingerprint) => drop(listed.insert(path, fingerprint)),
                Kept::Position(position) => {
                    open_known(&self.root.join(&position.path), &position.fingerprint, position.place.row)?;
                    self.position = Some(position);
                }
            }
        }
        if let (true, Extent::Fixed { .. }) = (was_read, &self.extent) {
            self.fix(listed);
        }
        Ok(())
    }

    fn next(&mut self, limits: &ReadLimits) -> Result<Option<Slice>, SourceError> {
        Ok(self.read_slice(limits)?)
    }

    fn outlook(&self) -> Outlook {
        match &self.extent {
            Extent::Directory => Outlook::Growing,
            Extent::File(name) if self.finished.contains_key(name) => Outlook::Ended,
            Extent::Fixed { left: Some(left) } if left.is_empty() => Outlook::Ended,
            Extent::File(_) | Extent::Fixed { .. } => Outlook::Open,
        }
    }

    fn read_again(&mut self, range: &SourceRange) -> Result<Slice, SourceError> {
        let mut slice = Slice { range: range.clone(), ..Slice::default() };
        for part in FilesRange::of(range, &self.place())?.files {
            self.read_part_again(&part, &mut slice)?;
        }
        Ok(slice)
    }

    fn read_changed(&mut self, range: &SourceRange) -> Result<Slice, SourceError> {
        let mut slice = Slice { range: range.clone(), ..Slice::default() };
        for part in FilesRange::of(range, &self.place())?.files {
            self.read_changed_part(&part, &mut slice)?;
        }
        Ok(slice)
    }

    fn verify(&self, range: &SourceRange) -> Result<(), SourceError> {
        for part in FilesRange::of(range, &self.place())?.files {
            open_known(&self.root.join(&part.path), &part.fingerprint, part.end.row)?;
        }
        Ok(())
    }
}

/// Columns that a source is restricted to must be its own; only NOT NULL may differ.
pub(crate) fn check_projection(schema: &Schema, columns: &Schema, place: &str) -> Result<(), ReadError> {
    let names = columns.fields().iter().map(|field| field.name.as_str());
    let own = schema.project(names).map_err(|error| ReadError::projection(place, &error))?;
    for (own, wanted) in own.fields().iter().zip(columns.fields()) {
        if own.data_type != wanted.data_type {
            let (name, has, wants) = (&own.name, &own.data_type, &wanted.data_type);
            let reason = format!("column `{name}` is {has}, and {wants} is wanted");
            return Err(ReadError::Projection { place: place.to_owned(), reason });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
