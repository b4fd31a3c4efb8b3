//! From a checkpoint's folder to a running query: the log's tail is made durable, the state store is rebuilt from a
//! snapshot and the log, and what sinks lack is published, all without running the processor.
//!
//! The store that a process leaves behind is never trusted; only snapshots and the log are.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::catch_up::{LastRun, catch_up, refuse_pending};
use super::checkpoint::{Check, Checkpoint, NewCheckpoint};
use super::commit::{Bootstrap, SinkRole, SourceRole, StepCommit};
use super::dead_letters;
use super::error::QueryError;
use super::faults;
use super::held::HeldKeys;
use super::history::History;
use super::inputs::Inputs;
use super::metrics::{Restored, StoreMeter};
use super::pipeline::worker_ranges;
use super::quarantine;
use super::query::{Outlet, Parts, Query, Rowless, RunningStep, StoreKind, bookkeeping_prefix};
use super::rebuild::{self, Prefer, apply_up_to};
use super::settings::{BadRows, OnPoison, QuerySettings};
use super::setup::{self, Chain, Schemas, Setup};
use super::snapshots::Snapshots;
use super::source::{Source, SourceError, SourceRange};
use super::upgrade::Upgrade;
use crate::clock::Stopwatch;
use crate::disk::Disk;
use crate::record::RowLayout;
use crate::state::{DueIndex, Family, MemoryStore, RocksStore, StateError, Store};

/// What opening a query found and did.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Recovered {
    /// The checkpoint was made just now.
    pub new: bool,
    /// The last committed batch.
    pub last_batch: Option<u64>,
    /// The snapshot that the state was rebuilt from.
    pub snapshot: Option<String>,
    /// Batches whose changes were applied again.
    pub applied: u64,
    /// Batches whose output was published again, or for the first time.
    pub published: u64,
    /// Steps that go on otherwise than they ran in the last batch.
    pub upgrades: Vec<StepUpgrade>,
}

/// A step that goes on with another processor, or with other state variables.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct StepUpgrade {
    /// The step's name, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// What goes on.
    pub processor: String,
    /// What went before, and what changes.
    #[serde(flatten)]
    pub upgrade: Upgrade,
}

pub(super) fn open(settings: QuerySettings, parts: Parts) -> Result<Query, QueryError> {
    let (disk, path) = (Arc::clone(&parts.disk), parts.checkpoint.clone());
    recover(settings, parts).inspect_err(|error| suspect_if_damaged(error, disk.as_ref(), &path))
}

/// Damage to the state that is met in use lets the next start look at every byte.
pub(super) fn suspect_if_damaged(error: &QueryError, disk: &dyn Disk, checkpoint: &Path) {
    if !error.is_damage_to_state() {
        return;
    }
    match Checkpoint::suspect(disk, checkpoint) {
        Ok(()) => {
            tracing::warn!("the state is damaged; the next start reads all of its snapshots and takes a whole one")
        }
        Err(error) => tracing::warn!("the state is damaged, and that cannot be noted in the checkpoint: {error}"),
    }
}

