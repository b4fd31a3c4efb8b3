//! A case in hand: its folder, clock, sink and query, and one step after the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use toml::Table;

use super::case::{Case, Restart, Step, Until, json_lines};
use super::compare::differences;
use super::kit::{Kit, overlay};
use super::peek;
use super::poke::{Poked, Pokes};
use super::report::{Actual, Failure, StepReport};
use crate::clock::ManualClock;
use crate::config::QueryConfig;
use crate::connect::memory::{MemorySink, MemoryTable};
use crate::connect::{Format, SourceSettings, open_aside, open_source};
use crate::disk::RealDisk;
use crate::engine::error::QueryError;
use crate::engine::faults;
use crate::engine::progress::Progress;
use crate::engine::query::{Parts, Query, StepParts, StoreKind};
use crate::engine::settings::Trigger;
use crate::engine::trigger::{self, Stop};

/// A case in hand.
pub(super) struct Run<'k> {
    kit: &'k Kit,
    case: &'k Case,
    /// Settings of the case, with what its steps have changed.
    settings: Table,
    component: Option<String>,
    clock: Arc<ManualClock>,
    now_ms: i64,
    table: MemoryTable,
    /// Batches of the sink that earlier steps have seen.
    seen: usize,
    input_files: u64,
    pokes: Pokes,
    query: Option<Query>,
    /// Columns of the grouping key.
    key: Vec<String>,
    // Last: the query is at home there until it is dropped.
    place: TempDir,
}

/// More batches than any case means: one of them makes work for the next for ever.
const BATCHES_MAX: usize = 1_000;

impl<'k> Run<'k> {
    pub(super) fn new(kit: &'k Kit, case: &'k Case) -> Result<Self, Failure> {
        let place = TempDir::new().map_err(|error| Failure::new("TEMPORARY_FOLDER_FAILED", &error))?;
        let run = Self {
            kit,
            case,
            settings: case.settings.clone(),
            component: case.component.clone(),
            clock: Arc::new(ManualClock::at(0)),
            now_ms: 0,
            table: MemoryTable::default(),
            seen: 0,
            input_files: 0,
            pokes: Pokes::default(),
            query: None,
            key: Vec::new(),
            place,
        };
        std::fs::create_dir(run.path("input")).map_err(|error| Failure::new("TEMPORARY_FOLDER_FAILED", &error))?;
        if let Some(rows) = &case.initial_state {
            run.write(&run.path("initial-state.jsonl"), rows, 0)?;
        }
        Ok(run)
    }

    /// Does a step and compares.
    pub(super) fn step(&mut self, step: &Step) -> StepReport {
        let mut actual = Actual::default();
        if let Err(failure) = self.act(step, &mut actual) {
            // A query whose batch failed takes no more; the next step opens it again.
            self.query = None;
            actual.failure = Some(failure);
        }
        let batches = self.table.batches();
        let published = batches.iter().skip(self.seen).flat_map(|(_, lines)| lines.lines());
        actual.rows = published.filter_map(|line| serde_json::from_str(line).ok()).collect();
        self.seen = batches.len();
        let differences = differences(step, &actual, &self.key);
        StepReport { about: step.about.clone(), differs: step.differs.clone(), actual, differences }
    }

    fn act(&mut self, step: &Step, actual: &mut Actual) -> Result<(), Failure> {
        self.stop(step)?;
        if let Some(now_ms) = step.clock.or_else(|| step.advance.map(|ms| self.now_ms.saturating_add(ms))) {
            self.now_ms = now_ms;
            self.clock.set(now_ms);
        }
        if let Some(rows) = &step.rows {
            self.input_files += 1;
            let number = self.input_files;
            self.write(&self.path("input").join(format!("{number:06}.jsonl")), rows, number)?;
        }
        let put = step.put.iter().map(|(name, text)| (name.clone(), json_lines(text).unwrap_or_default()));
        self.pokes.put(put.collect());
        match (&step.crash, step.run) {
            (_, Until::Nothing) => return Ok(()),
            (Some(point), _) => self.run_with_crash(point, step.run, actual)?,
            (None, _) => self.run(step.run, actual)?,
        }
        self.pokes.check()?;
        let Some(query) = &self.query else { return Ok(()) };
        for name in step.state.keys() {
            actual.state.insert(name.clone(), peek::variable(query, name)?);
        }
        if step.timers.is_some() {
            actual.timers = Some(peek::timers(query)?);
        }
        Ok(())
    }

