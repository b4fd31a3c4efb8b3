//! The rows of one Parquet file, from any row on, the wanted columns only.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::ParquetMetaData;

use super::budget::Budget;
use super::range::Place;
use crate::connect::error::ReadError;
use crate::connect::map_keys::{DUPLICATE_MAP_KEY, MapKeys, without_rows};
use crate::connect::text::{EXCERPT_BYTES_MAX, NULL_IN_NOT_NULL_COLUMN, WRONG_TYPE};
use crate::engine::source::{RejectedRow, Slice};
use crate::record::{BadRow, CastError, Schema, cast_batch};

/// Rows decoded at a time.
const BATCH_ROWS_MAX: u64 = 16 << 10;

/// Bytes decoded at a time, unless one row is larger.
const BATCH_BYTES_MAX: u64 = 16 << 20;

/// An open Parquet file, between two rows.
pub(super) struct ParquetFile {
    path: PathBuf,
    name: String,
    wanted: Schema,
    map_keys: Option<MapKeys>,
    reader: ParquetRecordBatchReader,
    /// Rows that were decoded but not read yet.
    held: Option<RecordBatch>,
    row: u64,
    rows: u64,
    /// Decompressed bytes of the wanted columns per row, on average.
    row_bytes: u64,
}

impl ParquetFile {
    /// Opens a file and goes to a row, without decoding the row groups before it.
    pub(super) fn open(path: &Path, file: File, name: &str, wanted: &Schema, start: Place) -> Result<Self, ReadError> {
        let builder =
            ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| not_parquet(path, &error.into()))?;
        let columns = wanted_columns(builder.schema(), wanted);
        let projected = builder.schema().project(&columns).map_err(|error| not_parquet(path, &error))?;
        // What does not fit is said before the first row, with the words of the cast that would fail.
        cast_batch(&RecordBatch::new_empty(projected.into()), wanted).map_err(|error| ReadError::cast(path, &error))?;
        let rows = u64::try_from(builder.metadata().file_metadata().num_rows()).unwrap_or_default();
        let row_bytes = row_bytes(builder.metadata(), &columns, rows);
        let batch_rows = (BATCH_BYTES_MAX / row_bytes).clamp(1, BATCH_ROWS_MAX);
        let map_keys = MapKeys::of(&wanted.to_arrow()).map_err(|error| ReadError::defect(name, error))?;
        let (row_groups, rows_before) = row_groups_from(builder.metadata(), start.row);
        let mask = ProjectionMask::roots(builder.parquet_schema(), columns);
        let reader = builder
            .with_projection(mask)
            .with_row_groups(row_groups)
            .with_offset(usize::try_from(start.row - rows_before).unwrap_or(usize::MAX))
            .with_batch_size(usize::try_from(batch_rows).unwrap_or(1))
            .build()
            .map_err(|error| not_parquet(path, &error.into()))?;
        let (path, name, wanted) = (path.to_owned(), name.to_owned(), wanted.clone());
        Ok(Self { path, name, wanted, map_keys, reader, held: None, row: start.row, rows, row_bytes })
    }

    pub(super) fn place(&self) -> Place {
        Place { row: self.row, byte: 0 }
    }

    /// Whether no row is left.
    pub(super) fn is_exhausted(&self) -> bool {
        self.row >= self.rows
    }

    /// Reads rows until the budget is spent or the file ends.
    pub(super) fn read(&mut self, budget: &mut Budget, slice: &mut Slice) -> Result<(), ReadError> {
        while budget.allows(self.row) && !self.is_exhausted() {
            let batch = match self.held.take() {
                Some(batch) => batch,
                None => self.decode()?,
            };
            let allowed = budget.rows_from(self.row, self.row_bytes);
            let count = batch.num_rows().min(usize::try_from(allowed).unwrap_or(usize::MAX));
            if count < batch.num_rows() {
                self.held = Some(batch.slice(count, batch.num_rows() - count));
            }
            self.take(&batch.slice(0, count), slice)?;
            let bytes = (count as u64).saturating_mul(self.row_bytes);
            budget.spend(count as u64, bytes);
            slice.bytes += bytes;
            self.row += count as u64;
        }
        Ok(())
    }

    fn decode(&mut self) -> Result<RecordBatch, ReadError> {
        match self.reader.next() {
            Some(batch) => batch.map_err(|error| not_parquet(&self.path, &error)),
            None => {
                let problem = format!("it ends at row {} of {}", self.row, self.rows);
                Err(ReadError::NotParquet { path: self.path.clone(), problem })
            }
        }
    }

    fn take(&self, batch: &RecordBatch, slice: &mut Slice) -> Result<(), ReadError> {
        let mut bad_rows = Vec::new();
        let mut cast = cast_batch(batch, &self.wanted);
        if let Err(CastError::BadRows(bad)) = &cast {
            bad_rows.clone_from(bad);
            cast = cast_batch(&self.without(batch, bad)?, &self.wanted);
        }
        let mut cast = cast.map_err(|error| ReadError::cast(&self.path, &error))?;
        let mut rejected: Vec<_> =
            bad_rows.iter().map(|bad| self.rejected(batch, bad, bad.row, bad_row_code(bad))).collect();
        if let Some(map_keys) = &self.map_keys {
            let doubled = map_keys.bad_rows(&cast).map_err(|error| ReadError::defect(&self.name, error))?;
            if !doubled.is_empty() {
                let good: Vec<usize> = rows_without(batch.num_rows(), &bad_rows).collect();
                rejected.extend(doubled.iter().map(|bad| {
                    let row = good.get(bad.row).copied().unwrap_or_default();
                    self.rejected(batch, bad, row, DUPLICATE_MAP_KEY)
                }));
                rejected.sort_by_key(|row| row.row);
                cast = self.without(&cast, &doubled)?;
            }
        }
        slice.rejected.append(&mut rejected);
        if cast.num_rows() > 0 {
            slice.batches.push(cast);
        }
        Ok(())
    }

    fn without(&self, batch: &RecordBatch, bad_rows: &[BadRow]) -> Result<RecordBatch, ReadError> {
        without_rows(batch, bad_rows.iter().map(|bad| bad.row)).map_err(|error| not_parquet(&self.path, &error))
    }

    fn rejected(&self, batch: &RecordBatch, bad: &BadRow, row: usize, code: &str) -> RejectedRow {
        RejectedRow {
            origin: self.name.clone(),
            row: self.row + row as u64 + 1,
            code: code.to_owned(),
            reason: format!("column `{}`: {}", bad.column, bad.problem),
            text: row_text(batch, row),
        }
    }
}

