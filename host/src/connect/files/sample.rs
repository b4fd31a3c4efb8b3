//! The schema of a file that comes without one.

use std::fs::File;
use std::io;
use std::path::Path;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::listing::{list, not_found_or};
use super::open_file::FileFormat;
use crate::connect::error::ReadError;
use crate::connect::format::Compression;
use crate::connect::text::{RowCutter, TextFormat, infer_schema};
use crate::record::Schema;

/// Rows that are looked at: enough to meet the usual exceptions, few enough not to be noticed.
const SAMPLE_ROWS_MAX: usize = 10_000;

/// Bytes that are looked at, decompressed.
const SAMPLE_BYTES_MAX: usize = 8 << 20;

pub(super) fn schema_of(path: &Path, format: &FileFormat) -> Result<Schema, ReadError> {
    let file = File::open(path).map_err(|error| not_found_or(path, error))?;
    match format {
        FileFormat::Text(text) => {
            let rows = first_rows(path, file, text)?;
            infer_schema(text, rows.iter().map(Vec::as_slice))
                .map_err(|error| ReadError::no_schema(&path.display().to_string(), &error))
        }
        FileFormat::Parquet => {
            let unreadable = |problem: String| ReadError::NotParquet { path: path.to_owned(), problem };
            let builder =
                ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| unreadable(error.to_string()))?;
            Schema::from_arrow(builder.schema()).map_err(|error| ReadError::file_schema(path, error.to_string()))
        }
    }
}

/// The schema of the first file that has rows.
pub(super) fn first_schema(directory: &Path, format: &FileFormat) -> Result<Schema, ReadError> {
    let mut empty = None;
    for candidate in list(directory, &|_| true)?.files {
        match schema_of(&directory.join(&candidate.name), format) {
            Err(error @ ReadError::NoSchema { .. }) => empty = Some(error),
            result => return result,
        }
    }
    Err(empty.unwrap_or_else(|| ReadError::NoSchema {
        place: directory.display().to_string(),
        reason: "there are no files".to_owned(),
    }))
}

fn first_rows(path: &Path, file: File, format: &TextFormat) -> Result<Vec<Vec<u8>>, ReadError> {
    let failed = |error: io::Error, rows: usize| match error.kind() {
        io::ErrorKind::UnexpectedEof => ReadError::Truncated { path: path.to_owned(), rows: rows as u64 },
        _ => ReadError::unreadable(path, error),
    };
    let mut input = Compression::of(path).reader(file).map_err(|error| failed(error, 0))?;
    let mut cutter = RowCutter::new(format.row_end());
    let mut rows = Vec::new();
    let mut bytes = 0;
    while rows.len() < SAMPLE_ROWS_MAX && bytes < SAMPLE_BYTES_MAX {
        if let Some(row) = cutter.next_row() {
            bytes += row.bytes.len();
            rows.push(row.content().to_vec());
        } else if !cutter.read_from(&mut input).map_err(|error| failed(error, rows.len()))? {
            break;
        }
    }
    Ok(rows)
}
