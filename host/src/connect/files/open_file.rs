//! One file of any format, open between two rows.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::budget::Budget;
use super::check_stamp;
use super::fingerprint::{Fingerprint, Stamp};
use super::parquet_file::ParquetFile;
use super::range::Place;
use super::text_file::TextFile;
use crate::connect::error::ReadError;
use crate::connect::text::{Columns, TextFormat};
use crate::engine::source::Slice;
use crate::record::Schema;

/// The format of all files of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileFormat {
    /// JSON Lines or CSV, plain, `.gz` or `.zst`.
    Text(TextFormat),
    /// Parquet.
    Parquet,
}

/// How rows are decoded.
pub(super) struct Layout {
    pub(super) format: FileFormat,
    pub(super) columns: Columns,
    pub(super) wanted: Schema,
}

pub(super) struct OpenFile {
    path: PathBuf,
    name: String,
    /// Stays with the file that was opened, whatever becomes of its name.
    handle: File,
    rows: Rows,
}

enum Rows {
    Text(Box<TextFile>),
    Parquet(Box<ParquetFile>),
}

impl OpenFile {
    /// Opens a file that stands at its start, and goes to a row.
    pub(super) fn open(
        path: &Path,
        handle: File,
        name: &str,
        layout: &Layout,
        start: Place,
    ) -> Result<Self, ReadError> {
        let file = handle.try_clone().map_err(|error| ReadError::unreadable(path, error))?;
        let rows = match &layout.format {
            FileFormat::Text(format) => {
                Rows::Text(Box::new(TextFile::open(path, file, name, format, &layout.columns, start)?))
            }
            FileFormat::Parquet => Rows::Parquet(Box::new(ParquetFile::open(path, file, name, &layout.wanted, start)?)),
        };
        Ok(Self { path: path.to_owned(), name: name.to_owned(), handle, rows })
    }

    /// Relative to the root of the source.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn place(&self) -> Place {
        match &self.rows {
            Rows::Text(file) => file.place(),
            Rows::Parquet(file) => file.place(),
        }
    }

    /// Reads rows until the budget is spent or the file ends.
    pub(super) fn read(&mut self, budget: &mut Budget, slice: &mut Slice) -> Result<(), ReadError> {
        match &mut self.rows {
            Rows::Text(file) => file.read(budget, slice),
            Rows::Parquet(file) => file.read(budget, slice),
        }
    }

    /// Whether no row is left.
    pub(super) fn is_exhausted(&mut self) -> bool {
        match &mut self.rows {
            Rows::Text(file) => file.is_exhausted(),
            Rows::Parquet(file) => file.is_exhausted(),
        }
    }

    /// Checks that the file did not change while it was read, neither under its name nor behind the open handle.
    pub(super) fn check_unchanged(&self, fingerprint: &Fingerprint) -> Result<(), ReadError> {
        let row = self.place().row;
        let metadata = self.handle.metadata().map_err(|error| ReadError::unreadable(&self.path, error))?;
        let now = Stamp::of(&metadata).map_err(|error| ReadError::unreadable(&self.path, error))?;
        match fingerprint.stamp.difference(&now) {
            Some(detail) => Err(ReadError::Changed { path: self.path.clone(), row, detail }),
            None => check_stamp(&self.path, &fingerprint.stamp, row),
        }
    }
}
