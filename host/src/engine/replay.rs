//! Runs the committed batches of a stopped query again, in a folder of its own, and compares what they make with the
//! digests of their commit records. Proves that a processor is deterministic, and finds the batch where it is not.
//!
//! The checkpoint is read, never written. Limits of the record hold; deadlines and fuel do not decide, so that a busy
//! machine does not make a replay differ.

use std::path::PathBuf;
use std::sync::Arc;

use super::checkpoint::Checkpoint;
use super::commit::{BatchKind, Commit, SinkRole, SourceCommit, SourceRole};
use super::error::QueryError;
use super::history::History;
use super::operator::{GroupedRows, Operator, TimeMode};
use super::pipeline::{BatchWork, Done, Pipeline, Runs, Share};
use super::publish;
use super::route::{LateRows, Routed};
use super::settings::QuerySettings;
use super::setup::{Schemas, Setup};
use super::source::Source;
use super::stage::digest_output;
use crate::disk::Disk;
use crate::record::{RowLayout, Schema};
use crate::state::{Changes, DueIndex, RocksStore, Store};

/// What a replay works on.
pub struct ReplayParts {
    /// Must be the processor that the records name.
    pub operator: Arc<dyn Operator>,
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
    /// Go on and find the first batch that differs.
    Replay,
}

/// How one batch compares.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Compared {
    /// The batch.
    pub batch_id: u64,
    /// Rows that went into it.
    pub rows: u64,
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

/// Replays every batch that the checkpoint retains, in order, up to the first that differs. `report` sees each.
///
/// # Errors
/// A checkpoint, input or processor that cannot be replayed; a processor that fails now and did not then.
pub fn replay(
    settings: &QuerySettings,
    mut parts: ReplayParts,
    changed: ChangedInput,
    report: &mut dyn FnMut(&Compared),
) -> Result<(), QueryError> {
    let checkpoint = Checkpoint::open_existing(Arc::clone(&parts.disk), &parts.checkpoint)?;
    let history = History::view(&checkpoint, settings.watermark.as_ref())?;
    let snapshot = checkpoint.restore_oldest(&parts.scratch.join("live"))?;
    let store: Arc<dyn Store> = Arc::new(RocksStore::open(&parts.scratch.join("live"), &Default::default())?);
    let from = store.applied()?.batch;
    tracing::info!(?snapshot, ?from, "replaying");

    let schemas = Schemas {
        input: parts.input.schema().clone(),
        initial_state: parts.initial_state.as_ref().map(|source| source.schema().clone()),
    };
    let setup = Setup::new(settings, parts.operator, schemas, checkpoint.metadata())?;
    let project = |source: &mut dyn Source, columns: &Schema| {
        let source_name = source.describe();
        source.project(columns).map_err(|source| QueryError::Source { source_name, source })
    };
    project(parts.input.as_mut(), &setup.input_columns()?)?;
    if let (Some(source), Some(columns)) = (&mut parts.initial_state, setup.initial_columns()?) {
        project(source.as_mut(), &columns)?;
    }
    let mut sources = Sources { input: parts.input, initial_state: parts.initial_state };
    if changed == ChangedInput::Refuse {
        for commit in history.commits_after(from) {
            sources.verify(&commit?.header.sources)?;
        }
    }
    let (variables, _) = setup.declare_variables(store.as_ref())?;
    let output = RowLayout::new(&setup.plan.output);
    let mut pipeline = setup.pipeline(variables, settings, parts.scratch.clone());
    for commit in history.commits_after(from) {
        let compared = run(&mut pipeline, &store, &mut sources, &output, &commit?)?;
        let differs = !compared.differences.is_empty();
        report(&compared);
        if differs {
            break;
        }
    }
    Ok(())
}

fn run(
    pipeline: &mut Pipeline,
    store: &Arc<dyn Store>,
    sources: &mut Sources,
    output: &RowLayout,
    commit: &Commit,
) -> Result<Compared, QueryError> {
    let header = &commit.header;
    let step = header.steps.first();
    if let Some(step) = step {
        let now = pipeline.operator.identity();
        if step.processor != now {
            return Err(QueryError::mismatch(
                "REPLAY_OTHER_PROCESSOR",
                format!("batch {} ran {}, not {now}; replay it with the component that it ran", header.batch_id, step.processor),
            ));
        }
        pipeline.output_limits = step.output_limits;
        pipeline.state_limits = step.state_limits;
    }
    let routed = sources.route_again(pipeline, commit)?;
    let shares = header.ranges.iter().map(|worker| Share {
        key_groups: worker.key_groups.clone(),
        rows: if routed.rows() == 0 {
            GroupedRows::default()
        } else {
            routed.share(&worker.key_groups, header.key_groups)
        },
        runs: if worker.input_digest.is_some() { Runs::Processor } else { Runs::EvictionOnly },
    });
    let due = Arc::new(DueIndex::unknown(pipeline.info.step, header.key_groups));
    let work = BatchWork { batch_id: header.batch_id, kind: header.kind, time: header.time };
    let done = pipeline.process(store, &due, &work, shares.collect())?;
    let differences = compare(output, commit, done)?;
    // The recorded changes, so that one difference does not hide behind another.
    publish::apply(store.as_ref(), commit)?;
    Ok(Compared { batch_id: header.batch_id, rows: header.sources.iter().map(|source| source.rows).sum(), differences })
}

fn compare(layout: &RowLayout, commit: &Commit, done: Vec<Done>) -> Result<Vec<Difference>, QueryError> {
    let header = &commit.header;
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
    let emitted = digest_output(layout, outputs)?;
    if header.sink(SinkRole::Output).is_some_and(|part| part.digest != emitted) {
        differences.push(Difference::Output);
    }
    if header.steps.first().is_some_and(|step| step.state_digest != Changes::digest(&changes)) {
        differences.push(Difference::State);
    }
    Ok(differences)
}

struct Sources {
    input: Box<dyn Source>,
    initial_state: Option<Box<dyn Source>>,
}

impl Sources {
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

    fn verify(&mut self, parts: &[SourceCommit]) -> Result<(), QueryError> {
        for part in parts {
            let source = self.of(part.role)?;
            let source_name = source.describe();
            source.verify(&part.range).map_err(|source| QueryError::Source { source_name, source })?;
        }
        Ok(())
    }

    fn route_again(&mut self, pipeline: &Pipeline, commit: &Commit) -> Result<Routed, QueryError> {
        let header = &commit.header;
        let Some(part) = header.sources.first() else { return Ok(Routed::default()) };
        let source = self.of(part.role)?;
        let source_name = source.describe();
        let slice = source.read_again(&part.range).map_err(|source| QueryError::Source { source_name, source })?;
        match (header.kind, &pipeline.initial_routing) {
            (BatchKind::Bootstrap, Some(routing)) => routing.route(&slice.batches, LateRows::Keep),
            _ => {
                let late = match pipeline.info.time_mode {
                    TimeMode::EventTime => LateRows::DropUpTo(header.late_watermark_ms),
                    TimeMode::None | TimeMode::ProcessingTime => LateRows::Keep,
                };
                pipeline.routing.route(&slice.batches, late)
            }
        }
    }
}
