//! From a checkpoint's folder to a running query: the log's tail is made durable, the state store is rebuilt from a
//! snapshot and the log, and what sinks lack is published, all without running the processor.
//!
//! The store that a process leaves behind is never trusted; only snapshots and the log are.

use std::sync::Arc;

use super::catch_up::{LastRun, catch_up};
use super::checkpoint::{Checkpoint, NewCheckpoint};
use super::commit::{Bootstrap, SinkRole, SourceRole};
use super::error::QueryError;
use super::faults;
use super::history::History;
use super::operator::{OperatorPlan, QueryInfo, TimeMode};
use super::pipeline::{Pipeline, worker_ranges};
use super::publish;
use super::quarantine;
use super::query::{Outlet, Parts, Query, Rowless, StoreKind, bookkeeping_prefix};
use super::route::Routing;
use super::settings::{BadRows, QuerySettings};
use super::snapshots::Snapshots;
use super::source::Source;
use crate::record::{DataType, RowLayout, Schema, key_layout};
use crate::state::{Catalog, Changes, DueIndex, Family, MemoryStore, RocksStore, Store, drop_variable};

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
    let info = Arc::new(query_info(&settings, &parts, &checkpoint)?);
    let plan = Arc::new(parts.operator.plan(&info).map_err(QueryError::Unfit)?);
    let routing = routing(&settings, &plan.key, &plan.columns, info.input.clone(), key_groups)?;
    let initial_routing = initial_routing(&info, &plan, key_groups)?;

    let history = History::open(&checkpoint, settings.watermark.as_ref())?;
    let head = &history.head;
    refuse_other_settings(&settings, &history, &plan, parts.initial_state.is_some())?;
    faults::point("recovery.log-open");

    let mut recovered = Recovered { new: checkpoint.is_new(), last_batch: head.last_batch, ..Recovered::default() };
    let (store, rocks) = open_store(&checkpoint, parts.store, &mut recovered)?;
    let last_run = if store.applied()?.batch == head.last_batch { LastRun::Clean } else { LastRun::Cut };
    recovered.applied = apply_again(store.as_ref(), &history)?;
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
        recovered.published += catch_up(&checkpoint, outlet, &info.query_id, &history, last_run)?;
    }
    faults::point("recovery.published");
    checkpoint.keep_staged(&history.staged)?;

    let resolution = Catalog::load(store.as_ref())?.resolve(info.step, &plan.variables, &plan.dropped_variables)?;
    let mut pending_meta = resolution.changes;
    let mut pending_rows = 0i64;
    for dropped in &resolution.dropped {
        let records = drop_variable(store.as_ref(), info.step, dropped.id)?;
        pending_meta.append(&records.changes);
        pending_rows = pending_rows.saturating_sub_unsigned(records.rows);
    }
    let mut due = DueIndex::unknown(info.step, key_groups);
    due.refresh(store.as_ref())?;

    restore_source(parts.input.as_mut(), &input_columns(&settings, &info, &plan)?, SourceRole::Input, store.as_ref(), head.input.as_ref())?;
    if let (Some(source), Some(columns)) = (&mut parts.initial_state, initial_columns(&info, &plan)?) {
        restore_source(source.as_mut(), &columns, SourceRole::InitialState, store.as_ref(), head.initial_state.as_ref())?;
    }

    let pipeline = Pipeline {
        operator: parts.operator,
        info,
        plan,
        variables: resolution.variables,
        routing,
        initial_routing,
        output_limits: settings.output,
        state_limits: settings.state,
        spill_folder: checkpoint.tmp_dir(),
    };
    let History { log, head, batches, .. } = history;
    Ok(Query {
        ranges: worker_ranges(key_groups, settings.workers),
        snapshots: rocks.map(|rocks| Snapshots::new(rocks, settings.retention, batches)),
        due: Arc::new(due),
        rowless: Rowless::default(),
        clock: parts.clock,
        input: parts.input,
        initial_state: parts.initial_state,
        poisoned: false,
        settings,
        pipeline,
        output,
        quarantine,
        log,
        store,
        head,
        pending_meta,
        pending_rows,
        key_groups,
        recovered,
        checkpoint,
    })
}

fn query_info(settings: &QuerySettings, parts: &Parts, checkpoint: &Checkpoint) -> Result<QueryInfo, QueryError> {
    let input = parts.input.schema().clone();
    let key = input.project(settings.key.iter().map(String::as_str)).map_err(|error| {
        QueryError::settings("KEY_COLUMN_MISSING", format!("the grouping key does not fit the input: {error}"))
    })?;
    if key.is_empty() {
        return Err(QueryError::settings("KEY_MISSING", "a query needs a grouping key; name its columns (--key a,b)"));
    }
    Ok(QueryInfo {
        query_id: checkpoint.metadata().query_id.clone(),
        run_id: super::identity::random_id(),
        step: 0,
        time_mode: settings.time_mode,
        output_mode: settings.output_mode,
        key,
        initial_state: parts.initial_state.as_ref().map(|source| source.schema().clone()),
        input,
        parameters: settings.parameters.clone().into_iter().collect(),
        seed: checkpoint.metadata().seed,
    })
}

