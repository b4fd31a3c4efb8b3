//! Random operations on every kind of state, on TTL and on timers, through the command: with restarts, crashes and other
//! numbers of workers in between, the rows are those of a plain model in memory.
//!
//! The script guest does what its rows say, so a case is a list of batches, each a file of operations and a time.
//! `TIDEMILL_MODEL_CASES` gives another number of cases, `TIDEMILL_MODEL_SEED` another seed.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use serde_json::json;
use tempfile::TempDir;

use super::support::{component, json_lines, published, succeed, tidemill, write_at};

/// Cases in the quick mode.
const CASES: u32 = 12;
/// TTL of the variables that have one. Batches are 0 to 60 ms apart.
const TTL_MS: i64 = 100;

#[test]
fn the_rows_are_those_of_a_model_in_memory() {
    let cases = number("TIDEMILL_MODEL_CASES").map_or(CASES, |cases| cases as u32);
    let seed = number("TIDEMILL_MODEL_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("TIDEMILL_MODEL_SEED={seed} TIDEMILL_MODEL_CASES={cases}");
    let seed_bytes: Vec<u8> = seed.to_le_bytes().repeat(4);
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed_bytes);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 300, ..Config::default() };

    let compared = Cell::new(0);

    let result = TestRunner::new_with_rng(config, rng).run(&case(), |runs| check(&runs, &compared));

    println!("{} rows compared", compared.get());
    if let Err(error) = result {
        panic!("TIDEMILL_MODEL_SEED={seed}: {error}");
    }
    assert!(compared.get() > 20 * cases as usize, "the cases do next to nothing");
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// What one start of the command finds, and how it is started.
#[derive(Debug, Clone)]
struct Run {
    batches: Vec<Batch>,
    /// A time after those of the batches, at which timers may be due.
    idle_ms: Option<i64>,
    workers: u8,
    /// It dies at this pass of this point first.
    crash: Option<(&'static str, u8)>,
}

#[derive(Debug, Clone)]
struct Batch {
    /// After the batch before.
    later_ms: i64,
    steps: Vec<(u8, Step)>,
}

/// An operation of the script guest.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    Value(Ttl, ValueOp),
    List(Ttl, ListOp),
    Map(Ttl, MapOp),
    Timer(TimerOp),
    OnTimer(Vec<Step>),
    Time,
    Emit(u8),
    Skip,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Ttl {
    Without,
    With,
}

#[derive(Debug, Clone, PartialEq)]
enum ValueOp {
    Get,
    Exists,
    Put(u8),
    Clear,
}

#[derive(Debug, Clone, PartialEq)]
enum ListOp {
    Get,
    Exists,
    Put(Vec<u8>),
    Append(Vec<u8>),
    Clear,
}

#[derive(Debug, Clone, PartialEq)]
enum MapOp {
    Get(u8),
    Contains(u8),
    Put(u8, u8),
    Remove(u8),
    Entries,
    Keys,
    Values,
    Exists,
    Clear,
}

/// Times are from the start of the case.
#[derive(Debug, Clone, PartialEq)]
enum TimerOp {
    Register(i64),
    RegisterIn(i64),
    Delete(i64),
    List,
}

/// Point of a crash, so that every side of a commit is among them.
const POINTS: [&str; 6] = [
    "process.done",
    "commit.before-append",
    "commit.after-sync",
    "publish.after-sink",
    "apply.after",
    "snapshot.filled",
];
/// The time of the first batch of a case.
const START_MS: i64 = 1_000_000;

fn case() -> impl Strategy<Value = Vec<Run>> {
    let run = (
        prop::collection::vec(batch(), 1..9),
        prop::option::of(0..200i64),
        1..5u8,
        prop::option::weighted(0.4, (prop::sample::select(&POINTS[..]), 1..5u8)),
    );
    let run = run.prop_map(|(batches, idle_ms, workers, crash)| Run { batches, idle_ms, workers, crash });
    prop::collection::vec(run, 1..5)
}

fn batch() -> impl Strategy<Value = Batch> {
    let steps = prop::collection::vec((0..5u8, step()), 1..25);
    (0..60i64, steps).prop_map(|(later_ms, steps)| Batch { later_ms, steps })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => simple_step(),
        1 => prop::collection::vec(simple_step(), 0..4).prop_map(Step::OnTimer),
        1 => Just(Step::Skip),
    ]
}

