//! What the tests of this module share: sessions over memory, grouped rows, and guests made of a few lines of WAT.

use std::sync::Arc;

use serde_json::json;

use super::engine::{Metering, Sandbox};
use super::limits::Limits;
use super::processor::Processor;
use crate::engine::operator::{
    Group, GroupedRows, Operator, OperatorError, OperatorPlan, OutputMode, QueryInfo, Task, TimeMode, TimerValues,
    Worker,
};
use crate::engine::output::{Output, OutputLimits};
use crate::record::{GroupingKey, RowLayout, Schema, decode_rows, row_from_json};
use crate::state::{Catalog, DueIndex, MemoryStore, Scope, Session, StateLimits, VariableKind, VariableSpec};

pub(super) const GROUPS: u16 = 16;

pub(super) fn schema(ddl: &str) -> Schema {
    Schema::parse(ddl).unwrap()
}

pub(super) fn row(ddl: &str, value: &serde_json::Value) -> Vec<u8> {
    row_from_json(&RowLayout::new(&schema(ddl)), value).unwrap()
}

pub(super) fn variable(name: &str, kind: VariableKind) -> VariableSpec {
    let key = (kind == VariableKind::Map).then(|| schema("k STRING"));
    VariableSpec { name: name.into(), kind, key, value: schema("n BIGINT NOT NULL"), ttl_ms: None }
}

/// An empty session over memory.
pub(super) fn session(variables: &[VariableSpec]) -> Session {
    let resolution = Catalog::default().resolve(0, variables, &[], &StateLimits::default()).unwrap();
    let scope = Scope {
        step: 0,
        groups: GROUPS,
        range: 0..GROUPS,
        now_ms: 1_000,
        limits: StateLimits::default(),
        due: Arc::new(DueIndex::unknown(0, GROUPS)),
        dropped: Arc::new([]),
    };
    Session::new(Arc::new(MemoryStore::new()), resolution.variables, scope)
}

pub(super) fn output() -> Output {
    Output::new(OutputLimits { rows_max: 1_000, bytes_max: 1 << 20 }, &std::env::temp_dir())
}

/// Rows of `n BIGINT`, grouped by `key STRING`.
pub(super) fn grouped(groups: &[(&str, &[i64])]) -> GroupedRows {
    let mut sorted: Vec<_> =
        groups.iter().map(|(key, rows)| (row("key STRING", &json!({ "key": key })), *rows)).collect();
    sorted.sort_by(|(a, _), (b, _)| GroupingKey::new(a).cmp(&GroupingKey::new(b)));
    let mut grouped = GroupedRows::default();
    let mut packed = Vec::new();
    for (key, rows) in sorted {
        let begin = grouped.keys.len();
        grouped.keys.extend_from_slice(&key);
        let first = packed.len();
        packed.extend(rows.iter().map(|number| row("n BIGINT", &json!({ "n": number }))));
        let (key, rows) = (begin..grouped.keys.len(), first..packed.len());
        let hash = GroupingKey::new(&grouped.keys[key.clone()]).hash;
        grouped.groups.push(Group { hash, key, rows });
    }
    let layout = RowLayout::new(&schema("n BIGINT"));
    let batch = |rows: &[Vec<u8>]| decode_rows(&layout, rows.iter().map(Vec::as_slice)).unwrap();
    grouped.batches = packed.chunks(GroupedRows::BATCH_ROWS).map(batch).collect();
    grouped
}

pub(super) fn query() -> QueryInfo {
    QueryInfo {
        query_id: "q".into(),
        run_id: "r".into(),
        step: 0,
        time_mode: TimeMode::ProcessingTime,
        output_mode: OutputMode::Append,
        key: schema("key STRING"),
        input: schema("n BIGINT"),
        initial_state: None,
        parameters: Vec::new(),
        seed: 1,
    }
}

/// A processor whose core module has these parts beside what every guest needs. Its output is `n BIGINT`.
pub(super) fn processor(metering: Metering, limits: Limits, parts: &str) -> Processor {
    let sandbox = Sandbox::new(metering).unwrap();
    Processor::from_bytes(&sandbox, "test.wasm", &component(parts), limits, None).unwrap()
}

