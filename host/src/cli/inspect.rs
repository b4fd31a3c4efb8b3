//! `tidemill inspect`: what a component is, and what it would do in a query.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use serde_json::{Map, Value, json};

use super::Format;
use super::listing::{duration_text, plain};
use super::open;
use super::output::{self, Coded};
use super::query_args::QueryArgs;
use crate::config::{ConfigError, Environment, QueryConfig};
use crate::engine::operator::OperatorPlan;
use crate::engine::setup::{self, Schemas};
use crate::runtime::{Inspection, Processor};

/// Show what a component is, and what it would do in a query
///
/// Says whether a file is a processor that this host runs: its size, digest, version of the contract, what it imports and
/// exports. Given a query as well (a query file, or at least the grouping key and the schema of the input), it also asks
/// the processor for its plan, without reading a row: the state variables it keeps, the input columns it wants, the rows
/// it emits.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct InspectArgs {
    #[command(flatten)]
    query: QueryArgs,
}

const EXAMPLES: &str = "\
Examples:
  tidemill inspect counter.wasm
  tidemill inspect counter.wasm --key key --schema 'key STRING, n BIGINT'
  tidemill inspect --config query.toml --output json

What is wrong with a file that is no processor is told with one of these codes: COMPONENT_EMPTY, \
COMPONENT_IS_CORE_MODULE (`tidemill build FILE` makes a component of it), COMPONENT_INVALID, COMPONENT_TOO_LARGE, \
COMPONENT_IMPORTS_UNKNOWN, COMPONENT_WORLD_MISMATCH, COMPONENT_UNREADABLE.";

/// Runs the command.
pub(super) fn run(args: &InspectArgs, format: Format, environment: &Environment) -> anyhow::Result<u8> {
    let (path, processor, plan) = match (args.query.describes_query(), args.query.component()) {
        (true, _) => {
            let config = args.query.load()?;
            let processor = Arc::new(open::processor(&config, environment)?);
            let plan = plan(&config, Arc::clone(&processor))?;
            (config.processor.component, processor, Some(plan))
        }
        (false, Some(path)) => {
            let processor = open::component(path, environment)?;
            (path.to_owned(), Arc::new(processor), None)
        }
        (false, None) => {
            let missing = ConfigError::Missing("name a component, or a query file with --config FILE".to_owned());
            return Err(Coded::wrap(missing.code(), missing));
        }
    };
    output::result(&match format {
        Format::Text => text(&path, processor.inspect(), plan.as_deref())?,
        Format::Json => format!("{}\n", document(&path, processor.inspect(), plan.as_deref())?),
    })?;
    Ok(0)
}

fn plan(config: &QueryConfig, processor: Arc<Processor>) -> anyhow::Result<Arc<OperatorPlan>> {
    let input = match &config.source.schema {
        Some(schema) => schema.clone(),
        None => open::committed_input(config)?.schema().clone(),
    };
    let initial_state = match &config.initial_state {
        None => None,
        Some(settings) => match &settings.schema {
            Some(schema) => Some(schema.clone()),
            None => open::initial_state(config)?.map(|source| source.schema().clone()),
        },
    };
    setup::plan(&config.settings(), processor, Schemas { input, initial_state })
        .map_err(|error| Coded::wrap(error.code().to_owned(), error))
}

fn document(path: &Path, component: &Inspection, plan: Option<&OperatorPlan>) -> anyhow::Result<Value> {
    let mut document = Map::new();
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
    Ok(Value::Object(document))
}

fn text(path: &Path, component: &Inspection, plan: Option<&OperatorPlan>) -> anyhow::Result<String> {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| writeln!(text, "{name:14}{}", plain(value));
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
