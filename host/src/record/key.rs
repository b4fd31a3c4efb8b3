//! Grouping keys and keys of map state: packed rows in which -0.0 is 0.0 at every depth, and their hash.
//!
//! The hash routes: a key group is a range of the hash, and keys stand in the order (hash, row) everywhere.

use arrow_array::RecordBatch;
use xxhash_rust::xxh3::xxh3_64;

use super::error::{EncodeError, RowFault, SchemaError};
use super::packed::cell::Zero;
use super::packed::validate::validate_row;
use super::packed::{RowEncoder, RowLayout};
use super::schema::{Schema, holds_map};

/// A grouping key: its packed row and the hash of it. Ordered by hash, then row, which is the order of keys in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupingKey<'a> {
    /// [`hash_key`] of the row.
    pub hash: u64,
    /// The packed row.
    pub row: &'a [u8],
}

impl<'a> GroupingKey<'a> {
    /// The key of a packed key row.
    #[must_use]
    pub fn new(row: &'a [u8]) -> Self {
        Self { hash: hash_key(row), row }
    }
}

/// Hash of a packed key row: XXH3, 64 bits, seed 0. It decides where a key is stored and never changes.
#[must_use]
pub fn hash_key(row: &[u8]) -> u64 {
    xxh3_64(row)
}

/// The key group of a hash, of so many: groups are ranges of the hash, in order. Without groups it is 0.
#[must_use]
pub fn key_group(hash: u64, groups: u16) -> u16 {
    let group = (u128::from(hash) * u128::from(groups)) >> u64::BITS;
    u16::try_from(group).unwrap_or(u16::MAX)
}

/// The layout of keys of `schema`.
///
/// # Errors
/// A MAP anywhere in a key (`GROUP_EXPRESSION_TYPE_IS_NOT_ORDERABLE`).
pub fn key_layout(schema: &Schema) -> Result<RowLayout, SchemaError> {
    match schema.fields().iter().find(|field| holds_map(&field.data_type)) {
        Some(field) => Err(SchemaError::MapInKey { column: field.name.clone() }),
        None => Ok(RowLayout::new(schema)),
    }
}

/// Whether `row` is a valid row of the layout and a key: without -0.0 at any depth.
///
/// # Errors
/// [`RowFault`] naming the first column that is wrong.
pub fn validate_key(layout: &RowLayout, row: &[u8]) -> Result<(), RowFault> {
    validate_row(row, layout.schema(), Zero::Unsigned)
}

/// Packs the keys of one batch.
#[derive(Debug)]
pub struct KeyEncoder(RowEncoder);

impl KeyEncoder {
    /// Prepares a batch that has exactly the Arrow schema of the layout, which is from [`key_layout`].
    ///
    /// # Errors
    /// As [`RowEncoder::new`].
    pub fn new(layout: &RowLayout, batch: &RecordBatch) -> Result<Self, EncodeError> {
        RowEncoder::with_zero(layout, batch, Zero::Unsigned).map(Self)
    }

    /// Number of rows in the batch.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.0.rows()
    }

    /// Appends the packed key of row number `row`; the answer is its hash.
    ///
    /// # Panics
    /// If the batch has no such row.
    pub fn encode(&self, row: usize, out: &mut Vec<u8>) -> u64 {
        let begin = out.len();
        self.0.encode(row, out);
        hash_key(out.get(begin..).unwrap_or_default())
    }
}
