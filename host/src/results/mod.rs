//! What a hosted query has emitted, kept for consumers that read it over the network, each at its own pace.
//!
//! A folder holds one stream of entries: rows, and rollbacks between them. [`ResultsSink`] appends to it, in the process
//! that runs the query; [`ResultsReader`] reads it in another, page by page, and trims it. Each entry has a [`Position`];
//! positions only grow, and the entry at a position never changes.
//!
//! ```text
//! 00000000000000000001.results    segments, each with the schema of its rows
//! 00000000000000000002.results    the last one is written to, the others only read, and removed whole
//! ```
//!
//! Invariants:
//! - **An entry is shown once it is durable**, so what a consumer was given is never lost, and a position that it holds stays
//!   known. The sink writes a mark behind what it has synced, and the reader shows nothing behind the last mark.
//! - **The ledger stands in the stream itself**: the last batch in front of a mark is what has been published. A batch costs one
//!   sync.
//! - **The sink never removes rows**, and the reader never writes; it removes whole segments from the oldest on, never the last.
//! - **The reader trusts nothing that it reads**: the writer may have been broken into. It follows no link, opens only regular
//!   files, and every length has a bound.
//!
//! It knows nothing of processes, tenants or HTTP.

mod error;
mod folder;
mod format;
mod notes;
mod page;
mod position;
mod reader;
mod recovery;
mod segment;
mod sink;
mod untrusted;
mod writer;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;

pub use error::ResultsError;
pub use folder::open_folder;
pub use page::{Entry, Page, PageLimits, Rollback, RolledBackRows};
pub use position::Position;
pub use reader::{ResultsReader, Trimmed};
pub use sink::ResultsSink;

/// A segment of this size gets no further batch: small enough that trimming frees space soon, large enough that a long stream
/// has few files.
const SEGMENT_BYTES: u64 = 4 << 20;

/// The longest row, as JSON without its line end. As long as the longest row that is read.
const ROW_BYTES_MAX: usize = 16 << 20;

/// Name of a segment.
fn segment_name(number: u64) -> String {
    format!("{number:020}.results")
}

/// Number of the segment with this name. None: it is the name of something else.
fn segment_number(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".results")?;
    (digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit())).then(|| digits.parse().ok())?
}
