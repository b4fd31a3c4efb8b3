//! Snapshots of the state store, taken in the background, and what of the past may go once they stand.
//!
//! A snapshot is named after a batch that it certainly contains; the marker inside says exactly how far it goes. At
//! least two are kept, one of them at or before the oldest retained batch, with every log segment after the oldest.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::checkpoint::{Checkpoint, SnapshotName};
use super::commit::Commit;
use super::error::QueryError;
use super::faults;
use super::head::Head;
use super::settings::Retention;
use crate::log::{QueryLog, RecordRef};
use crate::state::RocksStore;

/// Takes snapshots of one store.
pub(super) struct Snapshots {
    store: Arc<RocksStore>,
    retention: Retention,
    /// Where the retained batches stand in the log, oldest first.
    batches: VecDeque<(u64, RecordRef)>,
    batches_since: u64,
    bytes_since: u64,
    running: Option<JoinHandle<Result<(), QueryError>>>,
}
