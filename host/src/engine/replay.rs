//! Runs the committed batches of a stopped query again, in a folder of its own, and compares what they make with the
//! digests of their commit records. Proves that a processor is deterministic, and finds the batch where it is not.
//!
//! The checkpoint is read, never written. What a batch depended on comes from its record, not from today's settings:
//! the processor (kept in the checkpoint), its parameters, the clock, the watermarks, the shares of the workers, the
//! limits. Deadlines and fuel do not decide, so that a busy machine does not make a replay differ.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;

use super::checkpoint::{Check, Checkpoint, CheckpointError};
use super::commit::{Commit, CommitHeader, SinkRole, SourceCommit, SourceRole, StepCommit};
use super::error::QueryError;
use super::handover::{HandedOver, hand_over};
use super::history::History;
use super::inputs::Inputs;
use super::operator::{Operator, OperatorError};
use super::pipeline::{BatchWork, Pipeline, Runs, Share};
use super::publish;
use super::rebuild::{self, Prefer, refuse_gap};
use super::route::Routed;
use super::settings::{OnPoison, PoisonPolicy, QuerySettings, StepSettings};
use super::setup::{self, Chain, Declared, Schemas, Setup};
use super::source::{Source, SourceRange};
use super::stage::digest_output;
use super::step_done::StepDone;
use super::union::Union;
use crate::disk::Disk;
use crate::record::{RowLayout, Schema};
use crate::state::{Changes, DueIndex, RocksStore, Store};

/// From the number of a step, a program's identity, for errors, and its bytes to a processor.
pub type LoadProgram = Box<dyn Fn(usize, &str, &[u8]) -> Result<Arc<dyn Operator>, OperatorError>>;

/// What a replay works on.
pub struct ReplayParts {
    /// The processors at hand, step after step. Batches that ran another one are replayed with that, if the checkpoint
    /// has kept it.
    pub operators: Vec<Arc<dyn Operator>>,
    /// Makes a processor of a program that the checkpoint has kept.
    pub load: LoadProgram,
    /// The input that was read, each source.
    pub inputs: Vec<Box<dyn Source>>,
    /// The initial state that was read, of each step.
    pub initial_states: Vec<Option<Box<dyn Source>>>,
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
    /// The first step that is not as recorded; the steps after it had other input, and are not looked at.
    pub step: Option<String>,
    /// What of it is not as recorded; empty: all is.
    pub differences: Vec<Difference>,
}

/// What of a batch is not as recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
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
    let history = History::view(&checkpoint)?;
    let (store, beginning) = restore(&checkpoint, &history, &parts.scratch.join("live"))?;

    let input_schemas: Vec<_> = parts.inputs.iter().map(|source| source.schema().clone()).collect();
    let union = Union::new(&settings.sources, &input_schemas)?;
    let inputs = Inputs::new(&settings.sources, parts.inputs, union, &Schema::default())?;
    let mut sources = Sources { inputs, input_schemas, initial_states: parts.initial_states, changed };
    sources.verify(history.headers_after(beginning.after_batch))?;
    let mut replay = Replay {
        settings,
        checkpoint: &checkpoint,
        operators: parts.operators,
        load: parts.load,
        spill_folder: parts.scratch,
        prepared: None,
    };
    observer.begins(&beginning);
    for commit in history.commits_after(beginning.after_batch) {
        let commit = commit?;
        let prepared = replay.prepared_for(&commit.header, &mut sources, store.as_ref())?;
        let compared = prepared.run(&store, &mut sources, &commit)?;
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
        let base = rebuild::base(checkpoint, history, history.now(), Prefer::Oldest, Check::Bytes, live)?;
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

/// Knows what each batch runs on, which is prepared anew whenever a processor or its parameters are others than in the
/// batch before.
struct Replay<'a> {
    settings: &'a QuerySettings,
    checkpoint: &'a Checkpoint,
    operators: Vec<Arc<dyn Operator>>,
    load: LoadProgram,
    spill_folder: PathBuf,
    prepared: Option<Prepared>,
}

/// The processors in their query, as one or more batches had them.
struct Prepared {
    steps: Vec<Pipeline>,
    whole_rows: bool,
}

