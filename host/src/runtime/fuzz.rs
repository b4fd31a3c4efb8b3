//! What comes from a guest: its program, what it declares, what it does.

#![allow(clippy::unwrap_used, reason = "a fuzzer is told by a panic")]

use std::sync::LazyLock;

use serde::Deserialize;

use super::bindings::exports::tidemill::processor::handler;
use super::bounds::Bounds;
use super::componentize::{componentize, imports};
use super::convert::{difference, plan};
use super::declarations::{Declaration, Declarations};
use super::effects::apply;
use super::engine::{Metering, Sandbox};
use super::host::{Batch, BatchPhase};
use super::limits::Limits;
use super::processor::{Inspection, Processor};
use super::testing::{batch, output, query_over, session};
use crate::engine::operator::TimeMode;
use crate::record::Schema;
use crate::record::fuzz::first_line;
use crate::state::VariableKind;

/// A time mode, a phase, and ops.
pub(crate) fn ops(bytes: &[u8]) {
    let Some((how, ops)) = bytes.split_first() else { return };
    let mut batch = batch(time_mode(*how));
    if how & 4 != 0 {
        batch.phase = BatchPhase::InitialState;
    }
    let _ = apply(&mut batch, ops);
    for variable in 0..3 {
        batch.exists(variable, 0).unwrap();
    }
}

/// What `init` declares and answers.
#[derive(Deserialize)]
#[serde(default)]
struct Answer {
    schema_bytes: usize,
    dropped: Vec<String>,
    variables: Vec<Variable>,
    output: String,
    columns: Option<String>,
    initial_state: Option<String>,
    key: Option<String>,
    prefetch: Option<Vec<u32>>,
}

impl Default for Answer {
    fn default() -> Self {
        let (dropped, variables, output) = (Vec::new(), Vec::new(), String::new());
        let (columns, initial_state, key, prefetch) = (None, None, None, None);
        Self { schema_bytes: 1_000, dropped, variables, output, columns, initial_state, key, prefetch }
    }
}

#[derive(Deserialize)]
struct Variable {
    name: String,
    key: Option<String>,
    value: String,
    ttl_ms: Option<u64>,
    #[serde(default)]
    list: bool,
}

/// A line with the DDL of the input, which says the time mode by its length, and an [`Answer`] in JSON. A plan that is accepted
/// can be run.
pub(crate) fn plans(bytes: &[u8]) {
    let Some((input, answer)) = first_line(bytes) else { return };
    let (Ok(schema), Ok(answer)) = (Schema::parse(input), serde_json::from_slice::<Answer>(answer)) else { return };
    let time_mode = time_mode(input.len() as u8);
    let mut declarations = Declarations::new(time_mode, answer.schema_bytes);
    for name in answer.dropped {
        let _ = declarations.delete_if_exists(name);
    }
    for Variable { name, key, value, ttl_ms, list } in answer.variables {
        let kind = match &key {
            Some(_) => VariableKind::Map,
            None if list => VariableKind::List,
            None => VariableKind::Value,
        };
        let _ = declarations.declare(Declaration { name, kind, key, value, ttl_ms });
    }
    let (variables, dropped) = declarations.into_parts();
    let Answer { output: columns_out, columns, initial_state, key, prefetch, .. } = answer;
    let answer = handler::Plan { output: columns_out, columns, initial_state, key, prefetch };
    let query = query_over(schema, time_mode);
    if let Ok(plan) = plan(&query, answer, variables, dropped, &Limits::default()) {
        assert_eq!(difference(&plan, &plan), None);
        Batch::new(&plan, time_mode, session(&plan.variables), output(), 64).unwrap();
    }
}

/// A file that is to be a processor, or to become one.
pub(crate) fn components(bytes: &[u8]) {
    static SANDBOX: LazyLock<Sandbox> = LazyLock::new(|| Sandbox::new(Metering::Epoch).unwrap());
    if let Ok(processor) = Processor::from_bytes(&SANDBOX, "fuzz.wasm", bytes, Limits::default(), None) {
        let Inspection { bytes: length, imports, exports, .. } = processor.inspect().clone();
        assert_eq!(length, bytes.len() as u64);
        // What is seen from outside is what wasmtime sees.
        let (mut seen_imports, mut seen_exports) = Bounds::interfaces("fuzz.wasm", bytes).unwrap();
        seen_imports.sort();
        seen_exports.sort();
        assert_eq!((seen_imports, seen_exports), (imports, exports));
    }
    let _ = Bounds::default().check("fuzz.wasm", bytes);
    let _ = componentize(bytes);
    let _ = imports(bytes);
}

fn time_mode(number: u8) -> TimeMode {
    match number & 3 {
        0 => TimeMode::None,
        1 => TimeMode::EventTime,
        _ => TimeMode::ProcessingTime,
    }
}