    fn stop(&mut self, step: &Step) -> Result<(), Failure> {
        if let Some(component) = &step.component {
            self.component = Some(component.clone());
        }
        if let Some(settings) = &step.settings {
            overlay(&mut self.settings, settings.clone());
        }
        let changed = step.component.is_some() || step.settings.is_some();
        match (step.restart, self.query.take()) {
            (Some(Restart::Killed), query) => drop(query),
            (Some(Restart::Clean), Some(query)) => query.close().map_err(failed)?,
            (None, Some(query)) if changed => query.close().map_err(failed)?,
            (_, query) => self.query = query,
        }
        Ok(())
    }

    fn run(&mut self, until: Until, actual: &mut Actual) -> Result<(), Failure> {
        let mut query = match self.query.take() {
            Some(query) => query,
            None => self.open()?,
        };
        let done = run_batches(&mut query, until, &mut actual.batches);
        // Also after a failure the caller drops it.
        self.query = Some(query);
        done
    }

    fn run_with_crash(&mut self, point: &str, until: Until, actual: &mut Actual) -> Result<(), Failure> {
        let fault = if point.contains(':') { point.to_owned() } else { format!("{point}:1") };
        let in_recovery = point.starts_with("recovery.");
        if in_recovery {
            self.query = None;
        } else {
            self.run(Until::Opened, actual)?;
        }
        let before = self.query.as_ref().map(|query| (query.head().last_batch, query.bootstrapping()));
        let abandoned = faults::abandon_at(&fault, || self.run(until, actual));
        if let Some(done) = abandoned.map_err(|error| Failure::new(error.code(), &error))? {
            done?;
            return Err(Failure::new("CRASH_NOT_REACHED", &format!("no batch of the step came to {fault}")));
        }
        self.query = None;
        self.run(Until::Opened, actual)?;
        let after = self.query.as_ref().map(|query| (query.head().last_batch, query.bootstrapping()));
        match (until, before, after) {
            // The one batch that the step is about was committed.
            (Until::Batch, Some((before, false)), Some((after, _))) if after > before => Ok(()),
            _ => self.run(until, actual),
        }
    }

    fn open(&mut self) -> Result<Query, Failure> {
        let config = self.config()?;
        self.key = config.steps.last().map(|step| step.key.clone()).unwrap_or_default();
        let source = |settings| {
            open_source(settings, Box::new(std::io::empty())).map_err(|error| Failure::new(error.code, &error))
        };
        let disk = Arc::new(RealDisk);
        let aside = |name| {
            open_aside(&self.path(name), Arc::clone(&disk) as _).map_err(|error| Failure::new(error.code, &error))
        };
        let quarantine = config.quarantine.as_ref().map(|_| aside("quarantine")).transpose()?;
        let dead_letters = config.dead_letters.as_ref().map(|_| aside("dead-letters")).transpose()?;
        let steps = config.steps.iter().map(|step| {
            let metering = config.query.metering;
            Ok(StepParts {
                operator: Arc::new(Poked {
                    processor: self.kit.processor(&step.component, metering, &step.limits.sandbox)?,
                    pokes: self.pokes.clone(),
                }),
                initial_state: step.initial_state.as_ref().map(source).transpose()?,
            })
        });
        let parts = Parts {
            steps: steps.collect::<Result<_, Failure>>()?,
            inputs: config.sources.iter().map(|of| source(&of.at)).collect::<Result<_, Failure>>()?,
            sink: Box::new(MemorySink::new(self.table.clone())),
            quarantine,
            dead_letters,
            clock: Arc::clone(&self.clock) as _,
            disk,
            checkpoint: self.path("checkpoint"),
            store: StoreKind::Rocks,
        };
        Query::open(config.settings(), parts).map_err(failed)
    }

