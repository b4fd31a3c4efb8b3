//! The final bytes of a batch's output, durable before the batch commits, so that a newer host publishes the same.
//!
//! A small output stands in the commit record; a large one in a file of the staging folder, named by the record.

use std::collections::VecDeque;
use std::io::{self, Read, Write};

use arrow_array::RecordBatch;
use xxhash_rust::xxh3::Xxh3;

use super::checkpoint::{Checkpoint, StagedFile};
use super::commit::StagedAt;
use super::error::QueryError;
use super::faults;
use super::output::{Output, SpoolReader};
use super::sink::{Sink, SinkError};
use crate::record::{RowDecoder, RowEncoder, RowLayout, push_row};

/// Output up to this size stands in the commit record, where it needs no fsync of its own.
const INLINE_BYTES_MAX: usize = 1 << 20;

/// Rows decoded at a time.
const ROWS_PER_BATCH: usize = 8192;

/// Bytes of decoded rows held at a time, unless one row has more.
const BYTES_PER_BATCH: usize = 16 << 20;

/// The output of one batch for one sink.
#[derive(Debug)]
pub struct StagedOutput {
    /// Rows in it.
    pub rows: u64,
    /// XXH3-128 of the packed rows, in hex.
    pub digest: String,
    /// Where the final bytes are.
    pub at: StagedAt,
    /// The bytes, where they go into the record.
    pub inline: Option<Vec<u8>>,
}

/// Stages the workers' output in published order: phase after phase, each in range order.
///
/// # Errors
/// A sink that cannot encode the rows, a full disk.
pub fn stage_output(
    checkpoint: &Checkpoint,
    sink: &dyn Sink,
    layout: &RowLayout,
    outputs: Vec<Output>,
    batch_id: u64,
) -> Result<StagedOutput, QueryError> {
    let rows = outputs.iter().map(Output::rows).sum();
    let mut reader = OutputReader::new(layout, outputs)?;
    if rows == 0 {
        return Ok(StagedOutput { rows, digest: reader.digest(), at: StagedAt::Nowhere, inline: None });
    }
    let mut target = Target::new(checkpoint, batch_id);
    let encoded = sink.encode(&mut reader, &mut target);
    let (at, inline) = target.finish(sink, encoded)?;
    Ok(StagedOutput { rows, digest: reader.digest(), at, inline })
}

/// Stages one batch of rows of the host's own making.
///
/// # Errors
/// As [`stage_output`].
pub fn stage_rows(
    checkpoint: &Checkpoint,
    sink: &dyn Sink,
    layout: &RowLayout,
    rows: Option<RecordBatch>,
    batch_id: u64,
) -> Result<StagedOutput, QueryError> {
    let mut digest = Xxh3::new();
    let Some(batch) = rows.filter(|batch| batch.num_rows() > 0) else {
        return Ok(StagedOutput { rows: 0, digest: hex(&digest), at: StagedAt::Nowhere, inline: None });
    };
    let encoder =
        RowEncoder::new(layout, &batch).map_err(|error| QueryError::settings("HOST_DEFECT", error.to_string()))?;
    let (mut row, mut framed) = (Vec::new(), Vec::new());
    for number in 0..batch.num_rows() {
        row.clear();
        framed.clear();
        encoder.encode(number, &mut row);
        push_row(&mut framed, &row);
        digest.update(&framed);
    }
    let count = batch.num_rows() as u64;
    let mut target = Target::new(checkpoint, batch_id);
    let encoded = sink.encode(&mut std::iter::once(Ok(batch)), &mut target);
    let (at, inline) = target.finish(sink, encoded)?;
    Ok(StagedOutput { rows: count, digest: hex(&digest), at, inline })
}

/// The digest of the workers' output as [`stage_output`] computes it, without staging anything.
///
/// # Errors
/// A spilled output that cannot be read.
pub fn digest_output(layout: &RowLayout, outputs: Vec<Output>) -> Result<String, QueryError> {
    let mut reader = OutputReader::new(layout, outputs)?;
    while reader.next_row().map_err(|source| QueryError::Sink { sink_name: "replay".into(), source })?.is_some() {}
    Ok(reader.digest())
}

/// Reads packed rows of many spools as record batches and digests them on the way.
pub(super) struct OutputReader<'a> {
    layout: &'a RowLayout,
    spools: VecDeque<SpoolReader>,
    digest: Xxh3,
    /// What was read last, and how much of it has been given out.
    block: Vec<u8>,
    at: usize,
}

/// Bytes of framing before a row: its length, and four that are zero.
const FRAME_BYTES: usize = 8;

/// Bytes read at a time; the cache of the processor has room for them.
const BLOCK_BYTES: usize = 64 << 10;

