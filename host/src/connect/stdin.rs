//! A stream as a source: it is read once, so its rows themselves go into the commit record.
//!
//! A thread reads the stream, so that a query never waits for it longer than it wants to. Rows that were read but not
//! committed are lost with the process.
//!
//! After a restart a new stream is the continuation of the last one. With [`AfterRestart::SkipCommitted`] it is the same
//! stream from its start: the committed rows are read over, and must be the same, which a running digest of all rows
//! tells. Each stream has its own header, if the format has one; headers are not part of the digest.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use super::error::ReadError;
use super::files::check_projection;
use super::text::{Columns, RawRow, RowCutter, TextDecoder, TextFormat, without_mark};
use crate::engine::source::{Outlook, ReadLimits, Slice, Source, SourceError, SourceRange};
use crate::record::Schema;

/// Bytes that the thread reads at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Chunks that the thread may be ahead: 4 MiB, so that the stream is not slowed by the time between two batches.
const CHUNKS_AHEAD: usize = 64;

/// The name of the stream, for people.
const NAME: &str = "stdin";

/// Key of the bookkeeping: behind all committed rows.
const PLACE: &[u8] = b"place";

/// What a stream is to a query that has read from one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterRestart {
    /// What follows.
    Continue,
    /// The same from its start.
    SkipCommitted,
}

/// A stream of text.
pub struct StdinSource {
    format: TextFormat,
    schema: Schema,
    columns: Columns,
    wait: Duration,
    after_restart: AfterRestart,
    chunks: Receiver<io::Result<Vec<u8>>>,
    ended: bool,
    cutter: RowCutter,
    decoder: Option<TextDecoder>,
    /// The first row of this stream, if the format has one that names the columns.
    header: Option<String>,
    place: StreamPlace,
    /// Committed rows that are to be read over.
    skip: Option<StreamPlace>,
}

/// A row boundary in all that came from streams since the query began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StreamPlace {
    rows: u64,
    bytes: u64,
    digest: RowDigest,
}

/// Digest of all rows before: each is hashed together with the digest of those before it. XXH3-128, in hex.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct RowDigest(String);

/// What a slice of the stream was.
#[derive(Debug, Serialize, Deserialize)]
struct StreamRange {
    first: StreamPlace,
    end: StreamPlace,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    header: Option<String>,
    /// Rows that were too long to be kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    too_long: Vec<TooLong>,
}

#[derive(Debug, Serialize, Deserialize)]
struct TooLong {
    row: u64,
    bytes: u64,
    text: String,
}

impl Default for StreamPlace {
    fn default() -> Self {
        Self { rows: 0, bytes: 0, digest: RowDigest(format!("{:032x}", 0)) }
    }
}

impl StreamPlace {
    fn pass(&mut self, row: &RawRow<'_>, scratch: &mut Vec<u8>) {
        self.rows += 1;
        self.bytes += row.stream_bytes;
        scratch.clear();
        scratch.extend_from_slice(self.digest.0.as_bytes());
        scratch.extend_from_slice(&row.stream_bytes.to_le_bytes());
        scratch.extend_from_slice(row.bytes);
        self.digest = RowDigest(format!("{:032x}", xxh3_128(scratch)));
    }
}

impl StdinSource {
    /// Begins to read the stream. A read of a batch waits for the first row at most as long as `wait`.
    ///
    /// # Errors
    /// `SOURCE_SCHEMA_UNSUPPORTED`, or no thread can be started.
    pub fn new(
        input: Box<dyn Read + Send>,
        format: TextFormat,
        schema: Schema,
        after_restart: AfterRestart,
        wait: Duration,
    ) -> Result<Self, ReadError> {
        let columns = Columns { all: schema.to_arrow(), wanted: schema.to_arrow() };
        if let Some(column) = format.unsupported_column(&columns.all) {
            return Err(ReadError::Nested { column: column.to_owned() });
        }
        let (sender, chunks) = sync_channel(CHUNKS_AHEAD);
        thread::Builder::new()
            .name(NAME.to_owned())
            .spawn(move || read_chunks(input, &sender))
            .map_err(|error| ReadError::unreadable(NAME.as_ref(), error))?;
        Ok(Self {
            cutter: RowCutter::new(format.row_end()),
            format,
            schema,
            columns,
            wait,
            after_restart,
            chunks,
            ended: false,
            decoder: None,
            header: None,
            place: StreamPlace::default(),
            skip: None,
        })
    }

