//! What a query needs before it can process rows: the processor's plan checked against input and settings, the columns
//! to read, the variables' places in the state store. The same for a live query and a replay.

use std::path::PathBuf;
use std::sync::Arc;

use super::checkpoint::Metadata;
use super::commit::StepCommit;
use super::error::QueryError;
use super::identity;
use super::operator::{Operator, OperatorPlan, QueryInfo, TimeMode};
use super::pipeline::{Pipeline, Variables};
use super::route::Routing;
use super::settings::{OnPoison, QuerySettings, StepSettings};
use super::union::Union;
use super::upgrade::{self, Upgrade, VariableReport};
use crate::record::{DataType, Field, Schema, key_layout};
use crate::state::{Catalog, Changes, MemoryStore, Store, drop_variable};

/// Schemas of what a query reads.
#[derive(Debug, Clone)]
pub struct Schemas {
    /// All columns of each source.
    pub inputs: Vec<Schema>,
    /// All columns of the initial state of each step that has one.
    pub initial_states: Vec<Option<Schema>>,
}

/// What the processors of a query give and want in it, step after step. Runs `init` on throw-away instances; there need
/// be neither rows nor a checkpoint.
///
/// # Errors
/// Settings, input and processors that do not fit each other; variables that no checkpoint could hold.
pub fn plan(
    settings: &QuerySettings,
    operators: &[Arc<dyn Operator>],
    schemas: &Schemas,
) -> Result<Vec<Arc<OperatorPlan>>, QueryError> {
    let metadata = Metadata {
        query_id: identity::random_id(),
        name: settings.name.clone(),
        seed: settings.seed.unwrap_or_default(),
        key_groups: settings.key_groups,
        created_by: env!("CARGO_PKG_VERSION").to_owned(),
        forks: Vec::new(),
    };
    let chain = chain(settings, operators, schemas, &metadata)?;
    declare_variables(&chain.steps, &MemoryStore::new())?;
    Ok(chain.steps.into_iter().map(|setup| setup.plan).collect())
}

/// A processor that fits its place in the query.
pub(super) struct Setup {
    pub(super) settings: StepSettings,
    pub(super) operator: Arc<dyn Operator>,
    pub(super) info: Arc<QueryInfo>,
    pub(super) plan: Arc<OperatorPlan>,
    /// The input columns that are needed, NOT NULL where they are wanted so.
    pub(super) input_columns: Schema,
    /// The same for the initial state.
    pub(super) initial_columns: Option<Schema>,
    sees_watermark: bool,
    routing: Routing,
    initial_routing: Option<Routing>,
}

/// A query that fits together.
pub(super) struct Chain {
    pub(super) union: Union,
    pub(super) steps: Vec<Setup>,
}

/// Asks the processors of all steps for their plans and checks them, each against what the one before emits.
///
/// # Errors
/// Settings, input and processors that do not fit each other.
pub(super) fn chain(
    settings: &QuerySettings,
    operators: &[Arc<dyn Operator>],
    schemas: &Schemas,
    metadata: &Metadata,
) -> Result<Chain, QueryError> {
    check_names(settings)?;
    let union = Union::new(&settings.sources, &schemas.inputs)?;
    let run_id = identity::random_id();
    let mut upstream = Upstream::input(&union);
    let mut steps = Vec::new();
    let initial_states = schemas.initial_states.iter().cloned().chain(std::iter::repeat(None));
    for ((number, step), (operator, initial_state)) in
        (0..).zip(&settings.steps).zip(operators.iter().zip(initial_states))
    {
        let setup = Setup::new(number, step, Arc::clone(operator), &upstream, initial_state, &run_id, metadata);
        let mut setup = setup.map_err(|error| settings.in_step(&step.name, error))?;
        if settings.poison.on_poison == OnPoison::DeadLetter {
            setup.read_whole_rows()?;
        }
        upstream = Upstream::step(&setup, &upstream);
        steps.push(setup);
    }
    if steps.len() != settings.steps.len() {
        return Err(QueryError::settings("HOST_DEFECT", "there are not as many processors as steps"));
    }
    Ok(Chain { union, steps })
}

/// Most steps of a query: they are numbered with one byte.
const STEPS_MAX: usize = 255;
/// Most sources of a query: in the log, where rows of a stream stand by the number of their source, it shares a byte.
const SOURCES_MAX: usize = 64;
const NAME_CHARS_MAX: usize = 100;

