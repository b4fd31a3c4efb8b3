//! Rows into the bytes of a file, the same bytes for the same rows.
//!
//! Parquet files are compressed with Snappy, have row groups of a fixed number of rows, and name no version of their
//! writer. They carry no Arrow schema: their own types say everything.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use super::error::WriteError;
use super::text::{CsvDialect, TextFormat, write_csv, write_csv_header, write_json_lines};
use crate::engine::sink::SinkError;

/// Rows of one row group of a Parquet file: large enough to compress well, small enough to be held in memory.
const ROW_GROUP_ROWS: usize = 128 << 10;

/// Who made a Parquet file. Without a version, so that a newer host writes the same bytes.
const CREATED_BY: &str = "tidemill";

/// How rows become bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Encoding {
    /// JSON Lines or CSV.
    Text(TextFormat),
    /// Parquet.
    Parquet,
}

/// Rows of one batch, from the engine.
pub(crate) type Rows<'a> = &'a mut dyn Iterator<Item = Result<RecordBatch, SinkError>>;

impl Encoding {
    /// Checks that the format can hold the columns.
    ///
    /// # Errors
    /// [`WriteError::Unsupported`]
    pub fn check(&self, schema: &arrow_schema::Schema) -> Result<(), WriteError> {
        let unsupported =
            |column: &str, format, reason| Err(WriteError::Unsupported { column: column.to_owned(), format, reason });
        match self {
            Self::Text(TextFormat::JsonLines) => Ok(()),
            Self::Text(format @ TextFormat::Csv(dialect)) => match format.unsupported_column(schema) {
                Some(column) => unsupported(column, "CSV", "it is nested; use JSON Lines or Parquet"),
                None if schema.fields().is_empty() => {
                    unsupported("(none)", "CSV", "rows without columns have no form; use JSON Lines")
                }
                None => match schema.fields().as_ref() {
                    [only] if only.is_nullable() && dialect.null_is_blank() => unsupported(
                        only.name(),
                        "CSV",
                        "a NULL of the only column would be a blank row, which does not count; declare it NOT NULL, set null_value, or use JSON Lines",
                    ),
                    _ => Ok(()),
                },
            },
            Self::Parquet => match schema.fields().iter().find(|field| holds_empty_struct(field.data_type())) {
                Some(field) => unsupported(field.name(), "Parquet", "it has a STRUCT without members; use JSON Lines"),
                None if schema.fields().is_empty() => {
                    unsupported("(none)", "Parquet", "rows without columns have no form; use JSON Lines")
                }
                None => Ok(()),
            },
        }
    }

    /// What stands in front of the rows of a text: the header of CSV.
    pub fn preamble(&self, schema: &arrow_schema::Schema) -> String {
        let mut text = String::new();
        if let Self::Text(TextFormat::Csv(dialect)) = self {
            write_csv_header(schema, dialect, &mut text);
        }
        text
    }

    /// Writes the rows; a whole file in Parquet, a text without its preamble.
    ///
    /// # Errors
    /// Those of the rows and of `out`.
    pub fn write_rows(&self, schema: &SchemaRef, rows: Rows<'_>, out: &mut dyn Write) -> Result<(), SinkError> {
        match self {
            Self::Text(TextFormat::JsonLines) => write_text(rows, out, write_json_lines),
            Self::Text(TextFormat::Csv(dialect)) => write_csv_rows(dialect, rows, out),
            Self::Parquet => write_parquet(schema, rows, out),
        }
    }
}

fn write_csv_rows(dialect: &CsvDialect, rows: Rows<'_>, out: &mut dyn Write) -> Result<(), SinkError> {
    write_text(rows, out, |batch, text| write_csv(batch, dialect, text))
}

fn write_text(
    rows: Rows<'_>,
    out: &mut dyn Write,
    write: impl Fn(&RecordBatch, &mut String) -> Option<()>,
) -> Result<(), SinkError> {
    let mut text = String::new();
    for batch in rows {
        text.clear();
        write(&batch?, &mut text).ok_or_else(|| defect("a column has a type that the format cannot hold"))?;
        out.write_all(text.as_bytes()).map_err(staging_failed)?;
    }
    Ok(())
}

fn write_parquet(schema: &SchemaRef, rows: Rows<'_>, out: &mut dyn Write) -> Result<(), SinkError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
        .set_created_by(CREATED_BY.to_owned())
        .build();
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let written = Written::default();
    let mut writer = ArrowWriter::try_new_with_options(written.clone(), Arc::clone(schema), options).map_err(defect)?;
    for batch in rows {
        writer.write(&batch?).map_err(defect)?;
        written.drain_to(out).map_err(staging_failed)?;
    }
    writer.close().map_err(defect)?;
    written.drain_to(out).map_err(staging_failed)
}

/// What the Parquet writer has written: it wants a writer that can be sent to another thread, which the engine's is not.
#[derive(Debug, Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn drain_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        out.write_all(&bytes)?;
        bytes.clear();
        Ok(())
    }
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn holds_empty_struct(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => {
            fields.is_empty() || fields.iter().any(|field| holds_empty_struct(field.data_type()))
        }
        DataType::List(element) | DataType::Map(element, _) => holds_empty_struct(element.data_type()),
        _ => false,
    }
}

fn staging_failed(source: io::Error) -> SinkError {
    WriteError::Failed { place: "the staged output".to_owned(), source }.into()
}

fn defect(problem: impl ToString) -> SinkError {
    WriteError::defect("the sink", problem).into()
}
