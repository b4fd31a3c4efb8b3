//! What batches did to a variable, from the records of the log.

use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::super::listing::column;
use super::rows::{RowShape, put};
use super::target::Target;
use super::{State, query_failed, state_failed};
use crate::engine::commit::Commit;
use crate::engine::view::QueryView;
use crate::state::{CatalogVariable, Contents, RowChange, for_each_change};

/// Shows the changes of the batches `from` to `to`, in order of batches, and of the hashes of keys within one.
pub(super) fn show(state: &State, query: &QueryView, name: &str, from: u64, to: u64) -> anyhow::Result<()> {
    let variable = state.variable(name)?;
    let shape = RowShape::of(state.key()?, variable, state.key_groups)?;
    let columns = ["batch_id", "change_type"].map(column).into_iter().chain(shape.columns());
    let mut target = state.place.open(columns.collect(), shape.change_schema()?)?;
    for commit in query.commits(from, to).map_err(query_failed)? {
        if show_batch(&commit.map_err(query_failed)?, (state.step, variable), &shape, &mut target)?.is_break() {
            break;
        }
    }
    target.finish()
}

fn show_batch(
    commit: &Commit,
    (step, variable): (u8, &CatalogVariable),
    shape: &RowShape<'_>,
    target: &mut Target,
) -> anyhow::Result<ControlFlow<()>> {
    let mut outcome = Ok(ControlFlow::Continue(()));
    for changes in &commit.changes {
        for_each_change(changes, step, variable.id, variable.kind, &mut |change| {
            outcome = document(commit.header.batch_id, change, shape).and_then(|document| target.row(&document));
            match &outcome {
                Ok(flow) => *flow,
                Err(_) => ControlFlow::Break(()),
            }
        })
        .map_err(state_failed)?;
        if !matches!(outcome, Ok(ControlFlow::Continue(()))) {
            break;
        }
    }
    outcome
}

fn document(batch_id: u64, change: RowChange<'_>, shape: &RowShape<'_>) -> anyhow::Result<Value> {
    let change_type = match &change {
        RowChange::Deleted { .. } => "delete",
        // A list that is put begins at the first sequence number again.
        RowChange::Put(row) => match row.contents {
            Contents::Element { sequence: 1.., .. } => "append",
            _ => "update",
        },
    };
    let mut document = json!({ "batch_id": batch_id, "change_type": change_type });
    match change {
        RowChange::Put(row) => {
            put(&mut document, "key", shape.key_of(row.key)?);
            shape.put_contents(row, &mut document)?;
            put(&mut document, "key_group", shape.key_group_of(row.key).into());
        }
        RowChange::Deleted { key, sequence, entry } => {
            put(&mut document, "key", shape.key_of(key)?);
            if let Some(sequence) = sequence {
                put(&mut document, "sequence", sequence.into());
            }
            if let Some(entry) = entry {
                put(&mut document, "entry", shape.entry_of(entry)?);
            }
            put(&mut document, "key_group", shape.key_group_of(key).into());
        }
    }
    Ok(document)
}
