//! `tidemill inspect --against`: whether a query can go on with a checkpoint, and what becomes of its state.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::Format;
use super::listing::{Listing, column, duration_text, plain};
use super::output::{self, Coded};
use super::state::scratch;
use crate::disk::RealDisk;
use crate::engine::error::QueryError;
use crate::engine::operator::Operator;
use crate::engine::settings::QuerySettings;
use crate::engine::setup::Schemas;
use crate::engine::upgrade::{Comparison, TtlReport, VariableChange, VariableReport};
use crate::engine::view::QueryView;

/// Exit code of a component that does not fit.
const DOES_NOT_FIT: u8 = 3;

/// Compares and prints; the answer is the exit code.
pub(super) fn compare(
    checkpoint: &Path,
    settings: &QuerySettings,
    operators: &[Arc<dyn Operator>],
    schemas: &Schemas,
    format: Format,
) -> anyhow::Result<u8> {
    let failed = |error: QueryError| Coded::wrap(error.code().to_owned(), error);
    let mut view = QueryView::open(Arc::new(RealDisk), checkpoint).map_err(failed)?;
    let scratch = scratch(None)?;
    let state = view.state(None, &scratch.path().join("state")).map_err(failed)?;
    let comparison = Comparison::of(&view, state.store.as_ref(), settings, operators, schemas).map_err(failed)?;
    match format {
        Format::Text => text(&comparison)?,
        Format::Json => documents(&comparison, checkpoint)?,
    }
    Ok(if comparison.fits() { 0 } else { DOES_NOT_FIT })
}

/// One document for the query, one per variable.
fn documents(comparison: &Comparison, checkpoint: &Path) -> anyhow::Result<()> {
    let mut query = json!({ "against": checkpoint, "fits": comparison.fits() });
    put(&mut query, serde_json::to_value(comparison)?);
    let mut text = format!("{query}\n");
    for step in &comparison.steps {
        for variable in &step.variables {
            let mut document = json!({ "step": step.step });
            put(&mut document, serde_json::to_value(variable)?);
            text.push_str(&format!("{document}\n"));
        }
    }
    output::result(&text)
}

fn put(document: &mut Value, fields: Value) {
    if let (Value::Object(document), Value::Object(fields)) = (document, fields) {
        document.extend(fields);
    }
}

fn text(comparison: &Comparison) -> anyhow::Result<()> {
    let several = comparison.steps.len() > 1;
    let columns: &[&str] = &["step", "variable", "kind", "change", "details"];
    let columns = columns.iter().skip(usize::from(!several)).map(|name| column(name)).collect();
    let mut listing = Listing::start(Format::Text, columns);
    let variables =
        comparison.steps.iter().flat_map(|step| step.variables.iter().map(move |variable| (step, variable)));
    for (step, variable) in variables {
        let mut details = details(variable).into_iter();
        let first = json!({
            "step": step.step,
            "variable": variable.name,
            "kind": variable.kind.name(),
            "change": variable.change.name(),
            "details": details.next().unwrap_or_default(),
        });
        let rest = details.map(|details| json!({ "details": details }));
        for row in std::iter::once(first).chain(rest) {
            if listing.row(&row)?.is_break() {
                return Ok(());
            }
        }
    }
    listing.finish()?;
    let mut end = String::new();
    if let Some(refused) = &comparison.refused {
        end.push_str(&format!("refused: [{}] {}\n", refused.code, plain(&refused.message)));
    }
    let what = if several { "These components" } else { "This component" };
    let behind = match comparison.last_batch {
        None => "before the first batch".to_owned(),
        Some(last) => format!("behind batch {last}"),
    };
    let can = if comparison.fits() { "can" } else { "cannot" };
    let as_before = if comparison.is_the_same() { ", as before" } else { "" };
    end.push_str(&format!("{what} {can} go on {behind}{as_before}.\n"));
    output::result(&end)
}

/// What there is to say of a variable, for a person.
pub(super) fn details(variable: &VariableReport) -> Vec<String> {
    let mut details: Vec<String> = variable.fields.iter().map(|field| field.text.clone()).collect();
    details.extend(variable.ttl.map(ttl));
    details.extend(variable.lost.iter().map(|lost| format!("LOST: {lost}")));
    match variable.change {
        VariableChange::New => details.push("begins empty".to_owned()),
        VariableChange::Undeclared => details.push("no longer declared; keeps what it holds".to_owned()),
        _ => {}
    }
    details.extend(variable.refused.as_ref().map(|refused| format!("[{}] {}", refused.code, refused.message)));
    details
}

fn ttl(ttl: TtlReport) -> String {
    let shown = |ms: Option<u64>| ms.map_or_else(|| "none".to_owned(), duration_text);
    format!("TTL {} instead of {}, for what is written from now on", shown(ttl.to_ms), shown(ttl.from_ms))
}
