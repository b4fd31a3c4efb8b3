//! What the records of an ingest log hold: a snapshot, or the rows of one request.
//!
//! ```text
//! kind 1, snapshot  header: SnapshotHeader | section 1: Known
//! kind 2, rows      header: RowsHeader     | section 1: packed rows
//! ```
//!
//! Headers and `Known` are postcard. Fields are only ever added in a record of a new kind.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::dedup::Dedup;
use super::error::IngestError;
use crate::log::{Content, NewRecord, NewSection, Record};

pub(super) const SNAPSHOT: u8 = 1;
pub(super) const ROWS: u8 = 2;

/// Name of the one section of both kinds.
const CONTENT: u8 = 1;

/// Begins a segment, and stands wherever the schema changes.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct SnapshotHeader {
    /// Number of the next row.
    pub(super) next_row: u64,
    /// Schema of the rows behind it, as DDL.
    pub(super) schema: String,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct RowsHeader {
    /// Number of its first row.
    pub(super) first_row: u64,
    pub(super) rows: u64,
    /// When it was taken, in milliseconds since the epoch.
    pub(super) at_ms: i64,
    pub(super) dedup: Dedup,
    /// XXH3-128 of the packed rows.
    pub(super) digest: u128,
}

pub(super) fn record<'a>(kind: u8, header: &'a [u8], content: &'a [u8]) -> NewRecord<'a> {
    NewRecord { kind, header, sections: vec![NewSection { name: CONTENT, content: Content::Bytes(content) }] }
}

pub(super) fn content(record: Record) -> Result<Vec<u8>, IngestError> {
    match <[_; 1]>::try_from(record.sections) {
        Ok([section]) if section.name == CONTENT => Ok(section.bytes),
        _ => Err(corrupt("a record has other parts than it should")),
    }
}

pub(super) fn encode(value: &impl Serialize) -> Result<Vec<u8>, IngestError> {
    postcard::to_stdvec(value).map_err(|error| corrupt(format!("a record cannot be encoded: {error}")))
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, IngestError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(corrupt("a record has bytes behind its end")),
        Err(error) => Err(corrupt(format!("a record cannot be decoded: {error}"))),
    }
}

pub(super) fn corrupt(defect: impl Into<String>) -> IngestError {
    IngestError::Corrupt { defect: defect.into() }
}
