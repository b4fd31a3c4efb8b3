//! Rows as text: JSON Lines and CSV, read into Arrow batches and written from them.
//!
//! Reading is strict and one pass: a row either fits the schema or is rejected with its reason. What is written can be
//! read back as the same rows. Knows bytes and batches, never files or streams.
//!
//! | DDL type | JSON Lines | CSV |
//! |---|---|---|
//! | `BOOLEAN` | `true`, `false` | `true`, `false`, in any case |
//! | `TINYINT` to `BIGINT` | a number without point or exponent, in range | the same |
//! | `FLOAT`, `DOUBLE` | a number, or `"NaN"`, `"Infinity"`, `"-Infinity"` | the same without quotes |
//! | `DECIMAL(p,s)` | a string or number; nothing is rounded | digits |
//! | `STRING` | a string | any text |
//! | `BINARY` | base64 | base64 |
//! | `DATE` | `"2013-01-31"` | `2013-01-31` |
//! | `TIMESTAMP` | RFC 3339, or `"2013-01-31 10:00:00[.f]"` in UTC | the same |
//! | `ARRAY<t>` | an array | not supported |
//! | `MAP<STRING, t>` | an object | not supported |
//! | `MAP<k, t>` | an array of `[key, value]` | not supported |
//! | `STRUCT<...>` | an object | not supported |
//! | NULL | `null`, or left out | an empty field without quotes |

mod cells;
mod column;
mod csv_reader;
mod csv_writer;
mod decoder;
mod framing;
mod infer;
mod json_reader;
mod json_scan;
mod json_writer;
mod scalar;
mod table;

pub use csv_reader::{CsvDialect, CsvHeader};
pub(crate) use csv_writer::{write_batch as write_csv, write_header as write_csv_header};
pub use decoder::TextFormat;
pub(crate) use decoder::{Columns, TextDecoder, without_mark};
pub(crate) use framing::{EXCERPT_BYTES_MAX, RawRow, RowCutter};
pub(crate) use infer::{InferError, infer_schema};
pub(crate) use json_writer::write_batch as write_json_lines;
pub(crate) use table::{NULL_IN_NOT_NULL_COLUMN, WRONG_TYPE};

#[cfg(test)]
mod tests;