/// A step that may stand in the script of a timer, too.
fn simple_step() -> impl Strategy<Value = Step> {
    let ttl = || prop_oneof![Just(Ttl::Without), Just(Ttl::With)];
    let value = prop_oneof![
        Just(ValueOp::Get),
        Just(ValueOp::Exists),
        any::<u8>().prop_map(ValueOp::Put),
        Just(ValueOp::Clear)
    ];
    let elements = || prop::collection::vec(any::<u8>(), 1..4);
    let list = prop_oneof![
        2 => Just(ListOp::Get),
        1 => Just(ListOp::Exists),
        1 => elements().prop_map(ListOp::Put),
        3 => elements().prop_map(ListOp::Append),
        1 => Just(ListOp::Clear)
    ];
    let key = || 0..4u8;
    let map = prop_oneof![
        key().prop_map(MapOp::Get),
        key().prop_map(MapOp::Contains),
        (key(), any::<u8>()).prop_map(|(key, value)| MapOp::Put(key, value)),
        (key(), any::<u8>()).prop_map(|(key, value)| MapOp::Put(key, value)),
        key().prop_map(MapOp::Remove),
        Just(MapOp::Entries),
        Just(MapOp::Keys),
        Just(MapOp::Values),
        Just(MapOp::Exists),
        Just(MapOp::Clear),
    ];
    let timer = prop_oneof![
        (0..600i64).prop_map(TimerOp::Register),
        (-50..100i64).prop_map(TimerOp::RegisterIn),
        (0..600i64).prop_map(TimerOp::Delete),
        Just(TimerOp::List)
    ];
    prop_oneof![
        3 => (ttl(), value).prop_map(|(ttl, op)| Step::Value(ttl, op)),
        3 => (ttl(), list).prop_map(|(ttl, op)| Step::List(ttl, op)),
        4 => (ttl(), map).prop_map(|(ttl, op)| Step::Map(ttl, op)),
        3 => timer.prop_map(Step::Timer),
        1 => Just(Step::Time),
        1 => any::<u8>().prop_map(Step::Emit),
    ]
}

impl Step {
    /// Name and argument, as the script guest reads them.
    fn text(&self) -> (String, String) {
        let joined = |elements: &[u8]| elements.iter().map(u8::to_string).collect::<Vec<_>>().join(",");
        let (kind, op, arg) = match self {
            Self::Value(ttl, op) => match op {
                ValueOp::Get => (prefix(*ttl, "value"), "get", String::new()),
                ValueOp::Exists => (prefix(*ttl, "value"), "exists", String::new()),
                ValueOp::Put(value) => (prefix(*ttl, "value"), "put", value.to_string()),
                ValueOp::Clear => (prefix(*ttl, "value"), "clear", String::new()),
            },
            Self::List(ttl, op) => match op {
                ListOp::Get => (prefix(*ttl, "list"), "get", String::new()),
                ListOp::Exists => (prefix(*ttl, "list"), "exists", String::new()),
                ListOp::Put(elements) => (prefix(*ttl, "list"), "put", joined(elements)),
                ListOp::Append(elements) => (prefix(*ttl, "list"), "append", joined(elements)),
                ListOp::Clear => (prefix(*ttl, "list"), "clear", String::new()),
            },
            Self::Map(ttl, op) => match op {
                MapOp::Get(key) => (prefix(*ttl, "map"), "get", key.to_string()),
                MapOp::Contains(key) => (prefix(*ttl, "map"), "contains", key.to_string()),
                MapOp::Put(key, value) => (prefix(*ttl, "map"), "put", format!("{key}={value}")),
                MapOp::Remove(key) => (prefix(*ttl, "map"), "remove", key.to_string()),
                MapOp::Entries => (prefix(*ttl, "map"), "iter", String::new()),
                MapOp::Keys => (prefix(*ttl, "map"), "keys", String::new()),
                MapOp::Values => (prefix(*ttl, "map"), "values", String::new()),
                MapOp::Exists => (prefix(*ttl, "map"), "exists", String::new()),
                MapOp::Clear => (prefix(*ttl, "map"), "clear", String::new()),
            },
            Self::Timer(op) => match op {
                TimerOp::Register(at_ms) => ("timer".to_owned(), "register", (START_MS + at_ms).to_string()),
                // The guest reads a `+` and then a number with its own sign.
                TimerOp::RegisterIn(in_ms) => ("timer".to_owned(), "register", format!("+{in_ms}")),
                TimerOp::Delete(at_ms) => ("timer".to_owned(), "delete", (START_MS + at_ms).to_string()),
                TimerOp::List => ("timer".to_owned(), "list", String::new()),
            },
            Self::OnTimer(steps) => {
                let steps = steps.iter().map(Self::text).map(|(op, arg)| format!("{op} {arg}").trim().to_owned());
                return ("on_timer".to_owned(), steps.collect::<Vec<_>>().join("; "));
            }
            Self::Time => return ("time".to_owned(), String::new()),
            Self::Emit(number) => return ("emit".to_owned(), number.to_string()),
            Self::Skip => return ("skip".to_owned(), String::new()),
        };
        (format!("{kind}.{op}"), arg)
    }
}