fn recover(settings: QuerySettings, parts: Parts) -> Result<Query, QueryError> {
    let wanted = NewCheckpoint { name: settings.name.clone(), seed: settings.seed, key_groups: settings.key_groups };
    let checkpoint = Checkpoint::open(Arc::clone(&parts.disk), &parts.checkpoint, &wanted)?;
    let key_groups = checkpoint.metadata().key_groups;
    let (operators, mut initial_states): (Vec<_>, Vec<_>) =
        parts.steps.into_iter().map(|step| (step.operator, step.initial_state)).unzip();
    let schema = |source: &Option<Box<dyn Source>>| source.as_ref().map(|source| source.schema().clone());
    let schemas = Schemas {
        inputs: parts.inputs.iter().map(|source| source.schema().clone()).collect(),
        initial_states: initial_states.iter().map(schema).collect(),
    };
    let Chain { union, steps: chain } = setup::chain(&settings, &operators, &schemas, checkpoint.metadata())?;

    let (log, history) = History::open(&checkpoint)?;
    let head = &history.head;
    refuse_other_steps(&settings, &history, &chain)?;
    let dropped_sources = refuse_other_sources(&settings, &history)?;
    faults::point("recovery.log-open");
    for setup in &chain {
        if let (StoreKind::Rocks, Some(program)) = (parts.store, setup.operator.artifact()) {
            checkpoint.keep_program(&setup.operator.identity(), program)?;
        }
    }

    let mut recovered = Recovered { new: checkpoint.is_new(), last_batch: head.last_batch, ..Recovered::default() };
    let watch = Stopwatch::start();
    let StateStore { store, rocks } = open_store(&checkpoint, parts.store, &history, &mut recovered)?;
    let snapshot_ms = watch.elapsed_ms();
    let snapshot_batch = store.applied()?.batch;
    // A rollback takes back what may not have been published.
    let is_clean = snapshot_batch == head.last_batch || history.ends_with_rollback();
    let last_run = if is_clean { LastRun::Clean } else { LastRun::Cut };
    recovered.applied = apply_up_to(store.as_ref(), &history, history.now())?;
    let apply_ms = watch.elapsed_ms() - snapshot_ms;
    faults::point("recovery.state-applied");
    let query_id = checkpoint.metadata().query_id.clone();
    let run_id = chain.first().map(|first| first.info.run_id.clone()).unwrap_or_default();

    let output_schema = chain.last().map(|last| last.plan.output.clone()).unwrap_or_default();
    let mut output = Outlet { role: SinkRole::Output, sink: parts.sink, layout: RowLayout::new(&output_schema) };
    let mut quarantine = match (settings.bad_rows, parts.quarantine) {
        (BadRows::Quarantine, Some(sink)) => {
            let layout = RowLayout::new(&quarantine::schema()?);
            Some(Outlet { role: SinkRole::Quarantine, sink, layout })
        }
        (BadRows::Quarantine, None) => {
            return Err(QueryError::settings(
                "QUARANTINE_MISSING",
                "bad_rows is quarantine, but no place is given; set quarantine.path (--quarantine DIR)",
            ));
        }
        (BadRows::Fail | BadRows::Skip, _) => None,
    };
    let mut dead_letters = match (settings.poison.on_poison, parts.dead_letters) {
        (OnPoison::DeadLetter, Some(sink)) => {
            let layout = RowLayout::new(&dead_letters::schema()?);
            Some(Outlet { role: SinkRole::DeadLetters, sink, layout })
        }
        (OnPoison::DeadLetter, None) => {
            return Err(QueryError::settings(
                "DEAD_LETTERS_MISSING",
                "on_poison is dead-letter, but no place is given; set dead_letters.path (--dead-letters DIR)",
            ));
        }
        (OnPoison::Fail, _) => None,
    };
    for outlet in std::iter::once(&mut output).chain(&mut quarantine).chain(&mut dead_letters) {
        recovered.published += catch_up(&checkpoint, outlet, &query_id, &history, last_run)?;
    }
    for (role, outlet) in [(SinkRole::Quarantine, &quarantine), (SinkRole::DeadLetters, &dead_letters)] {
        if outlet.is_none() {
            refuse_pending(&history, role, "none", last_run)?;
        }
    }
    faults::point("recovery.published");
    checkpoint.keep_staged(&history.staged())?;

    let mut declared = setup::declare_variables(&chain, store.as_ref())?;
    for name in &dropped_sources {
        for (key, _) in bookkeeping(store.as_ref(), &bookkeeping_prefix(SourceRole::Input, name))? {
            let key = [bookkeeping_prefix(SourceRole::Input, name), key].concat();
            declared.changes.push(Family::Meta, &key, None);
        }
    }
    let columns = chain.first().map(|first| first.input_columns.clone()).unwrap_or_default();
    let mut inputs = Inputs::new(&settings.sources, parts.inputs, union, &columns)?;
    for (name, source) in inputs.iter_mut() {
        let prefix = bookkeeping_prefix(SourceRole::Input, name);
        let last = history.head.last_read(SourceRole::Input, name);
        restore_source(source.as_mut(), &prefix, store.as_ref(), last)?;
    }
    initial_states.resize_with(chain.len(), || None);
    let mut steps = Vec::new();
    let last_steps = history.last.as_ref().map(|last| last.steps.iter());
    let last_steps = last_steps.into_iter().flatten().map(Some).chain(std::iter::repeat(None));
    for (((setup, variables), (mut initial_state, mut pending)), last) in
        chain.into_iter().zip(declared.variables).zip(initial_states.into_iter().zip(declared.pending)).zip(last_steps)
    {
        if let Some(last) = last {
            let processor = setup.operator.identity();
            pending.follow(last, &processor);
            let step = (settings.steps.len() > 1).then(|| setup.settings.name.clone());
            recovered.upgrades.extend(pending.upgrade.clone().map(|upgrade| StepUpgrade { step, processor, upgrade }));
        }
        if let (Some(source), Some(columns)) = (&mut initial_state, &setup.initial_columns) {
            let name = &setup.settings.name;
            let last = history.head.last_read(SourceRole::InitialState, name);
            let prefix = bookkeeping_prefix(SourceRole::InitialState, name);
            source.project(columns).map_err(|error| source_failed(source.as_ref(), error))?;
            restore_source(source.as_mut(), &prefix, store.as_ref(), last)?;
        }
        let due = Arc::new(DueIndex::load(store.as_ref(), setup.info.step, key_groups)?);
        let mut held = HeldKeys::load(store.as_ref(), &setup.settings.name)?;
        if !settings.poison.holds() {
            held.release_all(&mut declared.changes);
        }
        let pipeline = setup.pipeline(variables, checkpoint.tmp_dir())?;
        steps.push(RunningStep { pipeline, due, initial_state, pending, held });
    }
    let History { head, batches, .. } = history;
    let meter = StoreMeter::new(Restored { snapshot_ms, apply_ms, batches: recovered.applied });
    Ok(Query {
        ranges: worker_ranges(key_groups, settings.workers),
        snapshots: rocks
            .map(|rocks| Snapshots::new(rocks, checkpoint.snapshots(), settings.retention, snapshot_batch, batches)),
        rowless: Rowless::default(),
        clock: parts.clock,
        inputs,
        warned_of_future: false,
        poisoned: false,
        committing: false,
        settings,
        query_id,
        run_id,
        steps,
        output,
        quarantine,
        dead_letters,
        log,
        store,
        head,
        pending_meta: declared.changes,
        meter,
        key_groups,
        recovered,
        checkpoint,
    })
}

