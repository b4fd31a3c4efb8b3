//! The commit record: a batch exists if and only if this record is durable in the query's log.
//!
//! It holds all that the batch depended on (so that it can be replayed) and all that it made (so that it can be
//! published and applied again without running the processor).

use std::ops::Range;

use super::error::QueryError;
use super::operator::{OutputMode, TimeMode, TimerValues};
use super::output::OutputLimits;
use super::rollback::{ROLLBACK_FORMAT, Rollback};
use super::settings::WatermarkPolicy;
use super::source::SourceRange;
use super::upgrade::Upgrade;
use super::watermark::SourceTime;
use crate::log::{Content, Durability, LogReader, NewRecord, NewSection, QueryLog, RecordRef, Section};
use crate::record::{GroupingKey, key_group};
use crate::state::{Changes, StateLimits};

/// Version of the header below. A newer one is refused.
pub const COMMIT_FORMAT: u32 = 2;

/// What a batch consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BatchKind {
    /// Rows of the initial state.
    Bootstrap,
    /// Input rows, then due timers.
    Input,
    /// Due timers or TTL only.
    Rowless,
}

/// How far the initial state of a step has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bootstrap {
    /// The step has none.
    None,
    /// More of it follows.
    Running,
    /// All of it has been read.
    Done,
}

/// Everything about a batch but its bytes.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct CommitHeader {
    /// [`COMMIT_FORMAT`].
    pub format: u32,
    /// Version of the host that wrote it.
    pub written_by: String,
    /// From 0, never used twice.
    pub batch_id: u64,
    /// Grows with every rollback.
    pub generation: u32,
    /// New with every start of the query.
    pub run_id: String,
    /// What the batch consists of.
    pub kind: BatchKind,
    /// The batch's clock.
    pub time: TimerValues,
    /// Rows with an event time at or before this were late.
    pub late_watermark_ms: i64,
    /// Where the event time of each source stands, this batch included.
    pub event_times: Vec<SourceTime>,
    /// How they make one watermark.
    pub watermark_policy: WatermarkPolicy,
    /// What was read.
    pub sources: Vec<SourceCommit>,
    /// What was published.
    pub sinks: Vec<SinkCommit>,
    /// What ran; one entry per step, in the order in which rows pass them.
    pub steps: Vec<StepCommit>,
    /// Key groups in the checkpoint.
    pub key_groups: u16,
    /// Whether all columns of the input were read, and not only those that the first step wants.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub whole_rows: bool,
}

impl CommitHeader {
    /// The latest event time seen so far, in microseconds.
    pub fn event_time_max_us(&self) -> Option<i64> {
        self.event_times.iter().filter_map(|time| time.event_time_max_us).max()
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, QueryError> {
        refuse_newer(bytes, COMMIT_FORMAT, "a commit record")?;
        serde_json::from_slice(bytes).map_err(QueryError::malformed_record)
    }

    /// Names of the staged files that the batch needs.
    pub fn staged_files(&self) -> impl Iterator<Item = &str> {
        self.sinks.iter().filter_map(|part| match &part.staged {
            StagedAt::File(name) => Some(name.as_str()),
            StagedAt::Nowhere | StagedAt::Record => None,
        })
    }

    /// What it gave to the sink of a role.
    pub fn sink(&self, role: SinkRole) -> Option<&SinkCommit> {
        self.sinks.iter().find(|part| part.role == role)
    }
}

/// What a batch took from one source.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SourceCommit {
    /// `input` or `initial-state`.
    pub role: SourceRole,
    /// Its name; that of an initial state is the name of its step.
    pub name: String,
    /// The source, for people.
    pub source: String,
    /// Where the rows stand.
    pub range: SourceRange,
    /// Rows read, rejected ones not counted.
    pub rows: u64,
    /// Rows that did not fit the schema.
    pub rejected: u64,
    /// Bytes read, decompressed.
    pub bytes: u64,
    /// Whether the rows themselves stand in the record, since they cannot be read again.
    pub in_record: bool,
}

/// What a source is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceRole {
    /// Rows to process.
    Input,
    /// State to begin with.
    InitialState,
}

/// What a batch gave to one sink.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SinkCommit {
    /// What the sink is for.
    pub role: SinkRole,
    /// The sink, for people; another one on restart is noticed.
    pub sink: String,
    /// Rows.
    pub rows: u64,
    /// Rows of this batch and of those before it, since this sink was taken.
    pub rows_total: u64,
    /// Where the final bytes are.
    pub staged: StagedAt,
    /// XXH3-128 of the packed rows, in hex.
    pub digest: String,
}

/// What a sink is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SinkRole {
    /// Emitted rows.
    Output,
    /// Malformed rows.
    Quarantine,
    /// Rows and timers at which a processor fails.
    DeadLetters,
}

