//! Where emitted rows go.
//!
//! A sink keeps a ledger of what it has published (query, generation, batch, digest) and advances it only after the
//! output is durable. Recovery asks the ledger and publishes every committed batch above it again, from the staged
//! bytes, without running a processor.

use std::path::PathBuf;

use arrow_array::RecordBatch;

use crate::record::Schema;

/// What a sink has published, as far as it knows.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Ledger {
    /// The query that owns the sink.
    pub query_id: String,
    /// Generation of the last published batch.
    pub generation: u32,
    /// The last published batch.
    pub batch_id: u64,
    /// XXH3-128 of its packed output, in hex.
    pub digest: String,
}

/// How far a sink has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// The sink keeps no ledger (stdout): the last batch may be seen twice.
    Unknown,
    /// Nothing yet.
    Nothing,
    /// Everything up to this batch.
    UpTo(Ledger),
}

/// The final bytes of one batch for one sink, durable in the checkpoint before the batch commits.
#[derive(Debug, Clone, PartialEq)]
pub enum Staged {
    /// In the commit record itself.
    Inline(Vec<u8>),
    /// A file of the checkpoint's staging folder.
    File(PathBuf),
}

/// One batch to publish.
#[derive(Debug)]
pub struct Publication<'a> {
    /// What the ledger says once it is published.
    pub entry: &'a Ledger,
    /// The bytes that [`Sink::encode`] made. A batch that emitted nothing is not published.
    pub staged: &'a Staged,
}

/// Takes the output of committed batches, each exactly once as far as it can.
pub trait Sink: Send {
    /// What this sink is, for people and for the query's identity: kind and place.
    fn describe(&self) -> String;

    /// Takes the sink for this query, with the schema of the rows to come.
    ///
    /// # Errors
    /// `SINK_OF_ANOTHER_QUERY`, or a place that cannot be written.
    fn open(&mut self, query_id: &str, schema: &Schema) -> Result<(), SinkError>;

    /// What has been published.
    ///
    /// # Errors
    /// A ledger that cannot be read.
    fn published(&self) -> Result<Published, SinkError>;

    /// Turns the rows of one batch into the bytes that will be published, the same for the same rows; at least one row.
    ///
    /// # Errors
    /// Rows that the format cannot hold, or a failing writer.
    fn encode(
        &self,
        rows: &mut dyn Iterator<Item = Result<RecordBatch, SinkError>>,
        out: &mut dyn std::io::Write,
    ) -> Result<(), SinkError>;

    /// Makes a committed batch visible and durable, then advances the ledger. Called again for the same batch after a
    /// crash: what is already there with the same bytes counts as done.
    ///
    /// # Errors
    /// `SINK_DIVERGED` when other bytes stand there, or a ledger is ahead of the log; `SINK_WRITE_FAILED`.
    fn publish(&mut self, publication: &Publication<'_>) -> Result<(), SinkError>;
}

/// Why output could not be taken.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SinkError {
    /// Stable code, e.g. `SINK_DIVERGED`.
    pub code: &'static str,
    /// What happened, where, and what to do.
    pub message: String,
    /// The failure below.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}
