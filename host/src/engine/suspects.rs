//! Which of several keys made a processor fail: each that it had in hand runs alone, on a fresh instance and a view of the
//! state that is dropped, until one fails in the same way.
//!
//! Nothing comes of it but the words of the error: the batch has failed, and stays so.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use tracing::subscriber::{NoSubscriber, with_default};

use super::error::QueryError;
use super::operator::AtKey;
use super::pipeline::{BatchWork, Pipeline};
use crate::clock::Stopwatch;
use crate::record::GroupingKey;
use crate::state::{DueIndex, Store};

/// No further key is tried after that: a person waits for the error.
const SEARCH_MAX: Duration = Duration::from_secs(10);

/// Names the key in the failure of a batch that was given these rows.
pub(super) fn name_key(
    pipeline: &Pipeline,
    store: &Arc<dyn Store>,
    due: &Arc<DueIndex>,
    work: &BatchWork,
    rows: &[RecordBatch],
    mut failure: QueryError,
) -> QueryError {
    // What they log has been logged before.
    let found = with_default(NoSubscriber::new(), || find(pipeline, store, due, work, rows, &failure));
    if let (Some(found), QueryError::Operator { source, .. }) = (found, &mut failure) {
        source.set_at(found);
    }
    failure
}

/// None: there is nothing to look for, or it was not to be found out.
fn find(
    pipeline: &Pipeline,
    store: &Arc<dyn Store>,
    due: &Arc<DueIndex>,
    work: &BatchWork,
    rows: &[RecordBatch],
    failure: &QueryError,
) -> Option<AtKey> {
    let QueryError::Operator { key_groups, source, .. } = failure else { return None };
    let Some(AtKey::OneOf(suspects)) = source.at() else { return None };
    let routed = pipeline.route(rows, work, &[]).ok()?;
    let watch = Stopwatch::start();
    let mut all_succeed = true;
    for suspect in suspects {
        if watch.elapsed() > SEARCH_MAX {
            return None;
        }
        let key = GroupingKey::new(&suspect.key);
        let alone = routed.gather([routed.of_key(key).rows.as_slice()]).ok()?;
        match pipeline.failure_alone(store, due, work, key_groups.clone(), key, alone) {
            Some(QueryError::Operator { source: alone, .. }) if alone.is_like(source) => {
                return Some(AtKey::Key(Box::new(suspect.clone())));
            }
            Some(_) => all_succeed = false,
            None => {}
        }
    }
    all_succeed.then(|| AtKey::NoneAlone(suspects.clone()))
}
