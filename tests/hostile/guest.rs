//! The guests that attack: the evil one, and core modules for what Rust cannot do.

use std::fs;
use std::path::{Path, PathBuf};

use tidemill_host::runtime::componentize;
use wit_component::{StringEncoding, embed_component_metadata, metadata};

use crate::support::{component, repository};

/// Where a processor comes from.
#[derive(Clone, Copy)]
pub enum Guest {
    Evil,
    /// A core module in text: what stands in the module beside the exports, and the body of `init`.
    Core((&'static str, &'static str)),
}

pub const TABLE_GROWTH: (&str, &str) = (
    "(table $table 1 funcref)",
    "(loop $more (br_if $more (i32.ne (table.grow $table (ref.null func) (i32.const 100000)) (i32.const -1))))",
);

/// Rust keeps a stack of its own in memory, so it cannot do this.
pub const RECURSION: (&str, &str) = ("(func $deeper (call $deeper) (call $deeper))", "(call $deeper)");

/// Takes resources of WASI and never gives one back.
pub const POLLABLES: (&str, &str) = (
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
    pub fn component(self, folder: &Path) -> PathBuf {
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
