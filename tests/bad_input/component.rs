//! Files that are no processor of this host.

use std::fs::{self, File};

use tidemill_host::runtime::COMPONENT_BYTES_MAX;

use super::{A, Counter, says};
use crate::support::fail_with;

#[test]
fn a_file_that_is_no_processor_is_told_what_it_is() {
    let query = Counter::over(&[("1.jsonl", A)]);
    let handler =
        |version: &str| format!("(instance $i) (export \"tidemill:processor/handler@{version}\" (instance $i))");
    let imports = r#"(import "wasi:http/types@0.2.10" (instance)) (import "evil:host/shell" (instance))"#;
    let cases: [(&str, Vec<u8>, &str, &[&str]); 7] = [
        ("empty.wasm", Vec::new(), "COMPONENT_EMPTY", &["empty.wasm", "build the processor again"]),
        ("core.wasm", wat("(module)"), "COMPONENT_IS_CORE_MODULE", &["core.wasm", "tidemill build"]),
        ("text.wasm", b"#!/bin/sh\n".to_vec(), "COMPONENT_INVALID", &["text.wasm", "tidemill build"]),
        (
            "cut.wasm",
            wat("(component (core module))").split_last().unwrap().1.to_vec(),
            "COMPONENT_INVALID",
            &["cut.wasm"],
        ),
        ("other.wasm", wat("(component)"), "COMPONENT_WORLD_MISMATCH", &["exports nothing", "matching SDK"]),
        (
            "imports.wasm",
            wat(&format!("(component {imports} {})", handler("0.1.0"))),
            "COMPONENT_IMPORTS_UNKNOWN",
            &["evil:host/shell", "wasi:http/types@0.2.10", "it grants only"],
        ),
        (
            "newer.wasm",
            wat(&format!("(component {})", handler("0.9.0"))),
            "COMPONENT_WORLD_MISMATCH",
            &["tidemill:processor@0.1.0", "handler@0.9.0", "matching SDK"],
        ),
    ];
    for (name, bytes, code, words) in cases {
        let path = query.path().join(name);
        fs::write(&path, bytes).unwrap();
        says(&fail_with(&mut query.run_component(&path, []), code), words);
    }
    let large = query.path().join("large.wasm");
    File::create(&large).unwrap().set_len(COMPONENT_BYTES_MAX + 1).unwrap();
    says(&fail_with(&mut query.run_component(&large, []), "COMPONENT_TOO_LARGE"), &["large.wasm", "leave out"]);
    for place in [query.path().join("nowhere.wasm"), query.path().to_owned()] {
        says(&fail_with(&mut query.run_component(&place, []), "COMPONENT_UNREADABLE"), &["check the path"]);
    }
    assert!(!query.path().join("checkpoint").exists(), "a checkpoint was made for nothing");
}

fn wat(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}