/// Where the final bytes of a batch's output are.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StagedAt {
    /// There are none.
    Nowhere,
    /// In a section of the record.
    Record,
    /// In this file of the staging folder.
    File(String),
}

/// What one step ran and made.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct StepCommit {
    /// Unique in the query.
    pub name: String,
    /// How far its initial state has been read, this batch included.
    pub bootstrap: Bootstrap,
    /// Digest of the component, or the name of a native operator.
    pub processor: String,
    /// When timers and TTL moved.
    pub time_mode: TimeMode,
    /// What emitted rows mean.
    pub output_mode: OutputMode,
    /// Grouping key, as wanted, in DDL.
    pub key: String,
    /// Schema of the emitted rows, in DDL.
    pub output: String,
    /// The column of the emitted rows that holds their event time.
    pub output_event_time: Option<String>,
    /// The author's settings.
    pub parameters: Vec<(String, String)>,
    /// Bounds in force.
    pub output_limits: OutputLimits,
    /// Bounds in force.
    pub state_limits: StateLimits,
    /// Rows that its workers were given.
    pub rows_in: u64,
    /// Rows dropped because they came too late.
    pub late: u64,
    /// Rows emitted.
    pub rows_out: u64,
    /// Those of them that the next step does not take.
    pub rows_refused: u64,
    /// XXH3-128 of the packed emitted rows, in hex.
    pub output_digest: String,
    /// State rows over all variables after the batch.
    pub state_rows: u64,
    /// XXH3-128 over the workers' state changes in range order, in hex.
    pub state_digest: String,
    /// The workers that had something to do.
    pub workers: Vec<WorkerCommit>,
    /// Set in the first batch of another processor, or of one with other state variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Upgrade>,
    /// What it did not process, but became dead letters.
    #[serde(default, skip_serializing_if = "Skipped::is_empty")]
    pub skipped: Skipped,
}

/// What a step was not given, since its processor fails at it or the key is held.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Skipped {
    /// Numbers of rows among all rows of its input in the batch, from 0, ascending.
    pub rows: Vec<u64>,
    /// Timers; they are gone.
    pub timers: Vec<SkippedTimer>,
}

impl Skipped {
    /// The timers of some key groups.
    pub fn timers_of(&self, range: &Range<u16>, of: u16) -> Vec<SkippedTimer> {
        let is_of = |timer: &&SkippedTimer| range.contains(&key_group(GroupingKey::new(&timer.key).hash, of));
        self.timers.iter().filter(is_of).cloned().collect()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.timers.is_empty()
    }
}

/// A timer that did not fire.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct SkippedTimer {
    /// The packed key row.
    #[serde(with = "hex")]
    pub key: Vec<u8>,
    /// When it was due.
    pub expiry_ms: i64,
}

/// Bytes in JSON.
mod hex {
    use std::fmt::Write;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(bytes.len() * 2);
        for byte in bytes {
            write!(text, "{byte:02x}").map_err(serde::ser::Error::custom)?;
        }
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
        match digits {
            Some(digits) if digits.len() % 2 == 0 => {
                Ok(digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8)).collect())
            }
            _ => Err(D::Error::custom("not bytes in hex")),
        }
    }
}

/// One worker's share of a batch.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct WorkerCommit {
    /// Its key groups.
    pub key_groups: Range<u16>,
    /// XXH3-128 over the chunks that its instance was sent, in hex; None: it had nothing to do.
    pub input_digest: Option<String>,
}

/// A batch, whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// Everything but bytes.
    pub header: CommitHeader,
    /// State changes step after step, of each its workers in range order; behind them the bookkeeping of sources and
    /// catalog.
    pub changes: Vec<Changes>,
    /// Output that stands in the record, by index of the sink.
    pub output: Vec<(u8, Vec<u8>)>,
    /// Input that stands in the record, by index of the source.
    pub input: Vec<(u8, Vec<u8>)>,
}

/// What a record of the query's log says, without its bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// A batch.
    Commit(Box<CommitHeader>),
    /// A trigger found no rows while the watermark had moved: late rows are judged by this one from here on.
    Watermark(LeftOut),
    /// The query went back.
    Rollback(Box<Rollback>),
}

/// A batch that was left out but still counts for lateness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct LeftOut {
    /// The watermark that the batch would have had.
    pub watermark_ms: i64,
}

const KIND_COMMIT: u8 = 1;
const KIND_WATERMARK: u8 = 2;
const KIND_ROLLBACK: u8 = 3;

// Names of sections. Output and input are numbered by sink and source.
const SECTION_CHANGES: u8 = 1;
const SECTION_OUTPUT: u8 = 16;
const SECTION_INPUT: u8 = 32;

