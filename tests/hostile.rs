//! What a processor can do to the host that runs it: fail, and nothing else.
//!
//! The evil guest misbehaves in every way that its README lists. Against each the host stays up, ends with the code of the
//! error, in bounded time and memory, and commits nothing: the same checkpoint then runs a polite processor from batch 0.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use tidemill_host::clock::Stopwatch;
use tidemill_host::runtime::{Limits, componentize};
use tidemill_host::state::StateLimits;
use wit_component::{StringEncoding, embed_component_metadata, metadata};

use super::support::{Example, component, published, repository, rows, succeed, tidemill};

/// What a run may take on a machine that is busy with other tests.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Two workers with 128 MiB each, what they hand over, and the host.
const MEMORY_KIB_MAX: u64 = 448 << 10;
/// Ends loops soon.
const SHORT: &str = "limits.sandbox.chunk_time_ms=200";
/// So many that no machine makes them in a short time: the deadline is what ends a flood of calls.
const ANY_CALLS: &str = "limits.sandbox.chunk_host_calls=4000000000";

const CONTRACT: &str = "CONTRACT_VIOLATION";
const WRONG_PHASE: &str = "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_HANDLE_STATE";
const BAD_NAME: &str = "STATE_STORE_CANNOT_USE_COLUMN_FAMILY_WITH_INVALID_NAME";
const DUPLICATE: &str = "STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED";

/// One way to misbehave, and what comes of it.
#[derive(Clone, Copy)]
struct Attack {
    name: &'static str,
    /// Code of the error; None: it is none.
    code: Option<&'static str>,
    /// What the report says beside the code.
    says: &'static str,
    time_mode: &'static str,
    /// Keys of the input, with one row each.
    keys: u32,
    settings: &'static [&'static str],
}

/// An attack that ends with this error.
const fn ends(name: &'static str, code: &'static str) -> Attack {
    Attack { name, code: Some(code), says: "", time_mode: "none", keys: 3, settings: &[] }
}

/// An attack that is none.
const fn passes(name: &'static str) -> Attack {
    Attack { code: None, ..ends(name, "") }
}

impl Attack {
    const fn saying(self, says: &'static str) -> Self {
        Self { says, ..self }
    }

    /// In time mode processing-time.
    const fn timed(self) -> Self {
        Self { time_mode: "processing-time", ..self }
    }

    const fn with(self, settings: &'static [&'static str]) -> Self {
        Self { settings, ..self }
    }
}

const LOOPS: &[Attack] = &[
    ends("loop-init", "GUEST_DEADLINE").with(&[SHORT]).saying("limits.sandbox.chunk_time_ms"),
    ends("loop-initial-state", "GUEST_DEADLINE").with(&[SHORT]),
    ends("loop-input", "GUEST_DEADLINE").with(&[SHORT]),
    ends("loop-timer", "GUEST_DEADLINE").with(&[SHORT]).timed(),
    ends("loop-close", "GUEST_DEADLINE").with(&[SHORT]),
];

