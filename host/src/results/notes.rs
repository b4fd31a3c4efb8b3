//! What stands in the frames that are not rows, as JSON.
//!
//! A segment begins with everything that is needed of those before it, as they may be gone.

use serde::{Deserialize, Serialize};

use super::position::Position;
use crate::engine::sink::Ledger;

/// The payload of a segment's first frame.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Begin {
    pub(super) query_id: String,
    /// Of the rows in this segment, as DDL.
    pub(super) schema: String,
    /// Where the segment before this one ends; what may stand behind is not part of the stream.
    pub(super) previous_end: u64,
    /// What came before this segment.
    pub(super) so_far: SoFar,
}

/// How far the stream has come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SoFar {
    /// Of the query: that of the last rollback, or of the last batch if that is later.
    pub(super) generation: u32,
    /// The last batch that was published and not taken back.
    pub(super) published: Option<Ledger>,
    /// Position of the last entry.
    pub(super) end: Option<Position>,
    /// Entries since the beginning.
    pub(super) entries: u64,
}

impl SoFar {
    /// Goes behind a batch of `end.index` rows.
    pub(super) fn batch(&mut self, query_id: &str, end: Position, digest: String) {
        let Position { generation, batch, index: rows } = end;
        self.generation = generation;
        self.published = Some(Ledger { query_id: query_id.to_owned(), generation, batch_id: batch, digest });
        self.end = Some(Position { index: rows.saturating_sub(1), ..end });
        self.entries = self.entries.saturating_add(rows);
    }

    /// Goes behind a rollback.
    pub(super) fn rollback(&mut self, at: Position, record: &RollbackRecord) {
        self.generation = at.generation;
        self.published.clone_from(&record.published);
        self.end = Some(at);
        self.entries = self.entries.saturating_add(1);
    }
}

/// The payload of a rollback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RollbackRecord {
    /// Whether rows of batches after `published` are taken back.
    pub(super) withdraws: bool,
    /// The ledger afterwards.
    pub(super) published: Option<Ledger>,
}
