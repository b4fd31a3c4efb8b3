//! What reaches the user of a processor that fails: a code, the author's words, the key, and the line where the language
//! has one. The guest `faults` fails in every way that its README lists, in every language.

use std::fs;

use serde_json::json;
use tempfile::TempDir;

use super::Language::{Go, JavaScript, Python, Rust};
use super::{Language, component_in};
use crate::support::{Said, published, repository, run, tidemill};

const USER: &str = "TRANSFORM_WITH_STATE_USER_FUNCTION_ERROR";
const WRONG_PHASE: &str = "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_HANDLE_STATE";
const NULL_VALUE: &str = "ILLEGAL_STATE_STORE_VALUE.NULL_VALUE";
const OUT_OF_RANGE: &str = "NUMERIC_VALUE_OUT_OF_RANGE";
/// What a fault is called that a language's compiler refuses.
const UNKNOWN: &str = "FAULT_UNKNOWN";

/// A fault in one language, and what comes of it.
struct Fault {
    name: &'static str,
    language: Language,
    code: &'static str,
    /// Words of the report.
    says: &'static str,
    /// What stands in the line of the author's file that the report names.
    line: Option<&'static str>,
}

const fn fault(name: &'static str, language: Language, code: &'static str, says: &'static str) -> Fault {
    Fault { name, language, code, says, line: None }
}

impl Fault {
    const fn at(self, line: &'static str) -> Self {
        Self { line: Some(line), ..self }
    }

    /// Without a key in hand.
    fn is_of_no_key(&self) -> bool {
        ["init", "close", "init-access"].contains(&self.name)
    }
}

const HANDLERS: &[Fault] = &[
    fault("init", Rust, "GUEST_TRAP", "a fault in init").at("panic(\"a fault in init\")"),
    fault("init", Python, USER, "ValueError: a fault in init").at("ValueError(\"a fault in init\")"),
    fault("init", JavaScript, USER, "Error: a fault in init").at("Error(\"a fault in init\")"),
    fault("init", Go, USER, "panic: a fault in init").at("panic(\"a fault in init\")"),
    fault("rows", Rust, "GUEST_TRAP", "the len is 3 but the index is 4").at("index(&[1, 2, 3]"),
    fault("rows", Python, USER, "IndexError: list index out of range").at("[1, 2, 3]["),
    fault("rows", JavaScript, USER, "TypeError: can't access property").at("[1, 2, 3]["),
    fault("rows", Go, USER, "index out of range [4] with length 3").at("numbers[len(f.fault)]"),
    fault("timer", Rust, "GUEST_TRAP", "a fault in the timer of ").at("a fault in the timer"),
    fault("timer", Python, USER, "KeyError: ('bad',)").at("{\"names\": {}}"),
    fault("timer", JavaScript, USER, "TypeError: can't access property").at("undefined[key]"),
    fault("timer", Go, USER, "assignment to entry in nil map").at("keys[key] = true"),
    fault("initial-state", Rust, "GUEST_TRAP", "the initial state at n = 3").at("a fault in the initial state"),
    fault("initial-state", Python, USER, "the initial state at n = 3").at("a fault in the initial state"),
    fault("initial-state", JavaScript, USER, "the initial state at n = 3").at("a fault in the initial state"),
    fault("initial-state", Go, USER, "the initial state at n = 3").at("a fault in the initial state"),
    fault("close", Rust, USER, "a fault in close"),
    fault("close", Python, USER, "AssertionError: a fault in close").at("a fault in close"),
    fault("close", JavaScript, USER, "Error: a fault in close").at("a fault in close"),
    fault("close", Go, USER, "a fault in close"),
    fault("own-code", Rust, "OVERDRAWN", "the account is 5 short"),
    fault("own-code", Python, "OVERDRAWN", "the account is 5 short").at("OVERDRAWN"),
    fault("own-code", JavaScript, "OVERDRAWN", "the account is 5 short").at("OVERDRAWN"),
    fault("own-code", Go, "OVERDRAWN", "the account is 5 short"),
];

/// In Rust and Go a handler returns what it was answered, without a line. In JavaScript the rows that a generator yields are
/// checked after the line.
const ROWS: &[Fault] = &[
    fault("emit-type", Rust, UNKNOWN, ""),
    fault("emit-type", Python, "INVALID_ROW", "column `n`: BIGINT takes int, not 'three'").at("n=\"three\""),
    fault("emit-type", JavaScript, "INVALID_ROW", "column `n`: the text \"three\" is no BIGINT"),
    fault("emit-type", Go, UNKNOWN, ""),
    fault("emit-missing", Rust, UNKNOWN, ""),
    fault("emit-missing", Python, "INVALID_ROW", "column `n` is missing").at("yield Row(key=\"bad\")"),
    fault("emit-missing", JavaScript, "INVALID_ROW", "column `n` is missing"),
    fault("emit-missing", Go, UNKNOWN, ""),
    fault("emit-null", Rust, UNKNOWN, ""),
    fault("emit-null", Python, NULL_VALUE, "column `key` is NOT NULL").at("key=None"),
    fault("emit-null", JavaScript, NULL_VALUE, "column `key` is null"),
    fault("emit-null", Go, UNKNOWN, ""),
    fault("emit-other", Rust, UNKNOWN, ""),
    fault("emit-other", Python, "INVALID_ROW", "3 (int) is no row").at("yield 3"),
    fault("emit-other", JavaScript, "INVALID_ROW", "a row is an object of its columns, not 3"),
    fault("emit-other", Go, UNKNOWN, ""),
];

