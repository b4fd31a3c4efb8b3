//! Components as no toolchain makes them.

use tidemill_host::runtime::componentize;

/// Section of a component: a core module, a core instance, a component, an instance, a type, a canonical function.
pub const MODULE: u8 = 1;
pub const CORE_INSTANCE: u8 = 2;
pub const COMPONENT: u8 = 4;
pub const TYPE: u8 = 7;
pub const CANONICAL: u8 = 8;

/// The bytes with which a component begins.
pub const HEAD: &[u8] = b"\0asm\x0d\0\x01\0";

/// A processor whose `init` does this and then answers; it never gets rows. `parts` stand in its core module.
pub fn processor(parts: &str, init: &str) -> Vec<u8> {
    let memory = if parts.contains("(export \"memory\")") { "" } else { "(memory (export \"memory\") 2)" };
    let handler = "tidemill:processor/handler@0.1.0";
    componentize(&module(&format!(
        r#"{memory} {parts} (global $free (mut i32) (i32.const 4096))
        (data (i32.const 16) "\00\00\00\00\00\01\00\00\08\00\00\00")
        (data (i32.const 256) "n BIGINT")
        (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
            (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
            (global.set $free (i32.add (local.get $at) (local.get 3)))
            (local.get $at))
        (func (export "{handler}#init")
            (param i32 i32 i32 i32 i64 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) {init} (i32.const 16))
        (func (export "{handler}#handle-initial-state") (param i64 i64) (result i32) unreachable)
        (func (export "{handler}#handle-input-rows") (param i64 i64) (result i32) unreachable)
        (func (export "{handler}#handle-expired-timer") (param i64 i64) (result i32) unreachable)
        (func (export "{handler}#close") (result i32) unreachable)"#
    )))
    .unwrap()
}

/// A processor with nothing wrong.
pub fn polite() -> Vec<u8> {
    processor("", "")
}

/// A core module with these fields.
pub fn module(fields: &str) -> Vec<u8> {
    wat::parse_str(format!("(module {fields})")).unwrap()
}

/// A polite processor with more sections.
pub fn with(sections: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    [polite()].into_iter().chain(sections).flatten().collect()
}

/// A polite processor that carries a core module with these fields, and never uses it.
pub fn with_module(fields: &str) -> Vec<u8> {
    with([section(MODULE, &module(fields))])
}

/// A section with these contents.
pub fn section(id: u8, contents: &[u8]) -> Vec<u8> {
    [vec![id], leb(contents.len()), contents.to_vec()].concat()
}

/// A section with the same entry so many times.
pub fn entries(id: u8, count: usize, entry: &[u8]) -> Vec<u8> {
    section(id, &[leb(count), entry.repeat(count)].concat())
}

/// A custom section of this size.
pub fn custom(bytes: usize) -> Vec<u8> {
    section(0, &[vec![4], b"bomb".to_vec(), vec![0; bytes]].concat())
}

/// A component in a component, so many deep.
pub fn nested(depth: usize) -> Vec<u8> {
    (0..depth).fold(HEAD.to_vec(), |inner, _| [HEAD, &section(COMPONENT, &inner)].concat())
}

/// A record of so many fields.
pub fn record(fields: usize) -> Vec<u8> {
    let fields_text: Vec<u8> = (0..fields)
        .flat_map(|number| {
            let name = format!("f{number}");
            [leb(name.len()), name.into_bytes(), vec![0x7d]].concat()
        })
        .collect();
    [leb(1), vec![0x72], leb(fields), fields_text].concat()
}

pub fn leb(mut value: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let byte = (value & 0x7f) as u8;
        value >>= 7;
        if value == 0 {
            bytes.push(byte);
            return bytes;
        }
        bytes.push(byte | 0x80);
    }
}
