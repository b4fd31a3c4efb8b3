//! Rows on their way to the workers: late ones dropped, the rest grouped by key, in the one order of keys.
//!
//! Key order is (hash, key row). Key groups are ranges of the hash, so a worker's share is one contiguous run.

use std::cmp::Ordering;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{Array, RecordBatch};

use super::error::QueryError;
use super::operator::{Group, GroupedRows, RowRef};
use super::watermark::is_late;
use crate::record::{KeyEncoder, RowLayout, Schema, cast_batch, key_group};

/// What of the input a processor gets, and by what it is grouped.
#[derive(Debug, Clone)]
pub struct Routing {
    /// The grouping key as wanted.
    pub key: RowLayout,
    /// The columns that rows shall carry.
    pub columns: Schema,
    /// Event-time column, where rows can be late or move the watermark.
    pub event_time: Option<String>,
    /// Key groups of the checkpoint.
    pub key_groups: u16,
}

/// Which rows are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LateRows {
    /// None.
    Keep,
    /// Those with an event time at or before this watermark, in milliseconds.
    DropUpTo(i64),
}

/// The rows of a batch, sorted by key.
#[derive(Debug, Default)]
pub struct Routed {
    batches: Vec<RecordBatch>,
    rows: Vec<RowRef>,
    keys: Vec<u8>,
    /// Where each row's key stands in `keys`.
    spans: Vec<Range<usize>>,
    /// Row numbers with their hashes, in key order; a key's rows in order of the input.
    order: Vec<(u64, u32)>,
    /// Rows dropped because they came too late.
    pub late: u64,
    /// Latest event time among all rows, late ones included, in microseconds.
    pub event_time_max_us: Option<i64>,
}

impl Routing {
    /// Routes the rows of a batch.
    ///
    /// # Errors
    /// Columns that are missing or do not widen; more than 4 G rows.
    pub fn route(&self, input: &[RecordBatch], late: LateRows) -> Result<Routed, QueryError> {
        let mut routed = Routed::default();
        for batch in input {
            self.add(&mut routed, batch, late)?;
        }
        routed.sort();
        Ok(routed)
    }

    fn add(&self, routed: &mut Routed, input: &RecordBatch, late: LateRows) -> Result<(), QueryError> {
        let keys = cast_batch(input, self.key.schema()).map_err(columns_unfit)?;
        let encoder = KeyEncoder::new(&self.key, &keys).map_err(columns_unfit)?;
        let event_times = self.event_time.as_ref().and_then(|name| {
            let (_, column) = input.schema_ref().column_with_name(name).map(|(i, _)| (i, input.column(i)))?;
            column.as_primitive_opt::<TimestampMicrosecondType>()
        });
        let batch_index = u32::try_from(routed.batches.len()).map_err(|_| too_many_rows())?;
        for row in 0..input.num_rows() {
            let event_time = event_times.filter(|times| times.is_valid(row)).map(|times| times.value(row));
            routed.event_time_max_us = routed.event_time_max_us.max(event_time);
            if let (LateRows::DropUpTo(watermark_ms), Some(at)) = (late, event_time)
                && is_late(at, watermark_ms)
            {
                routed.late += 1;
                continue;
            }
            let start = routed.keys.len();
            let hash = encoder.encode(row, &mut routed.keys);
            let number = u32::try_from(routed.rows.len()).map_err(|_| too_many_rows())?;
            routed.rows.push(RowRef { batch: batch_index, row: u32::try_from(row).map_err(|_| too_many_rows())? });
            routed.spans.push(start..routed.keys.len());
            routed.order.push((hash, number));
        }
        routed.batches.push(cast_batch(input, &self.columns).map_err(columns_unfit)?);
        Ok(())
    }
}

impl Routed {
    /// Rows that are left.
    pub fn rows(&self) -> u64 {
        self.order.len() as u64
    }

    /// Sorts by hash, then puts keys that share a hash apart.
    fn sort(&mut self) {
        self.order.sort_unstable();
        let keys = |number: u32| self.spans.get(number as usize).and_then(|span| self.keys.get(span.clone())).unwrap_or(&[]);
        let mut order = std::mem::take(&mut self.order);
        for run in order.chunk_by_mut(|a, b| a.0 == b.0) {
            let Some(&(_, first)) = run.first() else { continue };
            if run.iter().any(|&(_, number)| keys(number) != keys(first)) {
                run.sort_by(|a, b| keys(a.1).cmp(keys(b.1)).then(a.1.cmp(&b.1)));
            }
        }
        self.order = order;
    }

    /// The rows of a range of key groups, grouped.
    pub fn share(&self, key_groups: &Range<u16>, of: u16) -> GroupedRows {
        let from = self.order.partition_point(|&(hash, _)| key_group(hash, of).cmp(&key_groups.start) == Ordering::Less);
        let to = self.order.partition_point(|&(hash, _)| key_group(hash, of).cmp(&key_groups.end) == Ordering::Less);
        let mut share = GroupedRows { batches: self.batches.clone(), ..GroupedRows::default() };
        let mut last: Option<(u64, &[u8])> = None;
        for &(hash, number) in self.order.get(from..to).unwrap_or(&[]) {
            let number = number as usize;
            let (Some(&row), Some(key)) =
                (self.rows.get(number), self.spans.get(number).and_then(|span| self.keys.get(span.clone())))
            else {
                continue;
            };
            let at = share.rows.len();
            share.rows.push(row);
            match share.groups.last_mut() {
                Some(group) if last == Some((hash, key)) => group.rows.end = at + 1,
                _ => {
                    let start = share.keys.len();
                    share.keys.extend_from_slice(key);
                    share.groups.push(Group { hash, key: start..share.keys.len(), rows: at..at + 1 });
                    last = Some((hash, key));
                }
            }
        }
        share
    }
}

fn columns_unfit(error: impl std::fmt::Display) -> QueryError {
    QueryError::settings("INPUT_SCHEMA_MISMATCH", error.to_string())
}

fn too_many_rows() -> QueryError {
    QueryError::settings("BATCH_TOO_LARGE", "a batch cannot hold more than 4,294,967,295 rows; lower limits.rows_per_batch")
}
