//! Up to where a log is durable, as its writer tells its readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The row behind the last one that is durable. Clones are one; it only grows.
#[derive(Debug, Clone, Default)]
pub struct DurableEnd(Arc<AtomicU64>);

impl DurableEnd {
    /// Every row before this one is durable.
    pub fn at(row: u64) -> Self {
        Self(Arc::new(AtomicU64::new(row)))
    }

    /// Tells that every row before this one is durable. An earlier one than before changes nothing.
    pub fn set(&self, row: u64) {
        self.0.fetch_max(row, Ordering::Release);
    }

    /// The row behind the last one that is durable.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
