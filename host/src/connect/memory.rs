//! Rows in memory as source and sink, for tests of what stands between them.

use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use serde::{Deserialize, Serialize};

use super::encoding::{Encoding, Rows};
use super::error::{ReadError, WriteError};
use super::files::check_projection;
use super::text::TextFormat;
use crate::engine::sink::{Ledger, Publication, Published, Sink, SinkError, Staged};
use crate::engine::source::{Outlook, ReadLimits, Slice, Source, SourceError, SourceRange};
use crate::record::Schema;

/// What a [`MemorySink`] has taken. Cheap to clone; all clones are one, so a test keeps it over restarts.
#[derive(Debug, Clone, Default)]
pub struct MemoryTable(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    owner: Option<String>,
    ledger: Option<Ledger>,
    batches: Vec<(u64, String)>,
}

impl MemoryTable {
    /// The rows as JSON, in the order in which they were published.
    pub fn rows(&self) -> Vec<String> {
        self.lock().batches.iter().flat_map(|(_, lines)| lines.lines()).map(str::to_owned).collect()
    }

    /// The rows of each batch as JSON Lines.
    pub fn batches(&self) -> Vec<(u64, String)> {
        self.lock().batches.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sink that keeps rows in memory.
#[derive(Debug)]
pub struct MemorySink {
    table: MemoryTable,
    schema: Option<SchemaRef>,
}

impl MemorySink {
    /// Publishes to the table.
    pub fn new(table: MemoryTable) -> Self {
        Self { table, schema: None }
    }
}

impl Sink for MemorySink {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    fn open(&mut self, query_id: &str, schema: &Schema) -> Result<(), SinkError> {
        let mut table = self.table.lock();
        let owner = table.owner.get_or_insert_with(|| query_id.to_owned());
        if owner != query_id {
            let (owner, query_id) = (owner.clone(), query_id.to_owned());
            return Err(WriteError::OfAnotherQuery { path: "memory".into(), owner, query_id }.into());
        }
        self.schema = Some(schema.to_arrow());
        Ok(())
    }

    fn published(&self) -> Result<Published, SinkError> {
        Ok(self.table.lock().ledger.clone().map_or(Published::Nothing, Published::UpTo))
    }

    fn encode(&self, rows: Rows<'_>, out: &mut dyn Write) -> Result<(), SinkError> {
        let schema = self.schema.as_ref().ok_or_else(|| WriteError::defect("memory", "it was not opened"))?;
        Encoding::Text(TextFormat::JsonLines).write_rows(schema, rows, out)
    }

    fn publish(&mut self, publication: &Publication<'_>) -> Result<(), SinkError> {
        let entry = publication.entry;
        let lines = match publication.staged {
            Staged::Inline(bytes) => bytes.clone(),
            Staged::File(path) => std::fs::read(path).map_err(|error| WriteError::failed(path, error))?,
        };
        let lines = String::from_utf8(lines).map_err(|error| WriteError::defect("memory", error))?;
        let mut table = self.table.lock();
        if let Some(last) = &table.ledger
            && last.batch_id >= entry.batch_id
        {
            let detail = format!("it has batch {}, and batch {} is published", last.batch_id, entry.batch_id);
            return if last == entry { Ok(()) } else { Err(WriteError::diverged("memory".as_ref(), detail).into()) };
        }
        table.batches.push((entry.batch_id, lines));
        table.ledger = Some(entry.clone());
        Ok(())
    }
}

/// The rows of a [`MemorySource`], to which a test adds more. Cheap to clone; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct MemoryRows(Arc<Mutex<Fed>>);

#[derive(Debug, Default)]
struct Fed {
    batches: Vec<RecordBatch>,
    ended: bool,
}

impl MemoryRows {
    /// Adds rows, in the canonical types of the source's schema.
    pub fn push(&self, batch: RecordBatch) {
        self.lock().batches.push(batch);
    }

    /// Tells that no more rows will come.
    pub fn end(&self) {
        self.lock().ended = true;
    }

    fn lock(&self) -> MutexGuard<'_, Fed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A source that reads rows from memory.
#[derive(Debug)]
pub struct MemorySource {
    rows: MemoryRows,
    schema: Schema,
    wanted: Schema,
    position: u64,
}

/// Rows from `first`, up to but not including `end`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct RowRange {
    first: u64,
    end: u64,
}

impl MemorySource {
    /// Reads the rows from the first on.
    pub fn new(schema: Schema, rows: MemoryRows) -> Self {
        Self { rows, wanted: schema.clone(), schema, position: 0 }
    }

    fn read(&self, range: RowRange) -> Result<Slice, SourceError> {
        let mut slice = Slice { range: SourceRange { at: json(&range)?, inline: None }, ..Slice::default() };
        let mut begin = 0;
        for batch in &self.rows.lock().batches {
            let end = begin + batch.num_rows() as u64;
            let (first, last) = (range.first.clamp(begin, end), range.end.clamp(begin, end));
            if first < last {
                let offset = usize::try_from(first - begin).map_err(|error| ReadError::defect("memory", error))?;
                let length = usize::try_from(last - first).map_err(|error| ReadError::defect("memory", error))?;
                let rows = crate::record::cast_batch(&batch.slice(offset, length), &self.wanted)
                    .map_err(|error| ReadError::defect("memory", error))?;
                slice.bytes += rows.get_array_memory_size() as u64;
                slice.batches.push(rows);
            }
            begin = end;
        }
        Ok(slice)
    }
}

impl Source for MemorySource {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn project(&mut self, columns: &Schema) -> Result<(), SourceError> {
        check_projection(&self.schema, columns, "memory")?;
        self.wanted = columns.clone();
        Ok(())
    }

    fn restore(&mut self, _: Vec<(Vec<u8>, Vec<u8>)>, last: Option<&SourceRange>) -> Result<(), SourceError> {
        self.position = last.map(row_range).transpose()?.map_or(0, |range| range.end);
        Ok(())
    }

    fn next(&mut self, limits: &ReadLimits) -> Result<Option<Slice>, SourceError> {
        let available: u64 = self.rows.lock().batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let end = available.min(self.position.saturating_add(limits.rows_max.max(1)));
        if end <= self.position {
            return Ok(None);
        }
        let slice = self.read(RowRange { first: self.position, end })?;
        self.position = end;
        Ok(Some(slice))
    }

    fn outlook(&self) -> Outlook {
        let rows = self.rows.lock();
        let available: u64 = rows.batches.iter().map(|batch| batch.num_rows() as u64).sum();
        if rows.ended && self.position >= available { Outlook::Ended } else { Outlook::Open }
    }

    fn read_again(&mut self, range: &SourceRange) -> Result<Slice, SourceError> {
        self.read(row_range(range)?)
    }

    fn verify(&self, range: &SourceRange) -> Result<(), SourceError> {
        row_range(range).map(drop)
    }
}

fn row_range(range: &SourceRange) -> Result<RowRange, SourceError> {
    Ok(serde_json::from_value(range.at.clone()).map_err(|error| ReadError::position("memory", error))?)
}

fn json(range: &RowRange) -> Result<serde_json::Value, SourceError> {
    Ok(serde_json::to_value(range).map_err(|error| ReadError::defect("memory", error))?)
}

#[cfg(test)]
mod tests {
    use super::super::contract::{check_sink, check_source, rows, sink_schema};
    use super::*;

    #[test]
    fn the_source_keeps_the_contract() {
        let fed = MemoryRows::default();
        (0..3).for_each(|batch| fed.push(rows(batch)));
        fed.end();
        let content = check_source(|| Box::new(MemorySource::new(sink_schema(), fed.clone())));
        assert_eq!(content.rows.len(), 6);
    }

    #[test]
    fn the_sink_keeps_the_contract() {
        let table = MemoryTable::default();
        check_sink(|| Box::new(MemorySink::new(table.clone())), || table.rows());
        assert_eq!(table.batches().len(), 3);
    }
}
