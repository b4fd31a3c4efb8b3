//! Rows: their schemas, their packed bytes, and the ways between those and Arrow batches, DDL and JSON.
//!
//! This is the vocabulary of every other layer. A [`Schema`] says what a row holds; a [`RowLayout`] is a schema made ready
//! for packing; [`RowEncoder`] and [`RowDecoder`] go between Arrow batches and packed rows; [`KeyEncoder`] makes grouping keys.
//!
//! Invariants:
//! - Packed rows are canonical: equal rows are equal bytes, so a comparison of rows is a comparison of bytes.
//! - Nothing that comes from outside (DDL, packed rows, JSON, foreign Arrow types) can panic, overflow the stack, or make
//!   the host allocate in proportion to a number that was merely claimed.
//!
//! It knows nothing of state, batches, guests or files.

mod arrow;
mod calendar;
mod cast;
mod ddl;
mod error;
mod evolution;
mod json;
mod key;
mod packed;
mod schema;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;

pub(crate) use calendar::{full_timestamp_text, parse_date, write_date, write_timestamp};
pub use calendar::{parse_timestamp, timestamp_text};
pub use cast::{cast_batch, widens};
pub use error::{BadRow, CastError, EncodeError, FramingError, JsonError, RowFault, SchemaError};
pub use evolution::{ConversionError, Difference, Evolution, FieldChange, Obstacle, RowConversion};
pub use json::{key_from_json, row_from_json, row_to_json};
pub use key::{GroupingKey, KeyEncoder, hash_key, key_group, key_layout, validate_key};
pub use packed::{PackedRows, RowDecoder, RowEncoder, RowLayout, decode_rows, push_row};
pub use schema::{COLUMNS_MAX, DataType, Field, NESTING_MAX, Schema};
