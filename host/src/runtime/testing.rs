//! What tests and fuzzers of this module share: sessions over memory, grouped rows, a batch in hand.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on fails")]

#[cfg(test)]
pub(super) mod guests;

use std::sync::Arc;

use serde_json::json;

use super::host::Batch;
use crate::engine::operator::{Group, GroupedRows, OperatorPlan, OutputMode, QueryInfo, TimeMode};
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

/// A query over rows of this schema.
pub(super) fn query_over(input: Schema, time_mode: TimeMode) -> QueryInfo {
    QueryInfo {
        query_id: "q".into(),
        run_id: "r".into(),
        step: 0,
        time_mode,
        output_mode: OutputMode::Append,
        key: schema("key STRING"),
        input,
        initial_state: None,
        parameters: Vec::new(),
        seed: 1,
    }
}

/// A batch in `handle-input-rows` with one group, 0, in hand. Its state variables are a value, a list and a map.
pub(super) fn batch(time_mode: TimeMode) -> Batch {
    let variables =
        vec![variable("v", VariableKind::Value), variable("l", VariableKind::List), variable("m", VariableKind::Map)];
    let plan = OperatorPlan {
        output: schema("n BIGINT"),
        columns: schema("n BIGINT"),
        initial_state: None,
        key: schema("key STRING"),
        prefetch: vec![],
        variables,
        dropped_variables: vec![],
    };
    let mut batch = Batch::new(&plan, time_mode, session(&plan.variables), output(), 64).unwrap();
    batch.feed.open_rows(grouped(&[("x", &[1])]), &RowLayout::new(&plan.columns)).unwrap();
    let Batch { feed, session, .. } = &mut batch;
    feed.begin_call(session).unwrap();
    feed.next(session).unwrap().unwrap();
    batch
}