/// Rows that are left when the bad ones, which are in order, are not.
fn rows_without(rows: usize, bad_rows: &[BadRow]) -> impl Iterator<Item = usize> {
    let mut bad = bad_rows.iter().map(|bad| bad.row).peekable();
    (0..rows).filter(move |row| bad.next_if_eq(row).is_none())
}

/// The code of a row that does not fit the wanted columns.
pub(crate) fn bad_row_code(bad: &BadRow) -> &'static str {
    if bad.problem.contains("NULL") { NULL_IN_NOT_NULL_COLUMN } else { WRONG_TYPE }
}

/// Top-level columns of the file that are wanted, in the order of the file. One that is missing is not.
fn wanted_columns(schema: &arrow_schema::Schema, wanted: &Schema) -> Vec<usize> {
    let exact = |name: &str| wanted.fields().iter().any(|field| field.name == name);
    let in_any_case = |name: &str| {
        wanted.field(name).is_some_and(|field| schema.fields().iter().all(|other| *other.name() != field.name))
    };
    let fields = schema.fields().iter().enumerate();
    fields.filter(|(_, field)| exact(field.name()) || in_any_case(field.name())).map(|(index, _)| index).collect()
}

/// The row groups that have rows from this one on, and the rows in those before.
fn row_groups_from(metadata: &ParquetMetaData, row: u64) -> (Vec<usize>, u64) {
    let mut rows_before = 0_u64;
    for (index, group) in metadata.row_groups().iter().enumerate() {
        let rows = u64::try_from(group.num_rows()).unwrap_or_default();
        let rows_with = rows_before.saturating_add(rows);
        if rows_with > row {
            return ((index..metadata.num_row_groups()).collect(), rows_before);
        }
        rows_before = rows_with;
    }
    (Vec::new(), row)
}

fn row_bytes(metadata: &ParquetMetaData, columns: &[usize], rows: u64) -> u64 {
    let descriptor = metadata.file_metadata().schema_descr();
    let leaves = |leaf: &usize| columns.contains(&descriptor.get_column_root_idx(*leaf));
    let sizes = metadata.row_groups().iter().flat_map(|group| {
        let chunks = group.columns().iter().enumerate();
        chunks.filter(|(leaf, _)| leaves(leaf)).map(|(_, chunk)| u64::try_from(chunk.uncompressed_size()).unwrap_or(0))
    });
    sizes.fold(0, u64::saturating_add).div_ceil(rows.max(1)).max(1)
}

/// The row for a person: `column=value, ...`
fn row_text(batch: &RecordBatch, row: usize) -> String {
    let mut text = String::new();
    for (field, column) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        let value = arrow_cast::display::array_value_to_string(column, row).unwrap_or_default();
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&format!("{}={value}", field.name()));
    }
    text.truncate(text.floor_char_boundary(EXCERPT_BYTES_MAX));
    text
}

fn not_parquet(path: &Path, error: &ArrowError) -> ReadError {
    ReadError::NotParquet { path: path.to_owned(), problem: error.to_string() }
}
