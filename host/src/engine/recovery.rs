//! From a checkpoint's folder to a running query: the log's tail is made durable, the state store is rebuilt from a
//! snapshot and the log, and what sinks lack is published, all without running the processor.
//!
//! The store that a process leaves behind is never trusted; only snapshots and the log are.

use std::ops::ControlFlow;
use std::sync::Arc;

use super::catch_up::{LastRun, catch_up, refuse_pending};
use super::checkpoint::{Checkpoint, NewCheckpoint};
use super::commit::{Bootstrap, SinkRole, SourceRole};
use super::error::QueryError;
use super::faults;
use super::history::History;
use super::operator::OperatorPlan;
use super::pipeline::worker_ranges;
use super::quarantine;
use super::query::{Outlet, Parts, Query, Rowless, StoreKind, bookkeeping_prefix};
use super::rebuild::{self, Prefer, apply_up_to};
use super::settings::{BadRows, QuerySettings};
use super::setup::{Schemas, Setup};
use super::snapshots::Snapshots;
use super::source::Source;
use crate::record::{RowLayout, Schema};
use crate::state::{DueIndex, Family, MemoryStore, RocksStore, Store};

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
}

pub(super) fn open(settings: QuerySettings, mut parts: Parts) -> Result<Query, QueryError> {
    let wanted = NewCheckpoint { name: settings.name.clone(), seed: settings.seed, key_groups: settings.key_groups };
    let checkpoint = Checkpoint::open(Arc::clone(&parts.disk), &parts.checkpoint, &wanted)?;
    let key_groups = checkpoint.metadata().key_groups;
    let schemas = Schemas {
        input: parts.input.schema().clone(),
        initial_state: parts.initial_state.as_ref().map(|source| source.schema().clone()),
    };
    let setup = Setup::new(&settings, parts.operator, schemas, checkpoint.metadata())?;
    let plan = Arc::clone(&setup.plan);

    let (log, history) = History::open(&checkpoint, settings.watermark.as_ref())?;
    let head = &history.head;
    refuse_other_settings(&settings, &history, &plan, parts.initial_state.is_some())?;
    faults::point("recovery.log-open");
    if let (StoreKind::Rocks, Some(program)) = (parts.store, setup.operator.artifact()) {
        checkpoint.keep_program(&setup.operator.identity(), program)?;
    }

    let mut recovered = Recovered { new: checkpoint.is_new(), last_batch: head.last_batch, ..Recovered::default() };
    let StateStore { store, rocks } = open_store(&checkpoint, parts.store, &history, &mut recovered)?;
    let snapshot_batch = store.applied()?.batch;
    // A rollback takes back what may not have been published.
    let is_clean = snapshot_batch == head.last_batch || history.ends_with_rollback();
    let last_run = if is_clean { LastRun::Clean } else { LastRun::Cut };
    recovered.applied = apply_up_to(store.as_ref(), &history, history.now())?;
    faults::point("recovery.state-applied");

    let mut output = Outlet { role: SinkRole::Output, sink: parts.sink, layout: RowLayout::new(&plan.output) };
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
    for outlet in std::iter::once(&mut output).chain(&mut quarantine) {
        recovered.published += catch_up(&checkpoint, outlet, &setup.info.query_id, &history, last_run)?;
    }
    if quarantine.is_none() {
        refuse_pending(&history, SinkRole::Quarantine, "none", last_run)?;
    }
    faults::point("recovery.published");
    checkpoint.keep_staged(&history.staged())?;

    let (variables, pending) = setup.declare_variables(store.as_ref())?;
    let due = DueIndex::load(store.as_ref(), setup.info.step, key_groups)?;

    let columns = setup.input_columns()?;
    restore_source(parts.input.as_mut(), &columns, SourceRole::Input, store.as_ref(), head.input.as_ref())?;
    if let (Some(source), Some(columns)) = (&mut parts.initial_state, setup.initial_columns()?) {
        let last = head.initial_state.as_ref();
        restore_source(source.as_mut(), &columns, SourceRole::InitialState, store.as_ref(), last)?;
    }

    let pipeline = setup.pipeline(variables, &settings, checkpoint.tmp_dir());
    let History { head, batches, .. } = history;
    Ok(Query {
        ranges: worker_ranges(key_groups, settings.workers),
        snapshots: rocks
            .map(|rocks| Snapshots::new(rocks, checkpoint.snapshots(), settings.retention, snapshot_batch, batches)),
        due: Arc::new(due),
        rowless: Rowless::default(),
        clock: parts.clock,
        input: parts.input,
        initial_state: parts.initial_state,
        poisoned: false,
        committing: false,
        settings,
        pipeline,
        output,
        quarantine,
        log,
        store,
        head,
        pending,
        key_groups,
        recovered,
        checkpoint,
    })
}

/// A checkpoint goes on only with the settings that its state was made by.
fn refuse_other_settings(
    settings: &QuerySettings,
    history: &History,
    plan: &OperatorPlan,
    has_initial_state: bool,
) -> Result<(), QueryError> {
    let Some(last) = &history.last else { return Ok(()) };
    if let Some(step) = last.steps.first() {
        for (what, before, now) in [
            ("time mode", format!("{:?}", step.time_mode), format!("{:?}", settings.time_mode)),
            ("output mode", format!("{:?}", step.output_mode), format!("{:?}", settings.output_mode)),
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
        if step.key != plan.key.to_string() {
            return Err(QueryError::mismatch(
                "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
                format!(
                    "the grouping key was {} in this checkpoint and is {} now; it cannot change. Is it the checkpoint of another query?",
                    step.key, plan.key
                ),
            ));
        }
    }
    match (last.bootstrap, has_initial_state) {
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
            let base = rebuild::base(checkpoint, history, history.now(), Prefer::Newest, &checkpoint.live_dir())?;
            recovered.snapshot = base.snapshot.map(|name| name.to_string());
            let store = Arc::new(base.store);
            Ok(StateStore { store: Arc::clone(&store) as Arc<dyn Store>, rocks: Some(store) })
        }
    }
}

fn restore_source(
    source: &mut dyn Source,
    columns: &Schema,
    role: SourceRole,
    store: &dyn Store,
    last: Option<&super::source::SourceRange>,
) -> Result<(), QueryError> {
    let name = source.describe();
    let failed = |error| QueryError::Source { source_name: name.clone(), source: error };
    source.project(columns).map_err(failed)?;
    let prefix = bookkeeping_prefix(role);
    let mut bookkeeping = Vec::new();
    let end = prefix.iter().copied().chain(std::iter::once(u8::MAX)).collect::<Vec<_>>();
    store.scan(Family::Meta, prefix, &end, &mut |key, value| {
        bookkeeping.push((key.get(prefix.len()..).unwrap_or_default().to_vec(), value.to_vec()));
        ControlFlow::Continue(())
    })?;
    source.restore(bookkeeping, last).map_err(failed)
}