fn check_names(settings: &QuerySettings) -> Result<(), QueryError> {
    if settings.steps.is_empty() || settings.steps.len() > STEPS_MAX {
        return Err(QueryError::settings(
            "STEPS_INVALID",
            format!("a query has from 1 to {STEPS_MAX} steps, and this one has {}", settings.steps.len()),
        ));
    }
    if settings.sources.is_empty() || settings.sources.len() > SOURCES_MAX {
        return Err(QueryError::settings(
            "SOURCES_INVALID",
            format!("a query has from 1 to {SOURCES_MAX} sources, and this one has {}", settings.sources.len()),
        ));
    }
    check_unique(settings.steps.iter().map(|step| &step.name), "step", "STEP_NAME_INVALID")?;
    check_unique(settings.sources.iter().map(|source| &source.name), "source", "SOURCE_NAME_INVALID")?;
    match settings.dropped_sources.iter().find(|dropped| settings.sources.iter().any(|of| of.name == **dropped)) {
        Some(both) => Err(QueryError::settings(
            "SOURCE_NAME_INVALID",
            format!("source {both} is read, and named in dropped_sources as well; take it out of one of them"),
        )),
        None => Ok(()),
    }
}

fn check_unique<'n>(
    names: impl Iterator<Item = &'n String> + Clone,
    what: &str,
    code: &'static str,
) -> Result<(), QueryError> {
    for (number, name) in names.clone().enumerate() {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_plain) {
            let problem =
                format!("{name:?} is no name of a {what}; take 1 to {NAME_CHARS_MAX} letters, digits, _ and -");
            return Err(QueryError::settings(code, problem));
        }
        if names.clone().take(number).any(|before| before == name) {
            let problem = format!("two of the {what}s are named {name:?}; give each a name of its own");
            return Err(QueryError::settings(code, problem));
        }
    }
    Ok(())
}

/// What comes to a step.
struct Upstream {
    schema: Schema,
    /// Whether there is a watermark.
    has_watermark: bool,
    /// The column that rows can be late by.
    event_time: Option<String>,
    /// What is missing where there is none.
    without: String,
}

impl Upstream {
    fn input(union: &Union) -> Self {
        Self {
            schema: union.schema.clone(),
            has_watermark: union.event_time.is_some(),
            event_time: union.event_time.clone(),
            without: "set query.watermark (--watermark 'COLUMN, DELAY')".to_owned(),
        }
    }

    fn step(setup: &Setup, upstream: &Self) -> Self {
        let StepSettings { name, time_mode, output_event_time, .. } = &setup.settings;
        let in_processing_time = *time_mode == TimeMode::ProcessingTime;
        let has_watermark = upstream.has_watermark && !in_processing_time;
        Self {
            schema: setup.plan.output.clone(),
            has_watermark,
            event_time: output_event_time.clone().filter(|_| has_watermark),
            without: if in_processing_time {
                format!("step {name} runs in processing time and passes no watermark on")
            } else {
                format!(
                    "name the column of the rows of step {name} that holds their event time, with output_event_time"
                )
            },
        }
    }
}

/// The event-time column of the output must be there, a TIMESTAMP, and have a watermark to be judged by.
fn check_output_event_time(settings: &StepSettings, output: &Schema, upstream: &Upstream) -> Result<(), QueryError> {
    let Some(column) = &settings.output_event_time else { return Ok(()) };
    if !upstream.has_watermark {
        return Err(QueryError::settings(
            "CANNOT_ASSIGN_EVENT_TIME_COLUMN_WITHOUT_WATERMARK",
            format!(
                "the rows of this step cannot have the event-time column {column}, as no watermark comes to the step: {}",
                upstream.without
            ),
        ));
    }
    match output.project([column.as_str()])?.fields() {
        [field] if field.data_type == DataType::Timestamp => Ok(()),
        _ => Err(QueryError::settings(
            "WATERMARK_COLUMN_TYPE",
            format!("the event-time column {column} of the output ({output}) must be TIMESTAMP"),
        )),
    }
}

/// The variables of every step, and what declaring them changes in the state, with the next commit.
#[derive(Debug, Default)]
pub(super) struct Declared {
    /// Of each step, with their places in the state.
    pub(super) variables: Vec<Variables>,
    pub(super) changes: Changes,
    /// What becomes of the state of each step.
    pub(super) pending: Vec<PendingStep>,
}

/// What becomes of the state of a step with the next commit.
#[derive(Debug, Clone, Default)]
pub(super) struct PendingStep {
    pub(super) variables_dropped: u64,
    /// State rows that those had.
    pub(super) rows_dropped: u64,
    /// The variables that do not go on as they were.
    changed: Vec<VariableReport>,
    /// Set if the step goes on behind a batch, and not as it ran then.
    pub(super) upgrade: Option<Upgrade>,
}

impl PendingStep {
    /// Compares with the step's last batch.
    pub(super) fn follow(&mut self, last: &StepCommit, processor: &str) {
        let variables = std::mem::take(&mut self.changed);
        if last.processor != processor || !variables.is_empty() {
            self.upgrade = Some(Upgrade { from: last.processor.clone(), variables });
        }
    }
}

