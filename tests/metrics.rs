//! What a batch reports in numbers: right, the same whatever the workers, and documented.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::support::{component, json_lines, repository, succeed, tidemill, write_at};

/// Runs of the component `script`, a file of steps (key, op, arg) per batch, at times 1000, 2000 ...
struct Scripted {
    place: TempDir,
    workers: &'static str,
    parameters: Vec<&'static str>,
    batches: u64,
}

impl Scripted {
    fn new(workers: &'static str, parameters: &[&'static str]) -> Self {
        Self { place: TempDir::new().unwrap(), workers, parameters: parameters.to_vec(), batches: 0 }
    }

    fn add(&mut self, steps: &[(&str, &str, &str)]) {
        let row = |(key, op, arg): &(&str, &str, &str)| json!({ "key": key, "op": op, "arg": arg, "at": "2026-01-01T00:00:00Z" });
        let rows: String = steps.iter().map(|step| format!("{}\n", row(step))).collect();
        write_at(&self.place.path().join(format!("input/{:05}.jsonl", self.batches)), rows, 1 + self.batches);
        self.batches += 1;
    }

    /// The command that runs what was added.
    fn command(&self) -> Command {
        let times: String = (1..=self.batches + 1).map(|batch| format!("{}\n", batch * 1000)).collect();
        fs::write(self.place.path().join("clock"), times).unwrap();
        let mut command = tidemill();
        command.current_dir(self.place.path()).arg("run").arg(component("script"));
        command.args(["--input", "input", "--format", "jsonl"]);
        command.args(["--schema", "key STRING, op STRING, arg STRING, at TIMESTAMP", "--watermark", "at, 0s"]);
        command.args(["--key", "key", "--time-mode", "processing-time", "--clock", "clock", "--sink", "rows"]);
        command.args(["--checkpoint", "checkpoint", "--progress", "progress", "--workers", self.workers]);
        command.args(["--set", "limits.files_per_batch=1"]);
        command.args(self.parameters.iter().flat_map(|parameter| ["--param", *parameter]));
        command
    }

    /// Runs it, and gives what each batch reported.
    fn run(&self) -> Vec<Value> {
        let progress = self.place.path().join("progress");
        drop(fs::remove_file(&progress));
        succeed(&mut self.command());
        json_lines(&fs::read_to_string(progress).unwrap())
    }

    /// The steps of one batch after those before; what it reported.
    fn batch(&mut self, steps: &[(&str, &str, &str)]) -> Value {
        self.add(steps);
        self.run().remove(0)
    }
}

fn number(batch: &Value, name: &str) -> i64 {
    let step = &batch["stateOperators"][0];
    let found = step.get(name).or_else(|| step["customMetrics"].get(name));
    found.and_then(Value::as_i64).unwrap_or_else(|| panic!("{name} is missing in {batch}"))
}

fn time(batch: &Value, name: &str) -> f64 {
    let step = &batch["stateOperators"][0];
    step.get(name).or_else(|| step["customMetrics"].get(name)).and_then(Value::as_f64).unwrap()
}

#[test]
fn a_value_and_a_list_count_one_each_a_map_one_per_entry_and_timers_none() {
    let mut query = Scripted::new("2", &[]);

    let batch = query.batch(&[
        ("a", "value.put", "1"),
        ("a", "list.put", "x,y,z"),
        ("a", "map.put", "k=1"),
        ("a", "map.put", "l=2"),
        ("a", "timer.register", "9000"),
    ]);

    assert_eq!(number(&batch, "numRowsTotal"), 4);
    assert_eq!(number(&batch, "numRowsUpdated"), 1 + 3 + 2);
    assert_eq!(number(&batch, "numRowsRemoved"), 0);
    assert_eq!(number(&batch, "numRegisteredTimers"), 1);
}

#[test]
fn a_cleared_list_counts_each_element_as_removed() {
    let mut query = Scripted::new("1", &[]);
    query.batch(&[("a", "list.put", "x,y,z"), ("b", "list.put", "x")]);

    let batch = query.batch(&[("a", "list.clear", "")]);

    assert_eq!(number(&batch, "numRowsRemoved"), 3);
    assert_eq!(number(&batch, "numRowsTotal"), 1);
}

#[test]
fn lists_put_for_two_keys_in_one_batch_count_all_their_elements_as_updated() {
    let mut query = Scripted::new("1", &[]);
    let batch = query.batch(&[("a", "list.put", "x,y,z"), ("b", "list.put", "x,y")]);
    assert_eq!(number(&batch, "numRowsUpdated"), 5);
}

#[test]
fn timers_count_calls_and_those_that_fired() {
    let mut query = Scripted::new("1", &[]);
    query.add(&[
        ("a", "timer.register", "1500"),
        ("a", "timer.register", "1500"),
        ("b", "timer.register", "900"),
        ("b", "timer.delete", "7"),
    ]);
    query.add(&[("c", "value.get", "")]);

    let [first, second] = query.run().try_into().unwrap();

    assert_eq!(
        ["numRegisteredTimers", "numDeletedTimers", "numExpiredTimers"].map(|name| number(&first, name)),
        [3, 2, 1]
    );
    assert_eq!(
        ["numRegisteredTimers", "numDeletedTimers", "numExpiredTimers"].map(|name| number(&second, name)),
        [0, 1, 1]
    );
    assert!(time(&first, "timerProcessingTimeMs") > 0.0);
}

