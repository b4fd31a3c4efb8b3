//! `tidemill inspect`: what a component is, and what it would do in a query.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value, json};
use toml::Table;

use super::Format;
use super::listing::{duration_text, plain};
use super::open;
use super::output::{self, Coded};
use super::query_args::{QueryArgs, put};
use super::upgrade;
use crate::config::{ConfigError, Environment, QueryConfig, StepConfig};
use crate::engine::operator::{Operator, OperatorPlan};
use crate::engine::setup::{self, Schemas};
use crate::record::Schema;
use crate::runtime::{Inspection, Processor};

/// Show what a component is, and what it would do in a query
///
/// Says whether a file is a processor that this host runs: its size, digest, version of the contract, what it imports and
/// exports. Given a query as well (a query file, or at least the grouping key and the schema of the input), it also asks
/// the processor for its plan, without reading a row: the state variables it keeps, the input columns it wants, the rows
/// it emits.
///
/// With --against it says instead whether the component can go on with the checkpoint of an earlier version, and what
/// becomes of each state variable: what is converted, what is lost. The query may run meanwhile, and nothing in the
/// checkpoint is changed. The exit code is 3 if the component does not fit.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct InspectArgs {
    #[command(flatten)]
    query: QueryArgs,

    /// The checkpoint of an earlier version: would this component go on with it?
    #[arg(long, value_name = "CHECKPOINT")]
    against: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tidemill inspect counter.wasm
  tidemill inspect counter.wasm --key key --schema 'key STRING, n BIGINT'
  tidemill inspect --config query.toml --output json
  tidemill inspect counter-2.wasm --config query.toml --against checkpoint

What is wrong with a file that is no processor is told with one of these codes: COMPONENT_EMPTY, \
COMPONENT_IS_CORE_MODULE (`tidemill build FILE` makes a component of it), COMPONENT_INVALID, COMPONENT_TOO_LARGE, \
COMPONENT_IMPORTS_UNKNOWN, COMPONENT_WORLD_MISMATCH, COMPONENT_UNREADABLE.";

/// A component, with what it would do if a query is given.
pub(super) struct Inspected {
    /// The name of the step, where there are several.
    step: Option<String>,
    pub(super) path: PathBuf,
    component: Inspection,
    plan: Option<Arc<OperatorPlan>>,
}

impl Inspected {
    /// With one line per imported package: the runtime of a language imports two dozen interfaces of WASI.
    pub(super) fn in_brief(mut self) -> Self {
        let mut packages: Vec<(String, Vec<String>)> = Vec::new();
        for import in std::mem::take(&mut self.component.imports) {
            let (name, version) = import.split_once('@').unwrap_or((&import, ""));
            let (package, interface) = name.split_once('/').unwrap_or((name, ""));
            let package = format!("{package}@{version}");
            match packages.last_mut().filter(|(last, _)| *last == package) {
                Some((_, interfaces)) => interfaces.push(interface.to_owned()),
                None => packages.push((package, vec![interface.to_owned()])),
            }
        }
        let brief = packages.into_iter().map(|(package, interfaces)| format!("{package}: {}", interfaces.join(", ")));
        self.component.imports = brief.collect();
        self
    }
}

/// Runs the command.
pub(super) fn run(args: &InspectArgs, format: Format, environment: &Environment) -> anyhow::Result<u8> {
    if let Some(checkpoint) = &args.against {
        return compare(args, checkpoint, format, environment);
    }
    let inspected = match (args.query.describes_query(), args.query.component()) {
        (true, _) => steps(&args.query.load()?, environment)?,
        (false, Some(path)) => vec![component(path, environment)?],
        (false, None) => {
            let missing = ConfigError::Missing("name a component, or a query file with --config FILE".to_owned());
            return Err(Coded::wrap(missing.code(), missing));
        }
    };
    output::result(&match format {
        Format::Text => inspected.iter().map(text).collect::<anyhow::Result<Vec<_>>>()?.join("\n"),
        Format::Json => format!("{}\n", documents(&inspected)),
    })?;
    Ok(0)
}

/// Looks at a component without a query.
pub(super) fn component(path: &Path, environment: &Environment) -> anyhow::Result<Inspected> {
    let component = open::component(path, environment)?.inspect().clone();
    Ok(Inspected { step: None, path: path.to_owned(), component, plan: None })
}

/// The query of a file with this component, if it is of one processor and tells the schemas without a look at rows.
pub(super) fn query_of(file: &Path, component: &Path) -> Option<QueryConfig> {
    let component = std::path::absolute(component).ok()?;
    let mut overrides = Table::new();
    put(&mut overrides, "processor.component", component.to_str()?.into());
    let config = QueryConfig::load(Some(file), overrides).ok()?;
    let [step] = config.steps.as_slice() else { return None };
    let initial_state = step.initial_state.iter().all(|settings| settings.schema.is_some());
    (initial_state && config.sources.iter().all(|source| source.at.schema.is_some())).then_some(config)
}

fn compare(args: &InspectArgs, checkpoint: &Path, format: Format, environment: &Environment) -> anyhow::Result<u8> {
    if !args.query.describes_query() {
        let missing = "to compare with a checkpoint, describe the query with --config FILE (or --key and --schema)";
        let missing = ConfigError::Missing(missing.to_owned());
        return Err(Coded::wrap(missing.code(), missing));
    }
    let config = args.query.load()?;
    let operators = processors(&config, environment)?;
    let operators: Vec<_> = operators.into_iter().map(|processor| processor as Arc<dyn Operator>).collect();
    upgrade::compare(checkpoint, &config.settings(), &operators, &schemas(&config)?, format)
}