impl Replay<'_> {
    fn prepared_for(
        &mut self,
        header: &CommitHeader,
        sources: &mut Sources,
        store: &dyn Store,
    ) -> Result<&Prepared, QueryError> {
        let mut prepared = match self.prepared.take().filter(|prepared| prepared.fits(header)) {
            Some(prepared) => prepared,
            None => self.prepare(header, sources, store)?,
        };
        for (pipeline, recorded) in prepared.steps.iter_mut().zip(&header.steps) {
            let info = Arc::make_mut(&mut pipeline.info);
            info.run_id.clone_from(&header.run_id);
            self.checkpoint.metadata().query_id_of(header.batch_id).clone_into(&mut info.query_id);
            pipeline.output_limits = recorded.output_limits;
            pipeline.state_limits = recorded.state_limits;
        }
        Ok(self.prepared.insert(prepared))
    }

    fn prepare(&self, header: &CommitHeader, sources: &mut Sources, store: &dyn Store) -> Result<Prepared, QueryError> {
        let batch_id = header.batch_id;
        let other = |what: &str, recorded: &dyn Display, now: &dyn Display| {
            QueryError::mismatch(
                "REPLAY_OTHER_QUERY",
                format!(
                    "the {what} of batch {batch_id} was {recorded}, and with these settings it is {now}; replay the query with its own settings"
                ),
            )
        };
        if header.steps.len() != self.settings.steps.len() {
            return Err(other("number of steps", &header.steps.len(), &self.settings.steps.len()));
        }
        let (mut steps, mut operators) = (Vec::new(), Vec::new());
        for (number, (recorded, now)) in header.steps.iter().zip(&self.settings.steps).enumerate() {
            operators.push(self.operator_of(batch_id, recorded, number)?);
            steps.push(StepSettings {
                name: recorded.name.clone(),
                time_mode: recorded.time_mode,
                output_mode: recorded.output_mode,
                output_event_time: recorded.output_event_time.clone(),
                parameters: recorded.parameters.iter().cloned().collect(),
                state: recorded.state_limits,
                ..now.clone()
            });
        }
        let on_poison = if header.whole_rows { OnPoison::DeadLetter } else { OnPoison::Fail };
        let poison = PoisonPolicy { on_poison, ..self.settings.poison };
        let settings = QuerySettings { steps, poison, ..self.settings.clone() };
        let Chain { steps: chain, .. } =
            setup::chain(&settings, &operators, &sources.schemas(), self.checkpoint.metadata())?;
        for (recorded, Setup { plan, .. }) in header.steps.iter().zip(&chain) {
            for (what, recorded, now) in [
                ("grouping key", &recorded.key, plan.key.to_string()),
                ("output", &recorded.output, plan.output.to_string()),
            ] {
                if *recorded != now {
                    return Err(other(what, recorded, &now));
                }
            }
        }
        sources.project(&chain)?;
        let Declared { variables, .. } = setup::declare_variables(&chain, store)?;
        let steps = chain.into_iter().zip(variables);
        let steps = steps.map(|(setup, variables)| setup.pipeline(variables, self.spill_folder.clone()));
        Ok(Prepared { steps: steps.collect::<Result<_, _>>()?, whole_rows: header.whole_rows })
    }

    fn operator_of(&self, batch_id: u64, step: &StepCommit, number: usize) -> Result<Arc<dyn Operator>, QueryError> {
        let wanted = &step.processor;
        let at_hand = self.operators.get(number);
        if let Some(operator) = at_hand.filter(|operator| operator.identity() == *wanted) {
            return Ok(Arc::clone(operator));
        }
        let Some(program) = self.checkpoint.program(wanted)? else {
            return Err(QueryError::mismatch(
                "REPLAY_OTHER_PROCESSOR",
                format!(
                    "batch {batch_id} ran the component {wanted}, which the checkpoint has not kept, and the one given is \
                     {}; give the component that it ran",
                    at_hand.map_or_else(|| "none".to_owned(), |operator| operator.identity())
                ),
            ));
        };
        let operator = (self.load)(number, wanted, &program).map_err(QueryError::Unfit)?;
        let found = operator.identity();
        if *wanted != found {
            let defect = format!("what stands there for {wanted} is {found}");
            return Err(CheckpointError::Damaged { path: self.checkpoint.components_dir(), defect }.into());
        }
        Ok(operator)
    }
}