fn routing(
    settings: &QuerySettings,
    key: &Schema,
    columns: &Schema,
    input: &Schema,
    key_groups: u16,
) -> Result<Routing, QueryError> {
    let event_time = match (&settings.watermark, settings.time_mode) {
        (None, TimeMode::EventTime) => {
            return Err(QueryError::settings(
                "WATERMARK_MISSING",
                "time mode event-time needs a watermark; set query.watermark (--watermark 'COLUMN, DELAY')",
            ));
        }
        (None, _) => None,
        (Some(watermark), _) => match input.field(&watermark.column) {
            Some(field) if field.data_type == DataType::Timestamp => Some(field.name.clone()),
            Some(field) => {
                return Err(QueryError::settings(
                    "WATERMARK_COLUMN_TYPE",
                    format!("the watermark column {} is {}; it must be TIMESTAMP", field.name, field.data_type),
                ));
            }
            None => {
                return Err(QueryError::settings(
                    "WATERMARK_COLUMN_MISSING",
                    format!("the watermark column {} is not in the input ({input})", watermark.column),
                ));
            }
        },
    };
    Ok(Routing { key: key_layout(key)?, columns: columns.clone(), event_time, key_groups })
}

fn initial_routing(info: &QueryInfo, plan: &OperatorPlan, key_groups: u16) -> Result<Option<Routing>, QueryError> {
    let (Some(schema), Some(columns)) = (&info.initial_state, &plan.initial_state) else { return Ok(None) };
    for wanted in plan.key.fields() {
        let fits = schema.field(&wanted.name).is_some_and(|field| field.data_type == wanted.data_type);
        if !fits {
            return Err(QueryError::settings(
                "INITIAL_STATE_KEY_MISMATCH",
                format!(
                    "the initial state ({schema}) must have the grouping key column {} {}",
                    wanted.name, wanted.data_type
                ),
            ));
        }
    }
    Ok(Some(Routing { key: key_layout(&plan.key)?, columns: columns.clone(), event_time: None, key_groups }))
}

/// The columns to read: those that rows carry, the key, and the event time. NOT NULL where it is wanted so.
fn input_columns(settings: &QuerySettings, info: &QueryInfo, plan: &OperatorPlan) -> Result<Schema, QueryError> {
    let event_time = settings.watermark.as_ref().map(|watermark| watermark.column.as_str());
    columns_to_read(&info.input, &plan.columns, &plan.key, event_time)
}

fn initial_columns(info: &QueryInfo, plan: &OperatorPlan) -> Result<Option<Schema>, QueryError> {
    match (&info.initial_state, &plan.initial_state) {
        (Some(schema), Some(columns)) => Ok(Some(columns_to_read(schema, columns, &plan.key, None)?)),
        _ => Ok(None),
    }
}

fn columns_to_read(
    schema: &Schema,
    columns: &Schema,
    key: &Schema,
    event_time: Option<&str>,
) -> Result<Schema, QueryError> {
    let required = |name: &str| {
        let wanted = [columns, key].map(|schema| schema.field(name));
        wanted.into_iter().flatten().any(|field| !field.nullable)
    };
    let read = schema.fields().iter().filter(|field| {
        columns.field(&field.name).is_some()
            || key.field(&field.name).is_some()
            || event_time.is_some_and(|name| name.eq_ignore_ascii_case(&field.name))
    });
    let fields = read.map(|field| {
        let mut field = field.clone();
        field.nullable &= !required(&field.name);
        field
    });
    Ok(Schema::new(fields.collect())?)
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
                    format!("the {what} was {before} in this checkpoint and is {now} now; it cannot change. Go back, or start with a new checkpoint."),
                ));
            }
        }
        if step.key != plan.key.to_string() {
            return Err(QueryError::mismatch(
                "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
                format!("the grouping key was {} in this checkpoint and is {} now; it cannot change. Is it the checkpoint of another query?", step.key, plan.key),
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

fn open_store(
    checkpoint: &Checkpoint,
    kind: StoreKind,
    recovered: &mut Recovered,
) -> Result<(Arc<dyn Store>, Option<Arc<RocksStore>>), QueryError> {
    match kind {
        StoreKind::Memory => Ok((Arc::new(MemoryStore::default()), None)),
        StoreKind::Rocks => {
            recovered.snapshot = checkpoint.restore_newest()?;
            let store = Arc::new(RocksStore::open(&checkpoint.live_dir(), &Default::default())?);
            Ok((Arc::clone(&store) as Arc<dyn Store>, Some(store)))
        }
    }
}

/// Applies the batches that the store lacks.
fn apply_again(store: &dyn Store, history: &History) -> Result<u64, QueryError> {
    let applied = store.applied()?.batch;
    let oldest = history.batches.first().map(|retained| retained.batch_id);
    let next = applied.map_or(0, |batch| batch + 1);
    if oldest.is_some_and(|oldest| oldest > next) {
        return Err(QueryError::mismatch(
            "SNAPSHOT_MISSING",
            format!(
                "the state can be rebuilt up to batch {} only, but the log begins after that; snapshots of this checkpoint \
                 are missing or damaged. Restore them from a copy of the checkpoint.",
                applied.map_or_else(|| "(none)".to_owned(), |batch| batch.to_string())
            ),
        ));
    }
    let mut count = 0;
    for commit in history.commits_after(applied) {
        publish::apply(store, &commit?)?;
        count += 1;
    }
    Ok(count)
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
    crate::state::scan_prefix(store, Family::Meta, prefix, &mut |key, value| {
        bookkeeping.push((key.get(prefix.len()..).unwrap_or_default().to_vec(), value.to_vec()));
    })?;
    source.restore(bookkeeping, last).map_err(failed)
}
