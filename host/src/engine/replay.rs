//! Runs the committed batches of a stopped query again, in a folder of its own, and compares what they make with the
//! digests of their commit records. Proves that a processor is deterministic, and finds the batch where it is not.
//!
//! The checkpoint is read, never written. What a batch depended on comes from its record, not from today's settings:
//! the processor (kept in the checkpoint), its parameters, the clock, the watermarks, the shares of the workers, the
//! limits. Deadlines and fuel do not decide, so that a busy machine does not make a replay differ.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::checkpoint::{Checkpoint, CheckpointError};
use super::commit::{BatchKind, Commit, CommitHeader, SinkRole, SourceCommit, SourceRole, StepCommit};
use super::error::QueryError;
use super::history::History;
use super::operator::{Operator, OperatorError, TimeMode};
use super::pipeline::{BatchWork, Done, Pipeline, Runs, Share};
use super::publish;
use super::rebuild::{self, Prefer, refuse_gap};
use super::route::{LateRows, Routed};
use super::settings::QuerySettings;
use super::setup::{Schemas, Setup};
use super::source::{Slice, Source};
use super::stage::digest_output;
use crate::disk::Disk;
use crate::record::{RowLayout, Schema};
use crate::state::{Changes, DueIndex, RocksStore, Store};

/// From a program's identity, for errors, and its bytes to a processor.
pub type LoadProgram = Box<dyn Fn(&str, &[u8]) -> Result<Arc<dyn Operator>, OperatorError>>;

/// What a replay works on.
pub struct ReplayParts {
    /// The processor at hand. Batches that ran another one are replayed with that, if the checkpoint has kept it.
    pub operator: Arc<dyn Operator>,
    /// Makes a processor of a program that the checkpoint has kept.
    pub load: LoadProgram,
    /// The input that was read.
    pub input: Box<dyn Source>,
    /// The initial state that was read.
    pub initial_state: Option<Box<dyn Source>>,
    /// Durable I/O.
    pub disk: Arc<dyn Disk>,
    /// The checkpoint's folder.
    pub checkpoint: PathBuf,
    /// An empty folder for the replayed state.
    pub scratch: PathBuf,
}

/// What to do about input that is not what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangedInput {
    /// Say so before anything runs.
    Refuse,
    /// Warn, go on and find the first batch that differs.
    Replay,
}

/// How one batch compares.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Compared {
    /// The batch.
    pub batch_id: u64,
    /// Rows that went into it, as recorded.
    pub rows_in: u64,
    /// Rows that it emitted, as recorded.
    pub rows_out: u64,
    /// What is not as recorded; empty: all is.
    pub differences: Vec<Difference>,
}

/// What of a batch is not as recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// The packed rows that the processor was sent.
    Input,
    /// The packed rows that it emitted.
    Output,
    /// The changes of its state.
    State,
}

impl Difference {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
            Self::State => "state changes",
        }
    }
}

/// What a replay begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning {
    /// The snapshot. None: the empty state before the first batch.
    pub snapshot: Option<String>,
    /// The last batch that it holds.
    pub after_batch: Option<u64>,
    /// Batches to replay.
    pub batches: u64,
}

/// Who hears how a replay goes.
pub trait Observer {
    /// Before the first batch.
    fn begins(&mut self, beginning: &Beginning);

    /// After each.
    fn compared(&mut self, batch: &Compared);
}