impl<'a> OutputReader<'a> {
    pub(super) fn new(layout: &'a RowLayout, outputs: Vec<Output>) -> Result<Self, QueryError> {
        let (mut spools, mut timers) = (VecDeque::new(), VecDeque::new());
        for output in outputs {
            let [input_rows, timer_rows] = output.into_readers()?;
            spools.push_back(input_rows);
            timers.push_back(timer_rows);
        }
        spools.append(&mut timers);
        Ok(Self { layout, spools, digest: Xxh3::new(), block: Vec::new(), at: 0 })
    }

    /// XXH3-128 of all rows with their framing, once all have been read.
    pub(super) fn digest(&self) -> String {
        hex(&self.digest)
    }

    /// The next row, unless there is none.
    fn next_row(&mut self) -> Result<Option<&[u8]>, SinkError> {
        let head = self.take(FRAME_BYTES)?;
        let Some(&[a, b, c, d, ..]) = head else { return Ok(None) };
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        match self.take(length)? {
            row @ Some(_) => Ok(row),
            None => Err(unreadable(io::Error::from(io::ErrorKind::UnexpectedEof))),
        }
    }

    /// The next so many bytes, unless there are fewer.
    #[inline]
    fn take(&mut self, length: usize) -> Result<Option<&[u8]>, SinkError> {
        if self.block.len() - self.at < length {
            self.read(length).map_err(unreadable)?;
        }
        let taken = self.block.get(self.at..self.at + length);
        self.at += taken.map_or(0, <[u8]>::len);
        Ok(taken)
    }

    /// Reads on until so many bytes are there that have not been given out, or no more follow.
    fn read(&mut self, length: usize) -> io::Result<()> {
        self.block.drain(..self.at);
        self.at = 0;
        while self.block.len() < length
            && let Some(spool) = self.spools.front_mut()
        {
            let known = self.block.len();
            if spool.take(length.max(BLOCK_BYTES) as u64).read_to_end(&mut self.block)? == 0 {
                self.spools.pop_front();
            }
            self.digest.update(self.block.get(known..).unwrap_or_default());
        }
        Ok(())
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, SinkError> {
        let mut decoder = RowDecoder::new(self.layout);
        while decoder.rows() < ROWS_PER_BATCH
            && decoder.bytes() < BYTES_PER_BATCH
            && let Some(row) = self.next_row()?
        {
            decoder.push(row).map_err(unreadable)?;
        }
        if decoder.rows() == 0 { Ok(None) } else { decoder.finish().map(Some).map_err(unreadable) }
    }
}

impl Iterator for OutputReader<'_> {
    type Item = Result<RecordBatch, SinkError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}

/// Takes the final bytes: in memory at first, in a staged file once they are many.
struct Target<'a> {
    checkpoint: &'a Checkpoint,
    batch_id: u64,
    inline: Vec<u8>,
    file: Option<StagedFile>,
    failure: Option<io::Error>,
}

impl<'a> Target<'a> {
    fn new(checkpoint: &'a Checkpoint, batch_id: u64) -> Self {
        Self { checkpoint, batch_id, inline: Vec::new(), file: None, failure: None }
    }

    fn finish(
        mut self,
        sink: &dyn Sink,
        encoded: Result<(), SinkError>,
    ) -> Result<(StagedAt, Option<Vec<u8>>), QueryError> {
        let staging_failed =
            |source| QueryError::Staging { batch_id: self.batch_id, path: self.checkpoint.staging_dir(), source };
        if let Some(failure) = self.failure.take() {
            return Err(staging_failed(failure));
        }
        encoded.map_err(|source| QueryError::Sink { sink_name: sink.describe(), source })?;
        match self.file.take() {
            None => Ok((StagedAt::Record, Some(std::mem::take(&mut self.inline)))),
            Some(file) => {
                faults::point("stage.before-sync");
                let name = file.finish().map_err(staging_failed)?;
                faults::point("stage.after-sync");
                Ok((StagedAt::File(name), None))
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() && self.inline.len() + bytes.len() <= INLINE_BYTES_MAX {
            self.inline.extend_from_slice(bytes);
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let file = none.insert(self.checkpoint.stage(self.batch_id)?);
                file.write_all(&std::mem::take(&mut self.inline))?;
                file
            }
        };
        file.write_all(bytes)
    }
}

impl Write for Target<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.take(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(error) => {
                let again = io::Error::new(error.kind(), error.to_string());
                self.failure.get_or_insert(error);
                Err(again)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn hex(digest: &Xxh3) -> String {
    format!("{:032x}", digest.digest128())
}

fn unreadable(error: impl std::error::Error + Send + Sync + 'static) -> SinkError {
    SinkError {
        code: "HOST_DEFECT",
        message: format!("emitted rows cannot be read back: {error}"),
        source: Some(Box::new(error)),
    }
}
