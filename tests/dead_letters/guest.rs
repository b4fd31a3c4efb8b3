//! Dead letters of a component, by the command: errors, traps, fuel, timers, `init` and `close`, a wall clock, kills.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::letters;
use crate::support::{Said, component, fail_with, json_lines, published, rows, run, succeed, tidemill, write_at};

/// The script guest, with dead letters.
struct Scripted(TempDir);

/// Key, op, argument.
type Op<'a> = (&'a str, &'a str, &'a str);

impl Scripted {
    fn new(ops: &[Op<'_>]) -> Self {
        let scripted = Self(TempDir::new().unwrap());
        scripted.write(1, ops);
        scripted.clock(&[1_000, 2_000, 3_000]);
        scripted
    }

    fn clock(&self, batches_ms: &[i64]) {
        fs::write(self.at("clock"), batches_ms.iter().map(|ms| format!("{ms}\n")).collect::<String>()).unwrap();
    }

    fn write(&self, number: u64, ops: &[Op<'_>]) {
        let row = |(key, op, arg): &Op<'_>| format!("{}\n", json!({ "key": key, "op": op, "arg": arg, "note": 7 }));
        write_at(&self.at(&format!("input/{number}.jsonl")), ops.iter().map(row).collect::<String>(), number);
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn query(&self, command: &str) -> Command {
        let mut query = tidemill();
        query.current_dir(self.0.path()).arg(command).arg(component("script"));
        query.args(["--input", "input", "--schema", "key STRING, op STRING, arg STRING, note INT", "--key", "key"]);
        query.args(["--time-mode", "processing-time", "--sink", "rows", "--checkpoint", "checkpoint"]);
        query
    }

    fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.query("run");
        command.args(["--on-poison", "dead-letter", "--dead-letters", "dead", "--clock", "clock"]).args(arguments);
        command
    }

    fn runs<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Vec<Value> {
        succeed(&mut self.command(arguments));
        self.letters()
    }

    fn letters(&self) -> Vec<Value> {
        letters(&self.at("dead"))
    }

    fn replays(&self) -> Said {
        succeed(self.query("replay").arg("-q"))
    }

    fn emitted(&self) -> BTreeSet<String> {
        rows(&self.at("rows")).lines().map(str::to_owned).collect()
    }
}

fn texts<'v>(letters: &'v [Value], name: &str) -> Vec<&'v str> {
    letters.iter().map(|letter| letter[name].as_str().unwrap()).collect()
}

#[test]
fn an_error_of_the_authors_code_a_trap_and_too_much_memory() {
    let scripted = Scripted::new(&[
        ("a", "emit", "1"),
        ("b", "fail", "no"),
        ("c", "emit", "2"),
        ("d", "panic", "ouch"),
        ("e", "value.fill", "1500000000"),
        ("e", "emit", "3"),
    ]);

    let letters = scripted.runs([]);

    assert_eq!(texts(&letters, "code"), ["SCRIPTED", "GUEST_TRAP", "GUEST_MEMORY"]);
    assert_eq!(texts(&letters, "key"), ["b", "d", "e"].map(|key| json!({ "key": key }).to_string()));
    let text: Value = serde_json::from_str(letters[0]["text"].as_str().unwrap()).unwrap();
    // With the column that the processor does not want.
    assert_eq!(text, json!({ "key": "b", "op": "fail", "arg": "no", "note": 7 }));
    assert_eq!(scripted.emitted().len(), 3);
    scripted.replays();
}

#[test]
fn a_row_that_burns_its_fuel_and_none_that_a_wall_clock_stops() {
    let scripted = Scripted::new(&[("a", "emit", "1"), ("b", "repeat", "4000000000 value.clear")]);

    let said = fail_with(&mut scripted.command(["--set", "limits.sandbox.chunk_time_ms=300"]), "GUEST_DEADLINE");
    assert!(said.err.contains("GUEST_DEADLINE") && scripted.letters().is_empty());

    let letters = scripted.runs(["--metering", "fuel", "--set", "limits.sandbox.chunk_fuel=50000000"]);
    assert_eq!(texts(&letters, "code"), ["GUEST_FUEL"]);
    assert!(letters[0]["fuel"].as_u64() >= Some(50_000_000), "{letters:?}");
    assert_eq!(scripted.emitted().len(), 1);
}

