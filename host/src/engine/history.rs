//! The retained past of a query, as its log tells it.

use super::checkpoint::Checkpoint;
use super::commit::{Commit, CommitHeader, Fact, SinkCommit, SinkRole, StagedAt};
use super::error::QueryError;
use super::head::Head;
use super::rollback::Rollback;
use crate::log::{LogReader, LogView, QueryLog, RecordRef};

/// A retained batch.
#[derive(Debug, Clone)]
pub struct Retained {
    /// Its id.
    pub batch_id: u64,
    /// The generation that it was committed in.
    pub generation: u32,
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
    records: Vec<RecordRef>,
    /// Up to this batch another query ran, of whose checkpoint this is a copy. Sinks were given those batches by that.
    pub forked_after: Option<u64>,
    /// Where the query stands.
    pub head: Head,
    /// Retained batches, oldest first, those included that a rollback took back.
    pub batches: Vec<Retained>,
    /// Retained rollbacks, oldest first.
    pub rollbacks: Vec<Rollback>,
    /// The batch that the query stands after: the last one, or the one that it was rolled back to.
    pub last: Option<CommitHeader>,
}

/// A point of a query's past: the state after a batch, as that generation saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The generation.
    pub generation: u32,
    /// The batch; None: before the first.
    pub batch_id: Option<u64>,
}

impl History {
    /// Opens the log for writing, repairing its tail, and reads it.
    ///
    /// # Errors
    /// `LOG_CORRUPT`, `LOG_VERSION_UNSUPPORTED`, a failing disk.
    pub fn open(checkpoint: &Checkpoint) -> Result<(QueryLog, Self), QueryError> {
        let (log, records) = QueryLog::open(checkpoint.disk(), &checkpoint.log_dir(), checkpoint.metadata().log_id())?;
        let history = Self::read(checkpoint, log.reader(), records)?;
        Ok((log, history))
    }

