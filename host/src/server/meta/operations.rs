//! Operations: long work that a request began, and how it ended.

use serde::{Deserialize, Serialize};

use super::{Family, MetaError, Page, View, Writing};
use crate::server::id::Id;

/// `TENANT/ID`.
const OPERATIONS: Family<Operation> = Family::new("operations");

/// An operation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Operation {
    /// What it is called.
    pub id: Id,
    /// What it does, e.g. `upload`.
    pub kind: String,
    /// How far it is.
    pub state: OperationState,
    /// When it began, in ms since the epoch.
    pub created_ms: i64,
    /// When it ended.
    pub ended_ms: Option<i64>,
}

/// How far an operation is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OperationState {
    /// It goes on.
    Running,
    /// It is done.
    Done {
        /// What it made: the resource's path.
        location: String,
        /// What it made, as its own route shows it.
        result: serde_json::Value,
    },
    /// It failed; what a request would have been answered.
    Failed {
        /// Status of HTTP.
        status: u16,
        /// The problem document.
        problem: serde_json::Value,
    },
}

/// An operation.
///
/// # Errors
/// The store fails.
pub fn get(view: &impl View, tenant: &Id, id: &str) -> Result<Option<Operation>, MetaError> {
    view.get(&OPERATIONS, &format!("{tenant}/{id}"))
}

/// Operations of a tenant, by id.
///
/// # Errors
/// The store fails.
pub fn page(view: &impl View, tenant: &Id, after: Option<&str>, limit: usize) -> Result<Page<Operation>, MetaError> {
    view.page(&OPERATIONS, &format!("{tenant}/"), after, limit)
}

/// Operations of all tenants, with their keys: for the start and for clearing up.
///
/// # Errors
/// The store fails.
pub fn everyone(view: &impl View) -> Result<Vec<(String, Operation)>, MetaError> {
    view.all(&OPERATIONS, "")
}

/// Writes an operation.
///
/// # Errors
/// The store fails.
pub fn put(writing: &Writing, tenant: &Id, operation: &Operation) -> Result<(), MetaError> {
    put_at(writing, &format!("{tenant}/{}", operation.id), operation)
}

/// Writes an operation by its key.
///
/// # Errors
/// The store fails.
pub fn put_at(writing: &Writing, key: &str, operation: &Operation) -> Result<(), MetaError> {
    writing.put(&OPERATIONS, key, operation)
}

/// Forgets an operation by its key.
///
/// # Errors
/// The store fails.
pub fn remove_at(writing: &Writing, key: &str) -> Result<(), MetaError> {
    writing.remove(&OPERATIONS, key).map(drop)
}