#[test]
fn the_fuel_of_the_search_is_bounded() {
    let scripted = Scripted::new(&[("a", "emit", "1"), ("b", "repeat", "4000000000 value.clear")]);

    let said = fail_with(
        &mut scripted.command([
            "--metering",
            "fuel",
            "--set",
            "limits.sandbox.chunk_fuel=50000000",
            "--set",
            "limits.poison.fuel=1000000",
        ]),
        "POISON_SEARCH_EXHAUSTED",
    );

    assert!(said.err.contains("limits.poison.fuel"), "{}", said.err);
}

#[test]
fn a_timer_is_gone_and_those_beside_it_fire() {
    let register = |key, expiry| (key, "timer.register", expiry);
    let scripted = Scripted::new(&[
        ("a", "on_timer", "emit fired"),
        register("a", "1500"),
        ("b", "on_timer", "fail in a timer"),
        register("b", "1500"),
        register("b", "1600"),
        register("b", "9000"),
        ("c", "emit", "1"),
    ]);
    scripted.clock(&[1_000]);
    assert!(scripted.runs([]).is_empty());
    scripted.write(2, &[("c", "emit", "2")]);
    scripted.clock(&[1_000, 2_000, 3_000]);

    let letters = scripted.runs([]);

    let shown = |letter: &Value| (letter["kind"].clone(), letter["expiry_ms"].clone(), letter["text"].clone());
    let expected = [1500, 1600].map(|expiry| (json!("timer"), json!(expiry), Value::Null));
    assert_eq!(letters.iter().map(shown).collect::<Vec<_>>(), expected);
    assert_eq!(texts(&letters, "code"), ["SCRIPTED"; 2]);
    assert!(scripted.emitted().iter().any(|row| row.contains("fired")), "{:?}", scripted.emitted());
    scripted.write(3, &[("b", "timer.list", "")]);
    succeed(&mut scripted.command([]));
    assert!(scripted.emitted().iter().any(|row| row.contains("[9000]")), "{:?}", scripted.emitted());
    scripted.replays();
}

#[test]
fn a_timer_of_a_row_of_the_same_batch() {
    let scripted =
        Scripted::new(&[("a", "on_timer", "panic"), ("a", "timer.register", "500"), ("b", "timer.register", "500")]);

    let letters = scripted.runs([]);

    assert_eq!(texts(&letters, "kind"), ["timer"]);
    scripted.replays();
}

#[test]
fn init_and_close_fail_the_query() {
    for function in ["init", "close"] {
        let scripted = Scripted::new(&[("a", "emit", "1")]);
        fail_with(&mut scripted.command(["--param", &format!("fail_in={function}")]), "SCRIPTED");
        assert!(scripted.letters().is_empty());
    }
}

#[test]
fn held_rows_until_a_start_that_continues() {
    let scripted = Scripted::new(&[("a", "fail", "1"), ("a", "emit", "2"), ("b", "emit", "3")]);
    let hold = ["--after-poison", "hold"];
    scripted.runs(hold);
    scripted.write(2, &[("a", "emit", "4")]);

    let letters = scripted.runs(hold);
    assert_eq!(texts(&letters, "kind"), ["row", "held-row", "held-row"]);

    scripted.write(3, &[("a", "emit", "5")]);
    assert_eq!(scripted.runs([]).len(), 3);
    assert_eq!(scripted.emitted().len(), 2);
    scripted.replays();
}

#[test]
fn a_rollback_takes_back_dead_letters_and_what_was_held_since() {
    let scripted = Scripted::new(&[("a", "emit", "1")]);
    scripted.clock(&[1_000; 9]);
    let hold = ["--after-poison", "hold"];
    scripted.runs(hold);
    scripted.write(2, &[("a", "fail", "2"), ("a", "emit", "3")]);
    assert_eq!(scripted.runs(hold).len(), 2);

    succeed(tidemill().current_dir(scripted.0.path()).args(["rollback", "checkpoint", "--to", "0"]));
    assert!(scripted.letters().is_empty());

    let letters = scripted.runs(hold);
    assert_eq!(texts(&letters, "id"), ["2-0", "2-1"]);
    assert_eq!(texts(&letters, "kind"), ["row", "held-row"]);
    scripted.replays();
}

