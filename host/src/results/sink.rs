//! The sink of a hosted query.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::error::ResultsError;
use super::format::{FRAME_ROWS_BYTES, Frame, FrameKind};
use super::notes::RollbackRecord;
use super::position::Position;
use super::recovery::{Tail, recover};
use super::writer::SegmentWriter;
use super::{ROW_BYTES_MAX, SEGMENT_BYTES};
use crate::connect::{Encoding, TextFormat};
use crate::disk::Disk;
use crate::engine::sink::{Ledger, Publication, Published, Sink, SinkError, Staged, Trace, Undo, Withdrawal};
use crate::record::Schema;

/// The likely cause where results and log are at odds, and what to do.
const OTHER_COPY: &str = ". Does another copy of the checkpoint write to them? Use that one";

/// Appends the output of a query to its results, as JSON Lines.
pub struct ResultsSink {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    sizes: Sizes,
    schema: Option<SchemaRef>,
    /// None: not opened, or a write failed.
    tail: Option<Tail>,
}

/// How much goes into one piece.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    /// Bytes with which a segment gets no further batch.
    segment: u64,
    /// Bytes of rows with which a frame gets no further row.
    frame: usize,
}

impl ResultsSink {
    /// What [`Sink::describe`] says. A query has one stream of results, wherever its folder stands.
    pub const DESCRIPTION: &'static str = "results";

    /// Writes to this folder, which must exist, durably. Nothing is written yet.
    pub fn new(disk: Arc<dyn Disk>, folder: &Path) -> Self {
        let sizes = Sizes { segment: SEGMENT_BYTES, frame: FRAME_ROWS_BYTES };
        Self { disk, folder: folder.to_owned(), sizes, schema: None, tail: None }
    }

    /// As [`Sizes`] says.
    #[cfg(any(test, fuzzing))]
    pub(super) fn with_sizes(mut self, segment: u64, frame: usize) -> Self {
        self.sizes = Sizes { segment, frame };
        self
    }

    fn failed(&self, source: io::Error) -> ResultsError {
        ResultsError::Write { folder: self.folder.clone(), source }
    }

    fn poisoned(&self) -> ResultsError {
        ResultsError::Poisoned { folder: self.folder.clone() }
    }

    fn append_batch(&mut self, entry: &Ledger, staged: &Staged) -> Result<(), ResultsError> {
        let tail = self.tail.as_ref().ok_or_else(|| self.poisoned())?;
        if self.is_there(tail, entry)? {
            return Ok(());
        }
        // It comes back only if everything goes well.
        let mut tail = self.tail.take().ok_or_else(|| self.poisoned())?;
        if tail.writer.end >= self.sizes.segment {
            tail = tail.roll(self.disk.as_ref(), &self.folder).map_err(|error| self.failed(error))?;
        }
        let rows = self.write(&mut tail.writer, entry, staged).map_err(|error| self.failed(error))?;
        tail.batch(Position { generation: entry.generation, batch: entry.batch_id, index: rows }, entry.digest.clone());
        self.tail = Some(tail);
        Ok(())
    }

    /// Whether the batch was published already. Else it must be the next one.
    fn is_there(&self, tail: &Tail, entry: &Ledger) -> Result<bool, ResultsError> {
        if tail.so_far.generation > entry.generation {
            return Err(self.rolled_back(tail.so_far.generation, entry.generation));
        }
        match &tail.so_far.published {
            Some(last) if last == entry => return Ok(true),
            Some(last) if last.batch_id >= entry.batch_id => return Err(self.behind(last, entry)),
            _ => {}
        }
        let first = Position { generation: entry.generation, batch: entry.batch_id, index: 0 };
        match tail.so_far.end.filter(|end| *end >= first) {
            None => Ok(false),
            Some(end) => {
                let (batch, generation) = (entry.batch_id, entry.generation);
                let detail = format!("they have come to {end}, the log gives batch {batch} of generation {generation}");
                Err(ResultsError::diverged(&self.folder, detail + OTHER_COPY))
            }
        }
    }