    /// Reads the log of a stopped query, changing nothing.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn view(checkpoint: &Checkpoint) -> Result<Self, QueryError> {
        let view = LogView::open(checkpoint.disk(), &checkpoint.log_dir(), checkpoint.metadata().log_id())?;
        Self::read(checkpoint, view.reader, view.records)
    }

    fn read(checkpoint: &Checkpoint, reader: LogReader, records: Vec<RecordRef>) -> Result<Self, QueryError> {
        let (batches, rollbacks) = (Vec::new(), Vec::new());
        let (head, forked_after) = (Head::new(), checkpoint.metadata().forked_after());
        let mut history = Self { reader, records, forked_after, head, batches, rollbacks, last: None };
        for record in history.records.clone() {
            match history.fact(&record)? {
                Fact::Watermark(left_out) => history.head.leave_out(left_out),
                Fact::Commit(header) => {
                    history.head.commit(&header);
                    history.batches.push(Retained::new(&header, record));
                    history.last = Some(*header);
                }
                Fact::Rollback(rollback) => {
                    history.head.roll_back(&rollback);
                    history.last = Some(rollback.batch.clone());
                    history.rollbacks.push(*rollback);
                }
            }
        }
        // What was read from a stream stands in the record's body, which only the last batch's is needed of.
        let in_record = |header: &CommitHeader| header.sources.iter().any(|source| source.in_record);
        if let Some(last) = history.batches.last().filter(|_| !history.ends_with_rollback())
            && history.last.as_ref().is_some_and(in_record)
        {
            history.head.read_up_to(&Commit::read(&history.reader, &last.record)?.header);
        }
        Ok(history)
    }

    fn fact(&self, record: &RecordRef) -> Result<Fact, QueryError> {
        Fact::from_header(record.kind, &self.reader.read_header(record)?)
    }

    /// Whether nothing has been committed since the last rollback.
    pub fn ends_with_rollback(&self) -> bool {
        self.rollbacks.last().is_some_and(|last| last.generation == self.head.generation)
            && self.batches.last().is_none_or(|batch| batch.generation < self.head.generation)
    }

    /// Where the query stands.
    pub fn now(&self) -> Moment {
        Moment { generation: self.head.generation, batch_id: self.head.last_batch }
    }

    /// The moment after a retained batch. None: it is not retained.
    pub fn after_batch(&self, batch_id: u64) -> Option<Moment> {
        let retained = self.batches.iter().find(|retained| retained.batch_id == batch_id)?;
        Some(Moment { generation: retained.generation, batch_id: Some(batch_id) })
    }

    /// Whether what happened up to `earlier` is part of what happened up to `later`: no rollback took any of it back.
    pub fn leads_to(&self, earlier: Moment, later: Moment) -> bool {
        let not_taken_back = self.rollbacks.iter().all(|rollback| {
            if rollback.generation == earlier.generation {
                // Before the first batch of a generation there is what the rollback made, and nothing else.
                earlier.batch_id >= Some(rollback.last_batch)
            } else {
                rollback.generation < earlier.generation
                    || rollback.generation > later.generation
                    || earlier.batch_id <= Some(rollback.to)
            }
        });
        earlier.generation <= later.generation && earlier.batch_id <= later.batch_id && not_taken_back
    }

    /// The query's head as it was after a batch that leads to where it stands.
    ///
    /// # Errors
    /// A log that cannot be read.
    pub fn head_after(&self, batch_id: u64) -> Result<(Head, Option<CommitHeader>), QueryError> {
        let mut head = Head::new();
        for record in &self.records {
            match self.fact(record)? {
                Fact::Watermark(left_out) => head.leave_out(left_out),
                Fact::Rollback(rollback) => head.roll_back(&rollback),
                Fact::Commit(header) => {
                    head.commit(&header);
                    if header.batch_id == batch_id {
                        return Ok((head, Some(*header)));
                    }
                }
            }
        }
        Ok((head, None))
    }

    /// Staged files that retained batches name.
    pub fn staged(&self) -> Vec<String> {
        self.batches.iter().flat_map(|batch| batch.staged.iter().cloned()).collect()
    }

    /// The retained batches after `batch` that lead to where the query stands, read one by one.
    pub fn commits_after(&self, batch: Option<u64>) -> impl Iterator<Item = Result<Commit, QueryError>> + '_ {
        self.commits_between(batch, self.now())
    }

    /// The retained batches after `batch` that lead to a moment, read one by one.
    pub fn commits_between(
        &self,
        batch: Option<u64>,
        moment: Moment,
    ) -> impl Iterator<Item = Result<Commit, QueryError>> + '_ {
        self.retained_between(batch, moment).map(|retained| Commit::read(&self.reader, &retained.record))
    }

    /// The headers of the retained batches after `batch`, read one by one. Rows that were read from a stream stand in the
    /// whole record only.
    pub fn headers_after(&self, batch: Option<u64>) -> impl Iterator<Item = Result<CommitHeader, QueryError>> + '_ {
        self.retained_between(batch, self.now()).map(|retained| self.header(retained))
    }

    /// A retained batch, whole.
    ///
    /// # Errors
    /// A log that cannot be read.
    pub fn commit(&self, retained: &Retained) -> Result<Commit, QueryError> {
        Commit::read(&self.reader, &retained.record)
    }

    /// The header of a retained batch.
    ///
    /// # Errors
    /// A log that cannot be read.
    pub fn header(&self, retained: &Retained) -> Result<CommitHeader, QueryError> {
        match self.fact(&retained.record)? {
            Fact::Commit(header) => Ok(*header),
            Fact::Watermark(_) | Fact::Rollback(_) => {
                Err(QueryError::newer_log("a record of another kind where a batch stood".to_owned()))
            }
        }
    }

    /// The retained batches after `batch` that lead to a moment.
    pub fn retained_between(&self, batch: Option<u64>, moment: Moment) -> impl Iterator<Item = &Retained> {
        self.batches.iter().filter(move |retained| {
            batch.is_none_or(|batch| retained.batch_id > batch) && self.leads_to(retained.moment(), moment)
        })
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
        self.retained_between(batch, self.now())
            .filter(gave_rows)
            .map(|retained| Commit::read(&self.reader, &retained.record))
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
            generation: header.generation,
            record,
            sinks: header.sinks.clone(),
            staged: header.staged_files().map(str::to_owned).collect(),
            processors: header.steps.iter().map(|step| step.processor.clone()).collect(),
        }
    }

    /// The moment after it.
    pub fn moment(&self) -> Moment {
        Moment { generation: self.generation, batch_id: Some(self.batch_id) }
    }

    /// What it gave to each sink.
    pub fn sinks(&self) -> &[SinkCommit] {
        &self.sinks
    }

    fn sink(&self, role: SinkRole) -> Option<&SinkCommit> {
        self.sinks.iter().find(|part| part.role == role)
    }
}