/// Replays every batch that the checkpoint retains, in order, up to the first that differs.
///
/// # Errors
/// `SOURCE_FILE_CHANGED` and the like, `REPLAY_OTHER_PROCESSOR`, `REPLAY_OTHER_QUERY`, a checkpoint that cannot be read, a
/// processor that fails now and did not then.
pub fn replay(
    settings: &QuerySettings,
    parts: ReplayParts,
    changed: ChangedInput,
    observer: &mut dyn Observer,
) -> Result<(), QueryError> {
    let checkpoint = Checkpoint::open_existing(Arc::clone(&parts.disk), &parts.checkpoint)?;
    let history = History::view(&checkpoint, settings.watermark.as_ref())?;
    let (store, beginning) = restore(&checkpoint, &history, &parts.scratch.join("live"))?;

    let mut sources = Sources { input: parts.input, initial_state: parts.initial_state, changed };
    sources.verify(history.headers_after(beginning.after_batch))?;
    let mut replay = Replay {
        settings,
        checkpoint: &checkpoint,
        operator: parts.operator,
        load: parts.load,
        spill_folder: parts.scratch,
        prepared: None,
    };
    observer.begins(&beginning);
    for commit in history.commits_after(beginning.after_batch) {
        let commit = commit?;
        let compared = match commit.header.steps.first() {
            Some(step) => replay.prepared_for(&commit.header, step, &mut sources, store.as_ref())?.run(
                &store,
                &mut sources,
                &commit,
            )?,
            None => Compared::of(&commit.header, Vec::new()),
        };
        // The recorded changes, so that one difference does not hide behind another.
        publish::apply(store.as_ref(), &commit)?;
        observer.compared(&compared);
        if !compared.differences.is_empty() {
            break;
        }
    }
    Ok(())
}

/// The state before the oldest batch that can be replayed: while the log is whole, the empty one.
fn restore(checkpoint: &Checkpoint, history: &History, live: &Path) -> Result<(Arc<dyn Store>, Beginning), QueryError> {
    let log_is_whole = history.batches.first().is_none_or(|oldest| oldest.batch_id == 0);
    let (store, snapshot) = if log_is_whole {
        (RocksStore::open(live, &Default::default())?, None)
    } else {
        let base = rebuild::base(checkpoint, history, history.now(), Prefer::Oldest, live)?;
        (base.store, base.snapshot)
    };
    refuse_gap(&store, history)?;
    let after_batch = store.applied()?.batch;
    let beginning = Beginning {
        snapshot: snapshot.map(|name| name.to_string()),
        after_batch,
        batches: history.headers_after(after_batch).count() as u64,
    };
    Ok((Arc::new(store), beginning))
}

/// Knows what each batch runs on, which is prepared anew whenever the processor or its parameters are others than in the
/// batch before.
struct Replay<'a> {
    settings: &'a QuerySettings,
    checkpoint: &'a Checkpoint,
    operator: Arc<dyn Operator>,
    load: LoadProgram,
    spill_folder: PathBuf,
    prepared: Option<Prepared>,
}

/// A processor in its query, as one or more batches had it.
struct Prepared {
    pipeline: Pipeline,
    output: RowLayout,
    parameters: Vec<(String, String)>,
}