fn prefix(ttl: Ttl, kind: &str) -> String {
    match ttl {
        Ttl::Without => kind.to_owned(),
        Ttl::With => format!("ttl.{kind}"),
    }
}

/// Emitted rows as (op, result), by batch and key.
type Rows = BTreeMap<u64, BTreeMap<String, Vec<(String, Option<String>)>>>;

fn check(runs: &[Run], compared: &Cell<usize>) -> Result<(), TestCaseError> {
    let mut model = Model::default();
    let place = TempDir::new().unwrap();
    for run in runs {
        write_input(&place, run);
        let times: String = model.run(run).iter().map(|ms| format!("{ms}\n")).collect();
        fs::write(place.path().join("clock"), times).unwrap();
        let mut command = tidemill();
        command.current_dir(place.path()).arg("run").arg(component("script"));
        command.args([
            "--input",
            "input",
            "--format",
            "jsonl",
            "--schema",
            "key STRING, op STRING, arg STRING",
            "--key",
            "key",
        ]);
        command.args([
            "--time-mode",
            "processing-time",
            "--clock",
            "clock",
            "--sink",
            "rows",
            "--checkpoint",
            "checkpoint",
        ]);
        command.args(["--set", "limits.files_per_batch=1", "--set", "retention.snapshot_batches=3"]);
        command.args(["--param", &format!("ttl_ms={TTL_MS}"), "--workers", &run.workers.to_string()]);
        if let Some((point, pass)) = run.crash {
            let status = command.env("TIDEMILL_CRASH_AT", format!("{point}:{pass}")).status().unwrap();
            prop_assert!(status.code().is_none_or(|code| code == 0), "it failed with {:?}", status);
            command.env_remove("TIDEMILL_CRASH_AT");
        }
        succeed(&mut command);
        prop_assert_eq!(emitted(&place), model.rows.clone(), "after {} batches", model.clock_ms.len());
    }
    let rows: usize = model.rows.values().flat_map(BTreeMap::values).map(Vec::len).sum();
    compared.set(compared.get() + rows);
    Ok(())
}

/// Adds the files of a run to those of the runs before.
fn write_input(place: &TempDir, run: &Run) {
    let input = place.path().join("input");
    fs::create_dir_all(&input).unwrap();
    let first = fs::read_dir(&input).unwrap().count() as u64;
    for (number, batch) in (first..).zip(&run.batches) {
        let row = |(key, step): &(u8, Step)| {
            let (op, arg) = step.text();
            format!("{}\n", json!({ "key": format!("k{key}"), "op": op, "arg": arg }))
        };
        let rows: String = batch.steps.iter().map(row).collect();
        write_at(&input.join(format!("{number:05}.jsonl")), rows, 1 + number);
    }
}

fn emitted(place: &TempDir) -> Rows {
    let mut rows = Rows::new();
    for (name, bytes) in published(&place.path().join("rows")) {
        let batch = name.trim_start_matches("part-").trim_end_matches(".jsonl").parse().unwrap();
        for row in json_lines(std::str::from_utf8(&bytes).unwrap()) {
            let text = |column: &str| row[column].as_str().map(str::to_owned);
            let (op, result) = (text("op").unwrap(), text("result"));
            let result = if unordered(&op) { result.map(|list| sorted(&list)) } else { result };
            rows.entry(batch).or_default().entry(text("key").unwrap()).or_default().push((op, result));
        }
    }
    rows
}

/// The order of a map's entries is not promised.
fn unordered(op: &str) -> bool {
    ["map.iter", "map.keys", "map.values"].iter().any(|read| op.ends_with(read))
}

fn sorted(list: &str) -> String {
    let mut items: Vec<_> = list.trim_matches(['[', ']']).split(',').collect();
    items.sort_unstable();
    format!("[{}]", items.join(","))
}

