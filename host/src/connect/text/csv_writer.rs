//! Arrow batches into CSV, the same bytes for the same rows.
//!
//! A field is quoted if it holds the delimiter, a quote or a line end, if it is empty or blank, if it begins with a byte order
//! mark, or if it would read as NULL; NULL is the null value of the settings, else nothing. Rows end with a line feed.

use std::fmt;

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use super::cells::Cells;
use super::csv_reader::CsvDialect;
use super::decoder::{is_blank, without_mark};

/// Appends the row of column names.
///
/// # Errors
/// Those of `out`, which has none.
pub(crate) fn write_header(schema: &Schema, dialect: &CsvDialect, out: &mut String) {
    for (index, field) in schema.fields().iter().enumerate() {
        separate(index, dialect, out);
        write_field(field.name(), dialect, out);
    }
    out.push('\n');
}

/// Appends one row per row. None: a column's type does not fit into a field.
pub(crate) fn write_batch(batch: &RecordBatch, dialect: &CsvDialect, out: &mut String) -> Option<()> {
    let columns = batch.columns().iter().map(|array| Cells::new(array.as_ref())).collect::<Option<Vec<_>>>()?;
    let mut text = String::new();
    for row in 0..batch.num_rows() {
        for (index, column) in columns.iter().enumerate() {
            separate(index, dialect, out);
            write_cell(column, row, dialect, &mut text, out).ok()?;
        }
        out.push('\n');
    }
    Some(())
}

fn write_cell(cells: &Cells<'_>, row: usize, dialect: &CsvDialect, text: &mut String, out: &mut String) -> fmt::Result {
    if cells.is_null(row) {
        out.push_str(dialect.null_value.as_deref().unwrap_or_default());
        return Ok(());
    }
    if let Cells::String(strings) = cells {
        write_field(strings.value(row), dialect, out);
        return Ok(());
    }
    text.clear();
    cells.write_text(row, text)?;
    write_field(text, dialect, out);
    Ok(())
}

fn write_field(field: &str, dialect: &CsvDialect, out: &mut String) {
    let special = |byte: u8| matches!(byte, b'"' | b'\n' | b'\r') || byte == dialect.delimiter;
    let reads_otherwise = is_blank(field.as_bytes())
        || without_mark(field.as_bytes()).len() < field.len()
        || dialect.null_value.as_deref() == Some(field);
    if !reads_otherwise && !field.bytes().any(special) {
        out.push_str(field);
        return;
    }
    out.push('"');
    for (index, run) in field.split('"').enumerate() {
        if index > 0 {
            out.push_str("\"\"");
        }
        out.push_str(run);
    }
    out.push('"');
}

fn separate(index: usize, dialect: &CsvDialect, out: &mut String) {
    if index > 0 {
        out.push(char::from(dialect.delimiter));
    }
}