#[test]
fn rows_of_an_initial_state() {
    let scripted = Scripted::new(&[("a", "value.get", ""), ("b", "value.get", "")]);
    let row = |key, op| format!("{}\n", json!({ "key": key, "op": op, "arg": "x" }));
    fs::write(scripted.at("initial.jsonl"), row("a", "value.put") + &row("b", "fail") + &row("b", "value.put"))
        .unwrap();

    let letters = scripted.runs([
        "--initial-state",
        "initial.jsonl",
        "--initial-state-schema",
        "key STRING, op STRING, arg STRING",
    ]);

    assert_eq!(
        texts(&letters, "text"),
        [row("b", "fail").trim_end()].map(|row| {
            let fields: Value = serde_json::from_str(row).unwrap();
            json!({ "key": fields["key"], "op": fields["op"], "arg": fields["arg"] }).to_string()
        })
    );
    assert!(scripted.emitted().iter().all(|row| row.contains("\"result\":\"x\"")), "{:?}", scripted.emitted());
}

#[test]
fn a_timer_at_which_the_processor_traps_without_a_word() {
    let keys: Vec<_> = (0..40).map(|key| format!("key-{key}")).collect();
    let of_key = |key| {
        let op = if key == "key-17" { "value.fill 1500000000" } else { "emit fired" };
        [(key, "on_timer", op), (key, "timer.register", "1500")]
    };
    let scripted = Scripted::new(&keys.iter().flat_map(|key| of_key(key.as_str())).collect::<Vec<_>>());

    let letters = scripted.runs(["--workers", "2"]);

    assert_eq!((texts(&letters, "kind"), texts(&letters, "code")), (vec!["timer"], vec!["GUEST_MEMORY"]));
    assert_eq!(scripted.emitted().iter().filter(|row| row.contains("fired")).count(), 39);
    scripted.replays();
}

/// A thousand rows of ten thousand.
fn many() -> Scripted {
    let keys: Vec<_> = (0..10_000).map(|row| format!("key-{}", row * 7919 % 3_001)).collect();
    let op = |(row, key)| if row % 10 == 3 { (key, "fail", "no") } else { (key, "list.append", "x") };
    Scripted::new(&keys.iter().map(String::as_str).enumerate().map(op).collect::<Vec<_>>())
}

fn of_folder(scripted: &Scripted, name: &str) -> Vec<Vec<u8>> {
    published(&scripted.at(name)).into_values().collect()
}

#[test]
fn a_thousand_poison_rows_in_a_batch_with_kills_during_the_search_and_after() {
    let undisturbed = many();
    let progress = |scripted: &Scripted| {
        let file = scripted.at("progress");
        succeed(&mut scripted.command(["--workers", "1", "--progress", path(&file)]));
        json_lines(&fs::read_to_string(file).unwrap())
    };
    let reported = progress(&undisturbed);
    assert_eq!(reported[0]["stateOperators"][0]["numDeadLetters"], 1_000, "{reported:?}");
    assert_eq!(reported[0]["stateOperators"][0]["numInputRows"], 9_000);
    let expected = undisturbed.letters();
    let dead: Vec<_> = expected.iter().map(|letter| letter["row"].as_u64().unwrap()).collect();
    assert_eq!(dead, (0..10_000).filter(|row| row % 10 == 3).collect::<Vec<_>>());
    undisturbed.replays();

    let killed = many();
    let crashes = ["poison.attempt:1", "poison.attempt:900", "commit.before-append:1", "publish.before-sink:1"];
    for crash in crashes {
        let said = run(killed.command(["--workers", "1"]).env("TIDEMILL_CRASH_AT", crash));
        assert_eq!(said.code, None, "a kill at {crash}: {}", said.err);
    }
    succeed(&mut killed.command(["--workers", "1"]));

    assert!(of_folder(&killed, "dead") == of_folder(&undisturbed, "dead"));
    assert!(of_folder(&killed, "rows") == of_folder(&undisturbed, "rows"));
    killed.replays();

    let on_three = many();
    succeed(&mut on_three.command(["--workers", "3"]));
    assert!(of_folder(&on_three, "dead") == of_folder(&undisturbed, "dead"));
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}
