//! Rows of text on their way into Arrow: one growing column per field, of which every row fills exactly one cell each.
//!
//! A row that turns out to be bad after some of its cells were taken is filled up with placeholders and left out when
//! the batch is made, so that good rows are decoded once, without a look ahead.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, SchemaRef};

use super::column::Column;
use crate::connect::map_keys::without_rows;

/// Why a row is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowFault {
    /// Stable code.
    pub code: &'static str,
    /// What is wrong, for a person.
    pub reason: String,
}

/// The bytes of the row are not what the format says.
pub(crate) const MALFORMED_ROW: &str = "MALFORMED_ROW";
/// A value is not of the column's type, or out of its range.
pub(crate) const WRONG_TYPE: &str = "WRONG_TYPE";
/// A column that is NOT NULL has no value.
pub(crate) const NULL_IN_NOT_NULL_COLUMN: &str = "NULL_IN_NOT_NULL_COLUMN";
/// The row exceeds [`super::framing::ROW_BYTES_MAX`].
pub(crate) const ROW_TOO_LONG: &str = "ROW_TOO_LONG";

impl RowFault {
    /// The row is not well formed.
    pub(crate) fn malformed(reason: impl Into<String>) -> Self {
        Self { code: MALFORMED_ROW, reason: reason.into() }
    }

    /// A value does not fit its column.
    pub(crate) fn wrong_type(reason: impl Into<String>) -> Self {
        Self { code: WRONG_TYPE, reason: reason.into() }
    }

    /// A NULL where none may be.
    pub(crate) fn null(column: &str) -> Self {
        let reason = format!("column `{column}` is NOT NULL but has no value");
        Self { code: NULL_IN_NOT_NULL_COLUMN, reason }
    }

    /// Names the column, once.
    pub(crate) fn in_column(mut self, column: &str) -> Self {
        if self.code == WRONG_TYPE {
            self.reason = format!("column `{column}`: {}", self.reason);
        }
        self
    }
}

/// Columns under construction, all of the same length between rows.
#[derive(Debug)]
pub(crate) struct Table {
    schema: SchemaRef,
    columns: Vec<Column>,
    rows: usize,
    rejected: Vec<usize>,
}

impl Table {
    /// Empty. None: the schema has a type that is not canonical.
    pub(crate) fn new(schema: SchemaRef) -> Option<Self> {
        let columns = schema.fields().iter().map(|field| Column::new(field.data_type())).collect::<Option<_>>()?;
        Some(Self { schema, columns, rows: 0, rejected: Vec::new() })
    }

    /// Rows taken, rejected ones included.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Fills one row. `fill` gives each column at most one cell; a column that got none is NULL.
    ///
    /// # Errors
    /// What `fill` says, or a NULL in a NOT NULL column; then the row is left out.
    pub(crate) fn push_row(
        &mut self,
        fill: impl FnOnce(&SchemaRef, &mut [Column], usize) -> Result<(), RowFault>,
    ) -> Result<(), RowFault> {
        let mut result = fill(&self.schema, &mut self.columns, self.rows);
        for (column, field) in self.columns.iter_mut().zip(self.schema.fields()) {
            if column.len() > self.rows {
                continue;
            }
            if result.is_err() || !field.is_nullable() {
                column.push_placeholder();
                result = result.and_then(|()| Err(RowFault::null(field.name())));
            } else {
                column.push_null();
            }
        }
        if result.is_err() {
            self.rejected.push(self.rows);
        }
        self.rows += 1;
        result
    }

    /// Takes the good rows out. None: there are none.
    ///
    /// # Errors
    /// Arrow's, which would be a defect.
    pub(crate) fn take(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        let rejected = std::mem::take(&mut self.rejected);
        let arrays = self
            .columns
            .iter_mut()
            .zip(self.schema.fields())
            .map(|(column, field)| column.take(field.data_type()))
            .collect::<Result<Vec<_>, _>>()?;
        if rows == rejected.len() {
            return Ok(None);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        if rejected.is_empty() {
            return Ok(Some(batch));
        }
        without_rows(&batch, rejected.into_iter()).map(Some)
    }
}