const FLOODS: &[Attack] = &[
    ends("memory-heap", "GUEST_MEMORY").saying("limits.sandbox.memory_bytes"),
    ends("memory-init", "GUEST_MEMORY"),
    passes("memory-grow"),
    ends("recursion", "GUEST_STACK_OVERFLOW").saying("a recursion without end"),
    ends("timers-million", "STATE_LIMIT_EXCEEDED").timed().saying("limits.state.timers_per_key_max"),
    ends("list-million", "STATE_LIMIT_EXCEEDED")
        .with(&["limits.state.list_elements_max=10000"])
        .saying("limits.state.list_elements_max"),
    ends("map-million", "STATE_LIMIT_EXCEEDED")
        .with(&["limits.state.write_bytes_max=65536"])
        .saying("limits.state.write_bytes_max"),
    ends("emit-flood", "OUTPUT_LIMIT_EXCEEDED").with(&["limits.output_bytes=1048576"]).saying("limits.output_bytes"),
    ends("emit-flood", "OUTPUT_LIMIT_EXCEEDED").with(&["limits.output_rows=10000"]).saying("limits.output_rows"),
    ends("emit-flood", "GUEST_DEADLINE").with(&[SHORT, ANY_CALLS]),
    ends("row-huge", "HOST_CALL_BYTES_EXCEEDED").saying("limits.sandbox.host_call_bytes"),
    ends("ops-huge", "HOST_CALL_BYTES_EXCEEDED"),
    ends("log-huge", "HOST_CALL_BYTES_EXCEEDED"),
    ends("log-flood", "GUEST_DEADLINE").with(&[SHORT, ANY_CALLS]).saying("limits.sandbox.log_bytes"),
    ends("log-init", "GUEST_DEADLINE").with(&[SHORT, ANY_CALLS]),
    ends("stdout-flood", "HOST_CALLS_EXCEEDED").with(&["limits.sandbox.chunk_host_calls=20000"]),
    ends("calls-flood", "HOST_CALLS_EXCEEDED").with(&["limits.sandbox.chunk_host_calls=20000"]),
    ends("calls-flood", "GUEST_DEADLINE").with(&[SHORT, ANY_CALLS]),
    ends("cursors-list", "OPEN_CURSORS_EXCEEDED").saying("limits.sandbox.open_cursors"),
    ends("cursors-timers", "OPEN_CURSORS_EXCEEDED").timed().with(&["limits.state.timers_per_key_max=100000"]),
    ends("cursor-unknown", "CURSOR_NOT_OPEN"),
    ends("cursor-twice", "CURSOR_NOT_OPEN"),
];

const BREACHES: &[Attack] = &[
    Attack { keys: 300, ..ends("undrained", "INPUT_NOT_DRAINED") },
    ends("undrained-all", "INPUT_NOT_DRAINED"),
    ends("group-unknown", CONTRACT),
    ends("group-unknown-read", CONTRACT),
    ends("group-unknown-timer", CONTRACT).timed(),
    Attack { keys: 300, ..ends("group-stale", CONTRACT) },
    ends("variable-unknown", CONTRACT),
    ends("variable-unknown-read", CONTRACT),
    ends("variable-kind", CONTRACT).saying("list state \"list\" was used as map state"),
    ends("variable-kind-read", CONTRACT),
    ends("timer-with-variable", CONTRACT).timed(),
    ends("frame-head", CONTRACT),
    ends("frame-code", CONTRACT).saying("op code 77"),
    ends("frame-length", CONTRACT),
    ends("frame-length-overflow", CONTRACT),
    ends("frame-unaligned", CONTRACT),
    ends("frame-list", CONTRACT),
    ends("frame-list-overflow", CONTRACT),
    ends("frame-map-key", CONTRACT),
    ends("frame-timer", CONTRACT).timed(),
    ends("frame-clear", CONTRACT),
    ends("frame-list-empty", "ILLEGAL_STATE_STORE_VALUE.EMPTY_LIST_VALUE"),
];

const ROWS: &[Attack] = &[
    ends("row-empty", "INVALID_ROW"),
    ends("row-short", "INVALID_ROW"),
    ends("row-long", "INVALID_ROW"),
    ends("row-offset", "INVALID_ROW"),
    ends("row-length", "INVALID_ROW"),
    ends("row-overlap", "INVALID_ROW"),
    ends("row-padding", "INVALID_ROW"),
    ends("row-utf8", "INVALID_ROW").saying("value state \"value\": column `value`"),
    ends("row-null-slot", "INVALID_ROW"),
    ends("row-null-bits", "INVALID_ROW"),
    ends("row-not-null", "ILLEGAL_STATE_STORE_VALUE.NULL_VALUE"),
    ends("row-boolean", "INVALID_ROW"),
    ends("row-tinyint", "INVALID_ROW"),
    ends("row-nan", "INVALID_ROW"),
    ends("row-float", "INVALID_ROW"),
    ends("row-date", "INVALID_ROW"),
    ends("row-decimal", "INVALID_ROW"),
    ends("row-decimal-long", "INVALID_ROW"),
    ends("row-array-count", "INVALID_ROW"),
    ends("row-array-rows", "INVALID_ROW"),
    ends("row-map-order", "INVALID_ROW"),
    ends("row-map-twice", "INVALID_ROW"),
    ends("row-emit", "INVALID_ROW").saying("emitted row"),
    ends("row-map-key", "INVALID_ROW").saying("key of map state \"map\""),
];