    /// The settings in force, with the ends of the query in the case's folder.
    fn config(&self) -> Result<QueryConfig, Failure> {
        let mut settings = self.kit.defaults().clone();
        let folders = [Some(self.case.folder.as_path()), self.case.folder.parent()];
        let base = folders.into_iter().flatten().find(|folder| folder.join("query.toml").is_file());
        if let Some(base) = base {
            let path = base.join("query.toml");
            let text = std::fs::read_to_string(&path).map_err(|error| Failure::new("CONFIG_UNREADABLE", &error))?;
            let mut base_settings = text.parse().map_err(|error| Failure::new("CONFIG_INVALID", &error))?;
            self.place_components(&mut base_settings, base);
            overlay(&mut settings, base_settings);
        }
        let mut own = self.settings.clone();
        self.place_components(&mut own, &self.case.folder);
        overlay(&mut settings, own);
        let named = self.component.as_ref().map(|name| self.kit.locate(&self.case.folder, name));
        if let Some(component) = named.as_deref().or(self.kit.component())
            && !settings.contains_key("step")
        {
            let component = table("component", text(component));
            overlay(&mut settings, Table::from_iter([("processor".to_owned(), component)]));
        }
        overlay(&mut settings, Table::from_iter([("sink".to_owned(), table("stdout", toml::Value::Boolean(true)))]));
        if !settings.get("source").is_some_and(toml::Value::is_array) {
            let input = table("path", text(&self.path("input")));
            overlay(&mut settings, Table::from_iter([("source".to_owned(), input)]));
        }
        let mut config = QueryConfig::load(None, settings).map_err(|error| Failure::new(error.code(), &error))?;
        if let Some(first) = config.sources.first_mut() {
            first.at = rows_of(&first.at, &self.path("input"));
        }
        let initial_rows = self.case.initial_state.as_ref().map(|_| self.path("initial-state.jsonl"));
        if let Some(first) = config.steps.first_mut() {
            first.initial_state = match (&first.initial_state, initial_rows) {
                (Some(settings), Some(path)) => Some(rows_of(settings, &path)),
                _ => None,
            };
        }
        Ok(config)
    }

    /// Says where the components stand that settings of a file in this folder name.
    fn place_components(&self, settings: &mut Table, folder: &Path) {
        let place = |table: &mut Table| {
            if let Some(toml::Value::String(name)) = table.get_mut("component") {
                *name = self.kit.locate(folder, name).to_string_lossy().into_owned();
            }
        };
        if let Some(toml::Value::Array(steps)) = settings.get_mut("step") {
            steps.iter_mut().filter_map(toml::Value::as_table_mut).for_each(place);
        }
        if let Some(toml::Value::Table(processor)) = settings.get_mut("processor") {
            place(processor);
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// Writes a file with a time of its own, by which files are read in order.
    fn write(&self, path: &Path, text: &str, seconds: u64) -> Result<(), Failure> {
        let write = || {
            std::fs::write(path, text)?;
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            std::fs::File::options().write(true).open(path)?.set_modified(at)
        };
        write().map_err(|error| Failure::new("TEMPORARY_FOLDER_FAILED", &error))
    }
}

/// Rows of the case in place of where the settings have them.
fn rows_of(settings: &SourceSettings, path: &Path) -> SourceSettings {
    SourceSettings {
        path: Some(path.to_owned()),
        format: Some(Format::Jsonl),
        schema: settings.schema.clone(),
        ..SourceSettings::default()
    }
}

fn text(path: &Path) -> toml::Value {
    toml::Value::String(path.to_string_lossy().into_owned())
}

fn table(key: &str, value: toml::Value) -> toml::Value {
    toml::Value::Table(Table::from_iter([(key.to_owned(), value)]))
}

fn run_batches(query: &mut Query, until: Until, batches: &mut Vec<Progress>) -> Result<(), Failure> {
    match until {
        Until::Opened | Until::Nothing => Ok(()),
        Until::Batch => {
            while batches.len() < BATCHES_MAX && query.bootstrapping() && one(query, batches)? {}
            one(query, batches).map(drop)
        }
        Until::Drained if query.trigger() == Trigger::AvailableNow => {
            let stop = Stop::default();
            trigger::run(query, &stop, &mut |progress| {
                batches.push(progress.clone());
                if batches.len() >= BATCHES_MAX {
                    stop.request();
                }
            })
            .map_err(failed)
        }
        Until::Drained => {
            while batches.len() < BATCHES_MAX && one(query, batches)? {}
            Ok(())
        }
    }
}

/// Runs a batch, if there is something to do.
fn one(query: &mut Query, batches: &mut Vec<Progress>) -> Result<bool, Failure> {
    match query.step().map_err(failed)? {
        crate::engine::query::Step::Ran(progress) => {
            batches.push(*progress);
            Ok(true)
        }
        _ => Ok(false),
    }
}

fn failed(error: QueryError) -> Failure {
    Failure::new(error.code(), &error)
}
