//! The state reader: everything that a checkpoint holds, at every retained batch, also while the query runs; what batches
//! changed; and the way back, into another query.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;
use tidemill_host::disk::{Disk, RealDisk};
use tidemill_host::engine::query::Step;
use tidemill_host::engine::settings::{QuerySettings, Retention};
use tidemill_host::engine::view::QueryView;
use tidemill_host::state::{Family, Store};

use super::native_query::{MemoryQuery, settings};
use super::support::{component, fail_with, json_lines, run, succeed, tidemill, write_at};

#[test]
fn a_map_or_list_can_be_collected_to_one_row_per_key() {
    let kept = Kept::new();

    let lists = kept.read(["scan", "seen", "--collect"]);
    let maps = kept.read(["scan", "times", "--collect"]);
    let values = kept.read(["scan", "recent", "--collect"]);

    let of = |rows: &[Value], key: &str| rows.iter().find(|row| row["key"]["key"] == key).unwrap().clone();
    assert_eq!(lists.len(), 5);
    let elements: Vec<_> = [1, 6, 11].map(|n| json!({ "value": { "value": n } })).into();
    assert_eq!(of(&lists, "k1")["elements"], json!(elements));
    let mut entries = of(&maps, "k1")["entries"].as_array().unwrap().clone();
    entries.sort_by_key(|entry| entry["entry"]["value"].as_i64());
    assert_eq!(entries[0], json!({ "entry": { "value": 1 }, "value": { "value": 1 } }));
    assert_eq!(of(&values, "k1")["values"][0]["expires"], "1970-01-01T01:00:02Z");
    assert_eq!(kept.read(["scan", "seen", "--collect", "--limit", "2"]), lists[..2]);
}

#[test]
fn every_row_tells_its_key_group() {
    let kept = Kept::new();
    for rows in [kept.read(["scan", "total"]), kept.read(["timers"]), kept.read(["scan", "seen", "--collect"])] {
        let groups: Vec<u64> = rows.iter().map(|row| row["key_group"].as_u64().unwrap()).collect();
        assert!(groups.is_sorted(), "rows come in order of their hashes");
        assert!(groups.iter().all(|group| *group < 256) && groups.len() > 1);
    }
}

#[test]
fn the_state_after_every_retained_batch_can_be_read() {
    let kept = Kept::new();
    let total = |batch: &str| {
        let rows = kept.read(["scan", "total", "--batch", batch]);
        rows.iter().map(|row| row["value"]["value"].as_i64().unwrap()).sum::<i64>()
    };

    // Rows 0 to 14, five to a batch.
    assert_eq!(["0", "1", "2"].map(total), [10, 45, 105]);
    assert_eq!(kept.read(["timers", "--batch", "0"]).len(), 5);
    let missing = fail_with(&mut kept.state(["scan", "total", "--batch", "7"]), "STDS_COMMITTED_BATCH_UNAVAILABLE");
    assert!(missing.err.contains("the batches 0 to 2"), "{}", missing.err);
}

#[test]
fn a_batch_older_than_the_oldest_snapshot_is_not_retained() {
    let kept = Kept::with(&["--set", "retention.snapshot_batches=1", "--set", "retention.batches=1"]);
    let metadata = json_lines(&succeed(&mut kept.state(["metadata", "-o", "json"])).out).remove(0);
    assert_ne!(metadata["snapshots"], json!([]));

    let readable = (0..3).filter(|batch| run(&mut kept.state(["list", "--batch", &batch.to_string()])).code == Some(0));

    let oldest: u64 = metadata["snapshots"][0].as_str().unwrap().split('-').next().unwrap().parse().unwrap();
    let expected: Vec<u64> = (if metadata["retainedBatches"]["first"] == 0 { 0 } else { oldest }..3).collect();
    assert_eq!(readable.collect::<Vec<u64>>(), expected, "{metadata}");
}

