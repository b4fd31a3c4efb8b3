//! Rows that a worker emits, kept in order and within bounds: in memory while they are few, in an unnamed temporary
//! file once they are many.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::watermark::is_late;
use crate::record::{full_timestamp_text, push_row};

/// What one worker may emit in one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct OutputLimits {
    /// Rows per batch and worker.
    pub rows_max: u64,
    /// Packed bytes per batch and worker.
    pub bytes_max: u64,
}

/// Which handler made a row. Rows are published phase after phase, each with all workers' rows in range order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// `handle-input-rows`.
    Input,
    /// `handle-expired-timer`.
    Timers,
}

/// Why a row was not taken.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// A bound of [`OutputLimits`].
    #[error("a batch may emit {max} {unit} per worker; raise limits.{setting}, or make batches smaller")]
    Limit {
        /// `rows` or `bytes`.
        unit: &'static str,
        /// The bound.
        max: u64,
        /// The setting's name.
        setting: &'static str,
    },
    /// The next step would find the row late.
    #[error(
        "an emitted row has the event time {} in column {column}, which is at or before the watermark {}; rows that a \
         later step judges by it must be newer",
        full_timestamp_text(*event_time_us), full_timestamp_text(watermark_ms.saturating_mul(1000))
    )]
    OlderThanWatermark {
        /// The event-time column of the output.
        column: String,
        /// What the row has there, in microseconds.
        event_time_us: i64,
        /// The watermark that late rows of the batch are judged by, in milliseconds.
        watermark_ms: i64,
    },
    /// The temporary file failed.
    #[error("emitted rows could not be spilled to {}: {source}", folder.display())]
    Spill {
        /// Where temporary files go.
        folder: PathBuf,
        /// The failure.
        source: io::Error,
    },
}

impl OutputError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Limit { .. } => "OUTPUT_LIMIT_EXCEEDED",
            Self::OlderThanWatermark { .. } => "EMITTING_ROWS_OLDER_THAN_WATERMARK_NOT_ALLOWED",
            Self::Spill { .. } => "SPILL_FAILED",
        }
    }
}

/// The event time of emitted rows, and the watermark that it must be after.
#[derive(Debug, Clone)]
pub struct EventTimeGuard {
    /// The column, a TIMESTAMP.
    pub column: String,
    /// Its number among the columns of the output.
    pub index: usize,
    /// Columns of the output.
    pub columns: usize,
    /// Rows at or before it are late, in milliseconds.
    pub watermark_ms: i64,
}

impl EventTimeGuard {
    /// A row without event time passes.
    fn check(&self, row: &[u8]) -> Result<(), OutputError> {
        let word = |index: usize| row.get(index * 8..)?.first_chunk::<8>().map(|bytes| i64::from_le_bytes(*bytes));
        let is_null = word(self.index / 64).is_none_or(|bits| bits >> (self.index % 64) & 1 == 1);
        match word(self.columns.div_ceil(64) + self.index) {
            Some(event_time_us) if !is_null && is_late(event_time_us, self.watermark_ms) => {
                let (column, watermark_ms) = (self.column.clone(), self.watermark_ms);
                Err(OutputError::OlderThanWatermark { column, event_time_us, watermark_ms })
            }
            _ => Ok(()),
        }
    }
}

/// The packed rows that one worker emitted in one batch.
#[derive(Debug)]
pub struct Output {
    limits: OutputLimits,
    event_time: Option<EventTimeGuard>,
    rows: u64,
    bytes: u64,
    input: Spool,
    timers: Spool,
}

impl Output {
    /// Empty; `folder` is where a large output is spilled.
    pub fn new(limits: OutputLimits, folder: &Path) -> Self {
        Self { limits, event_time: None, rows: 0, bytes: 0, input: Spool::new(folder), timers: Spool::new(folder) }
    }

    /// The same, for rows with an event time.
    #[must_use]
    pub fn with_event_time(self, event_time: Option<EventTimeGuard>) -> Self {
        Self { event_time, ..self }
    }

    /// Appends one validated packed row.
    ///
    /// # Errors
    /// [`OutputError::Limit`], [`OutputError::OlderThanWatermark`], [`OutputError::Spill`].
    pub fn push(&mut self, phase: Phase, row: &[u8]) -> Result<(), OutputError> {
        self.rows += 1;
        self.bytes += row.len() as u64;
        if self.rows > self.limits.rows_max {
            return Err(OutputError::Limit { unit: "rows", max: self.limits.rows_max, setting: "output_rows" });
        }
        if self.bytes > self.limits.bytes_max {
            return Err(OutputError::Limit { unit: "bytes", max: self.limits.bytes_max, setting: "output_bytes" });
        }
        if let Some(event_time) = &self.event_time {
            event_time.check(row)?;
        }
        let spool = match phase {
            Phase::Input => &mut self.input,
            Phase::Timers => &mut self.timers,
        };
        push_row(&mut spool.memory, row);
        spool.spill_if_large()
    }

    /// Rows emitted.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The rows of both phases, `handle-input-rows` first, each in `packed-rows` framing.
    ///
    /// # Errors
    /// [`OutputError::Spill`].
    pub fn into_readers(self) -> Result<[SpoolReader; 2], OutputError> {
        Ok([self.input.into_reader()?, self.timers.into_reader()?])
    }
}

/// Memory that one phase of one worker holds before it spills.
const SPILL_BYTES: usize = 32 << 20;

#[derive(Debug)]
struct Spool {
    folder: PathBuf,
    spilled: Option<File>,
    memory: Vec<u8>,
}

impl Spool {
    fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), spilled: None, memory: Vec::new() }
    }

    fn spill_if_large(&mut self) -> Result<(), OutputError> {
        if self.memory.len() < SPILL_BYTES {
            return Ok(());
        }
        let mut spill = || {
            let file = match &mut self.spilled {
                Some(file) => file,
                none => none.insert(tempfile::tempfile_in(&self.folder)?),
            };
            file.write_all(&self.memory)
        };
        spill().map_err(|source| OutputError::Spill { folder: self.folder.clone(), source })?;
        self.memory.clear();
        Ok(())
    }

    fn into_reader(self) -> Result<SpoolReader, OutputError> {
        let folder = self.folder;
        let mut spilled = self.spilled;
        if let Some(file) = &mut spilled {
            file.seek(SeekFrom::Start(0)).map_err(|source| OutputError::Spill { folder, source })?;
        }
        Ok(SpoolReader { spilled, memory: io::Cursor::new(self.memory) })
    }
}

/// Reads what was spilled, then what was not.
#[derive(Debug)]
pub struct SpoolReader {
    spilled: Option<File>,
    memory: io::Cursor<Vec<u8>>,
}

impl Read for SpoolReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(file) = &mut self.spilled {
            let read = file.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.spilled = None;
        }
        self.memory.read(buffer)
    }
}
