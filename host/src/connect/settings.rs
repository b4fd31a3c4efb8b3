//! What a person writes down about a source or a sink: the tables `[source]`, `[initial_state]` and `[sink]` of a query
//! file, or the flags of the same names.

use std::path::PathBuf;

use serde::Deserialize;

use super::format::Format;
use crate::record::Schema;

/// `[source]`: exactly one of `path` and `stdin`.
///
/// ```toml
/// [source]
/// path = "flights.csv.gz"
/// schema = "tailnum STRING, time_hour TIMESTAMP, dep_delay INT"
/// null_value = "NA"
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSettings {
    /// A file, or a directory whose files are read as they come. `.gz` and `.zst` are decompressed.
    pub path: Option<PathBuf>,
    /// Reads standard input, as JSON Lines unless `format` says otherwise. Needs a `schema`.
    #[serde(default)]
    pub stdin: bool,
    /// `jsonl`, `csv` or `parquet`; else what the name of the (first) file says.
    pub format: Option<Format>,
    /// The columns in DDL, e.g. `user STRING NOT NULL, n BIGINT`; else seen in the first file.
    pub schema: Option<Schema>,
    /// CSV: whether the first row names the columns; true unless said otherwise. Without names, columns stand in the order
    /// of the schema.
    pub header: Option<bool>,
    /// CSV: what stands between fields; a comma unless said otherwise.
    pub delimiter: Option<char>,
    /// CSV: a field with this text and without quotes is NULL, as an empty one is.
    pub null_value: Option<String>,
    /// Standard input: after a restart it begins with the committed rows, which are checked and read over. Else it
    /// continues behind them.
    #[serde(default)]
    pub skip_committed: bool,
}

/// `[sink]`: exactly one of `path` and `stdout`.
///
/// ```toml
/// [sink]
/// path = "out"
/// format = "parquet"
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SinkSettings {
    /// A directory, made if it is missing, that gets one file per batch.
    pub path: Option<PathBuf>,
    /// Writes to standard output. After a crash the last batch may be written twice.
    #[serde(default)]
    pub stdout: bool,
    /// `jsonl`, which it is unless said otherwise, `csv` or `parquet` (not to standard output).
    pub format: Option<Format>,
    /// CSV: what stands between fields; a comma unless said otherwise.
    pub delimiter: Option<char>,
    /// CSV: what NULL is written as; nothing unless said otherwise.
    pub null_value: Option<String>,
}
