//! Every way to misbehave, and what comes of it.

use super::guest::{Guest, POLLABLES, TABLE_GROWTH};

/// Ends loops soon.
pub const SHORT: &str = "limits.sandbox.chunk_time_ms=200";
/// So many that no machine makes them in a short time: the deadline is what ends a flood of calls.
pub const ANY_CALLS: &str = "limits.sandbox.chunk_host_calls=4000000000";

const CONTRACT: &str = "CONTRACT_VIOLATION";
const WRONG_PHASE: &str = "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_HANDLE_STATE";
const BAD_NAME: &str = "STATE_STORE_CANNOT_USE_COLUMN_FAMILY_WITH_INVALID_NAME";
const DUPLICATE: &str = "STATEFUL_PROCESSOR_DUPLICATE_STATE_VARIABLE_DEFINED";

/// One way to misbehave, and what comes of it.
#[derive(Clone, Copy)]
pub struct Attack {
    pub name: &'static str,
    /// Code of the error; None: it is none.
    pub code: Option<&'static str>,
    /// What the report says beside the code.
    pub says: &'static str,
    pub time_mode: &'static str,
    /// Keys of the input, with one row each.
    pub keys: u32,
    pub settings: &'static [&'static str],
}

/// An attack that ends with this error.
pub const fn ends(name: &'static str, code: &'static str) -> Attack {
    Attack { name, code: Some(code), says: "", time_mode: "none", keys: 3, settings: &[] }
}

/// An attack that is none.
pub const fn passes(name: &'static str) -> Attack {
    Attack { code: None, ..ends(name, "") }
}

impl Attack {
    pub const fn saying(self, says: &'static str) -> Self {
        Self { says, ..self }
    }

    /// In time mode processing-time.
    pub const fn timed(self) -> Self {
        Self { time_mode: "processing-time", ..self }
    }

    pub const fn with(self, settings: &'static [&'static str]) -> Self {
        Self { settings, ..self }
    }
}

pub const LOOPS: &[Attack] = &[
    ends("loop-init", "GUEST_DEADLINE").with(&[SHORT]).saying("limits.sandbox.chunk_time_ms"),
    ends("loop-initial-state", "GUEST_DEADLINE").with(&[SHORT]),
    ends("loop-input", "GUEST_DEADLINE").with(&[SHORT]),
    ends("loop-timer", "GUEST_DEADLINE").with(&[SHORT]).timed(),
    ends("loop-close", "GUEST_DEADLINE").with(&[SHORT]),
];

pub const FLOODS: &[Attack] = &[
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

pub const BREACHES: &[Attack] = &[
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

pub const ROWS: &[Attack] = &[
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

pub const PLANS: &[Attack] = &[
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

pub const PHASES: &[Attack] = &[
    ends("ops-init", WRONG_PHASE),
    ends("ops-close", WRONG_PHASE),
    ends("read-init", WRONG_PHASE),
    ends("read-close", WRONG_PHASE),
    ends("timers-init", WRONG_PHASE).timed(),
    ends("declare-input", WRONG_PHASE),
    ends("declare-input", WRONG_PHASE).timed(),
    ends("declare-timer", WRONG_PHASE).timed(),
    ends("declare-close", WRONG_PHASE),
    ends("declare-close", WRONG_PHASE).timed(),
    ends("drop-input", WRONG_PHASE),
    ends("drop-timer", WRONG_PHASE).timed(),
    ends("drop-close", WRONG_PHASE),
    ends("register-init", WRONG_PHASE).timed(),
    ends("register-close", WRONG_PHASE).timed(),
    ends("next-init", WRONG_PHASE),
    ends("next-close", WRONG_PHASE),
    ends("emit-initial-state", WRONG_PHASE),
    ends("timer-mode-none", "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_TIME_MODE"),
    passes("next-after-end"),
    passes("none"),
];

pub const FAILURES: &[Attack] = &[
    ends("error-huge", "HOST_CALL_BYTES_EXCEEDED"),
    ends("error-huge-init", "HOST_CALL_BYTES_EXCEEDED"),
    ends("error-group-unknown", "TRANSFORM_WITH_STATE_USER_FUNCTION_ERROR"),
    ends("error-code-strange", "__2J_OK_").saying("\n    batch 7 committed"),
    ends("error-init", "TRANSFORM_WITH_STATE_USER_FUNCTION_ERROR"),
    ends("error-initial-state", "TRANSFORM_WITH_STATE_USER_FUNCTION_ERROR"),
    ends("error-input", "TRANSFORM_WITH_STATE_USER_FUNCTION_ERROR").saying(r#"at key {"key":"k"#),
    ends("error-timer", "TRANSFORM_WITH_STATE_USER_FUNCTION_ERROR")
        .timed()
        .saying(r#"handle-expired-timer at key {"key":"k"#),
    ends("error-close", "TRANSFORM_WITH_STATE_USER_FUNCTION_ERROR"),
    ends("panic-init", "GUEST_TRAP"),
    ends("panic-initial-state", "GUEST_TRAP"),
    ends("panic-input", "GUEST_TRAP").saying(r#"at key {"key":"k"#),
    ends("panic-input", "GUEST_TRAP").saying("it was me"),
    ends("panic-timer", "GUEST_TRAP").timed().saying(r#"handle-expired-timer at key {"key":"k"#),
    ends("panic-close", "GUEST_TRAP"),
    ends("panic-silent", "GUEST_TRAP"),
];

/// Each limit of the sandbox, with a guest that passes it.
pub const LIMITS: &[(&str, Guest, Attack)] = &[
    ("memory_bytes", Guest::Evil, ends("memory-init", "GUEST_MEMORY")),
    ("table_elements", Guest::Core(TABLE_GROWTH), ends("tables", "GUEST_MEMORY")),
    ("memories", Guest::Evil, ends("none", EXCEEDED).with(&["limits.sandbox.memories=0"])),
    ("tables", Guest::Evil, ends("none", EXCEEDED).with(&["limits.sandbox.tables=0"])),
    ("instances", Guest::Evil, ends("none", EXCEEDED).with(&["limits.sandbox.instances=1"])),
    ("chunk_time_ms", Guest::Evil, ends("loop-init", "GUEST_DEADLINE").with(&[SHORT])),
    (
        "chunk_fuel",
        Guest::Evil,
        ends("loop-init", "GUEST_FUEL").with(&["query.metering=fuel", "limits.sandbox.chunk_fuel=2000000"]),
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

pub fn all() -> impl Iterator<Item = &'static Attack> {
    [LOOPS, FLOODS, BREACHES, ROWS, PLANS, PHASES, FAILURES].into_iter().flatten()
}