/// Finds the variables' places in the state, making those of new ones and dropping those no longer wanted.
///
/// # Errors
/// A variable that is not what it was; a failing store.
pub(super) fn declare_variables(chain: &[Setup], store: &dyn Store) -> Result<Declared, QueryError> {
    let mut catalog = Catalog::load(store)?;
    let mut declared = Declared::default();
    for setup in chain {
        let Setup { info, plan, settings, .. } = setup;
        let resolution = catalog.resolve(info.step, &plan.variables, &plan.dropped_variables, &settings.state)?;
        declared.changes.append(&resolution.changes);
        let mut pending = PendingStep {
            variables_dropped: resolution.dropped.len() as u64,
            changed: upgrade::changed(&catalog, info.step, plan, &settings.state)?,
            ..PendingStep::default()
        };
        for variable in &resolution.dropped {
            let records = drop_variable(store, info.step, variable.id)?;
            declared.changes.append(&records.changes);
            pending.rows_dropped += records.rows;
        }
        declared.pending.push(pending);
        catalog = resolution.catalog;
        let dropped = resolution.dropped.iter().map(|variable| variable.id).collect();
        declared.variables.push(Variables { declared: resolution.variables, dropped });
    }
    Ok(declared)
}

impl Setup {
    fn new(
        number: u8,
        settings: &StepSettings,
        operator: Arc<dyn Operator>,
        upstream: &Upstream,
        initial_state: Option<Schema>,
        run_id: &str,
        metadata: &Metadata,
    ) -> Result<Self, QueryError> {
        let info = QueryInfo {
            query_id: metadata.query_id.clone(),
            run_id: run_id.to_owned(),
            step: number,
            time_mode: settings.time_mode,
            output_mode: settings.output_mode,
            key: grouping_key(settings, &upstream.schema)?,
            initial_state,
            input: upstream.schema.clone(),
            parameters: settings.parameters.clone().into_iter().collect(),
            seed: metadata.seed,
        };
        if settings.time_mode == TimeMode::EventTime && upstream.event_time.is_none() {
            return Err(QueryError::settings(
                "WATERMARK_MISSING",
                format!("time mode event-time needs a watermark: {}", upstream.without),
            ));
        }
        let plan = operator.plan(&info).map_err(QueryError::Unfit)?;
        check_output_event_time(settings, &plan.output, upstream)?;
        let event_time = upstream.event_time.as_deref();
        let initial_columns = match (&info.initial_state, &plan.initial_state) {
            (Some(schema), Some(columns)) => Some(columns_to_read(schema, columns, &plan.key, None)?),
            _ => None,
        };
        Ok(Self {
            settings: settings.clone(),
            input_columns: columns_to_read(&info.input, &plan.columns, &plan.key, event_time)?,
            initial_columns,
            sees_watermark: upstream.has_watermark,
            routing: Routing {
                key: key_layout(&plan.key)?,
                columns: plan.columns.clone(),
                event_time: upstream.event_time.clone(),
                key_groups: metadata.key_groups,
            },
            initial_routing: initial_routing(&info, &plan, metadata.key_groups)?,
            operator,
            info: Arc::new(info),
            plan: Arc::new(plan),
        })
    }

    /// Reads also the columns that the processor does not want, so that a dead letter is all of its row.
    fn read_whole_rows(&mut self) -> Result<(), QueryError> {
        self.input_columns = all_columns(&self.info.input, &self.input_columns)?;
        if let (Some(schema), Some(columns)) = (&self.info.initial_state, &mut self.initial_columns) {
            *columns = all_columns(schema, columns)?;
        }
        Ok(())
    }

    /// Ready to process batches.
    ///
    /// # Errors
    /// Never for a plan that was checked.
    pub(super) fn pipeline(self, variables: Variables, spill_folder: PathBuf) -> Result<Pipeline, QueryError> {
        let required = self.input_columns.fields().iter().filter(|field| !field.nullable).cloned();
        Ok(Pipeline {
            required: Schema::new(required.collect())?,
            operator: self.operator,
            info: self.info,
            plan: self.plan,
            variables,
            routing: self.routing,
            initial_routing: self.initial_routing,
            sees_watermark: self.sees_watermark,
            output_limits: self.settings.output,
            state_limits: self.settings.state,
            settings: self.settings,
            spill_folder,
        })
    }
}

fn grouping_key(settings: &StepSettings, input: &Schema) -> Result<Schema, QueryError> {
    let key = input.project(settings.key.iter().map(String::as_str)).map_err(|error| {
        QueryError::settings("KEY_COLUMN_MISSING", format!("the grouping key does not fit the input: {error}"))
    })?;
    if key.is_empty() {
        return Err(QueryError::settings("KEY_MISSING", "a query needs a grouping key; name its columns (--key a,b)"));
    }
    Ok(key)
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

/// All columns, those that are needed as they are.
fn all_columns(schema: &Schema, needed: &Schema) -> Result<Schema, QueryError> {
    let field = |field: &Field| needed.field(&field.name).unwrap_or(field).clone();
    Ok(Schema::new(schema.fields().iter().map(field).collect())?)
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
