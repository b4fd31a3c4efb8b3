//! Tenants.

use serde::{Deserialize, Serialize};

use super::{Family, MetaError, View, Writing};
use crate::server::id::{Id, Name};

/// By id.
pub const TENANTS: Family<Tenant> = Family::new("tenants");
/// Ids by name.
const TENANT_NAMES: Family<Id> = Family::new("tenant-names");

/// A tenant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tenant {
    /// What its folder is called.
    pub id: Id,
    /// What people call it.
    pub name: Name,
    /// When it was made, in ms since the epoch.
    pub created_ms: i64,
    /// Grows by one with each change.
    pub revision: u64,
    /// What happens to an upload without a signature that fits.
    #[serde(default)]
    pub signatures: SignaturePolicy,
}

/// What happens to an upload without a signature that fits one of the tenant's keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SignaturePolicy {
    /// Signatures are not looked at.
    #[default]
    Off,
    /// It is taken, and the version says so.
    Warn,
    /// It is refused.
    Require,
}

/// The tenant of a name.
///
/// # Errors
/// The store fails.
pub fn by_name(view: &impl View, name: &str) -> Result<Option<Tenant>, MetaError> {
    match view.get(&TENANT_NAMES, name)? {
        Some(id) => view.get(&TENANTS, id.as_str()),
        None => Ok(None),
    }
}

/// Tenants by name.
///
/// # Errors
/// The store fails.
pub fn page(view: &impl View, after: Option<&str>, limit: usize) -> Result<(Vec<Tenant>, bool), MetaError> {
    let page = view.page(&TENANT_NAMES, "", after, limit)?;
    let mut tenants = Vec::new();
    for (_, id) in page.records {
        tenants.extend(view.get(&TENANTS, id.as_str())?);
    }
    Ok((tenants, page.more))
}

/// Writes a tenant.
///
/// # Errors
/// The store fails.
pub fn put(writing: &Writing, tenant: &Tenant) -> Result<(), MetaError> {
    writing.put(&TENANT_NAMES, tenant.name.as_str(), &tenant.id)?;
    writing.put(&TENANTS, tenant.id.as_str(), tenant)
}

/// Forgets a tenant; what belongs to it is gone already.
///
/// # Errors
/// The store fails.
pub fn remove(writing: &Writing, tenant: &Tenant) -> Result<(), MetaError> {
    writing.remove(&TENANT_NAMES, tenant.name.as_str())?;
    writing.remove(&TENANTS, tenant.id.as_str())?;
    Ok(())
}
