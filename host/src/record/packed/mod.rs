//! Packed rows: the one byte layout in which rows travel to guests and rest in the store.
//!
//! Little-endian, every part aligned to 8 bytes, padding zero. A row of N columns is a null bitmap of `ceil(N/64)` words, N slots
//! of 8 bytes, then the variable parts in column order without gaps. Every value has exactly one encoding, so equal rows are
//! equal bytes.
//!
//! [`reader`] and [`writer`] hold the structure, [`cell`] the values; validation, decoding and JSON stand on them and so refuse
//! the same things.

pub(super) mod cell;
mod decode;
mod encode;
mod framing;
mod layout;
pub(super) mod reader;
pub(super) mod validate;
pub(super) mod writer;

pub use decode::{RowDecoder, decode_rows};
pub use encode::RowEncoder;
pub use framing::{PackedRows, push_row};
pub use layout::RowLayout;
