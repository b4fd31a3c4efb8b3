//! The rows of one JSON Lines or CSV file, from any row on.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::budget::Budget;
use super::range::Place;
use crate::connect::error::ReadError;
use crate::connect::format::Compression;
use crate::connect::text::{Columns, RowCutter, TextDecoder, TextFormat};
use crate::engine::source::Slice;

/// An open text file, between two rows.
pub(super) struct TextFile {
    path: PathBuf,
    input: Box<dyn Read + Send>,
    cutter: RowCutter,
    decoder: TextDecoder,
    place: Place,
    /// A failure that was met behind the last row; told when more rows are asked for.
    failure: Option<ReadError>,
}

impl TextFile {
    /// Opens a file that stands at its start, and goes to a row: at once if it is not compressed, else through all rows
    /// before.
    pub(super) fn open(
        path: &Path,
        file: File,
        name: &str,
        format: &TextFormat,
        columns: &Columns,
        start: Place,
    ) -> Result<Self, ReadError> {
        let unreadable = |error| ReadError::unreadable(path, error);
        let decoder = TextDecoder::new(format, columns.clone(), name.into())
            .ok_or_else(|| ReadError::defect(name, "a column has a type that is not canonical"))?;
        let compression = Compression::of(path);
        let mut handle = file.try_clone().map_err(unreadable)?;
        let mut text = Self {
            path: path.to_owned(),
            input: compression.reader(file).map_err(unreadable)?,
            cutter: RowCutter::new(format.row_end()),
            decoder,
            place: Place::default(),
            failure: None,
        };
        if format.has_header() {
            text.read_header()?;
        }
        if compression == Compression::None && start != Place::default() {
            handle.seek(SeekFrom::Start(start.byte)).map_err(unreadable)?;
            text.cutter = RowCutter::new(format.row_end());
            text.place = start;
        }
        text.skip_to(start)?;
        Ok(text)
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// Reads rows until the budget is spent or the file ends.
    pub(super) fn read(&mut self, budget: &mut Budget, slice: &mut Slice) -> Result<(), ReadError> {
        while budget.allows(self.place.row) {
            let Some(row) = self.cutter.next_row() else {
                if self.fill()? {
                    continue;
                }
                break;
            };
            self.place.row += 1;
            self.place.byte += row.stream_bytes;
            slice.bytes += row.stream_bytes;
            let bytes = row.stream_bytes;
            let counts = self.decoder.read(row, self.place.row, slice);
            budget.spend(u64::from(counts.map_err(|error| defect(&self.path, &error))?), bytes);
        }
        self.decoder.flush(slice).map_err(|error| defect(&self.path, &error))
    }

    /// Whether no row is left.
    pub(super) fn is_exhausted(&mut self) -> bool {
        while !self.cutter.has_bytes() && !self.cutter.is_exhausted() && self.failure.is_none() {
            self.failure = self.fill().err();
        }
        self.cutter.is_exhausted()
    }

    fn read_header(&mut self) -> Result<(), ReadError> {
        loop {
            if let Some(row) = self.cutter.next_row() {
                self.place.byte += row.stream_bytes;
                return self.decoder.read_header(row).map_err(|reason| ReadError::file_schema(&self.path, reason));
            }
            if !self.fill()? {
                return Ok(());
            }
        }
    }

    fn skip_to(&mut self, start: Place) -> Result<(), ReadError> {
        while self.place.row < start.row {
            if let Some(row) = self.cutter.next_row() {
                self.place.row += 1;
                self.place.byte += row.stream_bytes;
            } else if !self.fill()? {
                break;
            }
        }
        if start != Place::default() && self.place != start {
            let detail =
                format!("row {} began at byte {} and begins at {}", start.row + 1, start.byte, self.place.byte);
            return Err(ReadError::Changed { path: self.path.clone(), row: start.row, detail });
        }
        Ok(())
    }

    /// Lets more bytes arrive. False: there are none, and every row was taken.
    fn fill(&mut self) -> Result<bool, ReadError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.cutter.read_from(&mut self.input).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => ReadError::Truncated { path: self.path.clone(), rows: self.place.row },
            _ => ReadError::unreadable(&self.path, error),
        })
    }
}

fn defect(path: &Path, error: &arrow_schema::ArrowError) -> ReadError {
    ReadError::defect(&path.display().to_string(), error)
}
