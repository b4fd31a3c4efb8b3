//! What a checkpoint says about its query: identity, position, time, what is retained.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::super::Format;
use super::super::listing::plain;
use super::super::output;
use super::{instant, query_failed};
use crate::engine::commit::StepCommit;
use crate::engine::history::Retained;
use crate::engine::view::QueryView;
use crate::record::timestamp_text;

/// Prints all of it.
pub(super) fn show(query: &QueryView, path: &Path, format: Format) -> anyhow::Result<()> {
    let document = document(query, path)?;
    output::result(&match format {
        Format::Json => format!("{}\n", Value::Object(document)),
        Format::Text => {
            let mut text = String::new();
            for (name, value) in &document {
                lines_of(&mut text, name, value);
            }
            text
        }
    })
}

fn document(query: &QueryView, path: &Path) -> anyhow::Result<Map<String, Value>> {
    let metadata = query.metadata();
    let history = query.history();
    let mut document = Map::new();
    let mut add = |name: &str, value: Value| drop(document.insert(name.to_owned(), value));
    add("checkpoint", json!(path));
    add("queryId", json!(metadata.query_id));
    add("name", json!(metadata.name));
    add("seed", json!(metadata.seed));
    add("keyGroups", json!(metadata.key_groups));
    add("createdBy", json!(metadata.created_by));
    let snapshots: Vec<_> = query.snapshots().map_err(query_failed)?.iter().map(ToString::to_string).collect();
    add("snapshots", json!(snapshots));
    let batch_id = |retained: Option<&Retained>| retained.map(|retained| retained.batch_id);
    add(
        "retainedBatches",
        json!({ "first": batch_id(history.batches.first()), "last": batch_id(history.batches.last()), "count": history.batches.len() }),
    );
    let Some(last) = &history.last else { return Ok(document) };
    add("lastBatch", json!(last.batch_id));
    add("generation", json!(last.generation));
    add("writtenBy", json!(last.written_by));
    add("batchTime", json!(instant(last.time.processing_time_ms)));
    add("watermark", json!((history.head.watermark.last_ms() > 0).then(|| instant(history.head.watermark.last_ms()))));
    add("eventTimeMax", json!(last.event_time_max_us().map(timestamp_text)));
    match last.steps.as_slice() {
        [only] => step(only).into_iter().for_each(|(name, value)| add(&name, value)),
        steps => {
            let named = |of: &StepCommit| [("name".to_owned(), json!(of.name))].into_iter().chain(step(of)).collect();
            add("steps", steps.iter().map(|of| Value::Object(named(of))).collect());
        }
    }
    let sources = query.sources().map_err(query_failed)?;
    let sources = sources
        .iter()
        .map(|part| json!({ "role": part.role, "name": part.name, "source": part.source, "lastRead": part.range.at }));
    add("sources", sources.collect());
    let sinks = last.sinks.iter().map(|part| json!({ "role": part.role, "sink": part.sink, "rows": part.rows_total }));
    add("sinks", sinks.collect());
    Ok(document)
}

fn step(step: &StepCommit) -> Vec<(String, Value)> {
    let parameters: Map<String, Value> =
        step.parameters.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
    let fields = [
        ("initialState", json!(step.bootstrap)),
        ("processor", json!(step.processor)),
        ("timeMode", json!(step.time_mode)),
        ("outputMode", json!(step.output_mode)),
        ("key", json!(step.key)),
        ("output", json!(step.output)),
        ("parameters", Value::Object(parameters)),
        ("stateRows", json!(step.state_rows)),
    ];
    fields.map(|(name, value)| (name.to_owned(), value)).into()
}

/// `name  value`; of a list one line per element, of an object one per field.
fn lines_of(text: &mut String, name: &str, value: &Value) {
    const NAME_WIDTH: usize = 16;
    let mut line = |name: &str, value: &str| {
        text.push_str(format!("{name:NAME_WIDTH$}  {}\n", plain(value)).trim_end_matches(' '))
    };
    match value {
        Value::Null => line(name, "none"),
        Value::String(value) => line(name, value),
        Value::Object(fields) if fields.values().all(|value| !value.is_object()) => {
            let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name} {}", in_line(value))).collect();
            line(name, if fields.is_empty() { "none".to_owned() } else { fields.join(", ") }.as_str());
        }
        Value::Array(values) if values.is_empty() => line(name, "none"),
        Value::Array(values) => {
            for (number, value) in values.iter().enumerate() {
                let value = match value {
                    Value::Object(fields) => fields.values().map(in_line).collect::<Vec<_>>().join("  "),
                    value => in_line(value),
                };
                line(if number == 0 { name } else { "" }, &value);
            }
        }
        value => line(name, &value.to_string()),
    }
}

fn in_line(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