#[test]
fn what_expires_counts_as_removed_and_on_its_own() {
    let mut query = Scripted::new("2", &["ttl_ms=1000"]);
    query.batch(&[
        ("a", "ttl.value.put", "1"),
        ("a", "ttl.map.put", "k=1"),
        ("b", "ttl.list.put", "x,y"),
        ("b", "value.put", "1"),
    ]);

    let batch = query.batch(&[("c", "value.get", "")]);

    assert_eq!(number(&batch, "numValuesRemovedDueToTTLExpiry"), 4);
    assert_eq!(number(&batch, "numRowsRemoved"), 4);
    assert_eq!(number(&batch, "numRowsTotal"), 1);
    assert!(time(&batch, "allRemovalsTimeMs") > 0.0);
}

#[test]
fn variables_are_counted_by_kind_with_ttl_apart_and_whatever_the_workers() {
    let names = ["numValueStateVars", "numListStateVars", "numMapStateVars"];
    let with_ttl = ["numValueStateWithTTLVars", "numListStateWithTTLVars", "numMapStateWithTTLVars"];
    let mut query = Scripted::new("3", &["ttl_ms=1000"]);

    let batch = query.batch(&[("a", "value.get", ""), ("b", "value.get", ""), ("c", "value.get", "")]);

    assert_eq!(names.map(|name| number(&batch, name)), [2, 1, 1]);
    assert_eq!(with_ttl.map(|name| number(&batch, name)), [1, 1, 1]);
}

#[test]
fn a_dropped_variable_counts_once_and_takes_its_rows_with_it() {
    let mut query = Scripted::new("1", &["ttl_ms=100000"]);
    query.batch(&[("a", "ttl.value.put", "1"), ("b", "ttl.value.put", "1"), ("b", "value.put", "1")]);
    query.parameters = vec!["drop=ttl_value"];

    let [dropping, after] = [(); 2].map(|()| query.batch(&[("c", "value.get", "")]));

    assert_eq!((number(&dropping, "numDeletedStateVars"), number(&dropping, "numRowsTotal")), (1, 1));
    assert_eq!((number(&after, "numDeletedStateVars"), number(&after, "numRowsTotal")), (0, 1));
}

#[test]
fn rows_are_counted_right_behind_a_start_that_applied_batches_again() {
    let mut query = Scripted::new("2", &[]);
    query.batch(&[("a", "value.put", "1"), ("b", "map.put", "k=1")]);
    query.add(&[("a", "value.clear", ""), ("c", "list.put", "x,y")]);
    let crashed = query.command().env("TIDEMILL_CRASH_AT", "commit.after-sync:1").status().unwrap();
    assert!(!crashed.success(), "it should have died before it applied the batch");

    let batch = query.batch(&[("d", "value.put", "1")]);

    assert_eq!(number(&batch, "numRowsTotal"), 3);
    assert_eq!(number(&batch, "rocksdbNumReplayChangelogFiles"), 1);
}

#[test]
fn counts_do_not_depend_on_the_workers() {
    let counts = |workers| {
        let mut query = Scripted::new(workers, &["ttl_ms=1000"]);
        for arg in ["1", "2", "3"] {
            let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
            let ops = [("ttl.value.put", arg), ("list.append", "x,y"), ("timer.register", "+500"), ("map.clear", "")];
            query.add(&keys.iter().flat_map(|key| ops.map(|(op, arg)| (*key, op, arg))).collect::<Vec<_>>());
        }
        let mut batches = query.run();
        batches.iter_mut().for_each(|batch| keep_counts(&mut batch["stateOperators"]));
        batches.into_iter().map(|mut batch| batch["stateOperators"].take()).collect::<Vec<_>>()
    };
    let one = counts("1");
    assert!(one.len() >= 3);
    assert_eq!(one, counts("3"));
}

/// Takes out what is measured: times, memory, and what RocksDB does of its own accord.
fn keep_counts(report: &mut Value) {
    match report {
        Value::Object(fields) => {
            fields.retain(|name, _| !name.ends_with("Ms") && !name.starts_with("rocksdb") && !name.ends_with("Bytes"));
            fields.values_mut().for_each(keep_counts);
        }
        Value::Array(items) => items.iter_mut().for_each(keep_counts),
        _ => {}
    }
}

#[test]
fn every_number_is_documented_and_every_documented_one_exists() {
    let mut query = Scripted::new("1", &[]);
    query.add(&[("a", "value.put", "1")]);
    query.run();
    query.add(&[("a", "value.put", "2")]);
    let mut command = query.command();
    command.args(["--set", "query.name=named"]);
    drop(fs::remove_file(query.place.path().join("progress")));
    succeed(&mut command);
    let progress = json_lines(&fs::read_to_string(query.place.path().join("progress")).unwrap());
    // Metering is chosen by those who embed the host.
    let mut reported = BTreeSet::from(["stateOperators[].customMetrics.fuel".to_owned()]);
    names("", &progress[0], &mut reported);

    let guide = fs::read_to_string(repository().join("docs/metrics.md")).unwrap();
    let rows = guide.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let documented: BTreeSet<String> = rows.map(|(name, _)| name.to_owned()).collect();

    let undocumented: Vec<_> = reported.difference(&documented).collect();
    let unknown: Vec<_> = documented.difference(&reported).collect();
    assert!(undocumented.is_empty() && unknown.is_empty(), "undocumented: {undocumented:?}, unknown: {unknown:?}");
}

/// The paths of all numbers and texts of a report, as `sources[].description`.
fn names(path: &str, value: &Value, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                names(&path, value, out);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names(&format!("{path}[]"), item, out)),
        _ => drop(out.insert(path.to_owned())),
    }
}
