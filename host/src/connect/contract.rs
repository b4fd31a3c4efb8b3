//! What every source and every sink owes the engine; the tests of each run it.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};

use super::text::write_json_lines;
use crate::engine::sink::{Ledger, Publication, Published, Sink, Staged};
use crate::engine::source::{Outlook, ReadLimits, RejectedRow, Slice, Source, SourceRange};
use crate::record::Schema;

pub(super) const NO_LIMITS: ReadLimits = ReadLimits { files_max: None, rows_max: u64::MAX, bytes_max: u64::MAX };

/// What a slice holds, in a form that can be compared.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Content {
    pub(crate) rows: Vec<String>,
    pub(super) rejected: Vec<RejectedRow>,
}

impl Content {
    pub(super) fn of(slice: &Slice) -> Self {
        let mut text = String::new();
        for batch in &slice.batches {
            write_json_lines(batch, &mut text).unwrap();
        }
        Self { rows: text.lines().map(str::to_owned).collect(), rejected: slice.rejected.clone() }
    }

    fn append(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.rejected.extend(other.rejected);
    }
}

/// A source as a checkpoint knows it: what its batches left there.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) bookkeeping: BTreeMap<Vec<u8>, Vec<u8>>,
    pub(super) last: Option<SourceRange>,
}

impl Kept {
    pub(super) fn restore(&self, source: &mut dyn Source) -> Result<(), crate::engine::source::SourceError> {
        source.restore(self.bookkeeping.clone().into_iter().collect(), self.last.as_ref())
    }

    pub(super) fn commit(&mut self, slice: &Slice) {
        for (key, value) in &slice.bookkeeping {
            match value {
                Some(value) => drop(self.bookkeeping.insert(key.clone(), value.clone())),
                None => drop(self.bookkeeping.remove(key)),
            }
        }
        // As a commit record keeps it: words and bytes apart.
        let at = serde_json::from_str(&slice.range.at.to_string()).unwrap();
        self.last = Some(SourceRange { at, inline: slice.range.inline.clone() });
    }
}

/// Checks a source whose rows are all there. `open` makes it anew, not restored; answers with all it has.
pub(crate) fn check_source(mut open: impl FnMut() -> Box<dyn Source>) -> Content {
    let mut whole = Content::default();
    let mut source = open();
    while let Some(slice) = next(source.as_mut(), &NO_LIMITS) {
        whole.append(Content::of(&slice));
    }
    for limits in [
        ReadLimits { rows_max: 1, ..NO_LIMITS },
        ReadLimits { rows_max: 3, ..NO_LIMITS },
        ReadLimits { bytes_max: 1, ..NO_LIMITS },
        ReadLimits { bytes_max: 50, ..NO_LIMITS },
        ReadLimits { files_max: Some(1), ..NO_LIMITS },
        ReadLimits { files_max: Some(2), rows_max: 2, ..NO_LIMITS },
    ] {
        let slices = read_with_restarts(&mut open, &limits);
        let mut pieces = Content::default();
        for (range, content, rows) in &slices {
            assert!(*rows <= limits.rows_max.max(1), "{limits:?}");
            pieces.append(content.clone());
            // Out of order, by a source that knows nothing.
            let mut source = open();
            source.verify(range).unwrap();
            assert_eq!(&Content::of(&source.read_again(range).unwrap()), content, "{limits:?}");
        }
        assert_eq!(pieces, whole, "{limits:?}");
        let mut source = open();
        for (range, content, _) in &slices {
            assert_eq!(&Content::of(&source.read_again(range).unwrap()), content, "{limits:?} in order");
        }
    }
    whole
}

fn read_with_restarts(
    open: &mut impl FnMut() -> Box<dyn Source>,
    limits: &ReadLimits,
) -> Vec<(SourceRange, Content, u64)> {
    let (mut kept, mut slices) = (Kept::default(), Vec::new());
    loop {
        let mut source = open();
        kept.restore(source.as_mut()).unwrap();
        let Some(slice) = next(source.as_mut(), limits) else { return slices };
        let rows = slice.rows() + slice.rejected.len() as u64;
        kept.commit(&slice);
        slices.push((kept.last.clone().unwrap(), Content::of(&slice), rows));
    }
}

