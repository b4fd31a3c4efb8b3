//! A key that stops the processor is named, whatever stops it and however many keys were in hand.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;
use tidemill_host::engine::operator::{
    AtKey, Closed, GroupedRows, Operator, OperatorError, OperatorPlan, QueryInfo, Suspect, Task, Worker,
};
use tidemill_host::engine::query::{Query, StepParts};

use super::native_query::{MemoryQuery, drain, settings, two_steps};
use super::support::{Said, component, fail_with, published, succeed, tidemill, write_at};
use super::tally::Tally;

const KEYS: usize = 40;

/// Ops of the script guest that trap without a word about the key: more memory than there is, and no end.
const TOO_LARGE: (&str, &str) = ("value.fill", "1500000000");
const ENDLESS: (&str, &str) = ("repeat", "4000000000 value.clear");
const SHORT: [&str; 2] = ["--set", "limits.sandbox.chunk_time_ms=400"];

/// The script guest over rows of many keys, and of one with ops of its own.
struct Keys(TempDir);

impl Keys {
    fn new(ops: &[(&str, &str)], of_poison: &[(&str, &str)]) -> Self {
        let keys = Self(TempDir::new().unwrap());
        keys.write(1, ops, of_poison);
        keys
    }

    fn write(&self, number: u64, ops: &[(&str, &str)], of_poison: &[(&str, &str)]) {
        let row = |key: &str, (op, arg): &(&str, &str)| format!("{}\n", json!({ "key": key, "op": op, "arg": arg }));
        let mut text = String::new();
        for key in 0..KEYS {
            text.extend(ops.iter().map(|op| row(&format!("key-{key}"), op)));
        }
        text.extend(of_poison.iter().map(|op| row("poison", op)));
        write_at(&self.path().join(format!("input/{number}.jsonl")), text, number);
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = tidemill();
        command.current_dir(self.path()).arg("run").arg(component("script"));
        command.args(["--input", "input", "--schema", "key STRING, op STRING, arg STRING", "--key", "key"]);
        command.args(["--time-mode", "processing-time", "--sink", "rows", "--checkpoint", "checkpoint"]);
        command.args(["--workers", "1"]).args(arguments);
        command
    }

    fn fails_with<'a>(&self, code: &str, arguments: impl IntoIterator<Item = &'a str>) -> Said {
        let said = fail_with(self.command(arguments).env("TIDEMILL_LOG", "processor=info"), code);
        assert!(published(&self.path().join("rows")).is_empty(), "nothing of the batch is published");
        said
    }
}

fn names_the_poison(said: &Said) {
    assert!(said.err.contains("at key {\"key\":\"poison\"}"), "{}", said.err);
    assert!(!said.err.contains("key-"), "{}", said.err);
}

#[test]
fn a_row_at_which_the_processor_traps() {
    let keys = Keys::new(&[("emit", "x")], &[("log", "its last words"), TOO_LARGE]);

    let said = keys.fails_with("GUEST_MEMORY", []);

    names_the_poison(&said);
    // Once as it was logged, and once in the report: not again for each time that a key is tried.
    assert_eq!(said.err.matches("its last words").count(), 2, "{}", said.err);
}

#[test]
fn a_row_that_never_ends() {
    names_the_poison(&Keys::new(&[("emit", "x")], &[ENDLESS]).fails_with("GUEST_DEADLINE", SHORT));
}

#[test]
fn a_timer_of_an_earlier_batch_at_which_the_processor_traps() {
    let ((op, arg), register) = (TOO_LARGE, ("timer.register", "2000"));
    let keys = Keys::new(&[register], &[("on_timer", &format!("{op} {arg}")), register]);
    let by_the_clock = ["--clock", "clock"];
    fs::write(keys.path().join("clock"), "1000\n").unwrap();
    succeed(&mut keys.command(by_the_clock));
    keys.write(2, &[("value.put", "x")], &[]);
    fs::write(keys.path().join("clock"), "1000\n2000\n").unwrap();

    let said = keys.fails_with("GUEST_MEMORY", by_the_clock);

    names_the_poison(&said);
    assert!(said.err.contains("handle-expired-timer"), "{}", said.err);
}

#[test]
fn keys_that_are_too_much_only_together() {
    let keys = Keys::new(&[("emit", "x")], &[]);

    let said = keys.fails_with("OUTPUT_LIMIT_EXCEEDED", ["--set", "limits.output_rows=10"]);

    let told = format!("with {KEYS} keys in hand, none of which fails alone ({{\"key\":\"key-");
    assert!(said.err.contains(&told), "{}", said.err);
    succeed(&mut keys.command([]));
}

#[test]
fn a_key_of_a_later_step_whose_processor_answers_an_error_without_a_key() {
    let mut query = MemoryQuery::new(two_steps(settings()));
    query.settings.workers = 1;
    let vague = Vague(query.operator.of_a_tally());
    let mut parts = query.parts();
    parts.steps[1] = StepParts { operator: Arc::new(vague), initial_state: None };
    let mut running = Query::open(query.settings.clone(), parts).unwrap();
    query.feed(&[("a", 1, 1), ("b", 1, 1), ("poison", 1, 1), ("z", 1, 1)]);

    let error = drain(&mut running).unwrap_err();

    let text = error.to_string();
    assert!(text.contains("step second") && text.contains(" at key poison: [VAGUE]"), "{text}");
    assert!(query.emitted().is_empty());
}

/// A tally that takes no rows of one key, and does not say of which.
struct Vague(Tally);

impl Operator for Vague {
    fn identity(&self) -> String {
        self.0.identity()
    }

    fn plan(&self, query: &QueryInfo) -> Result<OperatorPlan, OperatorError> {
        self.0.plan(query)
    }

    fn open(&self, task: Task) -> Result<Box<dyn Worker>, OperatorError> {
        Ok(Box::new(VagueWorker(self.0.open(task)?)))
    }
}

struct VagueWorker(Box<dyn Worker>);

impl Worker for VagueWorker {
    fn initial_state(&mut self, rows: GroupedRows) -> Result<(), OperatorError> {
        self.0.initial_state(rows)
    }

    fn input_rows(&mut self, rows: GroupedRows) -> Result<(), OperatorError> {
        let is_poison = |key: &[u8]| key.windows(6).any(|part| part == b"poison");
        let suspect = |key: &[u8]| Suspect {
            key: key.to_vec(),
            shown: if is_poison(key) { "poison".to_owned() } else { "of no harm".to_owned() },
        };
        if !is_poison(&rows.keys) {
            return self.0.input_rows(rows);
        }
        Err(OperatorError::Guest {
            export: "handle-input-rows",
            guest_code: "VAGUE".to_owned(),
            message: "it is one of these".to_owned(),
            stack: String::new(),
            at: AtKey::OneOf(rows.groups.iter().map(|group| suspect(&rows.keys[group.key.clone()])).collect()),
        })
    }

    fn expired_timers(&mut self, threshold_ms: i64) -> Result<(), OperatorError> {
        self.0.expired_timers(threshold_ms)
    }

    fn close(self: Box<Self>) -> Result<Closed, OperatorError> {
        self.0.close()
    }
}
