//! Queries over a native operator, in this process: where they read and write, and how they are run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use tidemill_host::clock::{Clock, ManualClock};
use tidemill_host::connect::memory::{MemoryRows, MemorySink, MemorySource, MemoryTable};
use tidemill_host::connect::{DirectorySink, Encoding, FileFormat, FileSource, Format, TextFormat, open_aside};
use tidemill_host::disk::{Disk, RealDisk};
use tidemill_host::engine::error::QueryError;
use tidemill_host::engine::operator::{OutputMode, TimeMode};
use tidemill_host::engine::output::OutputLimits;
use tidemill_host::engine::progress::Progress;
use tidemill_host::engine::query::{Parts, Query, Step, StepParts, StoreKind};
use tidemill_host::engine::replay::{Beginning, Compared, Observer};
use tidemill_host::engine::settings::{
    BadRows, InputSettings, PoisonPolicy, QuerySettings, Retention, StepSettings, Trigger, WatermarkPolicy,
    WatermarkSettings,
};
use tidemill_host::engine::sink::Sink;
use tidemill_host::engine::source::{ReadLimits, Source};
use tidemill_host::state::StateLimits;

use super::support::rows;
use super::tally::{INITIAL_STATE, INPUT, Tally, input, schema};

/// Settings that a test changes where it needs others: a snapshot after every second batch, two workers.
pub fn settings() -> QuerySettings {
    QuerySettings {
        name: None,
        steps: vec![step("main")],
        sources: vec![source("input", None)],
        dropped_sources: Vec::new(),
        watermark_policy: WatermarkPolicy::Min,
        trigger: Trigger::AvailableNow,
        workers: 2,
        key_groups: 16,
        read: ReadLimits { files_max: None, rows_max: 4, bytes_max: u64::MAX },
        bad_rows: BadRows::Fail,
        poison: PoisonPolicy::default(),
        seed: Some(7),
        min_batch_interval_ms: 0,
        ttl_sweep_ms: 60_000,
        retention: Retention { snapshot_batches: 2, snapshot_bytes: u64::MAX, batches: 3 },
    }
}

/// A source whose rows have their event time in `at`, with this delay; None: they have none.
pub fn source(name: &str, delay_ms: Option<u64>) -> InputSettings {
    let watermark =
        delay_ms.map(|delay_ms| WatermarkSettings { column: "at".to_owned(), delay_ms, max_future_ms: None });
    InputSettings { name: name.to_owned(), watermark, idle_timeout_ms: None }
}

/// A step that groups by `k`.
pub fn step(name: &str) -> StepSettings {
    StepSettings {
        name: name.to_owned(),
        key: vec!["k".to_owned()],
        time_mode: TimeMode::None,
        output_mode: OutputMode::Append,
        output_event_time: None,
        output: OutputLimits { rows_max: u64::MAX, bytes_max: u64::MAX },
        state: StateLimits::default(),
        parameters: BTreeMap::new(),
    }
}

/// The same settings in another time mode.
pub fn in_mode(time_mode: TimeMode) -> QuerySettings {
    QuerySettings { steps: vec![StepSettings { time_mode, ..step("main") }], ..settings() }
}

/// The same in event time.
pub fn event_time(delay_ms: u64) -> QuerySettings {
    QuerySettings { sources: vec![source("input", Some(delay_ms))], ..in_mode(TimeMode::EventTime) }
}

/// The same in two steps: the second tallies what the first emits.
pub fn two_steps(settings: QuerySettings) -> QuerySettings {
    let first = StepSettings { name: "first".to_owned(), ..settings.steps[0].clone() };
    let second = StepSettings { name: "second".to_owned(), ..first.clone() };
    let event_time = settings.sources[0].watermark.is_some() && first.time_mode == TimeMode::EventTime;
    let first = StepSettings { output_event_time: event_time.then(|| "time".to_owned()), ..first };
    QuerySettings { steps: vec![first, second], ..settings }
}

/// A tally for each step.
pub fn tallies(settings: &QuerySettings, first: &Tally) -> Vec<StepParts> {
    let later = std::iter::repeat_n(first.of_a_tally(), settings.steps.len() - 1);
    let parts = |tally: Tally| StepParts { operator: Arc::new(tally), initial_state: None };
    std::iter::once(first.clone()).chain(later).map(parts).collect()
}

/// The parts of a query on the machine's disk; a test replaces those that it is about.
pub fn parts(operator: Tally, inputs: Vec<Box<dyn Source>>, sink: Box<dyn Sink>, checkpoint: &Path) -> Parts {
    Parts {
        steps: vec![StepParts { operator: Arc::new(operator), initial_state: None }],
        inputs,
        sink,
        quarantine: None,
        dead_letters: None,
        clock: Arc::new(ManualClock::at(1_000)),
        disk: Arc::new(RealDisk),
        checkpoint: checkpoint.to_owned(),
        store: StoreKind::Rocks,
    }
}

/// A directory of JSON Lines as a sink.
pub fn directory(disk: Arc<dyn Disk>, path: &Path) -> Box<dyn Sink> {
    Box::new(DirectorySink::new(disk, path, Format::Jsonl, Encoding::Text(TextFormat::JsonLines)).unwrap())
}

