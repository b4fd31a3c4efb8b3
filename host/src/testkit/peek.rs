//! What state variables and timers hold, as JSON.

use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::report::Failure;
use crate::engine::query::Query;
use crate::record::{RowLayout, Schema, key_layout, row_to_json};
use crate::state::{Catalog, Contents, StateError, StateRow, StoredRows, for_each_row, for_each_timer};

/// All that a variable holds: a value, element or entry each. In a query of several steps it is named `STEP/NAME`.
pub(super) fn variable(query: &Query, name: &str) -> Result<Vec<Value>, Failure> {
    let store = query.store();
    let catalog = Catalog::load(store).map_err(failed)?;
    let steps: Vec<_> = query.steps().collect();
    let (step, name) = match steps.as_slice() {
        [_] => (None, name),
        _ => name.split_once('/').map_or((None, name), |(step, name)| (Some(step), name)),
    };
    let found = (0..).zip(&steps).find(|(_, (of, _))| step.is_none_or(|step| step == *of));
    let Some((number, (_, key))) = found else {
        return Err(Failure::new("STATE_STEP_UNKNOWN", &format!("there is no step {step:?}")));
    };
    let Some(variable) = catalog.variables(number).iter().find(|variable| variable.name == name) else {
        return Err(Failure::new("STATE_VARIABLE_UNKNOWN", &format!("there is no state variable {name:?}")));
    };
    let keys = layout(key)?;
    let entries = variable.key.as_ref().map(layout).transpose()?;
    let values = RowLayout::new(&variable.value);
    let stored = variable.stored_rows().map_err(failed)?;
    let mut documents = Vec::new();
    for_each_row(store, number, variable.id, variable.kind, None, &mut |row| {
        documents.push(document(&keys, entries.as_ref(), &values, &stored, row));
        ControlFlow::Continue(())
    })
    .map_err(failed)?;
    documents.into_iter().collect()
}

fn document(
    keys: &RowLayout,
    entries: Option<&RowLayout>,
    values: &RowLayout,
    stored: &StoredRows,
    row: StateRow<'_>,
) -> Result<Value, Failure> {
    let json =
        |layout: &RowLayout, row: &[u8]| row_to_json(layout, row).map_err(|fault| Failure::new(fault.code(), &fault));
    let mut document = json!({ "key": json(keys, row.key.row)? });
    let value = match (row.contents, entries) {
        (Contents::Value(row) | Contents::Element { row, .. } | Contents::Entry { row, .. }, None) => row,
        (Contents::Entry { key, row }, Some(entries)) => {
            put(&mut document, "entry", json(entries, key)?);
            row
        }
        (Contents::Value(row) | Contents::Element { row, .. }, Some(_)) => row,
    };
    let value = stored.in_force(row.schema_id, value).map_err(failed)?;
    put(&mut document, "value", json(values, &value)?);
    if let Some(expiry_ms) = row.expiry_ms {
        put(&mut document, "expires_ms", expiry_ms.into());
    }
    Ok(document)
}

/// All timers; in a query of several steps each with the name of its step.
pub(super) fn timers(query: &Query) -> Result<Vec<Value>, Failure> {
    let steps: Vec<_> = query.steps().collect();
    let mut documents = Vec::new();
    for (number, (step, key)) in (0..).zip(&steps) {
        let keys = layout(key)?;
        for_each_timer(query.store(), number, None, &mut |timer| {
            documents.push(row_to_json(&keys, timer.key.row).map(|key| {
                let mut document = json!({ "key": key, "expires_ms": timer.expiry_ms });
                if steps.len() > 1 {
                    put(&mut document, "step", json!(step));
                }
                document
            }));
            ControlFlow::Continue(())
        })
        .map_err(failed)?;
    }
    documents.into_iter().map(|document| document.map_err(|fault| Failure::new(fault.code(), &fault))).collect()
}

fn put(document: &mut Value, name: &str, value: Value) {
    if let Value::Object(object) = document {
        object.insert(name.to_owned(), value);
    }
}

fn layout(schema: &Schema) -> Result<RowLayout, Failure> {
    key_layout(schema).map_err(|error| Failure::new(error.code(), &error))
}

fn failed(error: StateError) -> Failure {
    Failure::new(error.code(), &error)
}
