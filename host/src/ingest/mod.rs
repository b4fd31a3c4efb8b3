//! The rows that clients have handed over for a query: written by the server, read by the worker that runs the query.
//!
//! Its one job is to keep its word: rows whose [`IngestLog::append`] returned are read by the query in the same order after
//! any crash, whole and once, however often a client sends them. It is a [`crate::log`] of its own, so how bytes become
//! durable, what is cut and what is damage stands there.
//!
//! ```text
//! bytes ──parse──▶ Rows ──append──▶ duplicate? full? ──▶ one record, one sync for all who wait ──▶ Accepted
//!                                                               │
//!                                     IngestSource ◀── rows before DurableEnd
//! ```
//!
//! Invariants:
//! - Rows and the entry that tells them from a repetition are one record.
//! - Rows are numbered from 0, without gaps; a number is never given again.
//! - Every segment begins with a snapshot: the schema of the rows behind it and what is known of earlier requests. So
//!   whole segments can go once their rows are consumed.
//! - A reader reads no row that is not durable.
//!
//! It knows nothing of HTTP, tenants or processes.

mod backlog;
mod block;
mod dedup;
mod durable_end;
mod error;
mod format;
mod ingest_log;
mod parse;
mod source;
mod writer;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
#[cfg(test)]
mod tests;

pub use dedup::Dedup;
pub use durable_end::DurableEnd;
pub use error::{IngestError, ParseError};
pub use ingest_log::{Accepted, IngestLog, IngestSettings};
pub use parse::{BodyFormat, BodyLimits, Rows, parse};
pub use source::{IngestSource, rows_of};
