//! Processors of tenants: immutable versions, and aliases that name one.

use serde::{Deserialize, Serialize};

use super::{Family, MetaError, Page, View, Writing};
use crate::server::id::{Id, Name};

/// `TENANT/PROCESSOR`.
const PROCESSORS: Family<Processor> = Family::new("processors");
/// `TENANT/PROCESSOR/VERSION`, the version with ten digits so that they sort.
const VERSIONS: Family<Version> = Family::new("versions");
/// `TENANT/PROCESSOR/ALIAS`.
const ALIASES: Family<Alias> = Family::new("aliases");
/// `DIGEST/TENANT/PROCESSOR`: which version has these bytes. A component is kept as long as one does.
const DIGESTS: Family<u32> = Family::new("digests");

/// A processor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Processor {
    /// Its name.
    pub name: Name,
    /// When it was made, in ms since the epoch.
    pub created_ms: i64,
    /// The last version that was given out. A number is never given out twice.
    pub latest: u32,
}

/// A version of a processor.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Version {
    /// From 1.
    pub number: u32,
    /// SHA-256 of the component, in hex.
    pub sha256: String,
    /// Bytes of the component.
    pub bytes: u64,
    /// When it was uploaded, in ms since the epoch.
    pub created_ms: i64,
    /// The token that uploaded it.
    pub created_by: Id,
    /// The key whose signature it came with.
    pub signed_by: Option<Name>,
    /// What the compiler found out about it.
    pub description: serde_json::Value,
}

/// A name of a version that can be given to another one.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Alias {
    /// Which version.
    pub version: u32,
    /// Grows by one with each change.
    pub revision: u64,
}

fn of_tenant(tenant: &Id) -> String {
    format!("{tenant}/")
}

fn of_processor(tenant: &Id, processor: &str) -> String {
    format!("{tenant}/{processor}/")
}

fn version_key(tenant: &Id, processor: &str, number: u32) -> String {
    format!("{tenant}/{processor}/{number:010}")
}

/// A processor.
///
/// # Errors
/// The store fails.
pub fn get(view: &impl View, tenant: &Id, processor: &str) -> Result<Option<Processor>, MetaError> {
    view.get(&PROCESSORS, &format!("{tenant}/{processor}"))
}

/// Processors of a tenant, by name.
///
/// # Errors
/// The store fails.
pub fn page(view: &impl View, tenant: &Id, after: Option<&str>, limit: usize) -> Result<Page<Processor>, MetaError> {
    view.page(&PROCESSORS, &of_tenant(tenant), after, limit)
}

/// A version.
///
/// # Errors
/// The store fails.
pub fn version(view: &impl View, tenant: &Id, processor: &str, number: u32) -> Result<Option<Version>, MetaError> {
    view.get(&VERSIONS, &version_key(tenant, processor, number))
}

/// Versions of a processor, oldest first; `after`: a number of ten digits.
///
/// # Errors
/// The store fails.
pub fn versions(
    view: &impl View,
    tenant: &Id,
    processor: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Page<Version>, MetaError> {
    view.page(&VERSIONS, &of_processor(tenant, processor), after, limit)
}

/// The version of a processor that has these bytes.
///
/// # Errors
/// The store fails.
pub fn version_of_bytes(
    view: &impl View,
    tenant: &Id,
    processor: &str,
    sha256: &str,
) -> Result<Option<Version>, MetaError> {
    match view.get(&DIGESTS, &format!("{sha256}/{tenant}/{processor}"))? {
        Some(number) => version(view, tenant, processor, number),
        None => Ok(None),
    }
}

/// A processor of the tenant with a version that has these bytes, and its number.
///
/// # Errors
/// The store fails.
pub fn of_digest(view: &impl View, tenant: &Id, sha256: &str) -> Result<Option<(String, u32)>, MetaError> {
    let page = view.page(&DIGESTS, &format!("{sha256}/{tenant}/"), None, 1)?;
    Ok(page.records.into_iter().next())
}

/// Whether any version of anybody has these bytes.
///
/// # Errors
/// The store fails.
pub fn is_used(view: &impl View, sha256: &str) -> Result<bool, MetaError> {
    Ok(!view.page(&DIGESTS, &format!("{sha256}/"), None, 1)?.records.is_empty())
}

/// Adds a version with the next number, or answers with the one that has these bytes already.
///
/// # Errors
/// The store fails.
pub fn add_version(
    writing: &Writing,
    tenant: &Id,
    processor: &Name,
    mut version: Version,
) -> Result<Version, MetaError> {
    if let Some(there) = version_of_bytes(writing, tenant, processor.as_str(), &version.sha256)? {
        return Ok(there);
    }
    let mut record = get(writing, tenant, processor.as_str())?.unwrap_or(Processor {
        name: processor.clone(),
        created_ms: version.created_ms,
        latest: 0,
    });
    record.latest = record.latest.saturating_add(1);
    version.number = record.latest;
    writing.put(&PROCESSORS, &format!("{tenant}/{processor}"), &record)?;
    writing.put(&VERSIONS, &version_key(tenant, processor.as_str(), version.number), &version)?;
    writing.put(&DIGESTS, &format!("{}/{tenant}/{processor}", version.sha256), &version.number)?;
    Ok(version)
}

/// Removes a version. Its number is not given out again.
///
/// # Errors
/// The store fails.
pub fn remove_version(writing: &Writing, tenant: &Id, processor: &str, version: &Version) -> Result<(), MetaError> {
    writing.remove(&VERSIONS, &version_key(tenant, processor, version.number))?;
    writing.remove(&DIGESTS, &format!("{}/{tenant}/{processor}", version.sha256))?;
    Ok(())
}

/// Forgets a processor; its versions and aliases are gone already.
///
/// # Errors
/// The store fails.
pub fn remove(writing: &Writing, tenant: &Id, processor: &str) -> Result<(), MetaError> {
    writing.remove(&PROCESSORS, &format!("{tenant}/{processor}")).map(drop)
}

/// An alias.
///
/// # Errors
/// The store fails.
pub fn alias(view: &impl View, tenant: &Id, processor: &str, alias: &str) -> Result<Option<Alias>, MetaError> {
    view.get(&ALIASES, &format!("{tenant}/{processor}/{alias}"))
}

/// The aliases of a processor, by name.
///
/// # Errors
/// The store fails.
pub fn aliases(view: &impl View, tenant: &Id, processor: &str) -> Result<Vec<(String, Alias)>, MetaError> {
    view.all(&ALIASES, &of_processor(tenant, processor))
}

/// Gives an alias to a version.
///
/// # Errors
/// The store fails.
pub fn put_alias(
    writing: &Writing,
    tenant: &Id,
    processor: &str,
    alias: &Name,
    record: &Alias,
) -> Result<(), MetaError> {
    writing.put(&ALIASES, &format!("{tenant}/{processor}/{alias}"), record)
}

/// Removes an alias; answers whether there was one.
///
/// # Errors
/// The store fails.
pub fn remove_alias(writing: &Writing, tenant: &Id, processor: &str, alias: &str) -> Result<bool, MetaError> {
    writing.remove(&ALIASES, &format!("{tenant}/{processor}/{alias}"))
}