impl Fact {
    /// Reads the header of a record.
    ///
    /// # Errors
    /// `LOG_VERSION_UNSUPPORTED`, `LOG_CORRUPT`.
    pub fn from_header(kind: u8, header: &[u8]) -> Result<Self, QueryError> {
        match kind {
            KIND_COMMIT => Ok(Self::Commit(Box::new(CommitHeader::from_bytes(header)?))),
            KIND_WATERMARK => {
                Ok(Self::Watermark(serde_json::from_slice(header).map_err(QueryError::malformed_record)?))
            }
            KIND_ROLLBACK => Ok(Self::Rollback(Box::new(Rollback::from_bytes(header)?))),
            kind => Err(QueryError::newer_log(format!("a record of kind {kind}"))),
        }
    }
}

impl LeftOut {
    /// Puts it into the log.
    ///
    /// # Errors
    /// A failing disk.
    pub fn append(&self, log: &mut QueryLog, durability: Durability) -> Result<RecordRef, QueryError> {
        append_header(log, KIND_WATERMARK, self, durability)
    }
}

/// The header of any record with a version of its own.
fn refuse_newer(header: &[u8], supported: u32, record: &str) -> Result<(), QueryError> {
    #[derive(serde::Deserialize)]
    struct Format {
        format: u32,
    }
    let Format { format } = serde_json::from_slice(header).map_err(QueryError::malformed_record)?;
    if format > supported {
        return Err(QueryError::newer_log(format!("{record} of format {format}")));
    }
    Ok(())
}

impl Rollback {
    fn from_bytes(bytes: &[u8]) -> Result<Self, QueryError> {
        refuse_newer(bytes, ROLLBACK_FORMAT, "a rollback")?;
        serde_json::from_slice(bytes).map_err(QueryError::malformed_record)
    }

    /// Puts it into the log. When this returns, it has happened.
    ///
    /// # Errors
    /// A failing disk.
    pub fn append(&self, log: &mut QueryLog) -> Result<RecordRef, QueryError> {
        append_header(log, KIND_ROLLBACK, self, Durability::Synced)
    }
}

fn append_header(
    log: &mut QueryLog,
    kind: u8,
    header: &impl serde::Serialize,
    durability: Durability,
) -> Result<RecordRef, QueryError> {
    let header = serde_json::to_vec(header).map_err(QueryError::malformed_record)?;
    Ok(log.append(NewRecord { kind, header: &header, sections: Vec::new() }, durability)?)
}

impl Commit {
    /// Puts it into the log. When this returns, the batch exists.
    ///
    /// # Errors
    /// A failing disk.
    pub fn append(&self, log: &mut QueryLog, durability: Durability) -> Result<RecordRef, QueryError> {
        let header = serde_json::to_vec(&self.header).map_err(QueryError::malformed_record)?;
        Ok(log.append(NewRecord { kind: KIND_COMMIT, header: &header, sections: self.sections() }, durability)?)
    }

    fn sections(&self) -> Vec<NewSection<'_>> {
        let section = |name, bytes| NewSection { name, content: Content::Bytes(bytes) };
        let mut sections: Vec<_> =
            self.changes.iter().map(|changes| section(SECTION_CHANGES, changes.as_bytes())).collect();
        for (base, attachments) in [(SECTION_OUTPUT, &self.output), (SECTION_INPUT, &self.input)] {
            sections.extend(attachments.iter().map(|(index, bytes)| section(base + *index, bytes.as_slice())));
        }
        sections
    }

    /// Reads a whole batch from the log.
    ///
    /// # Errors
    /// `LOG_VERSION_UNSUPPORTED`, `LOG_CORRUPT`, a failing disk.
    pub fn read(log: &LogReader, at: &RecordRef) -> Result<Self, QueryError> {
        let record = log.read(at)?;
        if record.kind != KIND_COMMIT {
            return Err(QueryError::newer_log(format!("a record of kind {} where a batch stood", record.kind)));
        }
        let header = CommitHeader::from_bytes(&record.header)?;
        let mut commit = Self { header, changes: Vec::new(), output: Vec::new(), input: Vec::new() };
        for Section { name, bytes } in record.sections {
            match name {
                SECTION_CHANGES => commit.changes.push(Changes::from_bytes(bytes)),
                SECTION_OUTPUT..SECTION_INPUT => commit.output.push((name - SECTION_OUTPUT, bytes)),
                SECTION_INPUT..=u8::MAX => commit.input.push((name - SECTION_INPUT, bytes)),
                name => return Err(QueryError::newer_log(format!("a section named {name}"))),
            }
        }
        for (index, bytes) in &commit.input {
            if let Some(source) = commit.header.sources.get_mut(usize::from(*index)) {
                source.range.inline = Some(bytes.clone());
            }
        }
        Ok(commit)
    }
}