#[test]
fn changes_lead_from_the_state_after_one_batch_to_that_after_another() {
    let kept = Kept::new();
    for variable in ["total", "seen", "times", "recent"] {
        let mut rows = keyed(kept.read(["scan", variable, "--batch", "0"]));
        for mut change in kept.read(["changes", variable, "--from", "1", "--to", "2"]) {
            let fields = change.as_object_mut().unwrap();
            assert!(fields.remove("batch_id").unwrap().as_u64().is_some_and(|batch| batch == 1 || batch == 2));
            let change_type = fields.remove("change_type").unwrap();
            let id = identity(&change);
            match change_type.as_str().unwrap() {
                "delete" => drop(rows.remove(&id)),
                "update" | "append" => drop(rows.insert(id, change)),
                other => panic!("{other}"),
            }
        }
        assert_eq!(rows, keyed(kept.read(["scan", variable])), "{variable}");
    }
}

#[test]
fn what_expires_is_a_delete_in_the_changes() {
    let kept = Kept::new();
    // An hour and a second after the rows of the last batch.
    kept.feed(&[("k9", 1, 1)], 9, "1970-01-01T01:00:03Z");

    let changes = kept.read(["changes", "recent", "--from", "3"]);

    let deleted: BTreeSet<_> =
        changes.iter().filter(|change| change["change_type"] == "delete").map(identity).collect();
    assert_eq!(deleted.len(), 5, "{changes:?}");
    assert!(changes.iter().all(|change| change["batch_id"] == 3));
    assert_eq!(kept.read(["scan", "recent"]).len(), 1);
}

#[test]
fn changes_of_a_list_tell_what_begins_it_from_what_goes_on() {
    let kept = Kept::new();
    let types = |from: &str| {
        let changes = kept.read(["changes", "seen", "--from", from, "--to", from]);
        changes.iter().map(|change| change["change_type"].as_str().unwrap().to_owned()).collect::<BTreeSet<_>>()
    };
    assert_eq!(types("0"), BTreeSet::from(["update".to_owned()]));
    assert_eq!(types("1"), BTreeSet::from(["append".to_owned()]));
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let kept = Kept::new();
    fail_with(&mut kept.state(["changes", "total", "--from", "0", "--batch", "1"]), "STDS_CONFLICT_OPTIONS");
    fail_with(&mut kept.state(["changes", "total", "--from", "2", "--to", "1"]), "STDS_CONFLICT_OPTIONS");
    fail_with(&mut kept.state(["metadata", "--batch", "1"]), "STDS_CONFLICT_OPTIONS");
    fail_with(&mut kept.state(["changes", "total", "--from", "9"]), "STDS_COMMITTED_BATCH_UNAVAILABLE");
    fail_with(&mut kept.state(["changes", "nothing", "--from", "0"]), "STDS_INVALID_OPTION_VALUE");
}

#[test]
fn a_file_of_rows_is_typed_and_there_whole_or_not_at_all() {
    let kept = Kept::new();
    let file = |name: &str| kept.place.path().join(name);

    for (look, rows) in [
        (&["scan", "total"][..], 5),
        (&["scan", "seen"], 15),
        (&["scan", "times", "--collect"], 5),
        (&["timers"], 15),
        (&["changes", "recent", "--from", "0"], 15),
        (&["export"], 15 + 5 + 15 + 5 + 15),
    ] {
        for ending in ["parquet", "jsonl"] {
            let path = file(&format!("{}.{ending}", look.join("-")));
            succeed(kept.state(look.iter().copied()).arg("--file").arg(&path));
            let read = inspect_file(&path);
            assert_eq!(read, rows, "{}", path.display());
        }
    }
    let there = file("scan-total.jsonl");
    let refused = fail_with(kept.state(["scan", "total"]).arg("--file").arg(&there), "SINK_WRITE_FAILED");
    assert!(refused.err.contains("it is there already"), "{}", refused.err);
    let lines = json_lines(&fs::read_to_string(there).unwrap());
    assert_eq!(lines, kept.read(["scan", "total"]));
    fail_with(kept.state(["scan", "total"]).arg("--file").arg(file("rows.txt")), "SINK_WRITE_FAILED");
    let left: Vec<_> = fs::read_dir(kept.place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().ends_with(".tmp")), "{left:?}");
}

