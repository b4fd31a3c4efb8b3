//! What a checkpoint keeps of files: the parts that a batch read, the files that are finished, the position in the one
//! in hand.

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::fingerprint::Fingerprint;
use crate::connect::error::ReadError;
use crate::engine::source::SourceRange;

/// Key prefix of the pairs that stand for finished files; the path follows.
const FINISHED_PREFIX: &[u8] = b"finished/";

/// Key prefix of the pairs that stand for files of a fixed list that are not finished; the path follows.
const LISTED_PREFIX: &[u8] = b"listed/";

/// Key of the pair that holds the position in the file in hand.
pub(super) const POSITION_KEY: &[u8] = b"position";

/// The range of a slice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct FilesRange {
    pub(super) files: Vec<FilePart>,
}

/// The rows of one file in a slice.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct FilePart {
    /// Relative to the root of the source.
    pub(super) path: String,
    pub(super) fingerprint: Fingerprint,
    /// Where the first row begins.
    pub(super) first: Place,
    /// Where the next row would begin.
    pub(super) end: Place,
    /// Whether that is the end of the file.
    pub(super) finished: bool,
}

/// A row boundary in a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// Rows before it: in text those of the file, blank ones included and a header not.
    pub(super) row: u64,
    /// Bytes before it, decompressed; of a Parquet file always 0.
    pub(super) byte: u64,
}

/// A position in a file that is not finished.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Position {
    pub(super) path: String,
    pub(super) fingerprint: Fingerprint,
    pub(super) place: Place,
}

/// A file of which every row is committed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Finished {
    pub(super) fingerprint: Fingerprint,
    pub(super) rows: u64,
}

impl FilesRange {
    pub(super) fn of(range: &SourceRange, place: &str) -> Result<Self, ReadError> {
        serde_json::from_value(range.at.clone()).map_err(|error| ReadError::position(place, error))
    }
}

/// Key of the pair for a finished file.
pub(super) fn finished_key(path: &str) -> Vec<u8> {
    [FINISHED_PREFIX, path.as_bytes()].concat()
}

/// Key of the pair for a file of a fixed list.
pub(super) fn listed_key(path: &str) -> Vec<u8> {
    [LISTED_PREFIX, path.as_bytes()].concat()
}

/// One pair of the bookkeeping.
pub(super) enum Kept {
    Finished(String, Finished),
    Listed(String, Fingerprint),
    Position(Position),
}

impl Kept {
    pub(super) fn of(key: &[u8], value: &[u8], place: &str) -> Result<Self, ReadError> {
        if key == POSITION_KEY {
            return Ok(Self::Position(parse(value, place)?));
        }
        let path_behind = |prefix| key.strip_prefix(prefix).and_then(|path| str::from_utf8(path).ok());
        if let Some(path) = path_behind(FINISHED_PREFIX) {
            return Ok(Self::Finished(path.to_owned(), parse(value, place)?));
        }
        if let Some(path) = path_behind(LISTED_PREFIX) {
            return Ok(Self::Listed(path.to_owned(), parse(value, place)?));
        }
        Err(ReadError::position(place, format!("there is a pair {:?}", String::from_utf8_lossy(key))))
    }
}

/// The value of a pair, or the words of a range.
pub(super) fn to_json<T: Serialize>(value: &T, place: &str) -> Result<serde_json::Value, ReadError> {
    serde_json::to_value(value).map_err(|error| ReadError::defect(place, error))
}

fn parse<T: DeserializeOwned>(value: &[u8], place: &str) -> Result<T, ReadError> {
    serde_json::from_slice(value).map_err(|error| ReadError::position(place, error))
}