impl Prepared {
    fn fits(&self, header: &CommitHeader) -> bool {
        let same = |(pipeline, recorded): (&Pipeline, &StepCommit)| {
            pipeline.operator.identity() == recorded.processor
                && pipeline.info.parameters == recorded.parameters
                && pipeline.settings.output_event_time == recorded.output_event_time
        };
        self.whole_rows == header.whole_rows
            && self.steps.len() == header.steps.len()
            && self.steps.iter().zip(&header.steps).all(same)
    }

    /// Runs the steps of a batch up to the first that is not as recorded.
    fn run(&self, store: &Arc<dyn Store>, sources: &mut Sources, commit: &Commit) -> Result<Compared, QueryError> {
        let header = &commit.header;
        let mut read = sources.read(header)?;
        let mut handed = HandedOver::default();
        for (number, (pipeline, recorded)) in self.steps.iter().zip(&header.steps).enumerate() {
            let is_first = read.step.as_ref().map_or(number == 0, |step| *step == recorded.name);
            let rows = if is_first { std::mem::take(&mut read.batches) } else { std::mem::take(&mut handed.batches) };
            let (mut done, mut differences) = run_step(store, pipeline, header, recorded, &rows)?;
            if is_first && !read.rejected_as_recorded {
                note(&mut differences, Difference::Input);
            }
            let layout = RowLayout::new(&pipeline.plan.output);
            let outputs = std::mem::take(&mut done.outputs);
            let digest = match self.steps.get(number + 1) {
                Some(next) => {
                    handed = hand_over(&recorded.name, &layout, &next.required, outputs)?;
                    std::mem::take(&mut handed.digest)
                }
                None => digest_output(&layout, outputs)?,
            };
            if digest != recorded.output_digest {
                note(&mut differences, Difference::Output);
            }
            if Changes::digest(&done.changes) != recorded.state_digest {
                note(&mut differences, Difference::State);
            }
            if !differences.is_empty() {
                return Ok(Compared { step: Some(recorded.name.clone()), ..Compared::of(header, differences) });
            }
        }
        Ok(Compared::of(header, Vec::new()))
    }
}

/// Runs one step on the workers that it had.
fn run_step(
    store: &Arc<dyn Store>,
    pipeline: &Pipeline,
    header: &CommitHeader,
    recorded: &StepCommit,
    rows: &[RecordBatch],
) -> Result<(StepDone, Vec<Difference>), QueryError> {
    let work = BatchWork {
        batch_id: header.batch_id,
        kind: header.kind,
        time: header.time,
        late_watermark_ms: header.late_watermark_ms,
    };
    let mut routed = if rows.is_empty() { Routed::default() } else { pipeline.route(rows, &work, &[])? };
    routed.leave_out(&recorded.skipped.rows);
    let (routed_rows, late) = (routed.rows(), routed.late);
    let ranges: Vec<_> = recorded.workers.iter().map(|worker| worker.key_groups.clone()).collect();
    let shares: Vec<Share> = recorded
        .workers
        .iter()
        .zip(routed.into_shares(&ranges, header.key_groups)?)
        .map(|(worker, rows)| Share {
            key_groups: worker.key_groups.clone(),
            rows,
            runs: if worker.input_digest.is_some() { Runs::Processor } else { Runs::EvictionOnly },
            skipped_timers: recorded.skipped.timers_of(&worker.key_groups, header.key_groups),
        })
        .collect();
    // Rows that are late, malformed or of a worker that had none then are sent to nobody, and so in no digest.
    let sent: u64 = shares.iter().map(|share| share.rows.rows() as u64).sum();
    let due = Arc::new(DueIndex::unknown(pipeline.info.step, header.key_groups));
    let done = StepDone::of(pipeline.process(store, &due, &work, rows, shares)?);
    let mut differences = Vec::new();
    if sent != routed_rows || late != recorded.late || done.workers != recorded.workers {
        differences.push(Difference::Input);
    }
    Ok((done, differences))
}

fn note(differences: &mut Vec<Difference>, difference: Difference) {
    if !differences.contains(&difference) {
        differences.push(difference);
        differences.sort();
    }
}

impl Compared {
    fn of(header: &CommitHeader, differences: Vec<Difference>) -> Self {
        Self {
            batch_id: header.batch_id,
            rows_in: header.sources.iter().map(|source| source.rows).sum(),
            rows_out: header.sink(SinkRole::Output).map_or(0, |part| part.rows),
            step: None,
            differences,
        }
    }
}

