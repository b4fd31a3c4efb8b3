//! Where rows of state go: to a listing on standard output, or to a typed file.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use arrow_array::RecordBatch;
use serde_json::Value;

use super::super::Format;
use super::super::listing::Listing;
use super::super::output::Coded;
use super::row_failed;
use crate::connect::write_file;
use crate::disk::RealDisk;
use crate::engine::sink::SinkError;
use crate::record::{RowDecoder, RowLayout, Schema, row_from_json};

/// Rows that are turned into columns at once.
const ROWS_AT_ONCE: usize = 8 << 10;

/// Batches of rows that wait for the writer of a file.
const BATCHES_AHEAD: usize = 2;

/// What a person chose.
pub(super) struct Place {
    pub(super) format: Format,
    /// None: standard output.
    pub(super) file: Option<PathBuf>,
}

/// Takes rows.
pub(super) enum Target {
    Listing(Listing),
    File(RowFile),
}

impl Place {
    /// `columns` are shown to people, `schema` is that of the documents.
    pub(super) fn open(&self, columns: Vec<Vec<String>>, schema: Schema) -> anyhow::Result<Target> {
        Ok(match &self.file {
            None => Target::Listing(Listing::start(self.format, columns)),
            Some(path) => Target::File(RowFile::create(path, &schema)?),
        })
    }
}

impl Target {
    /// Takes a row. Breaks when nobody wants more.
    pub(super) fn row(&mut self, document: &Value) -> anyhow::Result<ControlFlow<()>> {
        match self {
            Self::Listing(listing) => listing.row(document),
            Self::File(file) => file.row(document),
        }
    }

    /// Ends it: only now a file gets its name.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Listing(listing) => listing.finish(),
            Self::File(file) => file.finish(),
        }
    }
}

/// A file that a thread of its own writes.
pub(super) struct RowFile {
    layout: RowLayout,
    decoder: RowDecoder,
    /// Gone when the file is to be ended.
    batches: Option<SyncSender<Result<RecordBatch, SinkError>>>,
    writer: Option<JoinHandle<Result<(), SinkError>>>,
}

impl RowFile {
    fn create(path: &Path, schema: &Schema) -> anyhow::Result<Self> {
        let layout = RowLayout::new(schema);
        let (batches, written) = sync_channel(BATCHES_AHEAD);
        let (path, schema) = (path.to_owned(), schema.clone());
        let writer = std::thread::spawn(move || write_file(&RealDisk, &path, &schema, &mut written.into_iter()));
        Ok(Self { decoder: RowDecoder::new(&layout), layout, batches: Some(batches), writer: Some(writer) })
    }

    fn row(&mut self, document: &Value) -> anyhow::Result<ControlFlow<()>> {
        let row = row_from_json(&self.layout, document).map_err(|error| Coded::wrap("HOST_DEFECT", error))?;
        self.decoder.push(&row).map_err(row_failed)?;
        if self.decoder.rows() < ROWS_AT_ONCE { Ok(ControlFlow::Continue(())) } else { self.hand_over() }
    }

    fn finish(mut self) -> anyhow::Result<()> {
        let _writer_says_why_it_stopped = self.hand_over()?;
        self.batches = None;
        self.join()
    }

    /// Breaks when the writer has failed.
    fn hand_over(&mut self) -> anyhow::Result<ControlFlow<()>> {
        let decoder = std::mem::replace(&mut self.decoder, RowDecoder::new(&self.layout));
        let batch = decoder.finish().map_err(row_failed)?;
        let is_taken = self.batches.as_ref().is_some_and(|batches| batches.send(Ok(batch)).is_ok());
        Ok(if is_taken { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    }

    fn join(&mut self) -> anyhow::Result<()> {
        match self.writer.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(Coded::wrap(error.code, error)),
            Some(Err(_)) => Err(Coded::wrap("HOST_DEFECT", std::io::Error::other("the writer of the file panicked"))),
        }
    }
}

impl Drop for RowFile {
    /// A file that was not ended is none.
    fn drop(&mut self) {
        if let Some(batches) = self.batches.take() {
            let given_up = SinkError { code: "OUTPUT_FAILED", message: "given up".to_owned(), source: None };
            drop(batches.send(Err(given_up)));
            drop(batches);
            drop(self.join());
        }
    }
}