/// A checkpoint goes on only with the steps that its state was made by, and with their settings.
pub(super) fn refuse_other_steps(
    settings: &QuerySettings,
    history: &History,
    chain: &[Setup],
) -> Result<(), QueryError> {
    let Some(last) = &history.last else { return Ok(()) };
    let names = |names: &mut dyn Iterator<Item = &String>| names.map(String::as_str).collect::<Vec<_>>().join(", ");
    let before = names(&mut last.steps.iter().map(|step| &step.name));
    let now = names(&mut settings.steps.iter().map(|step| &step.name));
    if before != now {
        return Err(QueryError::mismatch(
            "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
            format!(
                "the steps were {before} in this checkpoint and are {now} now; names and order cannot change. Go back, or \
                 start with a new checkpoint."
            ),
        ));
    }
    for (before, setup) in last.steps.iter().zip(chain) {
        refuse_other_settings(before, setup).map_err(|error| settings.in_step(&before.name, error))?;
    }
    Ok(())
}

/// A source that is missing is given up only if someone says so, as it may just have another name; answers with those. A
/// new one begins at its start, and its event time with it: the watermark does not go back for it.
fn refuse_other_sources(settings: &QuerySettings, history: &History) -> Result<Vec<String>, QueryError> {
    let Some(last) = &history.last else { return Ok(Vec::new()) };
    if last.watermark_policy != settings.watermark_policy {
        let (before, now) = (last.watermark_policy, settings.watermark_policy);
        return Err(QueryError::mismatch(
            "STATE_STORE_INVALID_CONFIG_AFTER_RESTART",
            format!(
                "the watermark policy was {before} in this checkpoint and is {now} now; it cannot change. Go back, or start with a new checkpoint."
            ),
        ));
    }
    let known = last.event_times.iter().map(|time| &time.name);
    let missing: Vec<_> = known.filter(|name| !settings.sources.iter().any(|input| input.name == **name)).collect();
    match missing.iter().find(|name| !settings.dropped_sources.contains(name)) {
        None => Ok(missing.into_iter().cloned().collect()),
        Some(name) => Err(QueryError::mismatch(
            "SOURCE_REMOVED",
            format!(
                "source {name} of this checkpoint is not in the query any more. Put it back under this name; or, to give it \
                 up with its position, name it in query.dropped_sources."
            ),
        )),
    }
}

