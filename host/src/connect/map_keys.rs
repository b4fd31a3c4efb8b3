//! Rows with a MAP that has a key twice. No packed row can hold them, so a source rejects them like any other bad row.

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::{ArrowError, DataType};

use crate::record::{BadRow, EncodeError, RowEncoder, RowLayout, Schema, SchemaError};

/// Code of such rows.
pub(crate) const DUPLICATE_MAP_KEY: &str = "DUPLICATE_MAP_KEY";

/// Finds such rows in batches of one schema that has a MAP.
#[derive(Debug)]
pub(crate) struct MapKeys(RowLayout);

impl MapKeys {
    /// None: there is no MAP in the schema, which must be canonical.
    pub(crate) fn of(schema: &arrow_schema::Schema) -> Result<Option<Self>, SchemaError> {
        if !schema.fields().iter().any(|field| holds_map(field.data_type())) {
            return Ok(None);
        }
        Ok(Some(Self(RowLayout::new(&Schema::from_arrow(schema)?))))
    }

    /// The bad rows, in order.
    pub(crate) fn bad_rows(&self, batch: &RecordBatch) -> Result<Vec<BadRow>, EncodeError> {
        match RowEncoder::new(&self.0, batch) {
            Ok(_) => Ok(Vec::new()),
            Err(EncodeError::BadRows(bad_rows)) => Ok(bad_rows),
            Err(error) => Err(error),
        }
    }
}

/// The batch without these rows, which are in order.
pub(crate) fn without_rows(batch: &RecordBatch, rows: impl Iterator<Item = usize>) -> Result<RecordBatch, ArrowError> {
    let mut rows = rows.peekable();
    let good: BooleanArray = (0..batch.num_rows()).map(|row| Some(rows.next_if_eq(&row).is_none())).collect();
    arrow_select::filter::filter_record_batch(batch, &good)
}

fn holds_map(data_type: &DataType) -> bool {
    match data_type {
        DataType::Map(..) => true,
        DataType::List(element) => holds_map(element.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| holds_map(field.data_type())),
        _ => false,
    }
}
