//! A copy of a checkpoint becomes a query of its own: same state, same past, another id. What it publishes goes to a sink of
//! its own; what was published before is its original's.

use std::path::Path;
use std::sync::Arc;

use super::checkpoint::Checkpoint;
use super::error::QueryError;
use super::history::History;
use crate::disk::Disk;

/// What a fork did.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Forked {
    /// The query that the checkpoint is a copy of.
    pub from: String,
    /// The id of its own.
    pub query_id: String,
    /// The last batch that both have.
    pub last_batch: Option<u64>,
}

/// Gives a checkpoint, which should be a copy of another, a query id of its own.
///
/// # Errors
/// `CHECKPOINT_NOT_FOUND`, `CHECKPOINT_IN_USE` while the query runs; a checkpoint that cannot be read or written.
pub fn fork(disk: Arc<dyn Disk>, path: &Path) -> Result<Forked, QueryError> {
    let mut checkpoint = Checkpoint::open_stopped(disk, path)?;
    let last_batch = History::view(&checkpoint)?.head.last_batch;
    let from = checkpoint.metadata().query_id.clone();
    checkpoint.fork(last_batch)?;
    Ok(Forked { from, query_id: checkpoint.metadata().query_id.clone(), last_batch })
}
