//! Directories as a sink: once each, whatever is there before.

use std::collections::BTreeMap;
use std::fs;

use super::super::contract::{check_sink, encode, entry, publish, sink_schema};
use super::super::text::{CsvDialect, TextFormat};
use super::*;
use crate::disk::RealDisk;
use crate::disk::testing::{Failure, FaultyDisk, Loss, RecordingDisk, SyncKind};

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
    for (format, text) in
        [(Format::Jsonl, "{\"k\":\"a\",\"n\":1}\n{\"k\":null,\"n\":2}\n"), (Format::Csv, "k,n\na,1\n,2\n")]
    {
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
    let part = |path: &Path, batch: u64| path.join(format!("part-{batch:020}.jsonl"));
    type Change<'c> = (&'static str, &'c dyn Fn(&Path));
    let changes: [Change<'_>; 6] = [
        ("SINK_DIVERGED", &|path| fs::write(part(path, 3), "other bytes").unwrap()),
        ("SINK_DIVERGED", &|path| fs::write(part(path, 2), "a batch that the log does not have").unwrap()),
        ("SINK_DIVERGED", &|path| fs::write(part(path, 4), "a batch beyond").unwrap()),
        ("SINK_DIVERGED", &|path| fs::remove_file(path.join(LEDGER_NAME)).unwrap()),
        ("SINK_NOT_EMPTY", &|path| fs::rename(path.join(LEDGER_NAME), path.join("kept.json")).unwrap()),
        ("SINK_LEDGER_DAMAGED", &|path| fs::write(path.join(LEDGER_NAME), "{}").unwrap()),
    ];
    for (number, (code, change)) in changes.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        publish(&mut open(folder.path()).unwrap(), 1).unwrap();
        change(folder.path());
        let before = visible(folder.path());
        assert_eq!(open(folder.path()).and_then(|mut sink| publish(&mut sink, 3)), Err(code), "{number}");
        assert_eq!(visible(folder.path()), before, "{number}");
    }
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

/// What is wrong in the directories that a power loss may leave, when the syncs of one kind are left out. At every
/// operation of a run the disk is rebuilt, and the sink must have every batch whose publishing had returned, and end up
/// as the undisturbed one.
fn losses(left_out: Option<SyncKind>) -> Vec<String> {
    let (folder, rebuilt) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let recording = Arc::new(RecordingDisk::over(&[folder.path()]).unwrap());
    let disk = FaultyDisk::over(Arc::clone(&recording) as Arc<dyn Disk>);
    if let Some(kind) = left_out {
        disk.drop_syncs(move |of, _| of == kind);
    }
    let path = folder.path().join("out");
    let mut sink = sink_of(Arc::new(disk), &path, Format::Jsonl);
    sink.open("q", &sink_schema()).unwrap();
    let mut told = vec![(0, None)];
    for batch in [1, 2, 4] {
        publish(&mut sink, batch).unwrap();
        told.push((recording.operations(), Some(batch)));
    }
    let kinds = [Loss::Unsynced, Loss::Nothing, Loss::Bytes].into_iter();
    let kinds: Vec<Loss> = kinds.chain((0..8).map(|seed| Loss::Random { seed })).collect();
    let mut wrong = Vec::new();
    for point in 0..=recording.operations() {
        let told = told.iter().rfind(|(operations, _)| *operations <= point).and_then(|(_, batch)| *batch);
        for (number, loss) in kinds.iter().enumerate() {
            let root = rebuilt.path().join(format!("{point}-{number}"));
            recording.rebuild(point, *loss, &[&root]).unwrap();
            if let Err(problem) = recover(&root.join("out"), told, &visible(&path)) {
                wrong.push(format!("{problem}, {loss:?} after {}", recording.describe(point)));
            }
        }
    }
    wrong
}

fn recover(path: &Path, told: Option<u64>, whole: &BTreeMap<String, Vec<u8>>) -> Result<(), String> {
    let mut sink = open(path)?;
    let published = match sink.published().map_err(|error| error.message)? {
        Published::UpTo(ledger) => Some(ledger.batch_id),
        Published::Nothing | Published::Unknown => None,
    };
    if published < told {
        return Err(format!("{told:?} was told, {published:?} is there"));
    }
    for batch in [1, 2, 4].into_iter().filter(|batch| Some(*batch) > published) {
        publish(&mut sink, batch)?;
    }
    if visible(path) == *whole { Ok(()) } else { Err("other files".to_owned()) }
}

#[test]
fn a_power_loss_at_any_point_loses_nothing_and_doubles_nothing() {
    assert_eq!(losses(None), [""; 0]);
}

#[test]
fn without_its_syncs_a_power_loss_would_lose_something() {
    for kind in [SyncKind::File, SyncKind::Folder] {
        assert_ne!(losses(Some(kind)), [""; 0], "{kind:?}");
    }
}

#[test]
fn a_full_disk_at_any_point_is_an_error_and_the_batch_can_be_published_again() {
    let mut operation = 0;
    loop {
        let folder = tempfile::tempdir().unwrap();
        let disk = Arc::new(FaultyDisk::over(Arc::new(RealDisk)));
        let mut sink = sink_of(Arc::clone(&disk) as Arc<dyn Disk>, folder.path(), Format::Jsonl);
        sink.open("q", &sink_schema()).unwrap();
        disk.fail_at(disk.operations() + operation, Failure::DiskFull);
        let result = publish(&mut sink, 1);
        if result.is_err() {
            assert_eq!(result, Err("SINK_WRITE_FAILED"));
            publish(&mut open(folder.path()).unwrap(), 1).unwrap();
        }
        assert_eq!(visible(folder.path()).len(), 1);
        assert_eq!(open(folder.path()).unwrap().published().unwrap(), Published::UpTo(entry(1)));
        if result.is_ok() {
            assert!(operation >= 8, "{operation}");
            return;
        }
        operation += 1;
    }
}
