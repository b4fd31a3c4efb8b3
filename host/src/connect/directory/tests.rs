use std::collections::BTreeMap;
use std::fs;

use super::super::contract::{check_sink, encode, entry, publish, sink_schema};
use super::super::text::{CsvDialect, TextFormat};
use super::*;
use crate::disk::RealDisk;
use crate::disk::testing::{Loss, RecordingDisk};

fn sink_of(disk: Arc<dyn Disk>, path: &Path, format: Format) -> DirectorySink {
    let encoding = match format {
        Format::Jsonl => Encoding::Text(TextFormat::JsonLines),
        Format::Csv => Encoding::Text(TextFormat::Csv(CsvDialect::default())),
        Format::Parquet => Encoding::Parquet,
    };
    DirectorySink::new(disk, path, format, encoding).unwrap()
}

fn sink(path: &Path) -> DirectorySink {
    sink_of(Arc::new(RealDisk), path, Format::Jsonl)
}

/// Opened for the query `q`.
fn open(path: &Path) -> Result<DirectorySink, &'static str> {
    let mut sink = sink(path);
    sink.open("q", &sink_schema()).map(|()| sink).map_err(|error| error.code)
}

/// What a reader of the directory sees.
fn visible(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let Ok(entries) = fs::read_dir(path) else { return BTreeMap::new() };
    let entries = entries.map(|entry| entry.unwrap());
    let visible = entries.filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'));
    visible.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

#[test]
fn every_format_keeps_the_contract() {
    for format in [Format::Jsonl, Format::Csv, Format::Parquet] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        check_sink(|| Box::new(sink_of(Arc::new(RealDisk), &path, format)), || visible(&path));
        let names: Vec<_> = visible(&path).into_keys().collect();
        let ending = format.ending();
        assert_eq!(names, [3, 5, 6].map(|batch| format!("part-0000000000000000000{batch}.{ending}")));
    }
}

#[test]
fn files_hold_the_rows_of_their_batch() {
    let folder = tempfile::tempdir().unwrap();
    for (format, text) in [
        (Format::Jsonl, "{\"k\":\"a\",\"n\":1}\n{\"k\":null,\"n\":2}\n"),
        (Format::Csv, "k,n\na,1\n,2\n"),
    ] {
        let path = folder.path().join(format.ending());
        let mut sink = sink_of(Arc::new(RealDisk), &path, format);
        sink.open("q", &sink_schema()).unwrap();
        publish(&mut sink, 2).unwrap();
        assert_eq!(visible(&path).into_values().collect::<Vec<_>>(), [text.as_bytes()]);
    }
}

#[test]
fn what_a_crash_leaves_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = open(folder.path()).unwrap();
    publish(&mut sink, 1).unwrap();
    let bytes = encode(&sink, 2);
    fs::write(folder.path().join(".part-00000000000000000002.jsonl.tmp"), &bytes[..3]).unwrap();
    fs::write(folder.path().join("part-00000000000000000002.jsonl"), &bytes).unwrap();
    let mut sink = open(folder.path()).unwrap();
    assert_eq!(sink.published().unwrap(), Published::UpTo(entry(1)));
    publish(&mut sink, 2).unwrap();
    assert_eq!(visible(folder.path()).len(), 2);
    assert!(!folder.path().join(".part-00000000000000000002.jsonl.tmp").exists());
}

#[test]
fn what_no_crash_leaves_is_refused() {
    let taken = |change: &dyn Fn(&Path)| {
        let folder = tempfile::tempdir().unwrap();
        publish(&mut open(folder.path()).unwrap(), 1).unwrap();
        change(folder.path());
        let result = open(folder.path()).and_then(|mut sink| publish(&mut sink, 3));
        (folder, result)
    };
    let part = |batch: u64| format!("part-{batch:020}.jsonl");
    let results: [&dyn Fn(&Path); 5] = [
        &|path| fs::write(path.join(part(3)), "other bytes").unwrap(),
        &|path| fs::write(path.join(part(2)), "a batch that the log does not have").unwrap(),
        &|path| fs::write(path.join(part(4)), "a batch beyond").unwrap(),
        &|path| fs::remove_file(path.join(LEDGER_NAME)).unwrap(),
        &|path| fs::rename(path.join(LEDGER_NAME), path.join("kept.json")).unwrap(),
    ];
    for (index, change) in results.into_iter().enumerate() {
        let (folder, result) = taken(change);
        let code = if index == 4 { "SINK_NOT_EMPTY" } else { "SINK_DIVERGED" };
        assert!(result == Err("SINK_DIVERGED") || result == Err(code), "{index}: {result:?}");
        assert!(visible(folder.path()).values().all(|bytes| !bytes.starts_with(b"{\"k\":\"a\",\"n\":3")));
    }
    let (_folder, result) = taken(&|path| fs::write(path.join(LEDGER_NAME), "{}").unwrap());
    assert_eq!(result, Err("SINK_LEDGER_DAMAGED"));
}