/// What a batch reads, to replay it.
#[derive(Default)]
struct Read {
    /// The step whose initial state it is; None: it is input.
    step: Option<String>,
    batches: Vec<RecordBatch>,
    /// Whether as many rows did not fit as then.
    rejected_as_recorded: bool,
}

struct Sources {
    inputs: Inputs,
    input_schemas: Vec<Schema>,
    initial_states: Vec<Option<Box<dyn Source>>>,
    changed: ChangedInput,
}

impl Sources {
    fn schemas(&self) -> Schemas {
        let schema = |source: &Option<Box<dyn Source>>| source.as_ref().map(|source| source.schema().clone());
        Schemas { inputs: self.input_schemas.clone(), initial_states: self.initial_states.iter().map(schema).collect() }
    }

    fn project(&mut self, chain: &[Setup]) -> Result<(), QueryError> {
        if let Some(first) = chain.first() {
            self.inputs.project(&first.input_columns)?;
        }
        for (source, setup) in self.initial_states.iter_mut().zip(chain) {
            if let (Some(source), Some(columns)) = (source, &setup.initial_columns) {
                let source_name = source.describe();
                source.project(columns).map_err(|source| QueryError::Source { source_name, source })?;
            }
        }
        Ok(())
    }

    /// Finds the first batch of which the input is not what it was.
    fn verify(&mut self, headers: impl Iterator<Item = Result<CommitHeader, QueryError>>) -> Result<(), QueryError> {
        for header in headers {
            let header = header?;
            for part in header.sources.iter().filter(|part| read_something(part)) {
                let changed = self.changed;
                let verified = match self.of(&header, part)? {
                    Of::InitialState(source) => (source.describe(), source.verify(&part.range)),
                    Of::Input(number) => match self.inputs.get(number) {
                        Some((_, source)) => (source.describe(), source.verify(&part.range)),
                        None => continue,
                    },
                };
                let (source_name, verified) = verified;
                match (verified, changed) {
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
    fn read(&mut self, header: &CommitHeader) -> Result<Read, QueryError> {
        let mut read = Read { rejected_as_recorded: true, ..Read::default() };
        for part in header.sources.iter().filter(|part| read_something(part)) {
            let changed = self.changed;
            let again = |source: &mut dyn Source, range: &SourceRange| match changed {
                ChangedInput::Refuse => source.read_again(range),
                ChangedInput::Replay => source.read_changed(range),
            };
            let slice = match self.of(header, part)? {
                Of::Input(number) => self.inputs.read_again(number, &part.range, again)?,
                Of::InitialState(source) => {
                    let source_name = source.describe();
                    again(source, &part.range).map_err(|source| QueryError::Source { source_name, source })?
                }
            };
            read.step = (part.role == SourceRole::InitialState).then(|| part.name.clone());
            read.rejected_as_recorded &= part.rejected == slice.rejected.len() as u64;
            read.batches.extend(slice.batches);
        }
        Ok(read)
    }

    fn of(&mut self, header: &CommitHeader, part: &SourceCommit) -> Result<Of<'_>, QueryError> {
        if part.role == SourceRole::Input {
            let number = self.inputs.iter_mut().position(|(name, _)| name == part.name);
            return number.map(Of::Input).ok_or_else(|| {
                QueryError::mismatch(
                    "REPLAY_OTHER_QUERY",
                    format!(
                        "batch {} read the source {}, which is not given; give it again",
                        header.batch_id, part.name
                    ),
                )
            });
        }
        let number = header.steps.iter().position(|step| step.name == part.name);
        match number.and_then(|number| self.initial_states.get_mut(number)) {
            Some(Some(source)) => Ok(Of::InitialState(source.as_mut())),
            _ => Err(QueryError::mismatch(
                "INITIAL_STATE_MISSING",
                format!("the batches to replay read an initial state for step {}; give it again", part.name),
            )),
        }
    }
}

/// What a batch read from.
enum Of<'s> {
    Input(usize),
    InitialState(&'s mut dyn Source),
}

/// The batch that ends the initial state has read nothing, and its range says so.
fn read_something(part: &SourceCommit) -> bool {
    !part.range.at.is_null()
}
