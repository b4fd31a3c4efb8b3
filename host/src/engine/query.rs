//! A running query: what it is made of, where it stands, and its life from opening to closing.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::batch;
use super::checkpoint::Checkpoint;
use super::commit::{Bootstrap, Commit, Fact, SinkRole, SourceRole};
use super::error::QueryError;
use super::head::Head;
use super::held::HeldKeys;
use super::history::Retained;
use super::inputs::Inputs;
use super::metrics::StoreMeter;
use super::operator::{Operator, TimeMode};
use super::pipeline::Pipeline;
use super::plan;
use super::progress::Progress;
use super::recovery::{self, Recovered};
use super::settings::{QuerySettings, Trigger};
use super::setup::PendingStep;
use super::sink::Sink;
use super::snapshots::Snapshots;
use super::source::{Source, SourceRange};
use crate::clock::{Clock, Stopwatch};
use crate::disk::Disk;
use crate::log::{QueryLog, RecordRef};
use crate::record::{RowLayout, Schema};
use crate::state::{Changes, DueIndex, Store};

/// What a query is made of.
pub struct Parts {
    /// What processes the rows, in the order of the steps in the settings.
    pub steps: Vec<StepParts>,
    /// Where they come from, in the order of the sources in the settings.
    pub inputs: Vec<Box<dyn Source>>,
    /// Where emitted rows go.
    pub sink: Box<dyn Sink>,
    /// Where malformed rows go, if the policy is to keep them.
    pub quarantine: Option<Box<dyn Sink>>,
    /// Where rows and timers go at which a processor fails, if the policy is to keep them.
    pub dead_letters: Option<Box<dyn Sink>>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Durable I/O.
    pub disk: Arc<dyn Disk>,
    /// The checkpoint's folder.
    pub checkpoint: PathBuf,
    /// Where state lives.
    pub store: StoreKind,
}

/// What a step is made of.
pub struct StepParts {
    /// What processes the rows.
    pub operator: Arc<dyn Operator>,
    /// State to begin with.
    pub initial_state: Option<Box<dyn Source>>,
}

/// Where state lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// In RocksDB, in the checkpoint.
    Rocks,
    /// In memory: gone with the process.
    Memory,
}

/// What one look at the query led to.
#[derive(Debug)]
pub enum Step {
    /// A batch was committed and published.
    Ran(Box<Progress>),
    /// There is nothing to do now.
    Idle,
    /// There is nothing to do now, but there will be: a stream is open, or a batch without rows must wait its turn.
    Waiting,
    /// There will never be anything to do again.
    Ended,
}

/// A sink with the rows it takes.
pub(super) struct Outlet {
    pub(super) role: SinkRole,
    pub(super) sink: Box<dyn Sink>,
    pub(super) layout: RowLayout,
}

/// A step that runs.
pub(super) struct RunningStep {
    pub(super) pipeline: Pipeline,
    pub(super) due: Arc<DueIndex>,
    pub(super) initial_state: Option<Box<dyn Source>>,
    /// What goes with the next commit.
    pub(super) pending: PendingStep,
    /// Keys of which no row is processed.
    pub(super) held: HeldKeys,
}

/// One of the sources of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SourceOf {
    Input { source: usize },
    InitialState { step: usize },
}

/// A query, open: it holds the lock of its checkpoint.
pub struct Query {
    pub(super) settings: QuerySettings,
    pub(super) query_id: String,
    pub(super) run_id: String,
    /// At least one.
    pub(super) steps: Vec<RunningStep>,
    pub(super) inputs: Inputs,
    pub(super) output: Outlet,
    pub(super) quarantine: Option<Outlet>,
    pub(super) dead_letters: Option<Outlet>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) log: QueryLog,
    pub(super) store: Arc<dyn Store>,
    pub(super) head: Head,
    /// Changes of the catalog that go with the next commit.
    pub(super) pending_meta: Changes,
    pub(super) key_groups: u16,
    pub(super) ranges: Vec<Range<u16>>,
    pub(super) rowless: Rowless,
    pub(super) snapshots: Option<Snapshots>,
    pub(super) meter: StoreMeter,
    pub(super) recovered: Recovered,
    /// That rows lie in the future has been said.
    pub(super) warned_of_future: bool,
    pub(super) poisoned: bool,
    /// A record is being appended or its batch published. Still so after a failure, only the next start knows how far
    /// that came.
    pub(super) committing: bool,
    // Last, so that the lock outlives everything that writes below it.
    pub(super) checkpoint: Checkpoint,
}