/// The whole query, in memory.
#[derive(Default)]
struct Model {
    keys: BTreeMap<u8, Key>,
    rows: Rows,
    /// The time of each batch, in order.
    clock_ms: Vec<i64>,
}

/// What one grouping key has.
#[derive(Default)]
struct Key {
    without_ttl: Variables,
    with_ttl: Variables,
    timers: BTreeSet<i64>,
    on_timer: Vec<Step>,
    /// In the timer phase.
    firing: Firing,
}

/// Each thing with the time of its write.
#[derive(Default)]
struct Variables {
    value: Option<(u8, i64)>,
    list: Vec<(u8, i64)>,
    map: BTreeMap<u8, (u8, i64)>,
}

#[derive(Default)]
struct Firing {
    /// The timer whose handler runs.
    now_ms: Option<i64>,
    /// Its handler has registered it again.
    kept: bool,
    /// Timers that a handler has deleted: they do not fire in this phase, even if they are there again.
    deleted: BTreeSet<i64>,
}

impl Model {
    /// Answers the times that the clock file must have.
    fn run(&mut self, run: &Run) -> Vec<i64> {
        for batch in &run.batches {
            let now_ms = self.clock_ms.last().map_or(START_MS, |last| last + batch.later_ms);
            self.batch(now_ms, &batch.steps);
        }
        let idle_ms = self.clock_ms.last().zip(run.idle_ms).map(|(last, later_ms)| last + later_ms);
        let times_ms = self.clock_ms.iter().copied().chain(idle_ms).collect();
        // A query that has read everything looks for due timers, at the time of the next batch.
        let is_due =
            |now_ms: &i64| self.keys.values().any(|key| key.timers.first().is_some_and(|first| first <= now_ms));
        if let Some(now_ms) = idle_ms.filter(is_due) {
            self.batch(now_ms, &[]);
        }
        times_ms
    }

    fn batch(&mut self, now_ms: i64, steps: &[(u8, Step)]) {
        let batch = self.clock_ms.len() as u64;
        self.clock_ms.push(now_ms);
        let mut skipped = BTreeSet::new();
        for (number, step) in steps {
            if *step == Step::Skip {
                skipped.insert(*number);
            }
            if !skipped.contains(number) {
                let answer = self.keys.entry(*number).or_default().step(step, now_ms);
                self.emit(batch, *number, step.text().0, answer);
            }
        }
        let due = |key: &Key| -> Vec<i64> { key.timers.range(..=now_ms).copied().collect() };
        let due: Vec<(u8, Vec<i64>)> = self.keys.iter().map(|(number, key)| (*number, due(key))).collect();
        for (number, expiries_ms) in due {
            self.fire(batch, number, &expiries_ms, now_ms);
        }
    }

    fn fire(&mut self, batch: u64, number: u8, expiries_ms: &[i64], now_ms: i64) {
        self.keys.entry(number).or_default().firing = Firing::default();
        for expiry_ms in expiries_ms {
            let key = self.keys.entry(number).or_default();
            if key.firing.deleted.contains(expiry_ms) {
                continue;
            }
            (key.firing.now_ms, key.firing.kept) = (Some(*expiry_ms), false);
            let handler = key.on_timer.clone();
            self.emit(batch, number, "timer".to_owned(), Some(Some(expiry_ms.to_string())));
            for step in &handler {
                let answer = self.keys.entry(number).or_default().step(step, now_ms);
                self.emit(batch, number, step.text().0, answer);
            }
            let key = self.keys.entry(number).or_default();
            if !key.firing.kept {
                key.timers.remove(expiry_ms);
            }
        }
        self.keys.entry(number).or_default().firing = Firing::default();
    }

    fn emit(&mut self, batch: u64, key: u8, op: String, answer: Option<Option<String>>) {
        if let Some(result) = answer {
            self.rows.entry(batch).or_default().entry(format!("k{key}")).or_default().push((op, result));
        }
    }
}

impl Key {
    /// What a step answers: None if nothing, Some(None) if NULL.
    fn step(&mut self, step: &Step, now_ms: i64) -> Option<Option<String>> {
        match step {
            Step::Value(ttl, op) => self.variables(*ttl).value(*ttl, op, now_ms),
            Step::List(ttl, op) => self.variables(*ttl).list(*ttl, op, now_ms),
            Step::Map(ttl, op) => self.variables(*ttl).map(*ttl, op, now_ms),
            Step::Timer(op) => self.timer(op, now_ms),
            Step::OnTimer(steps) => {
                self.on_timer.clone_from(steps);
                None
            }
            Step::Time => Some(Some(format!("{now_ms}/0"))),
            Step::Emit(number) => Some(Some(number.to_string())),
            Step::Skip => None,
        }
    }

