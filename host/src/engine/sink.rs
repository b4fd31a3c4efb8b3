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

/// A rollback that has happened, as a sink is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withdrawal {
    /// The query that owns the sink.
    pub query_id: String,
    /// The generation that begins with the rollback.
    pub generation: u32,
    /// The last batch before it.
    pub last_batch: u64,
    /// What the sink takes back. None: everything stays.
    pub undo: Option<Undo>,
}

/// What a sink takes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undo {
    /// Batches with rows, in order, as its ledger knew them.
    pub batches: Vec<Ledger>,
    /// What its ledger says afterwards.
    pub published: Option<Ledger>,
}

/// What is to be seen of published batches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// Where their rows are, e.g. files.
    pub places: Vec<String>,
    /// Where rows were that are gone, as consumers may take them.
    pub missing: Vec<String>,
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

    /// What is to be seen of these batches, which gave rows to it; nothing is changed, and the sink need not be open. None:
    /// it cannot take anything back.
    ///
    /// # Errors
    /// A sink of another query, one that cannot be read.
    fn trace(&self, _query_id: &str, _batches: &[u64]) -> Result<Option<Trace>, SinkError> {
        Ok(None)
    }

    /// Follows a rollback, durably, and notes its generation in the ledger; does nothing if that is there already. The sink
    /// need not be open.
    ///
    /// # Errors
    /// `SINK_DIVERGED` when the ledger speaks of other batches than the log; `SINK_WRITE_FAILED`.
    fn withdraw(&mut self, _withdrawal: &Withdrawal) -> Result<(), SinkError> {
        Ok(())
    }
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
