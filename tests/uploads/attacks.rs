//! Every way to misuse an upload, the limit that it is aimed at, and what comes of it.

use std::time::Duration;

use tidemill_host::compiler::CompileLimits;
use tidemill_host::runtime::Bounds;

use super::forge::{
    CANONICAL, COMPONENT, CORE_INSTANCE, HEAD, MODULE, TYPE, custom, entries, module, nested, polite, processor,
    record, section, with, with_module,
};

/// Makes an upload.
type Make = fn() -> Vec<u8>;

/// One upload that a limit stops.
pub struct Attack {
    /// The limit: a field of `CompileLimits`, or of `Bounds`.
    pub limit: &'static str,
    pub make: Make,
    /// The limit as it is set for this attack; most meet the default.
    pub set: fn(&mut CompileLimits),
    pub code: &'static str,
    /// The limit where it does not stop the attack.
    pub raise: fn(&mut CompileLimits),
    /// What comes of it then: `None` it is compiled, which harms nobody as long as the other limits hold.
    pub then: Option<&'static str>,
}

macro_rules! bound {
    ($field:ident, $make:expr) => {
        Attack {
            limit: stringify!($field),
            make: $make,
            set: |_| {},
            code: "COMPONENT_OUT_OF_BOUNDS",
            raise: |limits| limits.bounds.$field = u64::MAX,
            then: None,
        }
    };
}

/// Bombs: too much of something. The parser finds them before anything is compiled.
pub const BOMBS: &[Attack] = &[
    bound!(depth, || with([section(COMPONENT, &nested(20))])),
    bound!(modules, || with((0..65).map(|_| section(MODULE, &module(""))))),
    bound!(components, || with((0..129).map(|_| section(COMPONENT, HEAD)))),
    bound!(instances, || with([entries(CORE_INSTANCE, 513, &[1, 0])])),
    bound!(types, || with([entries(TYPE, 20_001, &[0x7d])])),
    bound!(type_items, || with([section(TYPE, &record(1_001))])),
    bound!(imports, || {
        let imports: String = (0..10_001).map(|number| format!("(import \"m\" \"{number}\" (func))")).collect();
        with_module(&imports)
    }),
    bound!(exports, || {
        let exports: String = (0..20_001).map(|number| format!("(export \"{number}\" (func 0))")).collect();
        with_module(&format!("(func) {exports}"))
    }),
    bound!(name_bytes, || with_module(&format!("(func (export \"{}\"))", "n".repeat(4_097)))),
    bound!(adapters, || {
        // A resource in a component of its own, and functions that drop it.
        let resource = entries(TYPE, 1, &[0x3f, 0x7f, 0]);
        let drops = entries(CANONICAL, 20_001, &[3, 0]);
        with([section(COMPONENT, &[HEAD, &resource, &drops].concat())])
    }),
    Attack {
        set: |limits| limits.bounds.functions = 1_000,
        ..bound!(functions, || with_module(&repeated(1_001, "(func)")))
    },
    bound!(function_bytes, || with_module(&format!("(func {})", "nop ".repeat(1 << 20)))),
    bound!(locals, || with_module(&format!("(func (local {}))", "i32 ".repeat(10_001)))),
    bound!(memories, || with_module(&repeated(8, "(memory 0)"))),
    bound!(memory_bytes, || with_module("(memory 2048)")),
    bound!(tables, || with_module(&repeated(65, "(table 0 funcref)"))),
    bound!(table_elements, || with_module("(table 100001 funcref)")),
    bound!(globals, || with_module(&repeated(10_001, "(global i32 (i32.const 0))"))),
    bound!(element_segments, || with_module(&repeated(10_001, "(elem func)"))),
    bound!(elements, || with_module(&format!("(func) (elem func {})", "0 ".repeat(200_001)))),
    bound!(data_segments, || {
        let segments = section(MODULE, &module(&repeated(100_000, "(data \"\")")));
        with([segments.clone(), segments, section(MODULE, &module("(data \"\")"))])
    }),
    bound!(custom_sections, || with((0..1_001).map(|_| custom(0)))),
    bound!(custom_bytes, || with([custom(33 << 20)])),
];