fn processors(config: &QueryConfig, environment: &Environment) -> anyhow::Result<Vec<Arc<Processor>>> {
    let processors = open::Processors::new(config.query.metering, environment)?;
    config.steps.iter().map(|step| Ok(Arc::new(processors.step(step)?))).collect()
}

fn schemas(config: &QueryConfig) -> anyhow::Result<Schemas> {
    Ok(Schemas {
        inputs: match config.sources.iter().map(|source| source.at.schema.clone()).collect() {
            Some(schemas) => schemas,
            None => open::committed_inputs(config)?.iter().map(|source| source.schema().clone()).collect(),
        },
        initial_states: config.steps.iter().map(|step| initial_schema(config, step)).collect::<anyhow::Result<_>>()?,
    })
}

/// Looks at the components of a query, and at what they would do in it.
pub(super) fn steps(config: &QueryConfig, environment: &Environment) -> anyhow::Result<Vec<Inspected>> {
    let loaded = processors(config, environment)?;
    let operators: Vec<_> = loaded.iter().map(|processor| Arc::clone(processor) as Arc<dyn Operator>).collect();
    let plans = setup::plan(&config.settings(), &operators, &schemas(config)?)
        .map_err(|error| Coded::wrap(error.code().to_owned(), error))?;
    let several = config.steps.len() > 1;
    let inspected = config.steps.iter().zip(loaded).zip(plans).map(|((step, processor), plan)| Inspected {
        step: several.then(|| step.name.clone()),
        path: step.component.clone(),
        component: processor.inspect().clone(),
        plan: Some(plan),
    });
    Ok(inspected.collect())
}

fn initial_schema(config: &QueryConfig, step: &StepConfig) -> anyhow::Result<Option<Schema>> {
    match step.initial_state.as_ref().and_then(|settings| settings.schema.clone()) {
        Some(schema) => Ok(Some(schema)),
        None => Ok(open::initial_state(config, step)?.map(|source| source.schema().clone())),
    }
}

/// What was found, for programs.
pub(super) fn documents(inspected: &[Inspected]) -> Value {
    match inspected {
        [one] => document(one),
        several => json!({ "steps": several.iter().map(document).collect::<Vec<_>>() }),
    }
}

fn document(inspected: &Inspected) -> Value {
    let Inspected { step, path, component, plan } = inspected;
    let mut document = Map::new();
    if let Some(step) = step {
        document.insert("step".to_owned(), json!(step));
    }
    document.insert("component".to_owned(), json!(path));
    let Inspection { digest, bytes, world_version, imports, exports } = component;
    document.insert("bytes".to_owned(), json!(bytes));
    document.insert("digest".to_owned(), json!(format!("sha256:{digest}")));
    document.insert("worldVersion".to_owned(), json!(world_version));
    document.insert("imports".to_owned(), json!(imports));
    document.insert("exports".to_owned(), json!(exports));
    if let Some(plan) = plan {
        let variables = plan.variables.iter().map(|variable| {
            json!({
                "name": variable.name,
                "kind": variable.kind.name(),
                "key": variable.key.as_ref().map(ToString::to_string),
                "value": variable.value.to_string(),
                "ttlMs": variable.ttl_ms,
            })
        });
        let plan = json!({
            "key": plan.key.to_string(),
            "columns": plan.columns.to_string(),
            "initialState": plan.initial_state.as_ref().map(ToString::to_string),
            "output": plan.output.to_string(),
            "variables": variables.collect::<Vec<_>>(),
            "droppedVariables": plan.dropped_variables,
            "prefetch": prefetched(plan),
        });
        document.insert("plan".to_owned(), plan);
    }
    Value::Object(document)
}

/// What was found, for people.
pub(super) fn text(inspected: &Inspected) -> anyhow::Result<String> {
    let Inspected { step, path, component, plan } = inspected;
    let mut text = String::new();
    let mut line = |name: &str, value: &str| writeln!(text, "{name:14}{}", plain(value));
    if let Some(step) = step {
        line("step", step)?;
    }
    line("component", &path.display().to_string())?;
    line("size", &format!("{} bytes", component.bytes))?;
    line("digest", &format!("sha256:{}", component.digest))?;
    line("world version", &component.world_version)?;
    for (name, interfaces) in [("imports", &component.imports), ("exports", &component.exports)] {
        for (number, interface) in interfaces.iter().enumerate() {
            line(if number == 0 { name } else { "" }, interface)?;
        }
    }
    let Some(plan) = plan else { return Ok(text) };
    line("key", &plan.key.to_string())?;
    line("columns", &plan.columns.to_string())?;
    if let Some(columns) = &plan.initial_state {
        line("initial state", &columns.to_string())?;
    }
    line("output", &plan.output.to_string())?;
    for (number, variable) in plan.variables.iter().enumerate() {
        let key = variable.key.as_ref().map(|key| format!("<{key}> to ")).unwrap_or_default();
        let ttl = variable.ttl_ms.map(|ms| format!(", expires after {}", duration_text(ms))).unwrap_or_default();
        let shown = format!("{} {} {key}<{}>{ttl}", variable.kind.name(), variable.name, variable.value);
        line(if number == 0 { "state" } else { "" }, &shown)?;
    }
    for (name, variables) in [("drops", plan.dropped_variables.clone()), ("prefetch", prefetched(plan))] {
        if !variables.is_empty() {
            line(name, &variables.join(", "))?;
        }
    }
    Ok(text)
}

fn prefetched(plan: &OperatorPlan) -> Vec<String> {
    let named = plan.prefetch.iter().filter_map(|index| plan.variables.get(usize::from(*index)));
    named.map(|variable| variable.name.clone()).collect()
}
