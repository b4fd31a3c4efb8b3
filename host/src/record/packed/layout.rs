//! A schema made ready for packing.

use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::super::error::RowFault;
use super::super::schema::Schema;
use super::cell::Zero;
use super::validate::validate_row;

/// A schema with its Arrow counterpart, made once per schema and cheap to clone.
#[derive(Debug, Clone)]
pub struct RowLayout(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    schema: Schema,
    arrow: SchemaRef,
}

impl RowLayout {
    /// The layout of rows of `schema`.
    #[must_use]
    pub fn new(schema: &Schema) -> Self {
        Self(Arc::new(Inner { schema: schema.clone(), arrow: schema.to_arrow() }))
    }

    /// The schema it was made from.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.0.schema
    }

    /// The Arrow schema of batches of such rows.
    #[must_use]
    pub fn arrow_schema(&self) -> &SchemaRef {
        &self.0.arrow
    }

    /// Whether `row` is exactly what this host would have written for its values: null bits, padding, offsets, lengths, UTF-8,
    /// ranges, map keys. Allocates nothing unless it fails.
    ///
    /// # Errors
    /// [`RowFault`] naming the first column that is wrong.
    pub fn validate(&self, row: &[u8]) -> Result<(), RowFault> {
        validate_row(row, self.schema(), Zero::Signed)
    }
}