/// Compiling, and running what was compiled, takes more than it may.
pub const COSTS: &[Attack] = &[
    Attack {
        limit: "memory_bytes",
        make: || with((0..4).map(|_| section(MODULE, &module(&long_function())))),
        set: |limits| limits.memory_bytes = 96 << 20,
        code: "COMPILE_MEMORY",
        raise: |limits| limits.memory_bytes = 2 << 30,
        then: None,
    },
    Attack {
        limit: "cpu_seconds",
        // Some seconds on any machine.
        make: || with_module(&repeated(95_000, "(func (result i32) (i32.add (i32.const 1) (i32.const 2)))")),
        set: |limits| limits.cpu_seconds = 1,
        code: "COMPILE_CPU_TIME",
        raise: |limits| limits.cpu_seconds = 120,
        then: None,
    },
    Attack {
        limit: "wall",
        make: || with_module(&repeated(4_000, "(func (result i32) (i32.add (i32.const 1) (i32.const 2)))")),
        set: |limits| limits.wall = Duration::from_millis(1),
        code: "COMPILE_WALL_TIME",
        raise: |limits| limits.wall = Duration::from_secs(180),
        then: None,
    },
    Attack {
        limit: "init_fuel",
        make: || processor("", "(loop $for_ever (br $for_ever))"),
        set: |limits| limits.init_fuel = 10_000_000,
        code: "GUEST_FUEL",
        raise: |limits| (limits.init_fuel, limits.cpu_seconds) = (u64::MAX, 1),
        then: Some("COMPILE_CPU_TIME"),
    },
    Attack {
        limit: "init_fuel",
        make: || processor("(func $start (loop $for_ever (br $for_ever))) (start $start)", ""),
        set: |limits| limits.init_fuel = 10_000_000,
        code: "GUEST_FUEL",
        raise: |limits| (limits.init_fuel, limits.cpu_seconds) = (u64::MAX, 1),
        then: Some("COMPILE_CPU_TIME"),
    },
    Attack {
        limit: "init_memory_bytes",
        make: || processor("", "(if (i32.eq (memory.grow (i32.const 1000)) (i32.const -1)) (then unreachable))"),
        set: |limits| limits.init_memory_bytes = 32 << 20,
        code: "GUEST_MEMORY",
        raise: |limits| limits.init_memory_bytes = 128 << 20,
        then: None,
    },
    Attack {
        limit: "init_memory_bytes",
        make: || processor("(memory (export \"memory\") 1000)", ""),
        set: |limits| limits.init_memory_bytes = 32 << 20,
        code: "GUEST_MEMORY",
        raise: |limits| limits.init_memory_bytes = 128 << 20,
        then: None,
    },
    Attack {
        // What `init` writes to is memory of the child as well.
        limit: "memory_bytes",
        make: || {
            let fill = "(drop (memory.grow (i32.const 3000))) (memory.fill (i32.const 65536) (i32.const 1) (i32.const 190000000))";
            processor("", fill)
        },
        set: |limits| (limits.init_memory_bytes, limits.memory_bytes) = (512 << 20, 128 << 20),
        code: "COMPILE_MEMORY",
        raise: |limits| limits.memory_bytes = 1 << 30,
        then: None,
    },
];