impl Query {
    /// Opens a query: takes the checkpoint's lock, recovers what was committed, publishes what is pending.
    ///
    /// # Errors
    /// Settings, processor, input, sink or checkpoint that do not fit each other; a damaged checkpoint.
    pub fn open(settings: QuerySettings, parts: Parts) -> Result<Self, QueryError> {
        recovery::open(settings, parts)
    }

    /// Runs the next batch, if there is something to do.
    ///
    /// # Errors
    /// The failure of the batch. Either nothing of it was committed, or the next start publishes it. The query must then
    /// be opened again: its source stands behind rows that were not committed.
    pub fn step(&mut self) -> Result<Step, QueryError> {
        if self.poisoned {
            return Err(QueryError::Poisoned);
        }
        let step = batch::run(self);
        if let Err(error) = &step {
            self.poisoned = true;
            recovery::suspect_if_damaged(error, self.checkpoint.disk().as_ref(), self.checkpoint.path());
        }
        step
    }

    /// How long a query that has nothing to do may rest, by its clock: until then, only new rows bring the next batch. None:
    /// nothing else ever does. It may be shorter than it had to be, never longer.
    pub fn due_in(&self) -> Option<Duration> {
        plan::due_in_ms(self).map(Duration::from_millis)
    }

    /// Ends the query cleanly: what is not synced is, and the next start is quick. Also after a batch that failed before
    /// its commit; after a failure within it, nothing more is written.
    ///
    /// # Errors
    /// A failing disk.
    pub fn close(mut self) -> Result<(), QueryError> {
        if self.committing {
            return Ok(());
        }
        self.log.sync()?;
        if let Some(snapshots) = self.snapshots.take() {
            snapshots.finish(&self.checkpoint, &mut self.log, &self.head)?;
        }
        Ok(())
    }

    /// Waits for the snapshot that is being taken in the background, if there is one, and removes what only older ones
    /// needed.
    ///
    /// # Errors
    /// A failing log.
    pub fn settle(&mut self) -> Result<(), QueryError> {
        match &mut self.snapshots {
            None => Ok(()),
            Some(snapshots) => snapshots.settle(&self.checkpoint, &mut self.log),
        }
    }

    /// Lets progress reports tell what the state store does, which costs its reads a few percent.
    pub fn measure_store(&self) {
        self.store.measure();
    }

    /// When batches run.
    pub fn trigger(&self) -> Trigger {
        self.settings.trigger
    }

    /// Stable over restarts.
    pub fn id(&self) -> &str {
        &self.query_id
    }

    /// What opening it found and did.
    pub fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    /// Where it stands.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The state as committed.
    pub fn store(&self) -> &dyn Store {
        self.store.as_ref()
    }

    /// The oldest batch that is kept. None: there is none, or the query keeps nothing.
    pub fn oldest_batch(&self) -> Option<u64> {
        self.snapshots.as_ref()?.retained().next().map(|batch| batch.batch_id)
    }

    /// What the oldest batch that is kept and has rows of a source has read of it. No batch that is kept needs what comes
    /// before. None: none has read of it.
    ///
    /// # Errors
    /// A failing log.
    pub fn oldest_read(&self, source: &str) -> Result<Option<SourceRange>, QueryError> {
        let reader = self.log.reader();
        for batch in self.snapshots.iter().flat_map(Snapshots::retained) {
            let Fact::Commit(header) = Fact::from_header(batch.record.kind, &reader.read_header(&batch.record)?)?
            else {
                continue;
            };
            let read = header.sources.into_iter().find(|of| of.role == SourceRole::Input && of.name == source);
            if let Some(read) = read {
                return Ok(Some(read.range));
            }
        }
        Ok(None)
    }

    /// Name of each step, and the schema of its grouping key.
    pub fn steps(&self) -> impl Iterator<Item = (&str, &Schema)> {
        self.steps.iter().map(|step| (step.pipeline.settings.name.as_str(), &step.pipeline.plan.key))
    }

    /// The keys that are held since a dead letter, as packed key rows, with the names of their steps.
    pub fn held_keys(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.steps.iter().flat_map(|step| {
            let name = step.pipeline.settings.name.as_str();
            step.held.keys().map(move |key| (name, key))
        })
    }

