//! What cases run with: compiled components, and where they stand.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::case::Case;
use super::report::{Failure, Report};
use super::run::Run;
use crate::runtime::{CompileCache, ComponentError, Limits, Metering, Processor, Sandbox};

/// Runs cases. Cheap to share between threads; each case runs on one.
pub struct Kit {
    components: PathBuf,
    component: Option<PathBuf>,
    defaults: toml::Table,
    cache: Option<CompileCache>,
    sandboxes: Mutex<HashMap<Metering, Sandbox>>,
    compiled: Mutex<HashMap<(PathBuf, Metering, String), Arc<Processor>>>,
}

/// Why cases cannot be run at all.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct KitError(#[from] ComponentError);

impl KitError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        self.0.code()
    }
}

/// What the kit says where neither a case nor its `query.toml` does: a step is as many batches as it says, and the same
/// case gives the same result each time.
const DEFAULTS: &str = r#"
query = { workers = 1, trigger = "continuous", min_batch_interval = "0s", ttl_sweep = "0s", seed = 0 }
"#;

impl Kit {
    /// A kit for the components of a folder. `cache`: where compiled ones are kept.
    ///
    /// # Errors
    /// A cache that is not the user's own.
    pub fn new(components: &Path, cache: Option<&Path>) -> Result<Self, KitError> {
        let defaults = DEFAULTS.parse().unwrap_or_default();
        Ok(Self {
            components: components.to_owned(),
            component: None,
            defaults,
            cache: cache.map(CompileCache::open).transpose()?,
            sandboxes: Mutex::default(),
            compiled: Mutex::default(),
        })
    }

    /// The component of cases that name none.
    #[must_use]
    pub fn with_component(mut self, path: &Path) -> Self {
        self.component = Some(path.to_owned());
        self
    }

    /// Settings of all cases that say nothing else, as in `query.toml`.
    #[must_use]
    pub fn with_defaults(mut self, settings: toml::Table) -> Self {
        overlay(&mut self.defaults, settings);
        self
    }

    /// Compiles a component, so that one that cannot be used is told before any case runs.
    ///
    /// # Errors
    /// It cannot be read, or is no processor.
    pub fn check(&self, component: &Path) -> Result<(), KitError> {
        let sandbox = self.sandbox(Metering::Epoch)?;
        Ok(Processor::from_file(&sandbox, component, Limits::default(), self.cache.as_ref()).map(drop)?)
    }

    /// Runs a case. What cannot be run is a report too.
    pub fn run(&self, case: &Case) -> Report {
        let steps = match Run::new(self, case) {
            Ok(mut run) => case.steps.iter().map(|step| run.step(step)).collect(),
            Err(failure) => return Report { name: case.name.clone(), broken: Some(failure), steps: Vec::new() },
        };
        Report { name: case.name.clone(), broken: None, steps }
    }

    pub(super) fn defaults(&self) -> &toml::Table {
        &self.defaults
    }

    /// The kit's own component.
    pub(super) fn component(&self) -> Option<&Path> {
        self.component.as_deref()
    }

    /// Where a component stands that is named in a file of this folder.
    pub(super) fn locate(&self, folder: &Path, name: &str) -> PathBuf {
        if name.ends_with(".wasm") { folder.join(name) } else { self.components.join(format!("{name}.wasm")) }
    }

    /// The compiled component.
    pub(super) fn processor(
        &self,
        path: &Path,
        metering: Metering,
        limits: &Limits,
    ) -> Result<Arc<Processor>, Failure> {
        let failed = |error: ComponentError| Failure::new(error.code(), &error);
        let key = (path.to_owned(), metering, format!("{limits:?}"));
        // Held while compiling, so that each is compiled once.
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(processor) = compiled.get(&key) {
            return Ok(Arc::clone(processor));
        }
        let sandbox = self.sandbox(metering).map_err(failed)?;
        let processor = Processor::from_file(&sandbox, path, limits.clone(), self.cache.as_ref()).map_err(failed)?;
        let processor = Arc::new(processor);
        compiled.insert(key, Arc::clone(&processor));
        Ok(processor)
    }

    fn sandbox(&self, metering: Metering) -> Result<Sandbox, ComponentError> {
        let mut sandboxes = self.sandboxes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sandbox) = sandboxes.get(&metering) {
            return Ok(sandbox.clone());
        }
        let sandbox = Sandbox::new(metering)?;
        sandboxes.insert(metering, sandbox.clone());
        Ok(sandbox)
    }
}

impl std::fmt::Debug for Kit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kit").field("components", &self.components).finish_non_exhaustive()
    }
}

/// Puts settings on top of others.
pub(super) fn overlay(under: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(toml::Value::Table(under)), toml::Value::Table(over)) => overlay(under, over),
            (_, value) => {
                under.insert(key, value);
            }
        }
    }
}