    fn variables(&mut self, ttl: Ttl) -> &mut Variables {
        match ttl {
            Ttl::Without => &mut self.without_ttl,
            Ttl::With => &mut self.with_ttl,
        }
    }

    fn timer(&mut self, op: &TimerOp, now_ms: i64) -> Option<Option<String>> {
        match op {
            TimerOp::Register(at_ms) => self.register(START_MS + at_ms),
            TimerOp::RegisterIn(in_ms) => self.register(now_ms + in_ms),
            TimerOp::Delete(at_ms) => {
                let at_ms = START_MS + at_ms;
                self.timers.remove(&at_ms);
                match self.firing.now_ms {
                    Some(now_ms) if now_ms == at_ms => self.firing.kept = false,
                    Some(_) => drop(self.firing.deleted.insert(at_ms)),
                    None => {}
                }
            }
            TimerOp::List => return Some(Some(listed(&self.timers))),
        }
        None
    }

    fn register(&mut self, at_ms: i64) {
        self.timers.insert(at_ms);
        if self.firing.now_ms == Some(at_ms) {
            self.firing.kept = true;
        }
    }
}

impl Variables {
    fn value(&mut self, ttl: Ttl, op: &ValueOp, now_ms: i64) -> Option<Option<String>> {
        let live = self.value.filter(|(_, at_ms)| is_live(ttl, *at_ms, now_ms));
        match op {
            ValueOp::Get => return Some(live.map(|(value, _)| value.to_string())),
            ValueOp::Exists => return Some(Some(live.is_some().to_string())),
            ValueOp::Put(value) => self.value = Some((*value, now_ms)),
            ValueOp::Clear => self.value = None,
        }
        None
    }

    fn list(&mut self, ttl: Ttl, op: &ListOp, now_ms: i64) -> Option<Option<String>> {
        let live: Vec<u8> =
            self.list.iter().filter(|(_, at_ms)| is_live(ttl, *at_ms, now_ms)).map(|(element, _)| *element).collect();
        match op {
            ListOp::Get => return Some(Some(listed(&live))),
            ListOp::Exists => return Some(Some((!live.is_empty()).to_string())),
            ListOp::Put(elements) => self.list = elements.iter().map(|element| (*element, now_ms)).collect(),
            ListOp::Append(elements) => self.list.extend(elements.iter().map(|element| (*element, now_ms))),
            ListOp::Clear => self.list.clear(),
        }
        None
    }

    fn map(&mut self, ttl: Ttl, op: &MapOp, now_ms: i64) -> Option<Option<String>> {
        let live: BTreeMap<u8, u8> = self
            .map
            .iter()
            .filter(|(_, (_, at_ms))| is_live(ttl, *at_ms, now_ms))
            .map(|(key, (value, _))| (*key, *value))
            .collect();
        match op {
            MapOp::Get(key) => return Some(live.get(key).map(u8::to_string)),
            MapOp::Contains(key) => return Some(Some(live.contains_key(key).to_string())),
            MapOp::Entries => {
                let entries: Vec<_> = live.iter().map(|(key, value)| format!("{key}={value}")).collect();
                return Some(Some(sorted(&listed(&entries))));
            }
            MapOp::Keys => return Some(Some(sorted(&listed(live.keys())))),
            MapOp::Values => return Some(Some(sorted(&listed(live.values())))),
            MapOp::Exists => return Some(Some((!live.is_empty()).to_string())),
            MapOp::Put(key, value) => drop(self.map.insert(*key, (*value, now_ms))),
            MapOp::Remove(key) => drop(self.map.remove(key)),
            MapOp::Clear => self.map.clear(),
        }
        None
    }
}

/// From the batch with the time of its expiry on, nobody sees what was written.
fn is_live(ttl: Ttl, written_ms: i64, now_ms: i64) -> bool {
    ttl == Ttl::Without || now_ms < written_ms + TTL_MS
}

fn listed(items: impl IntoIterator<Item: ToString>) -> String {
    let items: Vec<_> = items.into_iter().map(|item| item.to_string()).collect();
    format!("[{}]", items.join(","))
}