const STATE: &[Fault] = &[
    fault("state-type", Rust, UNKNOWN, ""),
    fault("state-type", Python, "INVALID_ROW", "column `value`: INT takes int, not 'three'").at("update((\"three\",))"),
    fault("state-type", JavaScript, "INVALID_ROW", "column `value`: the text \"three\" is no INT")
        .at("update(\"three\")"),
    fault("state-type", Go, "INVALID_ROW", "column `text`: the text is not UTF-8"),
    fault("state-range", Rust, OUT_OF_RANGE, "12345 has more than 4 digits"),
    fault("state-range", Python, OUT_OF_RANGE, "column `value`: 2147483648 (int) does not fit INT").at("1 << 31"),
    fault("state-range", JavaScript, OUT_OF_RANGE, "2147483648 is out of the range of INT").at("2 ** 31"),
    fault("state-range", Go, OUT_OF_RANGE, "column `price`: the number does not fit DECIMAL(4,2)"),
    fault("state-null", Rust, NULL_VALUE, "the key of a map entry is NULL"),
    fault("state-null", Python, NULL_VALUE, "the key of a map entry is NULL").at("updateValue((None,)"),
    fault("state-null", JavaScript, NULL_VALUE, "the key of a map entry is null").at("set(null, 1)"),
    fault("state-null", Go, NULL_VALUE, "the key of a map entry is NULL"),
    fault("init-access", Rust, WRONG_PHASE, "`valueState.get` needs a grouping key"),
    fault("init-access", Python, WRONG_PHASE, "`valueState.get` needs a grouping key").at("self.number.get()"),
    fault("init-access", JavaScript, WRONG_PHASE, "`valueState.get` needs a grouping key").at("this.number.get()"),
    fault("init-access", Go, WRONG_PHASE, "`valueState.get` needs a grouping key"),
];

/// What ends in a trap says where as far as the component has names: functions of Go and Rust, not of an interpreter.
const EXCESS: &[Fault] = &[
    fault("endless", Rust, "GUEST_DEADLINE", "look for a loop without end"),
    fault("endless", Python, "GUEST_DEADLINE", "limits.sandbox.chunk_time_ms"),
    fault("endless", JavaScript, "GUEST_DEADLINE", "limits.sandbox.chunk_time_ms"),
    fault("endless", Go, "GUEST_DEADLINE", "at main.__Faults_.fail"),
    fault("recursion", Rust, "GUEST_STACK_OVERFLOW", "look for a recursion without end"),
    fault("recursion", Python, USER, "RecursionError: maximum recursion depth exceeded").at("return recurse(text"),
    fault("recursion", JavaScript, USER, "InternalError: too much recursion").at("${recurse("),
    fault("recursion", Go, "GUEST_STACK_OVERFLOW", "at main.recurse"),
    fault("memory", Rust, "GUEST_MEMORY", "limits.sandbox.memory_bytes"),
    fault("memory", Python, "GUEST_MEMORY", "limits.sandbox.memory_bytes").at("bytearray(1 << 20)"),
    fault("memory", JavaScript, "GUEST_MEMORY", "limits.sandbox.memory_bytes"),
    fault("memory", Go, "GUEST_MEMORY", "at main.__Faults_.fail"),
    fault("exit", Rust, "GUEST_TRAP", "process::exit"),
    fault("exit", Python, USER, "SystemExit: 3").at("sys.exit(3)"),
    fault("exit", JavaScript, UNKNOWN, ""),
    fault("exit", Go, "GUEST_TRAP", "by os.Exit"),
];

/// Names that stand for no failure.
const HARMLESS: [&str; 2] = ["", "print"];

#[test]
fn an_error_in_a_handler_reaches_the_user_with_its_words_its_key_and_its_line() {
    HANDLERS.iter().for_each(meet);
}

#[test]
fn a_row_that_cannot_be_emitted_is_told_with_its_column() {
    ROWS.iter().for_each(meet);
}

#[test]
fn what_state_cannot_hold_is_refused_where_it_is_written() {
    STATE.iter().for_each(meet);
}