#[test]
fn an_export_is_the_initial_state_of_another_query_with_other_workers() {
    let kept = Kept::new();
    for (ending, workers) in [("parquet", "3"), ("jsonl", "5")] {
        let export = kept.place.path().join(format!("state.{ending}"));
        succeed(kept.state(["export", "--file"]).arg(&export));

        let other = Kept::empty(&["--workers", workers, "--set", "query.key_groups=12"]);
        let mut command = other.command("1970-01-01T00:00:02Z");
        command.arg("--initial-state").arg(&export);
        command.args(["--initial-state-schema", EXPORT_SCHEMA]);
        succeed(&mut command);

        for look in [&["scan", "total"][..], &["scan", "seen"], &["scan", "times"], &["scan", "recent"], &["timers"]] {
            let rows = |kept: &Kept| without(kept.read(look.iter().copied()), &["key_group"]);
            assert_eq!(rows(&other), rows(&kept), "{look:?}");
        }
    }
}

const EXPORT_SCHEMA: &str = "key STRING, variable STRING, total BIGINT, seen BIGINT, times_key BIGINT, times BIGINT, \
                             recent BIGINT, expires TIMESTAMP";

#[test]
fn the_number_of_workers_changes_freely_and_every_row_stays() {
    let kept = Kept::new();
    let (rows, timers) = (kept.read(["export"]), kept.read(["timers"]));

    for workers in ["5", "3", "8"] {
        kept.feed_with(&[], 10, "1970-01-01T00:00:02Z", &["--workers", workers]);
        assert_eq!((kept.read(["export"]), kept.read(["timers"])), (rows.clone(), timers.clone()));
    }
    // The query goes on with the right answers: what was kept by few workers is found by eight.
    kept.feed_with(&[("k1", 100, 5_000)], 12, "1970-01-01T00:00:02Z", &["--workers", "8"]);
    let get = kept.read(["get", "total", "--key", r#"{"key":"k1"}"#]);
    assert_eq!(get[0]["value"]["value"], 1 + 6 + 11 + 100);
}

/// Never a half of a batch: each has as many rows of one key as of the other. Never anything changed: the same files.
#[test]
fn a_running_query_is_read_consistently_and_neither_waits_nor_notices() {
    let retention = Retention { snapshot_batches: 2, snapshot_bytes: u64::MAX, batches: 3 };
    let query = MemoryQuery::new(QuerySettings { retention, ..settings() });
    query.feed(&[("a", 0, 1), ("b", 0, 1)]);
    let mut running = query.open().unwrap();
    running.step().unwrap();
    let (stop, checkpoint) = (Arc::new(AtomicBool::new(false)), query.checkpoint());
    let looks = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            let mut seen = BTreeSet::new();
            while !stop.load(Ordering::Relaxed) || seen.len() < 3 {
                let scratch = TempDir::new().unwrap();
                let disk: Arc<dyn Disk> = Arc::new(RealDisk);
                let mut view = QueryView::open(disk, &checkpoint).unwrap();
                let state = view.state(None, &scratch.path().join("state")).unwrap();
                let values = values(state.store.as_ref());
                assert_eq!(values.len(), 2);
                assert_eq!(values[0], values[1], "half of batch {:?}", state.batch_id);
                seen.insert(state.batch_id);
            }
            seen.len()
        })
    };
    let mut batches = 0;
    while batches < 60 || !looks.is_finished() {
        query.feed(&[("a", 0, 1), ("b", 0, 1)]);
        let step = running.step().unwrap();
        assert!(matches!(step, Step::Ran(_)));
        batches += 1;
        if batches == 60 {
            stop.store(true, Ordering::Relaxed);
        }
    }
    assert!(looks.join().unwrap() >= 3);
    running.close().unwrap();
}

/// The rows of the only variable, key by key, without what a record begins with.
fn values(store: &dyn Store) -> Vec<Vec<u8>> {
    let mut values = Vec::new();
    let visit = &mut |_: &[u8], value: &[u8]| {
        values.push(value.to_vec());
        std::ops::ControlFlow::Continue(())
    };
    store.scan(Family::State, &[0, 0, 1], &[0, 0, 2], visit).unwrap();
    values
}

