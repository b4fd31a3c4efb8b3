//! A stream as a sink, for people and pipes. It keeps no ledger, so after a crash the last batch may be seen twice.

use std::io::{self, Write};
use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::encoding::{Encoding, Rows};
use super::error::WriteError;
use super::text::TextFormat;
use crate::disk::Disk;
use crate::engine::sink::{Publication, Published, Sink, SinkError, Staged};
use crate::record::Schema;

/// A stream, written batch by batch.
pub struct StdoutSink {
    disk: Arc<dyn Disk>,
    out: Box<dyn Write + Send>,
    encoding: Encoding,
    schema: Option<SchemaRef>,
    /// The header of CSV, until it was written.
    preamble: String,
}

impl StdoutSink {
    /// Writes to `out`, which is buffered here; `disk` is where staged output lies.
    pub fn new(disk: Arc<dyn Disk>, out: Box<dyn Write + Send>, format: TextFormat) -> Self {
        Self { disk, out, encoding: Encoding::Text(format), schema: None, preamble: String::new() }
    }

    fn write(&mut self, staged: &Staged) -> io::Result<()> {
        self.out.write_all(self.preamble.as_bytes())?;
        self.preamble.clear();
        match staged {
            Staged::Inline(bytes) => self.out.write_all(bytes)?,
            Staged::File(path) => drop(io::copy(&mut self.disk.open(path)?, &mut self.out)?),
        }
        self.out.flush()
    }
}

impl Sink for StdoutSink {
    fn describe(&self) -> String {
        "stdout".to_owned()
    }

    fn open(&mut self, _query_id: &str, schema: &Schema) -> Result<(), SinkError> {
        let schema = schema.to_arrow();
        self.encoding.check(&schema)?;
        self.preamble = self.encoding.preamble(&schema);
        self.schema = Some(schema);
        Ok(())
    }

    fn published(&self) -> Result<Published, SinkError> {
        Ok(Published::Unknown)
    }

    fn encode(&self, rows: Rows<'_>, out: &mut dyn Write) -> Result<(), SinkError> {
        let schema = self.schema.as_ref().ok_or_else(|| WriteError::defect("stdout", "it was not opened"))?;
        self.encoding.write_rows(schema, rows, out)
    }

    fn publish(&mut self, publication: &Publication<'_>) -> Result<(), SinkError> {
        self.write(publication.staged).map_err(|source| {
            let place = "stdout".to_owned();
            match source.kind() {
                io::ErrorKind::BrokenPipe => WriteError::Closed { place }.into(),
                _ => WriteError::Failed { place, source }.into(),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use arrow_array::{Int64Array, RecordBatch};

    use super::super::text::CsvDialect;
    use super::*;
    use crate::disk::RealDisk;
    use crate::engine::sink::Ledger;

    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct ClosedPipe;

    impl Write for ClosedPipe {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn publish(sink: &mut StdoutSink, numbers: &[i64]) -> Result<(), SinkError> {
        let schema = Schema::parse("n BIGINT").unwrap();
        let batch =
            RecordBatch::try_new(schema.to_arrow(), vec![Arc::new(Int64Array::from(numbers.to_vec()))]).unwrap();
        let mut bytes = Vec::new();
        sink.encode(&mut std::iter::once(Ok(batch)), &mut bytes).unwrap();
        let entry = Ledger { query_id: "q".to_owned(), generation: 0, batch_id: 0, digest: String::new() };
        sink.publish(&Publication { entry: &entry, staged: &Staged::Inline(bytes) })
    }

    #[test]
    fn the_header_is_written_once() {
        let screen = Screen::default();
        let format = TextFormat::Csv(CsvDialect::default());
        let mut sink = StdoutSink::new(Arc::new(RealDisk), Box::new(screen.clone()), format);
        sink.open("q", &Schema::parse("n BIGINT NOT NULL").unwrap()).unwrap();
        publish(&mut sink, &[1]).unwrap();
        publish(&mut sink, &[2, 3]).unwrap();
        assert_eq!(String::from_utf8(screen.0.lock().unwrap().clone()).unwrap(), "n\n1\n2\n3\n");
        assert_eq!(sink.published().unwrap(), Published::Unknown);
    }

    #[test]
    fn a_reader_that_has_gone_ends_the_query_with_a_code() {
        let mut sink = StdoutSink::new(Arc::new(RealDisk), Box::new(ClosedPipe), TextFormat::JsonLines);
        sink.open("q", &Schema::parse("n BIGINT").unwrap()).unwrap();
        assert_eq!(publish(&mut sink, &[1]).unwrap_err().code, "SINK_CLOSED");
    }
}