    fn read_slice(&mut self, limits: &ReadLimits) -> Result<Option<Slice>, ReadError> {
        let mut patience = Patience::OneWait;
        if !self.read_header(&mut patience)? || !self.skip_committed(&mut patience)? {
            return Ok(None);
        }
        let mut decoder = match self.decoder.take() {
            Some(decoder) => decoder,
            None => self.new_decoder(self.header.as_deref())?,
        };
        let mut slice = Slice::default();
        let mut range =
            StreamRange { first: self.place.clone(), end: self.place.clone(), header: None, too_long: Vec::new() };
        let (mut inline, mut scratch, mut rows) = (Vec::new(), Vec::new(), 0);
        while rows < limits.rows_max.max(1) && slice.bytes < limits.bytes_max.max(1) {
            let Some(row) = self.cutter.next_row() else {
                if self.receive(&mut patience)? {
                    continue;
                }
                break;
            };
            // What has arrived is enough: a batch does not wait for more.
            patience = Patience::None;
            self.place.pass(&row, &mut scratch);
            if row.is_cut() {
                let text = String::from_utf8_lossy(row.bytes).into_owned();
                range.too_long.push(TooLong { row: self.place.rows, bytes: row.stream_bytes, text });
            } else {
                inline.extend_from_slice(row.bytes);
            }
            slice.bytes += row.stream_bytes;
            rows += u64::from(decoder.read(row, self.place.rows, &mut slice).map_err(defect)?);
        }
        decoder.flush(&mut slice).map_err(defect)?;
        self.decoder = Some(decoder);
        if slice.bytes == 0 {
            return Ok(None);
        }
        range.end = self.place.clone();
        range.header.clone_from(&self.header);
        slice.range = SourceRange { at: serde_json::to_value(&range).map_err(defect)?, inline: Some(inline) };
        // Batches without rows may go on until the log no longer holds the last one with some.
        slice.bookkeeping.push((PLACE.to_vec(), Some(serde_json::to_vec(&self.place).map_err(defect)?)));
        Ok(Some(slice))
    }

    fn new_decoder(&self, header: Option<&str>) -> Result<TextDecoder, ReadError> {
        let mut decoder = TextDecoder::new(&self.format, self.columns.clone(), NAME.into())
            .ok_or_else(|| defect("a column has a type that is not canonical"))?;
        if let Some(header) = header {
            let row = RawRow { bytes: header.as_bytes(), stream_bytes: header.len() as u64 };
            decoder.read_header(row).map_err(|reason| ReadError::file_schema(NAME.as_ref(), reason))?;
        }
        Ok(decoder)
    }