/// A query that reads files and writes to directories, which may stand on a disk of their own.
#[derive(Clone)]
pub struct FileQuery {
    pub settings: QuerySettings,
    pub operator: Tally,
    pub input: PathBuf,
    pub clock: Arc<dyn Clock>,
    pub checkpoint: PathBuf,
    pub rows: PathBuf,
    pub bad_rows: PathBuf,
}

impl FileQuery {
    /// Opens it on a disk.
    pub fn open(&self, disk: &Arc<dyn Disk>) -> Result<Query, QueryError> {
        self.open_with(disk, directory(Arc::clone(disk), &self.rows))
    }

    /// Opens it with another sink.
    pub fn open_with(&self, disk: &Arc<dyn Disk>, sink: Box<dyn Sink>) -> Result<Query, QueryError> {
        let source = |path: &Path| -> Box<dyn Source> {
            Box::new(FileSource::open(path, FileFormat::Text(TextFormat::JsonLines), Some(schema(INPUT))).unwrap())
        };
        // Sources after the first read folders of their names beside it.
        let later = self.settings.sources.iter().skip(1).map(|of| source(&self.input.with_file_name(&of.name)));
        let inputs = std::iter::once(source(&self.input)).chain(later).collect();
        let quarantine = || open_aside(&self.bad_rows, Arc::clone(disk)).unwrap();
        Query::open(
            self.settings.clone(),
            Parts {
                quarantine: (self.settings.bad_rows == BadRows::Quarantine).then(quarantine),
                clock: Arc::clone(&self.clock),
                disk: Arc::clone(disk),
                steps: tallies(&self.settings, &self.operator),
                ..parts(self.operator.clone(), inputs, sink, &self.checkpoint)
            },
        )
    }
}

/// Runs batches until there is nothing to do for now, and gives their progress.
pub fn drain(query: &mut Query) -> Result<Vec<Progress>, QueryError> {
    let mut batches = Vec::new();
    while let Step::Ran(progress) = query.step()? {
        batches.push(*progress);
    }
    Ok(batches)
}

/// The code of the error that opening or running a query must give.
pub fn code<T>(result: Result<T, QueryError>) -> String {
    match result {
        Ok(_) => panic!("it should have failed"),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            error.code().to_owned()
        }
    }
}

/// A query between memory and memory, with a checkpoint in a folder of its own. All that is read at once is one batch.
pub struct MemoryQuery {
    pub settings: QuerySettings,
    pub operator: Tally,
    pub rows: MemoryRows,
    pub initial_state: Option<MemoryRows>,
    pub table: MemoryTable,
    pub clock: Arc<ManualClock>,
    pub folder: TempDir,
}

impl MemoryQuery {
    pub fn new(settings: QuerySettings) -> Self {
        let read = ReadLimits { rows_max: u64::MAX, ..settings.read };
        Self {
            settings: QuerySettings { read, ..settings },
            operator: Tally::default(),
            rows: MemoryRows::default(),
            initial_state: None,
            table: MemoryTable::default(),
            clock: Arc::new(ManualClock::at(1_000)),
            folder: TempDir::new().unwrap(),
        }
    }

    pub fn checkpoint(&self) -> PathBuf {
        self.folder.path().join("checkpoint")
    }

    /// The parts that it is opened with.
    pub fn parts(&self) -> Parts {
        let source = |ddl, rows: &MemoryRows| Box::new(MemorySource::new(schema(ddl), rows.clone())) as Box<dyn Source>;
        let sink = Box::new(MemorySink::new(self.table.clone()));
        let initial_state = self.initial_state.as_ref().map(|rows| source(INITIAL_STATE, rows));
        let mut steps = tallies(&self.settings, &self.operator);
        steps[0].initial_state = initial_state;
        Parts {
            steps,
            clock: Arc::clone(&self.clock) as _,
            ..parts(self.operator.clone(), vec![source(INPUT, &self.rows)], sink, &self.checkpoint())
        }
    }

    pub fn open(&self) -> Result<Query, QueryError> {
        Query::open(self.settings.clone(), self.parts())
    }

    /// Adds rows (key, event time in milliseconds, number).
    pub fn feed(&self, rows: &[(&str, i64, i64)]) {
        let rows: Vec<_> = rows.iter().map(|(key, at_ms, n)| (*key, *at_ms, Some(*n))).collect();
        self.rows.push(input(&rows));
    }

    /// What was emitted, row by row: `key event at count sum`.
    pub fn emitted(&self) -> Vec<String> {
        self.table.rows().iter().map(|row| shown(row)).collect()
    }
}

/// A row that [`Tally`] emitted: `key event at count sum`.
pub fn shown(row: &str) -> String {
    let row: serde_json::Value = serde_json::from_str(row).unwrap();
    let text = |name: &str| row[name].as_str().map_or_else(|| row[name].to_string(), str::to_owned);
    ["k", "event", "at", "count", "sum"].map(text).join(" ")
}

/// What the files of a folder hold, in order of the batches, as [`shown`].
pub fn shown_files(folder: &Path) -> Vec<String> {
    let rows: String = rows(folder);
    rows.lines().map(shown).collect()
}

/// What a replay compared.
#[derive(Default)]
pub struct Seen(pub Vec<Compared>);

impl Observer for Seen {
    fn begins(&mut self, _: &Beginning) {}

    fn compared(&mut self, batch: &Compared) {
        self.0.push(batch.clone());
    }
}