/// What is refused whatever the limits are.
pub const REFUSALS: &[(&str, Make, &str)] = &[
    ("nothing", Vec::new, "COMPONENT_EMPTY"),
    ("a script", || b"#!/bin/sh\nrm -rf /\n".to_vec(), "COMPONENT_INVALID"),
    ("a component as text", || b"(component)".to_vec(), "COMPONENT_INVALID"),
    ("native code", || b"\x7fELF\x02\x01\x01".to_vec(), "COMPONENT_INVALID"),
    ("an archive", || b"PK\x03\x04".to_vec(), "COMPONENT_INVALID"),
    ("a core module", || module(""), "COMPONENT_IS_CORE_MODULE"),
    ("a component that does nothing", || HEAD.to_vec(), "COMPONENT_WORLD_MISMATCH"),
    ("another world", || component(r#"(instance $i) (export "other:package/thing@1.0.0" (instance $i))"#), WORLD),
    (
        "a world to come",
        || component(r#"(instance $i) (export "tidemill:processor/handler@0.2.0" (instance $i))"#),
        WORLD,
    ),
    ("a handler without functions", || component(HANDLER), WORLD),
    ("a command", || component(&format!(r#"(import "wasi:cli/exit@9.9.9" (instance)) {HANDLER}"#)), IMPORTS),
    (
        "the network",
        || component(&format!(r#"(import "wasi:http/outgoing-handler@0.2.6" (instance)) {HANDLER}"#)),
        IMPORTS,
    ),
    (
        "a store of others",
        || component(&format!(r#"(import "wasi:keyvalue/store@0.2.0" (instance)) {HANDLER}"#)),
        IMPORTS,
    ),
    ("a host of its own", || component(&format!(r#"(import "evil:host/shell" (instance)) {HANDLER}"#)), IMPORTS),
    ("threads", || with_module("(memory 1 1 shared)"), "COMPONENT_INVALID"),
    ("64-bit memories", || with_module("(memory i64 1)"), "COMPONENT_INVALID"),
    ("garbage collection", || with_module("(type (struct (field i32)))"), "COMPONENT_INVALID"),
    ("function references", || with_module("(type (func)) (func (param (ref 0)))"), "COMPONENT_INVALID"),
    ("exceptions", || with_module("(tag)"), "COMPONENT_INVALID"),
    ("pages of one byte", || with_module("(memory 1 (pagesize 1))"), "COMPONENT_INVALID"),
    (
        "a function that is none",
        || with([section(MODULE, b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x0a\x05\x01\x03\0\x6a\x0b")]),
        "COMPONENT_INVALID",
    ),
    ("a section without an end", || with([vec![MODULE, 0xff, 0xff, 0xff, 0xff, 0x0f]]), "COMPONENT_INVALID"),
    ("counts that are not there", || with([section(TYPE, &[0xff, 0x1f])]), "COMPONENT_INVALID"),
    (
        "types that double",
        || with([section(COMPONENT, &[HEAD, &section(TYPE, &doubling(64))].concat())]),
        "COMPONENT_INVALID",
    ),
    ("types in types", || with([section(TYPE, &types_in_types(200))]), "COMPONENT_OUT_OF_BOUNDS"),
    ("types in types without end", || with([section(TYPE, &types_in_types(1_000_000))]), "COMPILER_CRASHED"),
    ("a trap in init", || processor("", "unreachable"), "GUEST_TRAP"),
    ("a trap at the start", || processor("(func $start unreachable) (start $start)", ""), "GUEST_TRAP"),
    (
        "a recursion in init",
        || processor("(func $deeper (call $deeper) (call $deeper))", "(call $deeper)"),
        "GUEST_STACK_OVERFLOW",
    ),
    ("a table that grows", || processor("(table $table 1 funcref)", TABLE_GROWTH), "GUEST_MEMORY"),
    ("an answer that is nowhere", || processor("", "(return (i32.const -4))"), "GUEST_TRAP"),
    ("an answer without end", || processor("", "(i32.store (i32.const 24) (i32.const 0x7fffffff))"), "GUEST_TRAP"),
];

/// What looks like an attack and passes.
pub const HARMLESS: &[(&str, Make)] = &[
    ("nothing wrong", polite),
    ("blocks in blocks", || with_module(&format!("(func {} {})", "block ".repeat(250_000), "end ".repeat(250_000)))),
    ("a switch of many cases", || {
        with_module(&format!("(func (param i32) (br_table {} (local.get 0)))", "0 ".repeat(60_000)))
    }),
];

const WORLD: &str = "COMPONENT_WORLD_MISMATCH";
const IMPORTS: &str = "COMPONENT_IMPORTS_UNKNOWN";
const HANDLER: &str = r#"(instance $i) (export "tidemill:processor/handler@0.1.0" (instance $i))"#;
const TABLE_GROWTH: &str =
    "(if (i32.eq (table.grow $table (ref.null func) (i32.const 1000000)) (i32.const -1)) (then unreachable))";

fn component(fields: &str) -> Vec<u8> {
    wat::parse_str(format!("(component {fields})")).unwrap()
}

fn repeated(count: usize, field: &str) -> String {
    field.repeat(count)
}

/// A function that keeps many values alive at once: half a megabyte.
fn long_function() -> String {
    let gets = "(i32.load (local.get 0)) ".repeat(60_000);
    let adds = "i32.add ".repeat(59_999);
    format!("(memory 1) (func (param i32) (result i32) {gets} {adds})")
}

/// Tuples, each of two of the one before.
fn doubling(count: u8) -> Vec<u8> {
    let doubled = (0..count - 1).flat_map(|before| [0x6f, 2, before, before]);
    [count, 0x6f, 2, 0x7d, 0x7d].into_iter().chain(doubled).collect()
}

/// An instance type that declares an instance type, and so on.
fn types_in_types(depth: usize) -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.extend([0x42, 1, 1].repeat(depth));
    bytes.extend([0x42, 0]);
    bytes
}

/// Each limit with a name.
pub fn limits() -> Vec<&'static str> {
    // Destructured, so that a limit that is added here is missed there.
    let CompileLimits { wall: _, cpu_seconds: _, memory_bytes: _, bounds, init_fuel: _, init_memory_bytes: _ } =
        CompileLimits::default();
    let own = ["wall", "cpu_seconds", "memory_bytes", "init_fuel", "init_memory_bytes"];
    own.into_iter().chain(Bounds::named(&bounds).map(|(name, _)| name)).collect()
}
