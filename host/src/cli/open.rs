//! From a query's settings to its parts: processor, source, sink, clock, checkpoint.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::output::{Coded, note};
use crate::clock::{Clock, ScriptedClock, SystemClock};
use crate::config::{self, Environment, QueryConfig};
use crate::connect::{open_quarantine, open_sink, open_source};
use crate::disk::RealDisk;
use crate::engine::query::{Parts, Query, StoreKind};
use crate::engine::source::{Source, SourceError};
use crate::runtime::{CompileCache, ComponentError, Limits, Metering, Processor, Sandbox};

/// An open query, with the temporary folder that it lives in if nothing of it is kept.
pub(super) struct Opened {
    pub(super) query: Query,
    pub(super) folder: Option<TempDir>,
}

/// How long a query's checkpoint lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lifetime {
    /// As long as its folder.
    Kept,
    /// As long as the process.
    Ephemeral,
}

/// Opens a query.
pub(super) fn query(config: &QueryConfig, lifetime: Lifetime, environment: &Environment) -> anyhow::Result<Opened> {
    let operator = Arc::new(processor(config, environment)?);
    let input = open_source(&config.source, Box::new(std::io::stdin())).map_err(source_failed)?;
    if config.source.schema.is_none() {
        note(&format!("{}: schema inferred: {}", input.describe(), input.schema()));
    }
    let (checkpoint, folder) = checkpoint(config, lifetime)?;
    let disk = Arc::new(RealDisk);
    let sink_failed = |error: crate::engine::sink::SinkError| Coded::wrap(error.code, error);
    let sink = open_sink(&config.sink, Arc::clone(&disk) as _, Box::new(std::io::stdout())).map_err(sink_failed)?;
    let quarantine = config.quarantine.as_ref().map(|to| open_quarantine(&to.path, Arc::clone(&disk) as _));
    let clock: Arc<dyn Clock> = match &config.query.clock {
        None => Arc::new(SystemClock),
        Some(path) => {
            Arc::new(ScriptedClock::new(config::read_clock(path).map_err(|error| Coded::wrap(error.code(), error))?))
        }
    };
    let parts = Parts {
        operator,
        input,
        initial_state: initial_state(config)?,
        sink,
        quarantine: quarantine.transpose().map_err(sink_failed)?,
        clock,
        disk,
        checkpoint,
        store: match lifetime {
            Lifetime::Kept => StoreKind::Rocks,
            Lifetime::Ephemeral => StoreKind::Memory,
        },
    };
    let query = Query::open(config.settings(), parts).map_err(|error| Coded::wrap(error.code().to_owned(), error))?;
    Ok(Opened { query, folder })
}

/// Loads and compiles the query's component.
pub(super) fn processor(config: &QueryConfig, environment: &Environment) -> anyhow::Result<Processor> {
    load(&config.processor.component, config.processor.metering, config.limits.sandbox.clone(), environment)
}

/// Loads and compiles a component without a query, to look at it.
pub(super) fn component(path: &Path, environment: &Environment) -> anyhow::Result<Processor> {
    load(path, Metering::Epoch, Limits::default(), environment)
}

fn load(path: &Path, metering: Metering, limits: Limits, environment: &Environment) -> anyhow::Result<Processor> {
    let sandbox = Sandbox::new(metering).map_err(component_failed)?;
    let cache = compile_cache(environment)?;
    Processor::from_file(&sandbox, path, limits, cache.as_ref()).map_err(component_failed)
}

/// Where compiled components are kept, if the environment has a place for them.
fn compile_cache(environment: &Environment) -> anyhow::Result<Option<CompileCache>> {
    let cache = environment.cache_dir.as_ref().map(|folder| CompileCache::open(&folder.join("compiled")));
    cache.transpose().map_err(component_failed)
}

fn component_failed(error: ComponentError) -> anyhow::Error {
    Coded::wrap(error.code(), error)
}

/// Opens the query's input to read committed rows again, or its schema. Standard input is left alone: its rows stand in
/// the log.
pub(super) fn committed_input(config: &QueryConfig) -> anyhow::Result<Box<dyn Source>> {
    open_source(&config.source, Box::new(std::io::empty())).map_err(source_failed)
}

/// Opens the query's initial state, if it has one.
pub(super) fn initial_state(config: &QueryConfig) -> anyhow::Result<Option<Box<dyn Source>>> {
    let source = config.initial_state.as_ref().map(|settings| open_source(settings, Box::new(std::io::empty())));
    source.transpose().map_err(source_failed)
}

fn source_failed(error: SourceError) -> anyhow::Error {
    Coded::wrap(error.code, error)
}

fn checkpoint(config: &QueryConfig, lifetime: Lifetime) -> anyhow::Result<(PathBuf, Option<TempDir>)> {
    match (lifetime, &config.query.checkpoint) {
        (Lifetime::Kept, Some(path)) => Ok((path.clone(), None)),
        (Lifetime::Kept, None) => Err(Coded::wrap(
            "CHECKPOINT_MISSING",
            config::ConfigError::Missing(
                "say where state and progress are kept with --checkpoint DIR, or keep nothing with --ephemeral".to_owned(),
            ),
        )),
        (Lifetime::Ephemeral, _) => {
            let folder = TempDir::new().map_err(|error| Coded::wrap("TEMPORARY_FOLDER_FAILED", error))?;
            Ok((folder.path().join("checkpoint"), Some(folder)))
        }
    }
}
