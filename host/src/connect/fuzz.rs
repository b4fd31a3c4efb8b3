//! Files and streams of any bytes, and what sources and sinks keep of them.

#![allow(clippy::unwrap_used, reason = "a fuzzer is told by a panic")]

use std::fs;
use std::io;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use tempfile::TempDir;

use super::directory::LEDGER_NAME;
use super::text::{Columns, RowCutter, TextDecoder, infer_schema, write_csv, write_csv_header, write_json_lines};
use super::{
    AfterRestart, CsvDialect, CsvHeader, DirectorySink, Encoding, FileFormat, FileSource, Format, STDIN_WAIT,
    StdinSource, TextFormat,
};
use crate::disk::RealDisk;
use crate::engine::sink::Sink;
use crate::engine::source::{ReadLimits, RejectedRow, Slice, Source, SourceRange};
use crate::record::Schema;
use crate::record::fuzz::first_line;

/// A format, the size of the pieces that arrive, a line of DDL, and text: it reads the same in whatever pieces it arrives, and
/// the rows that are accepted are written so that they read as the same.
pub(crate) fn text_rows(bytes: &[u8]) {
    let Some(([how, piece], rest)) = bytes.split_first_chunk::<2>() else { return };
    let Some((ddl, text)) = first_line(rest) else { return };
    let Ok(schema) = Schema::parse(ddl) else { return };
    let format = text_format(*how);
    let whole = read(&format, &schema, &mut std::iter::once(text));
    let in_pieces = read(&format, &schema, &mut text.chunks(usize::from(*piece).max(1)));
    assert_eq!(whole, in_pieces);
    if let Some((batch, _)) = whole
        && batch.num_rows() > 0
        && Encoding::Text(format.clone()).check(batch.schema_ref()).is_ok()
    {
        let mut written = String::new();
        match &format {
            TextFormat::JsonLines => write_json_lines(&batch, &mut written).unwrap(),
            TextFormat::Csv(dialect) => {
                if format.has_header() {
                    write_csv_header(batch.schema_ref(), dialect, &mut written);
                }
                write_csv(&batch, dialect, &mut written).unwrap();
            }
        }
        let again = read(&format, &schema, &mut std::iter::once(written.as_bytes()));
        assert_eq!(again, Some((batch, Vec::new())), "{written}");
    }
    if let Ok(inferred) = infer_schema(&format, text.split(|byte| *byte == b'\n')) {
        read(&format, &inferred, &mut std::iter::once(text));
    }
}

fn text_format(how: u8) -> TextFormat {
    let has = |bit: u8| how & 1 << bit != 0;
    if !has(0) {
        return TextFormat::JsonLines;
    }
    TextFormat::Csv(CsvDialect {
        delimiter: if has(1) { b';' } else { b',' },
        null_value: has(2).then(|| "NA".to_owned()),
        header: if has(3) { CsvHeader::None } else { CsvHeader::FirstRow },
    })
}

/// The rows that were accepted, and those that were not. None: the format cannot hold the schema, or the header is wrong.
fn read(
    format: &TextFormat,
    schema: &Schema,
    pieces: &mut dyn Iterator<Item = &[u8]>,
) -> Option<(RecordBatch, Vec<RejectedRow>)> {
    let arrow = schema.to_arrow();
    if format.unsupported_column(&arrow).is_some() || (schema.is_empty() && *format != TextFormat::JsonLines) {
        return None;
    }
    let columns = Columns { all: Arc::clone(&arrow), wanted: Arc::clone(&arrow) };
    let mut decoder = TextDecoder::new(format, columns, "fuzz".into()).unwrap();
    let mut cutter = RowCutter::new(format.row_end());
    let mut slice = Slice::default();
    let (mut header_is_next, mut number) = (format.has_header(), 0);
    loop {
        match pieces.next() {
            Some(piece) => cutter.push(piece),
            None => cutter.finish(),
        }
        while let Some(row) = cutter.next_row() {
            if std::mem::take(&mut header_is_next) {
                decoder.read_header(row).ok()?;
            } else {
                number += 1;
                decoder.read(row, number, &mut slice).unwrap();
            }
        }
        if cutter.is_exhausted() {
            break;
        }
    }
    decoder.flush(&mut slice).unwrap();
    Some((concat_batches(&arrow, &slice.batches).unwrap(), slice.rejected))
}

/// A name, which says format and compression, and a file, read in small slices, with the schema seen in it.
pub(crate) fn input_files(bytes: &[u8]) {
    let Some((how, file)) = bytes.split_first() else { return };
    let (name, format) = match how % 6 {
        0 => ("1.jsonl.gz", FileFormat::Text(TextFormat::JsonLines)),
        1 => ("1.jsonl.zst", FileFormat::Text(TextFormat::JsonLines)),
        2 => ("1.csv.gz", FileFormat::Text(text_format(1))),
        3 => ("1.csv.zst", FileFormat::Text(text_format(1))),
        4 => ("1.jsonl", FileFormat::Text(TextFormat::JsonLines)),
        _ => ("1.parquet", FileFormat::Parquet),
    };
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join(name), file).unwrap();
    let Ok(mut source) = FileSource::open(dir.path(), format, None) else { return };
    let limits = ReadLimits { files_max: None, rows_max: 3, bytes_max: 1 << 16 };
    // A small file can hold very many rows.
    for _ in 0..100 {
        let Ok(Some(slice)) = source.next(&limits) else { return };
        let again = source.read_again(&slice.range).unwrap();
        assert_eq!((again.batches, again.rejected), (slice.batches, slice.rejected));
    }
}

/// What a source said of a committed range, or a sink of what it published.
pub(crate) fn bookkeeping(bytes: &[u8]) {
    let Some((which, kept)) = bytes.split_first() else { return };
    let dir = TempDir::new().unwrap();
    let schema = Schema::parse("n BIGINT").unwrap();
    let at = serde_json::from_slice(kept).unwrap_or_default();
    let range = SourceRange { at, inline: Some(b"{\"n\":1}\n".to_vec()) };
    match which % 3 {
        0 => {
            fs::write(dir.path().join("1.jsonl"), "{\"n\":1}\n{\"n\":2}\n").unwrap();
            let open = || FileSource::open(dir.path(), FileFormat::Text(TextFormat::JsonLines), Some(schema.clone()));
            let _ = open().unwrap().read_again(&range);
            let _ = open().unwrap().read_changed(&range);
            let _ = open().unwrap().verify(&range);
            for key in ["position", "finished/1.jsonl"] {
                let _ = open().unwrap().restore(vec![(key.into(), kept.to_vec())], Some(&range));
            }
        }
        1 => {
            let (empty, anew) = (Box::new(io::empty()), AfterRestart::Continue);
            let mut source = StdinSource::new(empty, TextFormat::JsonLines, schema, anew, STDIN_WAIT).unwrap();
            let _ = source.read_again(&range);
            let _ = source.restore(Vec::new(), Some(&range));
        }
        _ => {
            fs::write(dir.path().join(LEDGER_NAME), kept).unwrap();
            let encoding = Encoding::Text(TextFormat::JsonLines);
            let mut sink = DirectorySink::new(Arc::new(RealDisk), dir.path(), Format::Jsonl, encoding).unwrap();
            let _ = sink.open("query-7", &schema);
        }
    }
}