/// The number of rows of a file, as a query that reads it sees them.
fn inspect_file(path: &Path) -> usize {
    let folder = TempDir::new().unwrap();
    let copy = folder.path().join(path.file_name().unwrap());
    fs::copy(path, &copy).unwrap();
    let source = tidemill_host::connect::FileSource::open(
        &copy,
        match path.extension().unwrap().to_str().unwrap() {
            "parquet" => tidemill_host::connect::FileFormat::Parquet,
            _ => tidemill_host::connect::FileFormat::Text(tidemill_host::connect::TextFormat::JsonLines),
        },
        None,
    );
    let mut source: Box<dyn tidemill_host::engine::source::Source> = Box::new(source.unwrap());
    let limits = tidemill_host::engine::source::ReadLimits { files_max: None, rows_max: 1_000, bytes_max: u64::MAX };
    usize::try_from(source.next(&limits).unwrap().unwrap().rows()).unwrap()
}

/// Rows by what tells them apart.
fn keyed(rows: Vec<Value>) -> BTreeMap<String, Value> {
    rows.into_iter().map(|row| (identity(&row), row)).collect()
}

fn identity(row: &Value) -> String {
    ["key", "sequence", "entry"].map(|part| row[part].to_string()).join(" ")
}

fn without(mut rows: Vec<Value>, fields: &[&str]) -> Vec<Value> {
    for row in &mut rows {
        for field in fields {
            row.as_object_mut().unwrap().remove(*field);
        }
    }
    rows
}

/// The test processor `keeper`, after three batches of five rows, with five keys.
struct Kept {
    place: TempDir,
    arguments: Vec<String>,
}

impl Kept {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(arguments: &[&str]) -> Self {
        let kept = Self::empty(arguments);
        for batch in 0..3_i64 {
            let keys = ["k0", "k1", "k2", "k3", "k4"];
            let rows: Vec<_> =
                (0..5).zip(keys).map(|(n, key)| (key, batch * 5 + n, 10_000_000 + batch * 5 + n)).collect();
            kept.feed(
                &rows,
                u64::try_from(batch).unwrap(),
                ["1970-01-01T00:00:00Z", "1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z"][batch as usize],
            );
        }
        kept
    }

    fn empty(arguments: &[&str]) -> Self {
        let kept =
            Self { place: TempDir::new().unwrap(), arguments: arguments.iter().map(ToString::to_string).collect() };
        fs::create_dir(kept.place.path().join("input")).unwrap();
        kept
    }

    fn checkpoint(&self) -> PathBuf {
        self.place.path().join("checkpoint")
    }

    /// One more file of rows (key, n, wait_ms), and the batch that reads it, at a time.
    fn feed(&self, rows: &[(&str, i64, i64)], file: u64, at: &str) {
        self.feed_with(rows, file, at, &[]);
    }

    fn feed_with(&self, rows: &[(&str, i64, i64)], file: u64, at: &str, arguments: &[&str]) {
        let text: String = rows
            .iter()
            .map(|(key, n, wait_ms)| format!("{{\"key\":\"{key}\",\"n\":{n},\"wait_ms\":{wait_ms}}}\n"))
            .collect();
        if !rows.is_empty() {
            write_at(&self.place.path().join(format!("input/{file:04}.jsonl")), text, 1_000 + file);
        }
        succeed(self.command(at).args(arguments));
    }

    fn command(&self, at: &str) -> Command {
        let place = self.place.path();
        // The time of every batch that may come.
        fs::write(place.join("clock"), format!("{at}\n").repeat(50)).unwrap();
        let mut command = tidemill();
        command.arg("run").arg(component("keeper")).args(["--key", "key", "--time-mode", "processing-time"]);
        command.args(["--schema", "key STRING, n BIGINT, wait_ms BIGINT", "--format", "jsonl"]);
        command.arg("--input").arg(place.join("input")).arg("--sink").arg(place.join("rows"));
        command.arg("--checkpoint").arg(self.checkpoint()).arg("--clock").arg(place.join("clock"));
        command.args(&self.arguments);
        command
    }

    fn state<'a>(&self, look: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = tidemill();
        command.arg("state").arg(self.checkpoint()).args(look);
        command
    }

    fn read<'a>(&self, look: impl IntoIterator<Item = &'a str>) -> Vec<Value> {
        json_lines(&succeed(self.state(look).args(["-o", "json"])).out)
    }
}