fn refuse_other_settings(before: &StepCommit, setup: &Setup) -> Result<(), QueryError> {
    let Setup { settings, plan, info, .. } = setup;
    for (what, before, now) in [
        ("time mode", format!("{:?}", before.time_mode), format!("{:?}", settings.time_mode)),
        ("output mode", format!("{:?}", before.output_mode), format!("{:?}", settings.output_mode)),
    ] {
        if before != now {
            return Err(QueryError::mismatch(
                "STATE_STORE_INVALID_CONFIG_AFTER_RESTART",
                format!(
                    "the {what} was {before} in this checkpoint and is {now} now; it cannot change. Go back, or start with a new checkpoint."
                ),
            ));
        }
    }
    if before.key != plan.key.to_string() {
        return Err(QueryError::mismatch(
            "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
            format!(
                "the grouping key was {} in this checkpoint and is {} now; it cannot change. Is it the checkpoint of another query?",
                before.key, plan.key
            ),
        ));
    }
    match (before.bootstrap, info.initial_state.is_some()) {
        (Bootstrap::None, true) => Err(QueryError::mismatch(
            "INITIAL_STATE_TOO_LATE",
            "this checkpoint has run without an initial state; it can be given only to a new one",
        )),
        (Bootstrap::Running, false) => Err(QueryError::mismatch(
            "INITIAL_STATE_MISSING",
            "the initial state of this checkpoint was not read to its end; give it again",
        )),
        _ => Ok(()),
    }
}

/// The store of a query, and the same again where snapshots can be taken of it.
struct StateStore {
    store: Arc<dyn Store>,
    rocks: Option<Arc<RocksStore>>,
}

fn open_store(
    checkpoint: &Checkpoint,
    kind: StoreKind,
    history: &History,
    recovered: &mut Recovered,
) -> Result<StateStore, QueryError> {
    match kind {
        StoreKind::Memory => Ok(StateStore { store: Arc::new(MemoryStore::new()), rocks: None }),
        StoreKind::Rocks => {
            let base = |check| {
                rebuild::base(checkpoint, history, history.now(), Prefer::Newest, check, &checkpoint.live_dir())
            };
            let base = if checkpoint.is_suspect()? {
                let whole = base(Check::Bytes)?;
                checkpoint.clear_suspicion()?;
                whole
            } else {
                match base(Check::Sizes) {
                    Err(QueryError::State(StateError::Corrupt { .. })) => base(Check::Bytes)?,
                    based => based?,
                }
            };
            recovered.snapshot = base.snapshot.map(|name| name.to_string());
            if base.snapshot.is_some() {
                base.damaged.into_iter().try_for_each(|name| checkpoint.snapshots().disown(name))?;
            }
            let store = Arc::new(base.store);
            Ok(StateStore { store: Arc::clone(&store) as Arc<dyn Store>, rocks: Some(store) })
        }
    }
}

fn restore_source(
    source: &mut dyn Source,
    prefix: &[u8],
    store: &dyn Store,
    last: Option<&SourceRange>,
) -> Result<(), QueryError> {
    let bookkeeping = bookkeeping(store, prefix)?;
    source.restore(bookkeeping, last).map_err(|error| source_failed(source, error))
}

fn source_failed(source: &dyn Source, error: SourceError) -> QueryError {
    QueryError::Source { source_name: source.describe(), source: error }
}

/// Pairs of a source's bookkeeping.
type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// What a source has put with committed batches, without the prefix.
fn bookkeeping(store: &dyn Store, prefix: &[u8]) -> Result<Pairs, QueryError> {
    let mut pairs = Vec::new();
    let end = prefix.iter().copied().chain(std::iter::once(u8::MAX)).collect::<Vec<_>>();
    store.scan(Family::Meta, prefix, &end, &mut |key, value| {
        pairs.push((key.get(prefix.len()..).unwrap_or_default().to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    })?;
    Ok(pairs)
}
