//! Malformed rows as rows: what the policy `quarantine` publishes, with the reason.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};

use super::error::QueryError;
use super::source::RejectedRow;
use crate::record::Schema;

const DDL: &str = "batch_id BIGINT NOT NULL, origin STRING NOT NULL, row BIGINT NOT NULL, code STRING NOT NULL, \
                   reason STRING NOT NULL, text STRING NOT NULL";

/// What is known of a malformed row.
///
/// # Errors
/// Never.
pub fn schema() -> Result<Schema, QueryError> {
    Ok(Schema::parse(DDL)?)
}

/// The malformed rows of a batch; None if there are none.
///
/// # Errors
/// Never for rows that a source made.
pub fn rows(batch_id: u64, rejected: &[&RejectedRow]) -> Result<Option<RecordBatch>, QueryError> {
    if rejected.is_empty() {
        return Ok(None);
    }
    let batch_id = i64::try_from(batch_id).unwrap_or(i64::MAX);
    let text = |of: fn(&RejectedRow) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rejected.iter().map(|row| of(row))))
    };
    let number = |of: &dyn Fn(&RejectedRow) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rejected.iter().map(|row| of(row))))
    };
    let columns = vec![
        number(&|_| batch_id),
        text(|row| &row.origin),
        number(&|row| i64::try_from(row.row).unwrap_or(i64::MAX)),
        text(|row| &row.code),
        text(|row| &row.reason),
        text(|row| &row.text),
    ];
    let batch = RecordBatch::try_new(schema()?.to_arrow(), columns)
        .map_err(|error| QueryError::settings("HOST_DEFECT", format!("quarantined rows: {error}")))?;
    Ok(Some(batch))
}
