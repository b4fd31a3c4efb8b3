//! What a query needs before it can process rows: the processor's plan checked against input and settings, the columns
//! to read, the variables' places in the state store. The same for a live query and a replay.

use std::path::PathBuf;
use std::sync::Arc;

use super::checkpoint::Metadata;
use super::error::QueryError;
use super::identity;
use super::operator::{Operator, OperatorPlan, QueryInfo, TimeMode};
use super::pipeline::{Pipeline, Variables};
use super::route::Routing;
use super::settings::QuerySettings;
use crate::record::{DataType, Schema, key_layout};
use crate::state::{Catalog, Changes, MemoryStore, StateLimits, Store, drop_variable};

/// Schemas of what a query reads.
#[derive(Debug, Clone)]
pub struct Schemas {
    /// All columns of the input.
    pub input: Schema,
    /// All columns of the initial state, if there is one.
    pub initial_state: Option<Schema>,
}

/// What a processor gives and wants in a query with these settings. Runs `init` on a throw-away instance; there need be
/// neither rows nor a checkpoint.
///
/// # Errors
/// Settings, input and processor that do not fit each other; variables that no checkpoint could hold.
pub fn plan(
    settings: &QuerySettings,
    operator: Arc<dyn Operator>,
    schemas: Schemas,
) -> Result<Arc<OperatorPlan>, QueryError> {
    let metadata = Metadata {
        query_id: identity::random_id(),
        name: settings.name.clone(),
        seed: settings.seed.unwrap_or_default(),
        key_groups: settings.key_groups,
        created_by: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let setup = Setup::new(settings, operator, schemas, &metadata)?;
    setup.declare_variables(&MemoryStore::new())?;
    Ok(setup.plan)
}

/// A processor that fits its query.
pub(super) struct Setup {
    pub(super) operator: Arc<dyn Operator>,
    pub(super) info: Arc<QueryInfo>,
    pub(super) plan: Arc<OperatorPlan>,
    routing: Routing,
    initial_routing: Option<Routing>,
    state_limits: StateLimits,
}

/// What the declaration of variables changes in the state, with the next commit.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) changes: Changes,
    /// Change of the number of state rows.
    pub(super) rows: i64,
    /// Variables dropped.
    pub(super) dropped: u64,
}

impl Setup {
    /// Asks the processor for its plan and checks it.
    ///
    /// # Errors
    /// Settings, input and processor that do not fit each other.
    pub(super) fn new(
        settings: &QuerySettings,
        operator: Arc<dyn Operator>,
        schemas: Schemas,
        metadata: &Metadata,
    ) -> Result<Self, QueryError> {
        let info = Arc::new(query_info(settings, schemas, metadata)?);
        let plan = Arc::new(operator.plan(&info).map_err(QueryError::Unfit)?);
        let routing = routing(settings, &plan.key, &plan.columns, &info.input, metadata.key_groups)?;
        let initial_routing = initial_routing(&info, &plan, metadata.key_groups)?;
        Ok(Self { operator, info, plan, routing, initial_routing, state_limits: settings.state })
    }

    /// Finds the variables' places in the state, making those of new ones and dropping those no longer wanted.
    ///
    /// # Errors
    /// A variable that is not what it was; a failing store.
    pub(super) fn declare_variables(&self, store: &dyn Store) -> Result<(Variables, Pending), QueryError> {
        let step = self.info.step;
        let resolution = Catalog::load(store)?.resolve(
            step,
            &self.plan.variables,
            &self.plan.dropped_variables,
            &self.state_limits,
        )?;
        let mut pending = Pending { changes: resolution.changes, rows: 0, dropped: resolution.dropped.len() as u64 };
        for dropped in &resolution.dropped {
            let records = drop_variable(store, step, dropped.id)?;
            pending.changes.append(&records.changes);
            pending.rows = pending.rows.saturating_sub_unsigned(records.rows);
        }
        let dropped = resolution.dropped.iter().map(|dropped| dropped.id).collect();
        Ok((Variables { declared: resolution.variables, dropped }, pending))
    }

    /// The input columns to read.
    ///
    /// # Errors
    /// Never for a plan that was checked.
    pub(super) fn input_columns(&self) -> Result<Schema, QueryError> {
        columns_to_read(&self.info.input, &self.plan.columns, &self.plan.key, self.routing.event_time.as_deref())
    }

    /// The same for the initial state.
    ///
    /// # Errors
    /// Never for a plan that was checked.
    pub(super) fn initial_columns(&self) -> Result<Option<Schema>, QueryError> {
        match (&self.info.initial_state, &self.plan.initial_state) {
            (Some(schema), Some(columns)) => Ok(Some(columns_to_read(schema, columns, &self.plan.key, None)?)),
            _ => Ok(None),
        }
    }

    /// Ready to process batches.
    pub(super) fn pipeline(self, variables: Variables, settings: &QuerySettings, spill_folder: PathBuf) -> Pipeline {
        Pipeline {
            operator: self.operator,
            info: self.info,
            plan: self.plan,
            variables,
            routing: self.routing,
            initial_routing: self.initial_routing,
            output_limits: settings.output,
            state_limits: settings.state,
            spill_folder,
        }
    }
}

fn query_info(settings: &QuerySettings, schemas: Schemas, metadata: &Metadata) -> Result<QueryInfo, QueryError> {
    let Schemas { input, initial_state } = schemas;
    let key = input.project(settings.key.iter().map(String::as_str)).map_err(|error| {
        QueryError::settings("KEY_COLUMN_MISSING", format!("the grouping key does not fit the input: {error}"))
    })?;
    if key.is_empty() {
        return Err(QueryError::settings("KEY_MISSING", "a query needs a grouping key; name its columns (--key a,b)"));
    }
    Ok(QueryInfo {
        query_id: metadata.query_id.clone(),
        run_id: identity::random_id(),
        step: 0,
        time_mode: settings.time_mode,
        output_mode: settings.output_mode,
        key,
        initial_state,
        input,
        parameters: settings.parameters.clone().into_iter().collect(),
        seed: metadata.seed,
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
                    format!(
                        "the watermark column {} is not in the input ({input}); name a TIMESTAMP column of it",
                        watermark.column
                    ),
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