    /// Appends the batch, durably; answers with its rows.
    fn write(&self, writer: &mut SegmentWriter, entry: &Ledger, staged: &Staged) -> io::Result<u64> {
        let template = Frame::new(FrameKind::Rows, entry.generation, entry.batch_id);
        let mut lines: Box<dyn BufRead + '_> = match staged {
            Staged::Inline(bytes) => Box::new(bytes.as_slice()),
            Staged::File(path) => Box::new(BufReader::new(self.disk.open(path)?)),
        };
        let (mut first, mut rows, mut text) = (0, 0, Vec::new());
        loop {
            let before = text.len();
            let has_line = lines.read_until(b'\n', &mut text)? > 0;
            let is_full = text.len() > self.sizes.frame;
            if rows > 0 && (is_full || !has_line) {
                let (whole, _) = text.split_at(before);
                writer.frame(&Frame { first, rows, ..template }, whole)?;
                text.drain(..before);
                first += u64::from(rows);
                rows = 0;
            }
            if !has_line {
                break;
            }
            rows += 1;
        }
        let end = Frame { first, ..Frame::new(FrameKind::End, entry.generation, entry.batch_id) };
        writer.frame(&end, entry.digest.as_bytes())?;
        writer.sync()?;
        Ok(first)
    }

    fn rolled_back(&self, there: u32, here: u32) -> ResultsError {
        ResultsError::diverged(
            &self.folder,
            format!(
                "they are of generation {there}, this checkpoint of {here}: another copy of the checkpoint was rolled back. Use \
                 that one"
            ),
        )
    }

    fn behind(&self, last: &Ledger, entry: &Ledger) -> ResultsError {
        let Ledger { batch_id, generation, .. } = last;
        let detail = if *batch_id == entry.batch_id && *generation == entry.generation {
            format!("they have batch {batch_id} with other rows than the log")
        } else {
            format!("they are at batch {batch_id} of generation {generation}, the log at batch {}", entry.batch_id)
        };
        ResultsError::diverged(&self.folder, detail + OTHER_COPY)
    }

    fn follow(&mut self, withdrawal: &Withdrawal) -> Result<(), ResultsError> {
        if self.tail.is_none() {
            self.tail = recover(self.disk.as_ref(), &self.folder, &withdrawal.query_id, None)?;
        }
        let Some(tail) = &self.tail else { return Ok(()) };
        if tail.so_far.generation >= withdrawal.generation {
            return Ok(());
        }
        let record = match &withdrawal.undo {
            None => RollbackRecord { withdraws: false, published: tail.so_far.published.clone() },
            Some(undo) => {
                self.check_known(tail.so_far.published.as_ref(), undo)?;
                RollbackRecord { withdraws: true, published: undo.published.clone() }
            }
        };
        let at = Position { generation: withdrawal.generation, batch: withdrawal.last_batch, index: 0 };
        // It comes back only if everything goes well.
        let mut tail = self.tail.take().ok_or_else(|| self.poisoned())?;
        let written = serde_json::to_vec(&record).map_err(io::Error::other).and_then(|payload| {
            tail.writer.frame(&Frame::new(FrameKind::Rollback, at.generation, at.batch), &payload)?;
            tail.writer.sync()
        });
        written.map_err(|error| self.failed(error))?;
        tail.so_far.rollback(at, &record);
        self.tail = Some(tail);
        Ok(())
    }

    /// What was published last must be something that the log knows.
    fn check_known(&self, last: Option<&Ledger>, undo: &Undo) -> Result<(), ResultsError> {
        let Some(last) = last else { return Ok(()) };
        let is_kept = undo.published.as_ref().is_some_and(|kept| last.batch_id <= kept.batch_id);
        if is_kept || undo.batches.contains(last) {
            return Ok(());
        }
        let detail = format!("they have batch {} with rows that the log does not know", last.batch_id);
        Err(ResultsError::diverged(&self.folder, detail + OTHER_COPY))
    }
}

impl Sink for ResultsSink {
    fn describe(&self) -> String {
        Self::DESCRIPTION.to_owned()
    }

    fn open(&mut self, query_id: &str, schema: &Schema) -> Result<(), SinkError> {
        self.tail = recover(self.disk.as_ref(), &self.folder, query_id, Some(&schema.to_string()))?;
        self.schema = Some(schema.to_arrow());
        Ok(())
    }

    fn published(&self) -> Result<Published, SinkError> {
        let tail = self.tail.as_ref().ok_or_else(|| self.poisoned())?;
        Ok(tail.so_far.published.clone().map_or(Published::Nothing, Published::UpTo))
    }

    fn encode(
        &self,
        rows: &mut dyn Iterator<Item = Result<RecordBatch, SinkError>>,
        out: &mut dyn Write,
    ) -> Result<(), SinkError> {
        let schema = self.schema.as_ref().ok_or_else(|| self.poisoned())?;
        let mut lines = Lines { out, length: 0, too_long: false };
        let written = Encoding::Text(TextFormat::JsonLines).write_rows(schema, rows, &mut lines);
        if lines.too_long { Err(ResultsError::RowTooLong { max: ROW_BYTES_MAX }.into()) } else { written }
    }

    fn publish(&mut self, publication: &Publication<'_>) -> Result<(), SinkError> {
        Ok(self.append_batch(publication.entry, publication.staged)?)
    }

    /// Rows are taken back by an entry behind them, also where consumers have read or trimmed them, so none is ever missing.
    fn trace(&self, query_id: &str, batches: &[u64]) -> Result<Option<Trace>, SinkError> {
        let _ = (query_id, batches);
        Ok(Some(Trace { places: vec![Self::DESCRIPTION.to_owned()], missing: Vec::new() }))
    }

    fn withdraw(&mut self, withdrawal: &Withdrawal) -> Result<(), SinkError> {
        Ok(self.follow(withdrawal)?)
    }
}

/// Passes text on, and refuses a line that is too long for a consumer.
struct Lines<'w> {
    out: &'w mut dyn Write,
    /// Of the line at hand.
    length: usize,
    too_long: bool,
}

impl Write for Lines<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        for part in text.split_inclusive(|byte| *byte == b'\n') {
            self.length += part.len();
            let ends = part.ends_with(b"\n");
            if self.length - usize::from(ends) > ROW_BYTES_MAX {
                self.too_long = true;
                return Err(io::Error::other("a row is too long"));
            }
            if ends {
                self.length = 0;
            }
        }
        self.out.write_all(text)?;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