/// The next slice, waited for as `available-now` does.
fn next(source: &mut dyn Source, limits: &ReadLimits) -> Option<Slice> {
    loop {
        match source.next(limits).unwrap() {
            Some(slice) => return Some(slice),
            None if source.outlook() == Outlook::Open => {}
            None => return None,
        }
    }
}

/// Schema of the rows that the sinks are given.
pub(crate) fn sink_schema() -> Schema {
    Schema::parse("k STRING, n BIGINT").unwrap()
}

/// Rows for a batch.
pub(crate) fn rows(batch_id: u64) -> RecordBatch {
    let keys: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None]));
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1, i64::try_from(batch_id).unwrap()]));
    RecordBatch::try_new(sink_schema().to_arrow(), vec![keys, numbers]).unwrap()
}

/// What is published of a batch.
pub(crate) fn entry(batch_id: u64) -> Ledger {
    Ledger { query_id: "q".to_owned(), generation: 0, batch_id, digest: format!("digest {batch_id}") }
}

pub(crate) fn encode(sink: &dyn Sink, batch_id: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    sink.encode(&mut std::iter::once(Ok(rows(batch_id))), &mut bytes).unwrap();
    bytes
}

/// Publishes a batch.
pub(crate) fn publish(sink: &mut dyn Sink, batch_id: u64) -> Result<(), &'static str> {
    let staged = Staged::Inline(encode(sink, batch_id));
    sink.publish(&Publication { entry: &entry(batch_id), staged: &staged }).map_err(|error| error.code)
}

/// Checks a sink that keeps a ledger and is empty. `open` makes it anew; `content` tells what anyone sees of it.
pub(crate) fn check_sink<C: PartialEq + std::fmt::Debug>(
    mut open: impl FnMut() -> Box<dyn Sink>,
    content: impl Fn() -> C,
) {
    let mut reopen = |query_id: &str| {
        let mut sink = open();
        sink.open(query_id, &sink_schema()).map(|()| sink).map_err(|error| error.code)
    };
    let mut sink = reopen("q").unwrap();
    assert_eq!(sink.published().unwrap(), Published::Nothing);
    assert_eq!(encode(sink.as_ref(), 3), encode(sink.as_ref(), 3));
    let nothing = content();
    publish(sink.as_mut(), 3).unwrap();
    assert_ne!(content(), nothing);

    // Batches without rows are left out, and what is published again is there once.
    publish(sink.as_mut(), 5).unwrap();
    let two_batches = content();
    publish(sink.as_mut(), 5).unwrap();
    let mut sink = reopen("q").unwrap();
    assert_eq!(sink.published().unwrap(), Published::UpTo(entry(5)));
    publish(sink.as_mut(), 5).unwrap();
    assert_eq!(content(), two_batches);

    // A log that is behind, or another one.
    assert_eq!(publish(sink.as_mut(), 3), Err("SINK_DIVERGED"));
    let other = Ledger { digest: "another".to_owned(), ..entry(5) };
    let staged = Staged::Inline(encode(sink.as_ref(), 5));
    let error = sink.publish(&Publication { entry: &other, staged: &staged }).unwrap_err();
    assert_eq!(error.code, "SINK_DIVERGED");
    assert_eq!(reopen("another query").map(drop), Err("SINK_OF_ANOTHER_QUERY"));
    assert_eq!(content(), two_batches);

    // A large output is staged in a file.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("staged");
    std::fs::write(&path, encode(sink.as_ref(), 6)).unwrap();
    sink.publish(&Publication { entry: &entry(6), staged: &Staged::File(path.clone()) }).unwrap();
    sink.publish(&Publication { entry: &entry(6), staged: &Staged::File(path) }).unwrap();
    assert_eq!(sink.published().unwrap(), Published::UpTo(entry(6)));
    assert_ne!(content(), two_batches);
}