/// Opens the one worker of batch 3.
pub(super) fn open(processor: &Processor) -> Result<Box<dyn Worker>, OperatorError> {
    let plan = processor.plan(&query())?;
    open_as(processor, plan)
}

/// As [`open`], for a plan made before.
pub(super) fn open_as(processor: &Processor, plan: OperatorPlan) -> Result<Box<dyn Worker>, OperatorError> {
    let session = session(&plan.variables);
    processor.open(Task {
        query: Arc::new(query()),
        plan: Arc::new(plan),
        batch_id: 3,
        time: TimerValues { processing_time_ms: 1_000, watermark_ms: 0 },
        key_groups: 0..GROUPS,
        session,
        output: output(),
    })
}

/// What every guest needs, unless `parts` has it: memory, an allocator that never frees, and exports that succeed.
/// Offsets: 16 answer of `init`, 128 an ok answer, 256 texts, 512 result areas, 4096 the heap.
const EXPORTS: [(&str, &str); 6] = [
    ("memory", r#"(memory (export "memory") 3)"#),
    (
        "init",
        r#"(func (export "tidemill:processor/handler@0.1.0#init")
        (param i32 i32 i32 i32 i64 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const 16))"#,
    ),
    (
        "handle-initial-state",
        r#"(func (export "tidemill:processor/handler@0.1.0#handle-initial-state")
        (param i64 i64) (result i32) (i32.const 128))"#,
    ),
    (
        "handle-input-rows",
        r#"(func (export "tidemill:processor/handler@0.1.0#handle-input-rows")
        (param i64 i64) (result i32) (call $drain) (i32.const 128))"#,
    ),
    (
        "handle-expired-timer",
        r#"(func (export "tidemill:processor/handler@0.1.0#handle-expired-timer")
        (param i64 i64) (result i32) (call $drain) (i32.const 128))"#,
    ),
    ("close", r#"(func (export "tidemill:processor/handler@0.1.0#close") (result i32) (i32.const 128))"#),
];

const COMMON: &str = r#"
    (import "tidemill:processor/input@0.1.0" "next" (func $next (param i32)))
    (import "tidemill:processor/effects@0.1.0" "apply" (func $apply (param i32 i32 i32)))
    (import "tidemill:processor/logging@0.1.0" "log" (func $log (param i32 i32 i32)))
    (import "tidemill:processor/state@0.1.0" "get-value-state"
        (func $get-value-state (param i32 i32 i32 i32 i32 i64 i32)))
    (global $heap (mut i32) (i32.const 4096))
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
        (local $at i32)
        (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
        (global.set $heap (i32.add (local.get $at) (local.get 3)))
        (if (i32.gt_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536)))
            (then (if (i32.eq (memory.grow (i32.const 4)) (i32.const -1)) (then unreachable))))
        (local.get $at))
    (func $drain
        (loop $again
            (call $next (i32.const 512))
            (br_if $again (i32.load8_u (i32.const 512)))))
    (data (i32.const 16) "\00\00\00\00\00\01\00\00\08\00\00\00")
    (data (i32.const 256) "n BIGINTlast words")
"#;

fn component(parts: &str) -> Vec<u8> {
    let missing = |(name, _): &&(&str, &str)| !parts.contains(&format!("{name}\""));
    let defaults: String = EXPORTS.iter().filter(missing).map(|(_, text)| *text).collect();
    let mut module = wat::parse_str(format!("(module {COMMON} {defaults} {parts})")).unwrap();
    let (_, mut interface) = wit_component::metadata::decode(&wat::parse_str("(module)").unwrap()).unwrap();
    let wit = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit");
    let (package, _) = interface.resolve.push_path(wit).unwrap();
    let world = interface.resolve.select_world(&[package], None).unwrap();
    let utf8 = wit_component::StringEncoding::UTF8;
    wit_component::embed_component_metadata(&mut module, &interface.resolve, world, utf8).unwrap();
    super::componentize::componentize(&module).unwrap()
}
