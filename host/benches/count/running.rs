//! A query over rows in memory, whose output is encoded for no one.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use arrow_array::RecordBatch;
use tidemill_host::clock::SystemClock;
use tidemill_host::connect::memory::{MemoryRows, MemorySource};
use tidemill_host::disk::Disk;
use tidemill_host::engine::operator::{Operator, OutputMode, TimeMode};
use tidemill_host::engine::output::OutputLimits;
use tidemill_host::engine::progress::Progress;
use tidemill_host::engine::query::{Parts, Query, Step, StepParts, StoreKind};
use tidemill_host::engine::settings::{
    BadRows, InputSettings, ONLY_SOURCE, ONLY_STEP, QuerySettings, Retention, StepSettings, Trigger, WatermarkPolicy,
};
use tidemill_host::engine::sink::{Publication, Published, Sink, SinkError};
use tidemill_host::engine::source::ReadLimits;
use tidemill_host::record::Schema;
use tidemill_host::runtime::{Limits, Metering, Processor, Sandbox};
use tidemill_host::state::StateLimits;

use crate::workload::INPUT;

/// A query that is fed one batch at a time.
pub struct Running {
    query: Query,
    rows: MemoryRows,
}

impl Running {
    /// A new query with one worker; its state is in RocksDB, its log is synced with every batch.
    pub fn open(operator: Arc<dyn Operator>, disk: Arc<dyn Disk>, checkpoint: PathBuf) -> Result<Self> {
        let rows = MemoryRows::default();
        let parts = Parts {
            steps: vec![StepParts { operator, initial_state: None }],
            inputs: vec![Box::new(MemorySource::new(Schema::parse(INPUT)?, rows.clone()))],
            sink: Box::new(NullSink),
            quarantine: None,
            dead_letters: None,
            clock: Arc::new(SystemClock),
            disk,
            checkpoint,
            store: StoreKind::Rocks,
        };
        Ok(Self { query: Query::open(settings(), parts)?, rows })
    }

    /// Takes the rows of the next batch.
    pub fn feed(&self, batch: RecordBatch) {
        self.rows.push(batch);
    }

    /// Runs the next batch: everything from reading to publishing, the commit included.
    pub fn step(&mut self) -> Result<Progress> {
        match self.query.step()? {
            Step::Ran(progress) => Ok(*progress),
            other => bail!("no batch ran: {other:?}"),
        }
    }
}

/// The repository.
pub fn repository() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the repository")
}

/// A component that `scripts/build-guests.sh` made.
pub fn component(name: &str) -> Result<PathBuf> {
    let folder = std::env::var_os("TIDEMILL_COMPONENTS").map(PathBuf::from);
    let path = folder.unwrap_or(repository()?.join("target/components")).join(format!("{name}.wasm"));
    if !path.exists() {
        bail!("{} is missing: run scripts/build-guests.sh first", path.display());
    }
    Ok(path)
}

/// A component, as an operator of the engine.
pub fn processor(name: &str) -> Result<Arc<dyn Operator>> {
    let path = component(name)?;
    Ok(Arc::new(Processor::from_file(&Sandbox::new(Metering::Epoch)?, &path, Limits::default(), None)?))
}

fn settings() -> QuerySettings {
    QuerySettings {
        name: None,
        steps: vec![StepSettings {
            name: ONLY_STEP.to_owned(),
            key: vec!["key".to_owned()],
            time_mode: TimeMode::None,
            output_mode: OutputMode::Update,
            output_event_time: None,
            output: OutputLimits { rows_max: u64::MAX, bytes_max: u64::MAX },
            state: StateLimits::default(),
            parameters: BTreeMap::new(),
        }],
        sources: vec![InputSettings { name: ONLY_SOURCE.to_owned(), watermark: None, idle_timeout_ms: None }],
        dropped_sources: Vec::new(),
        watermark_policy: WatermarkPolicy::Min,
        trigger: Trigger::AvailableNow,
        workers: 1,
        key_groups: 256,
        read: ReadLimits { files_max: None, rows_max: u64::MAX, bytes_max: u64::MAX },
        bad_rows: BadRows::Fail,
        poison: Default::default(),
        seed: Some(1),
        min_batch_interval_ms: 0,
        ttl_sweep_ms: u64::MAX,
        // Snapshots are taken by another thread, and would fall into some batches and not into others.
        retention: Retention { snapshot_batches: u64::MAX, snapshot_bytes: u64::MAX, batches: 100 },
    }
}

/// Reads the rows as every sink must, and keeps nothing.
struct NullSink;

impl Sink for NullSink {
    fn describe(&self) -> String {
        "nowhere".to_owned()
    }

    fn open(&mut self, _: &str, _: &Schema) -> Result<(), SinkError> {
        Ok(())
    }

    fn published(&self) -> Result<Published, SinkError> {
        Ok(Published::Nothing)
    }

    fn encode(
        &self,
        rows: &mut dyn Iterator<Item = Result<RecordBatch, SinkError>>,
        _: &mut dyn Write,
    ) -> Result<(), SinkError> {
        for batch in rows {
            batch?;
        }
        Ok(())
    }

    fn publish(&mut self, _: &Publication<'_>) -> Result<(), SinkError> {
        Ok(())
    }
}
