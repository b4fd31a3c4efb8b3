//! State that a case puts in place itself: written by the worker of the step's batch before its processor begins, so that
//! it is committed, and found by handlers, like any other.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::report::Failure;
use crate::engine::operator::{Operator, OperatorError, OperatorPlan, QueryInfo, Task, Worker};
use crate::record::{GroupingKey, RowLayout, Schema, key_from_json, key_group, key_layout, row_from_json};
use crate::runtime::Processor;
use crate::state::{Session, VariableKind};

/// Documents that wait for a batch, by the name of their variable.
#[derive(Debug, Clone, Default)]
pub(super) struct Pokes(Arc<Mutex<BTreeMap<String, Vec<Value>>>>);

impl Pokes {
    pub(super) fn put(&self, documents: BTreeMap<String, Vec<Value>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = documents;
    }

    /// That all have found their batch.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let left = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        match left.iter().find(|(_, documents)| !documents.is_empty()) {
            None => Ok(()),
            Some((name, documents)) => {
                let document = documents.first().map(Value::to_string).unwrap_or_default();
                let message = format!(
                    "{document} of {name} was not put: no batch of the step has rows or due timers for its worker"
                );
                Err(Failure::new("CASE_INVALID", &message))
            }
        }
    }

    /// Takes those whose keys a worker has.
    fn take(&self, name: &str, mut is_mine: impl FnMut(&Value) -> bool) -> Vec<Value> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(documents) = waiting.get_mut(name) else { return Vec::new() };
        let (mine, others) = std::mem::take(documents).into_iter().partition(|document| is_mine(document));
        *documents = others;
        mine
    }

    fn names(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }
}

/// A processor whose instances find what a case has put.
pub(super) struct Poked {
    pub(super) processor: Arc<Processor>,
    pub(super) pokes: Pokes,
}

impl Operator for Poked {
    fn identity(&self) -> String {
        self.processor.identity()
    }

    fn artifact(&self) -> Option<&[u8]> {
        self.processor.artifact()
    }

    fn plan(&self, query: &QueryInfo) -> Result<OperatorPlan, OperatorError> {
        self.processor.plan(query)
    }

    fn open(&self, mut task: Task) -> Result<Box<dyn Worker>, OperatorError> {
        for name in self.pokes.names() {
            poke(&self.pokes, &name, &task.plan.key, &mut task.session)?;
        }
        self.processor.open(task)
    }
}

fn poke(pokes: &Pokes, name: &str, key: &Schema, session: &mut Session) -> Result<(), OperatorError> {
    let Some(number) = session.variables().iter().position(|variable| variable.spec.name == name) else {
        return Err(unfit(format!("there is no state variable {name:?} to put something into")));
    };
    let keys = key_layout(key).map_err(unfit)?;
    let scope = session.scope().clone();
    let packed = |document: &Value| key_from_json(&keys, document.get("key").unwrap_or(&Value::Null));
    // A key that does not fit is everybody's, so that it is told.
    let mine = pokes.take(name, |document| {
        packed(document).map_or(true, |key| scope.range.contains(&key_group(GroupingKey::new(&key).hash, scope.groups)))
    });
    let mut by_key = BTreeMap::<Vec<u8>, Vec<Value>>::new();
    for document in mine {
        by_key.entry(packed(&document).map_err(unfit)?).or_default().push(document);
    }
    by_key.iter().try_for_each(|(key, documents)| put(session, number, key, documents))
}

/// Writes the documents of one key; one without a value clears, or removes its entry.
fn put(session: &mut Session, number: usize, key: &[u8], documents: &[Value]) -> Result<(), OperatorError> {
    let Some(spec) = session.variables().get(number).map(|variable| variable.spec.clone()) else { return Ok(()) };
    let group = session.enter(GroupingKey::new(key));
    let values = RowLayout::new(&spec.value);
    let value = |document: &Value| match document.get("value") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => row_from_json(&values, value).map(Some).map_err(unfit),
    };
    let written = documents.iter().map(value).collect::<Result<Vec<_>, _>>()?;
    let clears = documents.iter().all(|document| document.get("value").is_none() && document.get("entry").is_none());
    if clears {
        return session.clear(number, group).map_err(unfit);
    }
    match spec.kind {
        VariableKind::Value => {
            written.iter().flatten().try_for_each(|row| session.put_value(number, group, row)).map_err(unfit)
        }
        VariableKind::List => {
            session.list_put(number, group, &mut written.iter().flatten().map(Vec::as_slice)).map_err(unfit)
        }
        VariableKind::Map => {
            let entries = spec.key.as_ref().map(key_layout).transpose().map_err(unfit)?;
            let Some(entries) = entries else { return Ok(()) };
            for (document, row) in documents.iter().zip(written) {
                let entry = key_from_json(&entries, document.get("entry").unwrap_or(&Value::Null)).map_err(unfit)?;
                match row {
                    Some(row) => session.map_put(number, group, &entry, &row).map_err(unfit)?,
                    None => session.map_remove(number, group, &entry).map_err(unfit)?,
                }
            }
            Ok(())
        }
    }
}

fn unfit(error: impl ToString) -> OperatorError {
    OperatorError::Unfit { code: "CASE_INVALID", message: error.to_string() }
}
