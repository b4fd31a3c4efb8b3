//! What a consumer is given.

use super::position::Position;

/// Some entries of the stream, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Schema of the rows, as DDL. Empty: nothing was ever written.
    pub schema: String,
    /// The entries; none if there are none yet.
    pub entries: Vec<Entry>,
    /// Where the next page goes on: the position of the last entry that was read. None: still at the beginning.
    pub next: Option<Position>,
    /// Whether nothing more is there for now.
    pub end_reached: bool,
}

/// One entry of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A row that the query emitted.
    Row {
        /// Where it stands.
        position: Position,
        /// The row as a JSON object, in one line.
        json: String,
    },
    /// The query went back to an earlier batch.
    Rollback(Rollback),
}

impl Entry {
    /// Where it stands.
    pub fn position(&self) -> Position {
        match self {
            Self::Row { position, .. } | Self::Rollback(Rollback { position, .. }) => *position,
        }
    }
}

/// The query went back to an earlier batch; what follows is emitted anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rollback {
    /// Where it stands; its generation is the one that begins.
    pub position: Position,
    /// What becomes of rows that came earlier.
    pub rows: RolledBackRows,
}

/// What becomes of rows that came before a rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolledBackRows {
    /// They count as before.
    Kept,
    /// Those of later batches are taken back: a consumer undoes what it made of them.
    Withdrawn {
        /// The last batch whose rows still count. None: no row does.
        after: Option<u64>,
    },
}

/// How much one page may hold. It holds at least one entry, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageLimits {
    /// Entries.
    pub rows_max: usize,
    /// Bytes of JSON.
    pub bytes_max: usize,
}
