//! `inspect`: what a component is, and its plan.

use std::fs;

use insta::assert_snapshot;
use tempfile::TempDir;

use super::shown;
use crate::support::{Example, component, fail_with, json_lines, run, succeed, tidemill};

#[test]
fn a_component_is_shown_with_its_interfaces() {
    let said = succeed(tidemill().arg("inspect").arg(component("counter")));

    assert_snapshot!(shown(&said), @r"
    component     counter.wasm
    size          [n] bytes
    digest        sha256:[digest]
    world version 0.1.0
    imports       tidemill:processor/effects@0.1.0
                  tidemill:processor/input@0.1.0
                  tidemill:processor/logging@0.1.0
                  tidemill:processor/state@0.1.0
                  tidemill:processor/types@0.1.0
    exports       tidemill:processor/handler@0.1.0
    ");
}

#[test]
fn with_key_and_schema_the_plan_is_shown() {
    let said = succeed(tidemill().arg("inspect").arg(component("counter")).args([
        "--key",
        "key",
        "--schema",
        "key STRING, n BIGINT",
    ]));

    let plan: Vec<_> = said.out.lines().skip_while(|line| !line.starts_with("key")).collect();
    assert_snapshot!(plan.join("\n"), @r"
    key           key STRING NOT NULL
    columns       n BIGINT NOT NULL
    output        key STRING NOT NULL, count BIGINT NOT NULL, listed BIGINT NOT NULL, distinct BIGINT NOT NULL
    state         value count <value BIGINT>
                  list seen <value BIGINT>
                  map times <value BIGINT> to <value BIGINT>
    prefetch      count
    ");
}

#[test]
fn a_query_file_gives_the_plan_with_ttl_and_initial_state() {
    let plan = |name| {
        let example = Example::new(name);
        let mut command = tidemill();
        command.arg("inspect").arg(component(name)).arg("--config").arg(example.path().join("query.toml"));
        json_lines(&succeed(command.args(["-o", "json"])).out).remove(0)["plan"].take()
    };

    let dedup = plan("dedup");
    assert_eq!(dedup["variables"][0]["name"], "seen");
    assert_eq!(dedup["variables"][0]["ttlMs"], 3_600_000);
    assert_eq!(dedup["initialState"], serde_json::Value::Null);
    assert_eq!(plan("counter-initial-state")["initialState"], "count BIGINT NOT NULL");
}

#[test]
fn a_file_that_is_no_processor_is_told_what_it_is() {
    let folder = TempDir::new().unwrap();
    let other_world = r#"(component (instance $i) (export "other:package/thing@1.0.0" (instance $i)))"#;
    let files: [(&str, Vec<u8>); 4] = [
        ("empty.wasm", Vec::new()),
        ("core.wasm", wat::parse_str("(module)").unwrap()),
        ("text.wasm", b"fn main() {}\n".to_vec()),
        ("other.wasm", wat::parse_str(other_world).unwrap()),
    ];
    let mut told = String::new();
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).unwrap();
        let said = run(tidemill().current_dir(folder.path()).args(["inspect", name]));
        assert_eq!(said.code, Some(1), "{}", said.err);
        told.push_str(&said.err);
    }
    told.push_str(&run(tidemill().current_dir(folder.path()).args(["inspect", "missing.wasm"])).err);

    assert_snapshot!(told, @r"
    error[COMPONENT_EMPTY]: empty.wasm is empty; build the processor again
    error[COMPONENT_IS_CORE_MODULE]: core.wasm is a core WebAssembly module, not a component; turn it into one (`tidemill build` does it for every supported language)
    error[COMPONENT_INVALID]: text.wasm is not a WebAssembly component that this host accepts: it does not begin like one; `tidemill build` makes one of a compiled processor
    error[COMPONENT_WORLD_MISMATCH]: other.wasm does not implement the world of this host, tidemill:processor@0.1.0: it does not export tidemill:processor/handler; it exports other:package/thing@1.0.0; build it with a matching SDK
    error[COMPONENT_UNREADABLE]: missing.wasm could not be read: No such file or directory (os error 2); check the path, and build it first if it is that of a project (`tidemill build`)
    ");
}

#[test]
fn a_query_that_does_not_fit_is_refused() {
    let mut command = tidemill();
    command.arg("inspect").arg(component("counter")).args(["--key", "city", "--schema", "key STRING, n BIGINT"]);
    fail_with(&mut command, "KEY_COLUMN_MISSING");
    fail_with(tidemill().arg("inspect"), "CONFIG_INCOMPLETE");
}