const PLANS: &[Attack] = &[
    ends("name-empty", BAD_NAME),
    ends("name-long", BAD_NAME),
    ends("name-huge", "HOST_CALL_BYTES_EXCEEDED"),
    ends("name-default", BAD_NAME),
    ends("name-blank", BAD_NAME),
    ends("name-control", BAD_NAME).saying("\\u{7}"),
    ends("name-reserved", "STATE_STORE_CANNOT_CREATE_COLUMN_FAMILY_WITH_RESERVED_CHARS"),
    passes("name-path"),
    ends("name-duplicate", DUPLICATE),
    ends("name-dropped", DUPLICATE),
    ends("variables-many", "STATE_VARIABLES_EXCEEDED"),
    ends("drops-many", "STATE_VARIABLES_EXCEEDED"),
    ends("ttl-longest", "STATEFUL_PROCESSOR_TTL_DURATION_MUST_BE_POSITIVE").timed(),
    ends("schema-wide", "SCHEMA_TOO_LONG").saying("limits.sandbox.schema_bytes"),
    ends("schema-deep", "INVALID_SCHEMA"),
    ends("schema-deepest", "HOST_CALL_BYTES_EXCEEDED"),
    ends("schema-huge", "HOST_CALL_BYTES_EXCEEDED"),
    ends("schema-garbage", "INVALID_SCHEMA"),
    ends("schema-decimal", "INVALID_SCHEMA"),
    ends("schema-twice", "INVALID_SCHEMA"),
    ends("output-wide", "SCHEMA_TOO_LONG").saying("limits.sandbox.schema_bytes"),
    ends("output-garbage", "INVALID_SCHEMA"),
    ends("plan-column-unknown", "UNRESOLVED_COLUMN.WITH_SUGGESTION").saying("there are: key, n"),
    ends("plan-column-type", "CANNOT_WIDEN_COLUMN"),
    ends("plan-key-other", "KEY_MISMATCH"),
    ends("plan-initial-state", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ends("prefetch-unknown", "PREFETCH_INVALID"),
    ends("prefetch-list", "PREFETCH_INVALID"),
    ends("prefetch-many", "PREFETCH_INVALID"),
    ends("plan-output-changes", "PLAN_CHANGED"),
    ends("plan-variables-change", "PLAN_CHANGED"),
    ends("plan-drops-change", "PLAN_CHANGED"),
];

const PHASES: &[Attack] = &[
    ends("ops-init", WRONG_PHASE),
    ends("ops-close", WRONG_PHASE),
    ends("read-init", WRONG_PHASE),
    ends("read-close", WRONG_PHASE),
    ends("timers-init", WRONG_PHASE).timed(),
    ends("declare-input", WRONG_PHASE),
    ends("drop-input", WRONG_PHASE),
    ends("next-init", WRONG_PHASE),
    ends("next-close", WRONG_PHASE),
    ends("emit-initial-state", WRONG_PHASE),
    ends("timer-mode-none", "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_TIME_MODE"),
    passes("next-after-end"),
    passes("none"),
];

const FAILURES: &[Attack] = &[
    ends("error-huge", "HOST_CALL_BYTES_EXCEEDED"),
    ends("error-huge-init", "HOST_CALL_BYTES_EXCEEDED"),
    ends("error-group-unknown", "USER_CODE"),
    ends("error-code-strange", "__2J_OK_").saying("\n    batch 7 committed"),
    ends("error-init", "USER_CODE"),
    ends("error-initial-state", "USER_CODE"),
    ends("error-input", "USER_CODE").saying(r#"at key {"key":"k"#),
    ends("error-timer", "USER_CODE").timed().saying(r#"handle-expired-timer at key {"key":"k"#),
    ends("error-close", "USER_CODE"),
    ends("panic-init", "GUEST_TRAP"),
    ends("panic-initial-state", "GUEST_TRAP"),
    ends("panic-input", "GUEST_TRAP").saying(r#"at key {"key":"k"#),
    ends("panic-input", "GUEST_TRAP").saying("it was me"),
    ends("panic-timer", "GUEST_TRAP").timed().saying(r#"handle-expired-timer at key {"key":"k"#),
    ends("panic-close", "GUEST_TRAP"),
    ends("panic-silent", "GUEST_TRAP"),
];

#[test]
fn a_loop_without_end_meets_the_deadline_in_every_export() {
    LOOPS.iter().for_each(meet);
}

#[test]
fn a_loop_without_end_runs_out_of_fuel_in_every_export() {
    for attack in LOOPS {
        let attack = &attack.saying("limits.sandbox.chunk_fuel");
        let place = Place::new(attack);
        let fuel = ["--metering", "fuel", "--set", "limits.sandbox.chunk_fuel=2000000"];

        let said = place.run(place.attack(attack).args(fuel));

        said.failed_with(attack, "GUEST_FUEL");
        place.nothing_was_committed(attack);
    }
}

#[test]
fn too_much_of_what_is_allowed_is_stopped() {
    FLOODS.iter().for_each(meet);
}

#[test]
fn breaches_of_the_contract_trap() {
    BREACHES.iter().for_each(meet);
}

#[test]
fn rows_that_are_none_are_faults() {
    ROWS.iter().for_each(meet);
}

#[test]
fn plans_that_cannot_be_are_refused() {
    PLANS.iter().for_each(meet);
}

#[test]
fn calls_at_the_wrong_time_are_faults() {
    PHASES.iter().for_each(meet);
}

#[test]
fn failures_and_traps_reach_the_user_and_only_the_user() {
    FAILURES.iter().for_each(meet);
}

#[test]
fn a_flood_of_logs_stays_within_its_limit() {
    let attack = ends("log-flood", "GUEST_DEADLINE").with(&[SHORT, ANY_CALLS]);
    let place = Place::new(&attack);

    let said = place.run(&mut place.attack(&attack));

    let Limits { log_bytes, log_lines, .. } = Limits::default();
    // Two workers; before each line stand the level and where it comes from.
    assert!(said.text.len() < 2 * (log_bytes + 300 * log_lines), "{} bytes were logged", said.text.len());
    assert!(said.text.contains("lines of the processor were dropped"), "{}", said.text);
}

#[test]
fn a_processor_that_failed_does_not_disturb_its_neighbours() {
    for attack in [ends("memory-heap", "GUEST_MEMORY"), ends("loop-input", "GUEST_DEADLINE").with(&[SHORT])] {
        meet(&attack);
        let (example, place) = (Example::new("counter"), TempDir::new().unwrap());

        succeed(&mut example.command(place.path(), []));

        assert_eq!(rows(&place.path().join("rows")), example.expected());
    }
}

#[test]
fn every_attack_of_the_evil_guest_is_tried() {
    let tried: BTreeSet<&str> = all().map(|attack| attack.name).collect();
    let source = repository().join("tests/guests/evil/src");
    let mut known = BTreeSet::new();
    for file in fs::read_dir(source).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        for call in ["Attack::polite(\"", "typed("] {
            let names = text.split(call).skip(1).map(|after| after.trim_start().trim_start_matches('"'));
            known.extend(
                names.filter_map(|after| after.split('"').next()).filter(|name| is_name(name)).map(str::to_owned),
            );
        }
    }
    assert!(known.len() > 100, "{known:?}");
    let left_out: Vec<_> = known.iter().filter(|name| !tried.contains(name.as_str())).collect();
    assert!(left_out.is_empty(), "not tried: {left_out:?}");
}

/// Each limit of the sandbox, with a guest that passes it.
const LIMITS: &[(&str, Guest, Attack)] = &[
    ("memory_bytes", Guest::Evil, ends("memory-init", "GUEST_MEMORY")),
    ("table_elements", Guest::Core(TABLE_GROWTH), ends("tables", "GUEST_MEMORY")),
    ("memories", Guest::Evil, ends("none", EXCEEDED).with(&["limits.sandbox.memories=0"])),
    ("tables", Guest::Evil, ends("none", EXCEEDED).with(&["limits.sandbox.tables=0"])),
    ("instances", Guest::Evil, ends("none", EXCEEDED).with(&["limits.sandbox.instances=1"])),
    ("chunk_time_ms", Guest::Evil, ends("loop-init", "GUEST_DEADLINE").with(&[SHORT])),
    (
        "chunk_fuel",
        Guest::Evil,
        ends("loop-init", "GUEST_FUEL").with(&["processor.metering=fuel", "limits.sandbox.chunk_fuel=2000000"]),
    ),
    (
        "chunk_host_calls",
        Guest::Evil,
        ends("calls-flood", "HOST_CALLS_EXCEEDED").with(&["limits.sandbox.chunk_host_calls=10"]),
    ),
    ("host_call_bytes", Guest::Evil, ends("schema-huge", "HOST_CALL_BYTES_EXCEEDED")),
    ("open_cursors", Guest::Evil, ends("cursors-list", "OPEN_CURSORS_EXCEEDED")),
    (
        "log_bytes",
        Guest::Evil,
        ends("log-flood", "GUEST_DEADLINE").with(&[SHORT, ANY_CALLS, "limits.sandbox.log_bytes=100"]),
    ),
    (
        "log_lines",
        Guest::Evil,
        ends("log-flood", "GUEST_DEADLINE").with(&[SHORT, ANY_CALLS, "limits.sandbox.log_lines=10"]),
    ),
    ("schema_bytes", Guest::Evil, ends("schema-wide", "SCHEMA_TOO_LONG")),
    ("wasi_resources", Guest::Core(POLLABLES), ends("pollables", EXCEEDED)),
];

const EXCEEDED: &str = "GUEST_RESOURCES_EXCEEDED";

#[test]
fn every_limit_of_the_sandbox_is_met_by_a_guest_and_names_its_setting() {
    for (limit, guest, attack) in LIMITS {
        let place = Place::new(attack);

        let said = place.run(&mut place.run_guest(&guest.component(place.path()), attack));

        said.failed_with(attack, attack.code.unwrap());
        assert!(said.text.contains(&format!("limits.sandbox.{limit}")), "{limit}: {}", said.text);
    }
    let met: BTreeSet<&str> = LIMITS.iter().map(|(limit, ..)| *limit).collect();
    assert_eq!(met, names_of(&serde_json::to_value(Limits::default()).unwrap()), "a limit without an attack");
}

#[test]
fn every_limit_of_the_state_is_met_by_a_guest() {
    let limits = serde_json::to_value(StateLimits::default()).unwrap();
    let said = |limit: &str| FLOODS.iter().any(|attack| attack.says == format!("limits.state.{limit}"));
    let left_out: Vec<_> = names_of(&limits).into_iter().filter(|limit| !said(limit)).map(str::to_owned).collect();
    // It bounds the host's own sweep, whose rest waits for the next one.
    assert_eq!(left_out, ["ttl_evictions_max"]);
}

#[test]
fn a_recursion_without_end_overflows_the_stack() {
    let attack = ends("recursion", "GUEST_STACK_OVERFLOW").saying("look for a recursion");
    let place = Place::new(&attack);

    let said = place.run(&mut place.run_guest(&Guest::Core(RECURSION).component(place.path()), &attack));

    said.failed_with(&attack, "GUEST_STACK_OVERFLOW");
}

fn all() -> impl Iterator<Item = &'static Attack> {
    [LOOPS, FLOODS, BREACHES, ROWS, PLANS, PHASES, FAILURES].into_iter().flatten()
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|character| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-')
}

fn names_of(object: &serde_json::Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Runs an attack, and then a polite processor on what it left.
fn meet(attack: &Attack) {
    let place = Place::new(attack);
    let said = place.run(&mut place.attack(attack));
    match attack.code {
        Some(code) => {
            said.failed_with(attack, code);
            place.nothing_was_committed(attack);
        }
        None => assert_eq!(said.code, Some(0), "{}: {}", attack.name, said.text),
    }
}

/// Input, checkpoint and output of one attack.
struct Place(TempDir);

impl Place {
    fn new(attack: &Attack) -> Self {
        let folder = TempDir::new().unwrap();
        let row = |key| format!("{{\"key\":\"k{key}\",\"n\":{key}}}\n");
        fs::write(folder.path().join("input.jsonl"), (0..attack.keys).map(row).collect::<String>()).unwrap();
        fs::write(folder.path().join("initial.jsonl"), row(0)).unwrap();
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn attack(&self, attack: &Attack) -> Command {
        self.run_guest(&component("evil"), attack)
    }

    fn run_guest(&self, component: &Path, attack: &Attack) -> Command {
        let mut command = tidemill();
        let at = |name: &str| self.path().join(name);
        command.arg("run").arg(component).args(["--key", "key", "--schema", SCHEMA, "--workers", "2", "-o", "json"]);
        command
            .arg("--input")
            .arg(at("input.jsonl"))
            .arg("--sink")
            .arg(at("rows"))
            .arg("--checkpoint")
            .arg(at("checkpoint"));
        command.args(["--time-mode", attack.time_mode, "--param", &format!("attack={}", attack.name)]);
        if attack.name.contains("initial-state") {
            command.arg("--initial-state").arg(at("initial.jsonl")).args(["--initial-state-schema", SCHEMA]);
        }
        for setting in attack.settings {
            command.args(["--set", setting]);
        }
        command
    }

    /// Runs a command to its end, within bounds of time and memory.
    fn run(&self, command: &mut Command) -> Ended {
        let (out, err) = (self.path().join("stdout"), self.path().join("stderr"));
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        let (watch, mut child) = (Stopwatch::start(), command.spawn().unwrap());
        let mut memory_kib = 0;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            memory_kib = memory_kib.max(memory_kib_of(child.id()));
            if watch.elapsed() > TIME_MAX {
                child.kill().unwrap();
                panic!("{command:?} takes more than {TIME_MAX:?}");
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let text = String::from_utf8_lossy(&fs::read(err).unwrap()).into_owned();
        assert!(memory_kib < MEMORY_KIB_MAX, "{command:?} took {memory_kib} KiB of memory\n{text}");
        Ended { code: status.code(), out: fs::read_to_string(out).unwrap(), text }
    }

    /// Nothing is to be seen of the attack, and batch 0 is still to come.
    fn nothing_was_committed(&self, attack: &Attack) {
        assert!(published(&self.path().join("rows")).is_empty(), "{} published something", attack.name);
        let polite = Attack {
            name: if attack.name.contains("initial-state") { "none-initial-state" } else { "none" },
            settings: &[],
            ..*attack
        };
        let mut command = self.run_guest(&component("evil"), &polite);

        let said = self.run(command.args(["--param", "attack=none"]));

        assert_eq!(said.code, Some(0), "after {}: {}", attack.name, said.text);
        let summary: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let batches = summary["batches"].as_u64().unwrap();
        assert_eq!(
            summary["lastBatch"].as_u64().map(|last| last + 1),
            Some(batches),
            "after {}: {summary}",
            attack.name
        );
        assert_eq!(summary["rowsOut"], 0);
    }
}

const SCHEMA: &str = "key STRING, n BIGINT";

/// The most memory that a process has had, while it lives.
fn memory_kib_of(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// How a run ended.
struct Ended {
    code: Option<i32>,
    out: String,
    text: String,
}

impl Ended {
    fn failed_with(&self, attack: &Attack, code: &str) {
        let Self { text, .. } = self;
        assert_eq!(self.code, Some(1), "{}: {text}", attack.name);
        // JSON spells line ends and quotes out.
        let says = serde_json::to_string(attack.says).unwrap();
        let says = says.trim_matches('"');
        assert!(
            text.contains(&format!("\"code\":\"{code}\"")),
            "{} should have failed with {code}: {text}",
            attack.name
        );
        assert!(text.contains(says) || text.contains(attack.says), "{} should say {says:?}: {text}", attack.name);
    }
}

/// Where a processor comes from.
#[derive(Clone, Copy)]
enum Guest {
    Evil,
    /// A core module in text: what stands in the module beside the exports, and the body of `init`.
    Core((&'static str, &'static str)),
}

const TABLE_GROWTH: (&str, &str) = (
    "(table $table 1 funcref)",
    "(loop $more (br_if $more (i32.ne (table.grow $table (ref.null func) (i32.const 100000)) (i32.const -1))))",
);

/// Rust keeps a stack of its own in memory, so it cannot do this.
const RECURSION: (&str, &str) = ("(func $deeper (call $deeper) (call $deeper))", "(call $deeper)");

/// Takes resources of WASI and never gives one back.
const POLLABLES: (&str, &str) = (
    r#"(import "wasi:clocks/monotonic-clock@0.2.6" "subscribe-duration" (func $subscribe (param i64) (result i32)))"#,
    "(loop $more (drop (call $subscribe (i64.const 1))) (br $more))",
);

const WASI: [&str; 2] = [
    "package wasi:io@0.2.6; interface poll { resource pollable; }",
    "package wasi:clocks@0.2.6; interface monotonic-clock { use wasi:io/poll@0.2.6.{pollable}; subscribe-duration: func(when: u64) -> pollable; }",
];

const WORLD: &str = "package test:evil; world evil { include tidemill:processor/stateful-processor@0.1.0; import wasi:clocks/monotonic-clock@0.2.6; }";

impl Guest {
    /// The component, made in `folder` where it is not built already.
    fn component(self, folder: &Path) -> PathBuf {
        let Self::Core((parts, init)) = self else { return component("evil") };
        let module = format!(
            r#"(module {parts} (memory (export "memory") 2) (global $free (mut i32) (i32.const 4096))
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
                (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
                (global.set $free (i32.add (local.get $at) (local.get 3)))
                (local.get $at))
            (func (export "tidemill:processor/handler@0.1.0#init")
                (param i32 i32 i32 i32 i64 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) {init} unreachable)
            (func (export "tidemill:processor/handler@0.1.0#handle-initial-state") (param i64 i64) (result i32) unreachable)
            (func (export "tidemill:processor/handler@0.1.0#handle-input-rows") (param i64 i64) (result i32) unreachable)
            (func (export "tidemill:processor/handler@0.1.0#handle-expired-timer") (param i64 i64) (result i32) unreachable)
            (func (export "tidemill:processor/handler@0.1.0#close") (result i32) unreachable))"#
        );
        let mut module = wat::parse_str(module).unwrap();
        let (_, mut interface) = metadata::decode(&wat::parse_str("(module)").unwrap()).unwrap();
        interface.resolve.push_path(repository().join("wit")).unwrap();
        for package in WASI {
            interface.resolve.push_str("wasi.wit", package).unwrap();
        }
        let package = interface.resolve.push_str("evil.wit", WORLD).unwrap();
        let world = interface.resolve.select_world(&[package], Some("evil")).unwrap();
        embed_component_metadata(&mut module, &interface.resolve, world, StringEncoding::UTF8).unwrap();
        let path = folder.join("core.wasm");
        fs::write(&path, componentize(&module).unwrap()).unwrap();
        path
    }
}
