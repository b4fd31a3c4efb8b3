//! Guests made of a few lines of WAT.

use std::sync::Arc;

use super::super::engine::{Metering, Sandbox};
use super::super::limits::Limits;
use super::super::processor::Processor;
use super::{GROUPS, output, query_over, schema, session};
use crate::engine::operator::{Operator, OperatorError, OperatorPlan, QueryInfo, Task, TimeMode, TimerValues, Worker};

pub(in super::super) fn query() -> QueryInfo {
    query_over(schema("n BIGINT"), TimeMode::ProcessingTime)
}

/// A processor whose core module has these parts beside what every guest needs. Its output is `n BIGINT`.
pub(in super::super) fn processor(metering: Metering, limits: Limits, parts: &str) -> Processor {
    let sandbox = Sandbox::new(metering).unwrap();
    Processor::from_bytes(&sandbox, "test.wasm", &component(parts), limits, None).unwrap()
}

/// Opens the one worker of batch 3.
pub(in super::super) fn open(processor: &Processor) -> Result<Box<dyn Worker>, OperatorError> {
    let plan = processor.plan(&query())?;
    open_as(processor, plan)
}

/// As [`open`], for a plan made before.
pub(in super::super) fn open_as(processor: &Processor, plan: OperatorPlan) -> Result<Box<dyn Worker>, OperatorError> {
    let session = session(&plan.variables);
    processor.open(Task {
        query: Arc::new(query()),
        plan: Arc::new(plan),
        batch_id: 3,
        time: TimerValues { processing_time_ms: 1_000, watermark_ms: 0 },
        key_groups: 0..GROUPS,
        session,
        output: output(),
        fuel: Arc::default(),
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
    super::super::componentize::componentize(&module).unwrap()
}