impl Replay<'_> {
    fn prepared_for(
        &mut self,
        header: &CommitHeader,
        step: &StepCommit,
        sources: &mut Sources,
        store: &dyn Store,
    ) -> Result<&mut Prepared, QueryError> {
        let fits = |prepared: &Prepared| {
            prepared.pipeline.operator.identity() == step.processor && prepared.parameters == step.parameters
        };
        let mut prepared = match self.prepared.take().filter(fits) {
            Some(prepared) => prepared,
            None => self.prepare(header.batch_id, step, sources, store)?,
        };
        Arc::make_mut(&mut prepared.pipeline.info).run_id.clone_from(&header.run_id);
        prepared.pipeline.output_limits = step.output_limits;
        prepared.pipeline.state_limits = step.state_limits;
        Ok(self.prepared.insert(prepared))
    }

    fn prepare(
        &self,
        batch_id: u64,
        step: &StepCommit,
        sources: &mut Sources,
        store: &dyn Store,
    ) -> Result<Prepared, QueryError> {
        let operator = self.operator_of(batch_id, step)?;
        let settings = QuerySettings {
            time_mode: step.time_mode,
            output_mode: step.output_mode,
            parameters: step.parameters.iter().cloned().collect(),
            state: step.state_limits,
            ..self.settings.clone()
        };
        let setup = Setup::new(&settings, operator, sources.schemas(), self.checkpoint.metadata())?;
        for (what, recorded, now) in [
            ("grouping key", &step.key, setup.plan.key.to_string()),
            ("output", &step.output, setup.plan.output.to_string()),
        ] {
            if *recorded != now {
                return Err(QueryError::mismatch(
                    "REPLAY_OTHER_QUERY",
                    format!(
                        "the {what} of batch {batch_id} was {recorded}, and with these settings it is {now}; replay the query with its own settings"
                    ),
                ));
            }
        }
        sources.project(&setup)?;
        let (variables, _) = setup.declare_variables(store)?;
        let output = RowLayout::new(&setup.plan.output);
        let pipeline = setup.pipeline(variables, &settings, self.spill_folder.clone());
        Ok(Prepared { pipeline, output, parameters: step.parameters.clone() })
    }

    fn operator_of(&self, batch_id: u64, step: &StepCommit) -> Result<Arc<dyn Operator>, QueryError> {
        let (wanted, at_hand) = (&step.processor, self.operator.identity());
        if *wanted == at_hand {
            return Ok(Arc::clone(&self.operator));
        }
        let Some(program) = self.checkpoint.program(wanted)? else {
            return Err(QueryError::mismatch(
                "REPLAY_OTHER_PROCESSOR",
                format!(
                    "batch {batch_id} ran the component {wanted}, which the checkpoint has not kept, and the one given is \
                     {at_hand}; give the component that it ran"
                ),
            ));
        };
        let operator = (self.load)(wanted, &program).map_err(QueryError::Unfit)?;
        let found = operator.identity();
        if *wanted != found {
            let defect = format!("what stands there for {wanted} is {found}");
            return Err(CheckpointError::Damaged { path: self.checkpoint.components_dir(), defect }.into());
        }
        Ok(operator)
    }
}

impl Prepared {
    fn run(&self, store: &Arc<dyn Store>, sources: &mut Sources, commit: &Commit) -> Result<Compared, QueryError> {
        let header = &commit.header;
        let pipeline = &self.pipeline;
        let read = sources.read(header)?;
        let routed = self.route(header, &read)?;
        let (routed_rows, late) = (routed.rows(), routed.late);
        let ranges: Vec<_> = header.ranges.iter().map(|worker| worker.key_groups.clone()).collect();
        let shares: Vec<Share> = header
            .ranges
            .iter()
            .zip(routed.into_shares(&ranges, header.key_groups))
            .map(|(worker, rows)| Share {
                key_groups: worker.key_groups.clone(),
                rows,
                runs: if worker.input_digest.is_some() { Runs::Processor } else { Runs::EvictionOnly },
            })
            .collect();
        // Rows that are late, malformed or of a worker that had none then are sent to nobody, and so in no digest.
        let sent: usize = shares.iter().map(|share| share.rows.rows.len()).sum();
        let same_rows = sent as u64 == routed_rows
            && header
                .sources
                .first()
                .is_none_or(|part| (part.late, part.rejected) == (late, read.rejected.len() as u64));
        let due = Arc::new(DueIndex::unknown(pipeline.info.step, header.key_groups));
        let work = BatchWork { batch_id: header.batch_id, kind: header.kind, time: header.time };
        let done = pipeline.process(store, &due, &work, shares)?;
        let mut differences = self.compare(header, done)?;
        if !same_rows && !differences.contains(&Difference::Input) {
            differences.insert(0, Difference::Input);
        }
        Ok(Compared::of(header, differences))
    }

    fn route(&self, header: &CommitHeader, read: &Slice) -> Result<Routed, QueryError> {
        if read.batches.is_empty() {
            return Ok(Routed::default());
        }
        match (header.kind, &self.pipeline.initial_routing) {
            (BatchKind::Bootstrap, Some(routing)) => routing.route(&read.batches, LateRows::Keep),
            _ => {
                let late = match self.pipeline.info.time_mode {
                    TimeMode::EventTime => LateRows::DropUpTo(header.late_watermark_ms),
                    TimeMode::None | TimeMode::ProcessingTime => LateRows::Keep,
                };
                self.pipeline.routing.route(&read.batches, late)
            }
        }
    }

