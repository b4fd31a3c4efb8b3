//! Queries of tenants: how they are set up, and whether they should run.

use serde::{Deserialize, Serialize};

use super::{Family, MetaError, Page, View, Writing};
use crate::server::id::{Id, Name};

/// `TENANT/NAME`.
const QUERIES: Family<Query> = Family::new("queries");

/// A query.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Query {
    /// What its folder is called.
    pub id: Id,
    /// What people call it.
    pub name: Name,
    /// How it is set up, as the tenant wrote it.
    pub settings: serde_json::Value,
    /// Which versions it runs, one per step: they cannot be deleted.
    pub runs: Vec<VersionUse>,
    /// What the tenant wants of it.
    pub desired: Desired,
    /// When it was made, in ms since the epoch.
    pub created_ms: i64,
    /// Grows by one with each change.
    pub revision: u64,
}

/// A version that a query runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VersionUse {
    /// The processor's name.
    pub processor: Name,
    /// Its version.
    pub version: u32,
    /// SHA-256 of the component, in hex.
    pub sha256: String,
}

/// What a tenant wants of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Desired {
    /// It runs whenever there is something to do.
    Running,
    /// It takes rows, and runs no batches.
    Paused,
    /// It is closed.
    Stopped,
}

/// A query.
///
/// # Errors
/// The store fails.
pub fn get(view: &impl View, tenant: &Id, name: &str) -> Result<Option<Query>, MetaError> {
    view.get(&QUERIES, &format!("{tenant}/{name}"))
}

/// Queries of a tenant, by name.
///
/// # Errors
/// The store fails.
pub fn page(view: &impl View, tenant: &Id, after: Option<&str>, limit: usize) -> Result<Page<Query>, MetaError> {
    view.page(&QUERIES, &format!("{tenant}/"), after, limit)
}

/// Writes a query.
///
/// # Errors
/// The store fails.
pub fn put(writing: &Writing, tenant: &Id, query: &Query) -> Result<(), MetaError> {
    writing.put(&QUERIES, &format!("{tenant}/{}", query.name), query)
}

/// Forgets a query; answers whether there was one.
///
/// # Errors
/// The store fails.
pub fn remove(writing: &Writing, tenant: &Id, name: &str) -> Result<bool, MetaError> {
    writing.remove(&QUERIES, &format!("{tenant}/{name}"))
}