#[test]
fn consumers_may_take_files_away_up_to_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    publish(&mut open(folder.path()).unwrap(), 1).unwrap();
    fs::remove_file(folder.path().join("part-00000000000000000001.jsonl")).unwrap();
    publish(&mut open(folder.path()).unwrap(), 2).unwrap();
    assert_eq!(visible(folder.path()).len(), 1);
}

#[test]
fn a_ledger_that_vanishes_while_the_query_runs_stops_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = open(folder.path()).unwrap();
    fs::remove_file(folder.path().join(LEDGER_NAME)).unwrap();
    assert_eq!(publish(&mut sink, 1), Err("SINK_DIVERGED"));
}

#[test]
fn a_directory_with_other_files_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("letter.txt"), "x").unwrap();
    assert_eq!(open(folder.path()).map(drop), Err("SINK_NOT_EMPTY"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(open(&folder.path().join("letter.txt")).map(drop), Err("SINK_WRITE_FAILED"));
}

#[test]
fn a_query_that_never_published_does_not_keep_the_directory() {
    let folder = tempfile::tempdir().unwrap();
    sink(folder.path()).open("first", &sink_schema()).unwrap();
    publish(&mut open(folder.path()).unwrap(), 1).unwrap();
    assert_eq!(sink(folder.path()).open("first", &sink_schema()).unwrap_err().code, "SINK_OF_ANOTHER_QUERY");
}

#[test]
fn types_that_a_format_cannot_hold_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for (format, ddl, fits) in [
        (Format::Csv, "a ARRAY<INT>", false),
        (Format::Csv, "", false),
        (Format::Parquet, "a ARRAY<STRUCT<>>", false),
        (Format::Parquet, "a MAP<STRING, ARRAY<STRUCT<x: INT>>>", true),
        (Format::Jsonl, "a STRUCT<>", true),
    ] {
        let mut sink = sink_of(Arc::new(RealDisk), &folder.path().join(ddl.len().to_string()), format);
        let result = sink.open("q", &Schema::parse(ddl).unwrap()).map_err(|error| error.code);
        assert_eq!(result, if fits { Ok(()) } else { Err("SINK_SCHEMA_UNSUPPORTED") }, "{format} {ddl}");
    }
}

/// At every operation of a run, the disk is rebuilt as a power loss may leave it; the sink must then have every batch
/// whose publishing had returned, and end up as the undisturbed one.
#[test]
fn a_power_loss_at_any_point_loses_nothing_and_doubles_nothing() {
    let (folder, rebuilt) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let disk = Arc::new(RecordingDisk::over(&[folder.path()]).unwrap());
    let path = folder.path().join("out");
    let mut sink = sink_of(Arc::clone(&disk) as Arc<dyn Disk>, &path, Format::Jsonl);
    sink.open("q", &sink_schema()).unwrap();
    let mut acknowledged = Vec::new();
    for batch in [1, 2, 4] {
        publish(&mut sink, batch).unwrap();
        acknowledged.push((disk.operations(), batch));
    }
    let losses = [Loss::Unsynced, Loss::Nothing, Loss::Bytes].into_iter();
    let losses: Vec<Loss> = losses.chain((0..8).map(|seed| Loss::Random { seed })).collect();
    for point in 0..=disk.operations() {
        for (number, loss) in losses.iter().enumerate() {
            let root = rebuilt.path().join(format!("{point}-{number}"));
            disk.rebuild(point, *loss, &[&root]).unwrap();
            let told = acknowledged.iter().filter(|(operations, _)| *operations <= point).map(|(_, batch)| *batch).max();
            let at = format!("{loss:?} after {}", disk.describe(point));
            let out = root.join("out");
            let mut sink = open(&out).unwrap_or_else(|code| panic!("{code}: {at}"));
            let published = match sink.published().unwrap() {
                Published::UpTo(ledger) => Some(ledger.batch_id),
                _ => None,
            };
            assert!(published >= told, "{at}");
            for batch in [1, 2, 4].into_iter().filter(|batch| Some(*batch) > published) {
                publish(&mut sink, batch).unwrap_or_else(|code| panic!("{code}: {at}"));
            }
            assert_eq!(visible(&out), visible(&path), "{at}");
        }
    }
}
