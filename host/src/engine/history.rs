//! The retained past of a query, as its log tells it.

use super::checkpoint::Checkpoint;
use super::commit::{Commit, CommitHeader, Fact, SinkCommit, SinkRole, StagedAt};
use super::error::QueryError;
use super::head::Head;
use super::settings::WatermarkSettings;
use crate::log::{LogReader, LogView, QueryLog, RecordRef};

/// A retained batch.
#[derive(Debug, Clone)]
pub struct Retained {
    /// Its id.
    pub batch_id: u64,
    /// Where its record stands.
    pub record: RecordRef,
    /// What it gave to sinks.
    sinks: Vec<SinkCommit>,
    /// Staged files that its record names.
    pub staged: Vec<String>,
    /// Identities of the processors that it ran.
    pub processors: Vec<String>,
}

/// The log, with what it says.
#[derive(Debug)]
pub struct History {
    reader: LogReader,
    /// Where the query stands.
    pub head: Head,
    /// Retained batches, oldest first.
    pub batches: Vec<Retained>,
    /// The last one.
    pub last: Option<CommitHeader>,
}

impl History {
    /// Opens the log for writing, repairing its tail, and reads it.
    ///
    /// # Errors
    /// `LOG_CORRUPT`, `LOG_VERSION_UNSUPPORTED`, a failing disk.
    pub fn open(
        checkpoint: &Checkpoint,
        watermark: Option<&WatermarkSettings>,
    ) -> Result<(QueryLog, Self), QueryError> {
        let (log, records) = QueryLog::open(checkpoint.disk(), &checkpoint.log_dir(), &checkpoint.metadata().query_id)?;
        let history = Self::read(log.reader(), records, watermark)?;
        Ok((log, history))
    }

    /// Reads the log of a stopped query, changing nothing.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn view(checkpoint: &Checkpoint, watermark: Option<&WatermarkSettings>) -> Result<Self, QueryError> {
        let view = LogView::open(checkpoint.disk(), &checkpoint.log_dir(), &checkpoint.metadata().query_id)?;
        Self::read(view.reader, view.records, watermark)
    }

    fn read(
        reader: LogReader,
        records: Vec<RecordRef>,
        watermark: Option<&WatermarkSettings>,
    ) -> Result<Self, QueryError> {
        let mut history = Self { reader, head: Head::new(watermark), batches: Vec::new(), last: None };
        for record in records {
            match Fact::from_header(record.kind, &history.reader.read_header(&record)?)? {
                Fact::Watermark(left_out) => history.head.leave_out(left_out, watermark),
                Fact::Commit(header) => {
                    history.head.commit(&header, watermark);
                    history.batches.push(Retained::new(&header, record));
                    history.last = Some(*header);
                }
            }
        }
        // What was read from a stream stands in the record's body, which only the last batch's is needed of.
        if let Some(last) = history.batches.last() {
            history.head.read_up_to(&Commit::read(&history.reader, &last.record)?.header);
        }
        Ok(history)
    }

    /// Staged files that retained batches name.
    pub fn staged(&self) -> Vec<String> {
        self.batches.iter().flat_map(|batch| batch.staged.iter().cloned()).collect()
    }

    /// The retained batches after `batch`, read one by one.
    pub fn commits_after(&self, batch: Option<u64>) -> impl Iterator<Item = Result<Commit, QueryError>> + '_ {
        self.retained_after(batch).map(|retained| Commit::read(&self.reader, &retained.record))
    }

    /// The headers of the retained batches after `batch`, read one by one. Rows that were read from a stream stand in the
    /// whole record only.
    pub fn headers_after(&self, batch: Option<u64>) -> impl Iterator<Item = Result<CommitHeader, QueryError>> + '_ {
        self.retained_after(batch).map(|retained| {
            match Fact::from_header(retained.record.kind, &self.reader.read_header(&retained.record)?)? {
                Fact::Commit(header) => Ok(*header),
                Fact::Watermark(_) => {
                    Err(QueryError::newer_log("a record of another kind where a batch stood".to_owned()))
                }
            }
        })
    }

    fn retained_after(&self, batch: Option<u64>) -> impl Iterator<Item = &Retained> {
        self.batches.iter().filter(move |retained| batch.is_none_or(|batch| retained.batch_id > batch))
    }

    /// The retained batches after `batch` that gave rows to this sink, read one by one.
    pub fn commits_for<'a>(
        &'a self,
        role: SinkRole,
        sink: &'a str,
        batch: Option<u64>,
    ) -> impl Iterator<Item = Result<Commit, QueryError>> + 'a {
        let gave_rows = move |retained: &&Retained| {
            retained.sink(role).is_some_and(|part| part.sink == sink && part.staged != StagedAt::Nowhere)
        };
        self.retained_after(batch).filter(gave_rows).map(|retained| Commit::read(&self.reader, &retained.record))
    }

    /// Digest of what a retained batch gave to a sink.
    pub fn output_digest(&self, batch_id: u64, role: SinkRole) -> Option<&str> {
        let retained = self.batches.iter().find(|retained| retained.batch_id == batch_id)?;
        retained.sink(role).map(|part| part.digest.as_str())
    }

    /// Rows given to this sink by batches that the log no longer holds.
    pub fn rows_before_retention(&self, role: SinkRole, sink: &str) -> u64 {
        let mut parts = self.batches.iter().filter_map(|retained| retained.sink(role));
        let oldest = parts.find(|part| part.sink == sink);
        oldest.map_or(0, |part| part.rows_total.saturating_sub(part.rows))
    }
}

impl Retained {
    /// Notes what is needed of a batch while it is retained.
    pub fn new(header: &CommitHeader, record: RecordRef) -> Self {
        Self {
            batch_id: header.batch_id,
            record,
            sinks: header.sinks.clone(),
            staged: header.staged_files().map(str::to_owned).collect(),
            processors: header.steps.iter().map(|step| step.processor.clone()).collect(),
        }
    }

    fn sink(&self, role: SinkRole) -> Option<&SinkCommit> {
        self.sinks.iter().find(|part| part.role == role)
    }
}
