//! From a query's settings to its parts: processor, source, sink, clock, checkpoint.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::output::{Coded, note};
use crate::clock::{Clock, ScriptedClock, SystemClock};
use crate::config::{self, Environment, QueryConfig, SourceConfig, StepConfig};
use crate::connect::{SourceSettings, gone_since, open_aside, open_initial_state, open_sink, open_source};
use crate::disk::RealDisk;
use crate::engine::commit::SourceRole;
use crate::engine::operator::{Operator, OperatorError};
use crate::engine::query::{Parts, Query, StepParts, StoreKind};
use crate::engine::source::{Source, SourceError};
use crate::engine::view::QueryView;
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
    let processors = Processors::new(config.query.metering, environment)?;
    let steps = config.steps.iter().map(|step| {
        let operator = Arc::new(processors.step(step)?);
        Ok(StepParts { operator, initial_state: initial_state(config, step)? })
    });
    let steps = steps.collect::<anyhow::Result<_>>()?;
    let inputs = inputs(config, || Box::new(std::io::stdin()))?;
    for (source, input) in config.sources.iter().zip(&inputs).filter(|(source, _)| source.at.schema.is_none()) {
        let of = if config.sources.len() > 1 { format!("source {}, ", source.name) } else { String::new() };
        note(&format!("{of}{}: schema inferred: {}", input.describe(), input.schema()));
    }
    let (checkpoint, folder) = checkpoint(config, lifetime)?;
    let disk = Arc::new(RealDisk);
    let sink_failed = |error: crate::engine::sink::SinkError| Coded::wrap(error.code, error);
    let sink = open_sink(&config.sink, Arc::clone(&disk) as _, Box::new(std::io::stdout())).map_err(sink_failed)?;
    let aside = |path: &Path| open_aside(path, Arc::clone(&disk) as _).map_err(sink_failed);
    let quarantine = config.quarantine.as_ref().map(|to| aside(&to.path)).transpose()?;
    let dead_letters = config.dead_letters.as_ref().map(|to| aside(&to.path)).transpose()?;
    let clock: Arc<dyn Clock> = match &config.query.clock {
        None => Arc::new(SystemClock),
        Some(path) => {
            Arc::new(ScriptedClock::new(config::read_clock(path).map_err(|error| Coded::wrap(error.code(), error))?))
        }
    };
    let parts = Parts {
        steps,
        inputs,
        sink,
        quarantine,
        dead_letters,
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

/// Loads and compiles a component without a query, to look at it.
pub(super) fn component(path: &Path, environment: &Environment) -> anyhow::Result<Processor> {
    Processors::new(Metering::Epoch, environment)?.file(path, Limits::default())
}

/// Loads and compiles components.
pub(super) struct Processors {
    sandbox: Sandbox,
    cache: Option<CompileCache>,
}

/// A chunk that came to an end when it was committed does so again: a day stops only what has been changed into a loop.
const REPLAYED_CHUNK_TIME_MS: u64 = 24 * 60 * 60 * 1000;

/// Limits for batches that are known to end: however slow the machine is, no processor is stopped.
pub(super) fn without_deadline(step: &StepConfig) -> Limits {
    Limits { chunk_time_ms: REPLAYED_CHUNK_TIME_MS, ..step.limits.sandbox.clone() }
}

impl Processors {
    pub(super) fn new(metering: Metering, environment: &Environment) -> anyhow::Result<Self> {
        let sandbox = Sandbox::new(metering).map_err(component_failed)?;
        let cache = environment.cache_dir.as_ref().map(|folder| CompileCache::open(&folder.join("compiled")));
        Ok(Self { sandbox, cache: cache.transpose().map_err(component_failed)? })
    }

    /// The component of a step.
    pub(super) fn step(&self, step: &StepConfig) -> anyhow::Result<Processor> {
        self.file(&step.component, step.limits.sandbox.clone())
    }

    /// The component of a file.
    pub(super) fn file(&self, path: &Path, limits: Limits) -> anyhow::Result<Processor> {
        Processor::from_file(&self.sandbox, path, limits, self.cache.as_ref()).map_err(component_failed)
    }

    /// A component that a checkpoint has kept; `name` is for errors.
    pub(super) fn program(
        &self,
        name: &str,
        program: &[u8],
        limits: Limits,
    ) -> Result<Arc<dyn Operator>, OperatorError> {
        match Processor::from_bytes(&self.sandbox, name, program, limits, self.cache.as_ref()) {
            Ok(processor) => Ok(Arc::new(processor)),
            Err(error) => Err(OperatorError::Unfit { code: error.code(), message: error.to_string() }),
        }
    }
}

fn component_failed(error: ComponentError) -> anyhow::Error {
    Coded::wrap(error.code(), error)
}

/// Opens the query's sources to read committed rows again, or their schemas. Standard input is left alone: its rows stand
/// in the log.
pub(super) fn committed_inputs(config: &QueryConfig) -> anyhow::Result<Vec<Box<dyn Source>>> {
    inputs(config, || Box::new(std::io::empty()))
}

fn inputs(config: &QueryConfig, stdin: impl Fn() -> Box<dyn Read + Send>) -> anyhow::Result<Vec<Box<dyn Source>>> {
    let open = |source: &SourceConfig| {
        open_source(&source.at, stdin())
            .map_err(|error| source_failed(gone(config, &source.at, SourceRole::Input, &source.name).unwrap_or(error)))
    };
    config.sources.iter().map(open).collect()
}

/// Opens the initial state of a step, if it has one.
pub(super) fn initial_state(config: &QueryConfig, step: &StepConfig) -> anyhow::Result<Option<Box<dyn Source>>> {
    let Some(settings) = &step.initial_state else { return Ok(None) };
    let opened = open_initial_state(settings)
        .map_err(|error| source_failed(gone(config, settings, SourceRole::InitialState, &step.name).unwrap_or(error)));
    Ok(Some(opened?))
}

/// Without its files, a source may not even tell its format; the checkpoint knows which of them is missed.
fn gone(config: &QueryConfig, settings: &SourceSettings, role: SourceRole, name: &str) -> Option<SourceError> {
    let query = QueryView::open(Arc::new(RealDisk), config.query.checkpoint.as_ref()?).ok()?;
    gone_since(settings, query.history().head.last_read(role, name)?)
}

fn source_failed(error: SourceError) -> anyhow::Error {
    Coded::wrap(error.code, error)
}

/// The checkpoint of a query that keeps one.
pub(super) fn kept_checkpoint(config: &QueryConfig) -> anyhow::Result<PathBuf> {
    config.query.checkpoint.clone().ok_or_else(|| {
        Coded::wrap(
            "CHECKPOINT_MISSING",
            config::ConfigError::Missing("say where state and progress are kept with --checkpoint DIR".to_owned()),
        )
    })
}

fn checkpoint(config: &QueryConfig, lifetime: Lifetime) -> anyhow::Result<(PathBuf, Option<TempDir>)> {
    match (lifetime, &config.query.checkpoint) {
        (Lifetime::Kept, Some(path)) => Ok((path.clone(), None)),
        (Lifetime::Kept, None) => Err(Coded::wrap(
            "CHECKPOINT_MISSING",
            config::ConfigError::Missing(
                "say where state and progress are kept with --checkpoint DIR, or keep nothing with --ephemeral"
                    .to_owned(),
            ),
        )),
        (Lifetime::Ephemeral, _) => {
            let folder = TempDir::new().map_err(|error| Coded::wrap("TEMPORARY_FOLDER_FAILED", error))?;
            Ok((folder.path().join("checkpoint"), Some(folder)))
        }
    }
}