#[test]
fn too_much_of_time_memory_or_depth_ends_the_batch() {
    EXCESS.iter().for_each(meet);
}

#[test]
fn a_hundred_megabytes_of_text_are_cut_and_counted() {
    for language in Language::ALL {
        let place = Place::new();

        let said = place.run(language, "print");

        assert_eq!(said.code, Some(0), "{language:?}: {}", said.err);
        assert!(said.err.contains("lines of the processor were dropped"), "{language:?}: {}", said.err);
        assert!(said.err.len() < 1 << 20, "{language:?}: {} bytes reach the log", said.err.len());
        assert!(!published(&place.0.path().join("rows")).is_empty(), "{language:?}");
    }
}

#[test]
fn without_a_fault_all_rows_come_out() {
    for language in Language::ALL {
        let place = Place::new();

        let said = place.run(language, "");

        assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{language:?}");
    }
}

#[test]
fn every_fault_is_met_in_every_language() {
    let readme = fs::read_to_string(repository().join("tests/guests/faults/README.md")).unwrap();
    let rows = readme.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    let listed = rows.flat_map(|(names, _)| names.split("`, `"));
    let mut number = 0;
    for name in listed.filter(|name| !HARMLESS.contains(name)) {
        for language in Language::ALL {
            let is_it = |fault: &&Fault| fault.name == name && fault.language == language;
            let met = [HANDLERS, ROWS, STATE, EXCESS].into_iter().flatten().filter(is_it).count();
            assert_eq!(met, 1, "{name} in {language:?}");
            number += 1;
        }
    }
    assert_eq!(
        number,
        [HANDLERS, ROWS, STATE, EXCESS].into_iter().flatten().count(),
        "a fault that the README does not list"
    );
}

/// A query over the guest, whose input has the key at which it fails among others.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(TempDir::new().unwrap());
        let row = |(n, key): (usize, &str)| format!("{}\n", json!({ "key": key, "n": n }));
        let rows: String = ["a", "b", "c", "bad", "d"].into_iter().enumerate().map(row).collect();
        fs::write(place.0.path().join("input.jsonl"), rows).unwrap();
        place
    }

    fn run(&self, language: Language, fault: &str) -> Said {
        let mut command = tidemill();
        command.current_dir(self.0.path()).arg("run").arg(component_in(language, "faults"));
        command.args(["--input", "input.jsonl", "--schema", "key STRING, n BIGINT", "--key", "key", "--workers", "1"]);
        command.args(["--sink", "rows", "--checkpoint", "checkpoint", "--param", &format!("fault={fault}")]);
        command.args::<&[&str], _>(match fault {
            "timer" => &["--time-mode", "processing-time"],
            "initial-state" => &["--initial-state", "input.jsonl"],
            "endless" => &["--set", "limits.sandbox.chunk_time_ms=500"],
            // A busy machine takes its time over so much text.
            "print" => &["--set", "limits.sandbox.chunk_time_ms=100000"],
            _ => &[],
        });
        run(&mut command)
    }
}

fn meet(fault: &Fault) {
    let Fault { name, language, code, says, .. } = fault;
    let place = Place::new();

    let said = place.run(*language, name);

    let text = &said.err;
    assert_eq!(said.code, Some(1), "{name} in {language:?}: {text}");
    assert!(text.contains(&format!("error[{code}]")), "{name} in {language:?} should have failed with {code}: {text}");
    assert!(text.contains(says), "{name} in {language:?} should say {says:?}: {text}");
    let at_its_key = text.contains("at key {\"key\":\"bad\"}");
    assert_eq!(at_its_key, !fault.is_of_no_key(), "{name} in {language:?}: the key: {text}");
    if let Some(line) = fault.line {
        let place = line_of(*language, line);
        assert!(text.contains(&place), "{name} in {language:?} should be at {place:?}: {text}");
    }
    assert!(published(&place.0.path().join("rows")).is_empty(), "{name} in {language:?}: nothing is published");
}

/// The line of the author's file that has this text, as reports in its language write it.
fn line_of(language: Language, text: &str) -> String {
    let (file, before) = match language {
        Rust => ("src/lib.rs", "src/lib.rs:"),
        Python => ("python/processor.py", "processor.py\", line "),
        JavaScript => ("js/src/faults.js", "src/faults.js:"),
        Go => ("go/main.go", "faults/main.go:"),
    };
    let source = fs::read_to_string(repository().join("tests/guests/faults").join(file)).unwrap();
    let at = source.lines().position(|line| line.contains(text));
    let at = at.unwrap_or_else(|| panic!("{file} has no line with {text:?}"));
    let end = match language {
        Rust => ":",
        Python => ",",
        JavaScript => ")",
        Go => " ",
    };
    format!("{before}{}{end}", at + 1)
}