    fn compare(&self, header: &CommitHeader, done: Vec<Done>) -> Result<Vec<Difference>, QueryError> {
        let (mut inputs, mut changes, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
        for worker in done {
            inputs.push(worker.input_digest.map(|digest| format!("{digest:032x}")));
            changes.push(worker.changes);
            outputs.extend(worker.output);
        }
        let mut differences = Vec::new();
        if header.ranges.iter().map(|worker| &worker.input_digest).ne(inputs.iter()) {
            differences.push(Difference::Input);
        }
        let emitted = digest_output(&self.output, outputs)?;
        if header.sink(SinkRole::Output).is_some_and(|part| part.digest != emitted) {
            differences.push(Difference::Output);
        }
        if header.steps.first().is_some_and(|step| step.state_digest != Changes::digest(&changes)) {
            differences.push(Difference::State);
        }
        Ok(differences)
    }
}

impl Compared {
    fn of(header: &CommitHeader, differences: Vec<Difference>) -> Self {
        Self {
            batch_id: header.batch_id,
            rows_in: header.sources.iter().map(|source| source.rows).sum(),
            rows_out: header.sink(SinkRole::Output).map_or(0, |part| part.rows),
            differences,
        }
    }
}

struct Sources {
    input: Box<dyn Source>,
    initial_state: Option<Box<dyn Source>>,
    changed: ChangedInput,
}

impl Sources {
    fn schemas(&self) -> Schemas {
        Schemas {
            input: self.input.schema().clone(),
            initial_state: self.initial_state.as_ref().map(|source| source.schema().clone()),
        }
    }

    fn project(&mut self, setup: &Setup) -> Result<(), QueryError> {
        let project = |source: &mut dyn Source, columns: &Schema| {
            let source_name = source.describe();
            source.project(columns).map_err(|source| QueryError::Source { source_name, source })
        };
        project(self.input.as_mut(), &setup.input_columns()?)?;
        match (&mut self.initial_state, setup.initial_columns()?) {
            (Some(source), Some(columns)) => project(source.as_mut(), &columns),
            _ => Ok(()),
        }
    }

    /// Finds the first batch of which the input is not what it was.
    fn verify(&mut self, headers: impl Iterator<Item = Result<CommitHeader, QueryError>>) -> Result<(), QueryError> {
        for header in headers {
            let header = header?;
            for part in header.sources.iter().filter(|part| read_something(part)) {
                let changed = self.changed;
                let source = self.of(part.role)?;
                let source_name = source.describe();
                match (source.verify(&part.range), changed) {
                    (Ok(()), _) => {}
                    (Err(error), ChangedInput::Replay) => {
                        let batch_id = header.batch_id;
                        tracing::warn!(code = error.code, batch_id, "{source_name}: {error}");
                        return Ok(());
                    }
                    (Err(source), ChangedInput::Refuse) => return Err(QueryError::Source { source_name, source }),
                }
            }
        }
        Ok(())
    }

    /// The rows of a batch.
    fn read(&mut self, header: &CommitHeader) -> Result<Slice, QueryError> {
        let Some(part) = header.sources.first().filter(|part| read_something(part)) else {
            return Ok(Slice::default());
        };
        let changed = self.changed;
        let source = self.of(part.role)?;
        let source_name = source.describe();
        let slice = match changed {
            ChangedInput::Refuse => source.read_again(&part.range),
            ChangedInput::Replay => source.read_changed(&part.range),
        };
        slice.map_err(|source| QueryError::Source { source_name, source })
    }

    fn of(&mut self, role: SourceRole) -> Result<&mut dyn Source, QueryError> {
        match (role, &mut self.initial_state) {
            (SourceRole::Input, _) => Ok(self.input.as_mut()),
            (SourceRole::InitialState, Some(source)) => Ok(source.as_mut()),
            (SourceRole::InitialState, None) => Err(QueryError::mismatch(
                "INITIAL_STATE_MISSING",
                "the batches to replay read an initial state; give it again",
            )),
        }
    }
}

/// The batch that ends the initial state has read nothing, and its range says so.
fn read_something(part: &SourceCommit) -> bool {
    !part.range.at.is_null()
}
