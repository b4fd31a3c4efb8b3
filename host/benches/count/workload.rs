//! The rows that are counted: made from numbers alone, so every run and every system sees the same.

use std::sync::Arc;

use anyhow::Result;
use arrow_array::{Array, Int64Array, RecordBatch, StringArray};
use tidemill_host::record::Schema;

/// Columns of the input.
pub const INPUT: &str = "key STRING, n BIGINT";

/// How many keys there are in all, and what a batch has of them.
#[derive(Debug, Clone, Copy)]
pub struct Workload {
    /// Keys with state.
    pub keys: u64,
    /// Keys in a batch.
    pub keys_per_batch: u64,
    /// Rows of each of them.
    pub rows_per_key: u64,
}

impl Workload {
    /// Rows in a batch.
    pub fn rows(&self) -> u64 {
        self.keys_per_batch * self.rows_per_key
    }

    /// The keys of batch `number`, each once, spread over all keys.
    pub fn keys_of(&self, number: u64) -> impl Iterator<Item = u64> + use<> {
        // Steps of the golden ratio visit every key before any comes again, since the step and the number of keys have
        // no factor in common: that is a power of ten, the step ends in 1.
        let Self { keys, keys_per_batch, .. } = *self;
        let step = (keys as f64 * 0.618_033_988) as u64 / 10 * 10 + 1;
        let begin = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % keys;
        (0..keys_per_batch).map(move |place| (begin + place * step) % keys)
    }

    /// The rows of batch `number`; those of a key are far apart.
    pub fn batch(&self, number: u64) -> Result<RecordBatch> {
        let keys: Vec<u64> = self.keys_of(number).collect();
        rows((0..self.rows_per_key).flat_map(|_| keys.iter().copied()))
    }
}

/// One row for each of these keys.
pub fn rows(keys: impl Iterator<Item = u64>) -> Result<RecordBatch> {
    let keys = StringArray::from_iter_values(keys.map(key));
    let ones = Int64Array::from(vec![1; keys.len()]);
    let schema = Schema::parse(INPUT)?.to_arrow();
    Ok(RecordBatch::try_new(schema, vec![Arc::new(keys), Arc::new(ones)])?)
}

/// The text of a key.
pub fn key(number: u64) -> String {
    format!("key-{number:08}")
}
