//! Arrow batches into JSON Lines, the same bytes for the same rows.
//!
//! Every column is written, NULL as `null`, so lines of one schema have the same members in the same order. Values look
//! as [`super::json_reader`] reads them: DECIMAL as a string with all digits of its scale, BINARY as base64, DATE and
//! TIMESTAMP as strings, floats with the shortest digits that read back as the same value and the strings `"NaN"`,
//! `"Infinity"`, `"-Infinity"` for what JSON has no number.

use std::fmt::{self, Write};

use arrow_array::RecordBatch;

use super::cells::Cells;

/// Appends one line per row. None: a column's type is not canonical.
pub(crate) fn write_batch(batch: &RecordBatch, out: &mut String) -> Option<()> {
    let schema = batch.schema_ref();
    let columns = batch.columns().iter().map(|array| Cells::new(array.as_ref())).collect::<Option<Vec<_>>>()?;
    // Everything of a member in front of its value, made once per batch.
    let mut prefixes = Vec::with_capacity(columns.len());
    for (index, field) in schema.fields().iter().enumerate() {
        let mut prefix = String::from(if index == 0 { "{" } else { "," });
        write_string(field.name(), &mut prefix).ok()?;
        prefix.push(':');
        prefixes.push(prefix);
    }
    for row in 0..batch.num_rows() {
        for (prefix, column) in prefixes.iter().zip(&columns) {
            out.push_str(prefix);
            write_value(column, row, out).ok()?;
        }
        out.push_str(if columns.is_empty() { "{}\n" } else { "}\n" });
    }
    Some(())
}

fn write_value(cells: &Cells<'_>, row: usize, out: &mut String) -> fmt::Result {
    if cells.is_null(row) {
        return out.write_str("null");
    }
    match cells {
        Cells::String(array) => write_string(array.value(row), out),
        Cells::Float(array) => write_number(cells, array.value(row).is_finite(), row, out),
        Cells::Double(array) => write_number(cells, array.value(row).is_finite(), row, out),
        Cells::Decimal(_) | Cells::Binary(_) | Cells::Date(_) | Cells::Timestamp(_) => {
            write_number(cells, false, row, out)
        }
        Cells::Array(array, elements) => {
            out.push('[');
            for (index, element) in range(array.value_offsets(), row).enumerate() {
                separate(index, out);
                write_value(elements, element, out)?;
            }
            out.write_char(']')
        }
        Cells::Map(array, keys, values) => write_map(keys, values, range(array.value_offsets(), row), out),
        Cells::Struct(_, members) => {
            out.push('{');
            for (index, (name, member)) in members.iter().enumerate() {
                separate(index, out);
                write_string(name, out)?;
                out.push(':');
                write_value(member, row, out)?;
            }
            out.write_char('}')
        }
        number => number.write_text(row, out),
    }
}

/// A value whose text needs no escapes, with quotes unless JSON takes it as it is.
fn write_number(cells: &Cells<'_>, bare: bool, row: usize, out: &mut String) -> fmt::Result {
    if bare {
        return cells.write_text(row, out);
    }
    out.push('"');
    cells.write_text(row, out)?;
    out.write_char('"')
}

fn write_map(keys: &Cells<'_>, values: &Cells<'_>, entries: std::ops::Range<usize>, out: &mut String) -> fmt::Result {
    let Cells::String(names) = keys else {
        out.push('[');
        for (index, entry) in entries.enumerate() {
            separate(index, out);
            out.push('[');
            write_value(keys, entry, out)?;
            out.push(',');
            write_value(values, entry, out)?;
            out.push(']');
        }
        return out.write_char(']');
    };
    out.push('{');
    for (index, entry) in entries.enumerate() {
        separate(index, out);
        write_string(names.value(entry), out)?;
        out.push(':');
        write_value(values, entry, out)?;
    }
    out.write_char('}')
}

fn separate(index: usize, out: &mut String) {
    if index > 0 {
        out.push(',');
    }
}

/// The elements of one cell.
fn range(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    let at = |index: usize| offsets.get(index).and_then(|offset| usize::try_from(*offset).ok()).unwrap_or_default();
    at(row)..at(row + 1)
}

/// A string with the escapes that JSON demands and no others.
fn write_string(text: &str, out: &mut String) -> fmt::Result {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        match special.bytes().next().unwrap_or_default() {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            control => write!(out, "\\u{control:04x}")?,
        }
        rest = special.get(1..).unwrap_or_default();
    }
    out.push_str(rest);
    out.write_char('"')
}
