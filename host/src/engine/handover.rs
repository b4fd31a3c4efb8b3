//! Rows on their way from one step of a batch to the next: what the workers of a step emitted, in published order, is
//! the input of the next.

use std::collections::BTreeSet;

use arrow_array::{RecordBatch, UInt64Array};

use super::error::QueryError;
use super::output::Output;
use super::source::RejectedRow;
use super::stage::OutputReader;
use crate::record::{BadRow, CastError, RowEncoder, RowLayout, Schema, cast_batch, row_to_json};

/// The rows of one step for the next.
#[derive(Debug, Default)]
pub(super) struct HandedOver {
    /// In published order.
    pub(super) batches: Vec<RecordBatch>,
    /// Those with a NULL where the next step takes none.
    pub(super) rejected: Vec<RejectedRow>,
    /// Rows emitted, rejected ones included.
    pub(super) rows: u64,
    /// XXH3-128 of the packed rows, in hex.
    pub(super) digest: String,
}

/// Takes the rows that a step emitted. `required` are columns of its output in which the next step takes no NULL.
///
/// # Errors
/// A spilled output that cannot be read.
pub(super) fn hand_over(
    step: &str,
    layout: &RowLayout,
    required: &Schema,
    outputs: Vec<Output>,
) -> Result<HandedOver, QueryError> {
    let mut handed = HandedOver { rows: outputs.iter().map(Output::rows).sum(), ..HandedOver::default() };
    let mut reader = OutputReader::new(layout, outputs)?;
    let mut first_row = 1;
    for batch in &mut reader {
        let batch = batch.map_err(|source| QueryError::Sink { sink_name: format!("step {step}"), source })?;
        let rows = batch.num_rows() as u64;
        match cast_batch(&batch, required) {
            Ok(_) => handed.batches.push(batch),
            Err(CastError::BadRows(bad)) => {
                handed.rejected.extend(rejected(step, layout, &batch, &bad, first_row)?);
                handed.batches.push(without(&batch, &bad)?);
            }
            Err(error) => return Err(defect(&error)),
        }
        first_row += rows;
    }
    handed.digest = reader.digest();
    Ok(handed)
}

fn rejected(
    step: &str,
    layout: &RowLayout,
    batch: &RecordBatch,
    bad: &[BadRow],
    first_row: u64,
) -> Result<Vec<RejectedRow>, QueryError> {
    let encoder = RowEncoder::new(layout, batch).map_err(|error| defect(&error))?;
    let mut packed = Vec::new();
    let row = |bad: &BadRow| {
        packed.clear();
        encoder.encode(bad.row, &mut packed);
        let text = row_to_json(layout, &packed).map_err(|fault| defect(&fault))?.to_string();
        Ok(RejectedRow {
            origin: format!("step {step}"),
            row: first_row + bad.row as u64,
            code: "NULL_IN_NOT_NULL_COLUMN".to_owned(),
            reason: format!("column `{}`: {}", bad.column, bad.problem),
            text,
        })
    };
    bad.iter().map(row).collect()
}

fn without(batch: &RecordBatch, bad: &[BadRow]) -> Result<RecordBatch, QueryError> {
    let bad: BTreeSet<usize> = bad.iter().map(|bad| bad.row).collect();
    let good = (0..batch.num_rows()).filter(|row| !bad.contains(row)).map(|row| row as u64);
    let good = UInt64Array::from_iter_values(good);
    arrow_select::take::take_record_batch(batch, &good).map_err(|error| defect(&error))
}

fn defect(error: &dyn std::fmt::Display) -> QueryError {
    QueryError::settings("HOST_DEFECT", format!("rows between two steps: {error}"))
}