    /// Takes the header of this stream. False: it has not arrived yet.
    fn read_header(&mut self, patience: &mut Patience) -> Result<bool, ReadError> {
        while self.format.has_header() && self.header.is_none() {
            if let Some(row) = self.cutter.next_row() {
                let header = std::str::from_utf8(row.bytes);
                let header =
                    header.map_err(|error| ReadError::file_schema(NAME.as_ref(), format!("header: {error}")))?;
                self.header = Some(header.to_owned());
            } else if !self.receive(patience)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads over the committed rows. False: they have not all arrived yet.
    fn skip_committed(&mut self, patience: &mut Patience) -> Result<bool, ReadError> {
        let Some(committed) = self.skip.clone() else { return Ok(true) };
        let mismatch = |detail| ReadError::PrefixMismatch { rows: committed.rows, detail };
        let mut scratch = Vec::new();
        while self.place.rows < committed.rows {
            if let Some(row) = self.cutter.next_row() {
                self.place.pass(&row, &mut scratch);
            } else if !self.receive(patience)? {
                return if self.ended { Err(mismatch("it ends before")) } else { Ok(false) };
            }
        }
        if self.place != committed {
            return Err(mismatch("they have another digest"));
        }
        self.skip = None;
        Ok(true)
    }

    /// Lets more bytes arrive. False: there are none now.
    fn receive(&mut self, patience: &mut Patience) -> Result<bool, ReadError> {
        if self.ended {
            return Ok(false);
        }
        let received = match std::mem::replace(patience, Patience::None) {
            Patience::None => self.chunks.try_recv(),
            Patience::OneWait => self.chunks.recv_timeout(self.wait).map_err(|error| match error {
                RecvTimeoutError::Timeout => TryRecvError::Empty,
                RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
            }),
        };
        match received {
            Ok(chunk) => {
                let chunk = chunk.map_err(|error| ReadError::unreadable(NAME.as_ref(), error))?;
                self.cutter.push(&chunk);
                Ok(true)
            }
            Err(TryRecvError::Empty) => Ok(false),
            Err(TryRecvError::Disconnected) => {
                self.ended = true;
                self.cutter.finish();
                Ok(!self.cutter.is_exhausted())
            }
        }
    }
}

impl Source for StdinSource {
    fn describe(&self) -> String {
        NAME.to_owned()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn project(&mut self, columns: &Schema) -> Result<(), SourceError> {
        check_projection(&self.schema, columns, NAME)?;
        self.columns.wanted = columns.to_arrow();
        self.decoder = None;
        Ok(())
    }

    fn restore(&mut self, bookkeeping: Vec<(Vec<u8>, Vec<u8>)>, _: Option<&SourceRange>) -> Result<(), SourceError> {
        let Some((_, place)) = bookkeeping.into_iter().find(|(key, _)| key == PLACE) else { return Ok(()) };
        let end: StreamPlace = serde_json::from_slice(&place).map_err(|error| ReadError::position(NAME, error))?;
        match self.after_restart {
            AfterRestart::Continue => self.place = end,
            AfterRestart::SkipCommitted => self.skip = Some(end),
        }
        Ok(())
    }

    fn next(&mut self, limits: &ReadLimits) -> Result<Option<Slice>, SourceError> {
        Ok(self.read_slice(limits)?)
    }

    fn outlook(&self) -> Outlook {
        if self.ended && self.cutter.is_exhausted() { Outlook::Ended } else { Outlook::Open }
    }

    fn read_again(&mut self, range: &SourceRange) -> Result<Slice, SourceError> {
        let StreamRange { first, end, header, too_long } = stream_range(range)?;
        let mut decoder = self.new_decoder(header.as_deref())?;
        let mut slice = Slice { range: range.clone(), ..Slice::default() };
        let mut cutter = RowCutter::new(self.format.row_end());
        cutter.push(range.inline.as_deref().unwrap_or_default());
        cutter.finish();
        let mut too_long = too_long.iter().peekable();
        for number in first.rows + 1..=end.rows {
            let row = match too_long.next_if(|row| row.row == number) {
                Some(row) => Some(RawRow { bytes: row.text.as_bytes(), stream_bytes: row.bytes }),
                None => cutter.next_row(),
            };
            let row =
                row.ok_or_else(|| ReadError::position(NAME, "rows of a batch are missing in its commit record"))?;
            slice.bytes += row.stream_bytes;
            decoder.read(row, number, &mut slice).map_err(defect)?;
        }
        decoder.flush(&mut slice).map_err(defect)?;
        Ok(slice)
    }

    fn verify(&self, range: &SourceRange) -> Result<(), SourceError> {
        Ok(stream_range(range).map(drop)?)
    }
}

/// Whether a read may wait for the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    OneWait,
    None,
}

fn stream_range(range: &SourceRange) -> Result<StreamRange, ReadError> {
    serde_json::from_value(range.at.clone()).map_err(|error| ReadError::position(NAME, error))
}

fn defect(problem: impl ToString) -> ReadError {
    ReadError::defect(NAME, problem)
}

/// Reads the stream to its end, or until nobody wants it any more.
fn read_chunks(mut input: Box<dyn Read + Send>, chunks: &SyncSender<io::Result<Vec<u8>>>) {
    let mut at_start = true;
    loop {
        let mut chunk = vec![0; CHUNK_BYTES];
        match input.read(&mut chunk) {
            Ok(0) => return,
            Ok(read) => {
                chunk.truncate(read);
                if std::mem::take(&mut at_start) {
                    chunk = without_mark(&chunk).to_vec();
                }
                if chunks.send(Ok(chunk)).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                // Nobody to tell is fine, too.
                drop(chunks.send(Err(error)));
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