    /// Lets the rows of a key be processed again from the next batch on, with which this is committed. Until then a start
    /// finds the key held as before. False: it is not held.
    pub fn release(&mut self, step: &str, key: &[u8]) -> bool {
        let changes = &mut self.pending_meta;
        let of_step = self.steps.iter_mut().find(|running| running.pipeline.settings.name == step);
        of_step.is_some_and(|running| running.held.release(key, changes))
    }

    /// Schema of the emitted rows.
    pub fn output_schema(&self) -> &Schema {
        self.output.layout.schema()
    }

    pub(super) fn fires_in_event_time(&self) -> bool {
        self.steps.iter().any(|step| step.pipeline.info.time_mode == TimeMode::EventTime)
    }

    /// Whether an initial state has not been read to its end.
    pub fn bootstrapping(&self) -> bool {
        (0..self.steps.len()).any(|number| self.bootstraps(number))
    }

    /// Whether the initial state of a step has not been read to its end.
    pub(super) fn bootstraps(&self, number: usize) -> bool {
        let has_initial_state = self.steps.get(number).is_some_and(|step| step.initial_state.is_some());
        has_initial_state && self.head.step(number).bootstrap != Bootstrap::Done
    }

    /// The time of the next batch, never before that of the last.
    pub(super) fn now_ms(&self) -> Option<i64> {
        Some(self.clock.now_ms(self.head.next_batch())?.max(self.head.last_time_ms))
    }

    /// The watermark of the next batch, at the time of its plan; that of the last batch where the clock has ended.
    pub(super) fn next_watermark_ms(&self, now_ms: Option<i64>) -> i64 {
        let QuerySettings { sources, watermark_policy, .. } = &self.settings;
        self.head.watermark.next_ms(sources, *watermark_policy, now_ms.unwrap_or(self.head.last_time_ms))
    }

    /// A source's role and name, and what it is for people.
    pub(super) fn source_identity(&self, of: SourceOf) -> (SourceRole, &str, String) {
        let nowhere = |role| (role, "", String::new());
        match of {
            SourceOf::Input { source } => match self.inputs.get(source) {
                Some((name, source)) => (SourceRole::Input, name, source.describe()),
                None => nowhere(SourceRole::Input),
            },
            SourceOf::InitialState { step } => {
                let step = self.steps.get(step);
                let source = step.and_then(|step| Some((step, step.initial_state.as_ref()?)));
                match source {
                    Some((step, source)) => (SourceRole::InitialState, &step.pipeline.settings.name, source.describe()),
                    None => nowhere(SourceRole::InitialState),
                }
            }
        }
    }

    pub(super) fn keep_snapshots(&mut self, commit: &Commit, at: RecordRef) -> Result<(), QueryError> {
        match &mut self.snapshots {
            None => Ok(()),
            Some(snapshots) => {
                let batch = Retained::new(&commit.header, at);
                snapshots.after_batch(&self.checkpoint, &mut self.log, &self.head, batch)
            }
        }
    }
}

/// Keys of a source's bookkeeping begin with this.
pub(super) fn bookkeeping_prefix(role: SourceRole, name: &str) -> Vec<u8> {
    let role = match role {
        SourceRole::Input => "input",
        SourceRole::InitialState => "initial-state",
    };
    format!("source/{role}/{name}/").into_bytes()
}

/// Batches without rows in a row.
#[derive(Debug, Default)]
pub(super) struct Rowless {
    in_a_row: u32,
    last: Option<Stopwatch>,
    warned: bool,
}

impl Rowless {
    pub(super) fn begin(&mut self) {
        self.in_a_row += 1;
        self.last = Some(Stopwatch::start());
    }

    pub(super) fn reset(&mut self) {
        self.in_a_row = 0;
        self.warned = false;
    }

    pub(super) fn in_a_row(&self) -> u32 {
        self.in_a_row
    }

    pub(super) fn elapsed_ms(&self) -> Option<u64> {
        self.last.as_ref().map(Stopwatch::elapsed_ms)
    }

    pub(super) fn warn_once(&mut self, expiry_ms: i64) {
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(
                code = "TIMER_LOOP",
                expiry_ms,
                "timers of this processor have re-armed themselves at or before the watermark in {} batches without \
                 rows; they wait until the watermark moves",
                self.in_a_row
            );
        }
    }
}
