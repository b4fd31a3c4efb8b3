//! Keys whose signatures a tenant takes on its components.

use serde::{Deserialize, Serialize};

use super::{Family, MetaError, Page, View, Writing};
use crate::server::id::{Id, Name};

/// `TENANT/NAME`.
const KEYS: Family<SigningKey> = Family::new("signing-keys");

/// A public key.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SigningKey {
    /// What it is called.
    pub name: Name,
    /// 32 bytes of ed25519, in hex.
    pub public_key: String,
    /// When it was made known, in ms since the epoch.
    pub created_ms: i64,
}

/// A key.
///
/// # Errors
/// The store fails.
pub fn get(view: &impl View, tenant: &Id, name: &str) -> Result<Option<SigningKey>, MetaError> {
    view.get(&KEYS, &format!("{tenant}/{name}"))
}

/// Keys of a tenant, by name.
///
/// # Errors
/// The store fails.
pub fn page(view: &impl View, tenant: &Id, after: Option<&str>, limit: usize) -> Result<Page<SigningKey>, MetaError> {
    view.page(&KEYS, &format!("{tenant}/"), after, limit)
}

/// Writes a key.
///
/// # Errors
/// The store fails.
pub fn put(writing: &Writing, tenant: &Id, key: &SigningKey) -> Result<(), MetaError> {
    writing.put(&KEYS, &format!("{tenant}/{}", key.name), key)
}

/// Forgets a key; answers whether there was one.
///
/// # Errors
/// The store fails.
pub fn remove(writing: &Writing, tenant: &Id, name: &str) -> Result<bool, MetaError> {
    writing.remove(&KEYS, &format!("{tenant}/{name}"))
}

/// Forgets all keys of a tenant.
///
/// # Errors
/// The store fails.
pub fn remove_all(writing: &Writing, tenant: &Id) -> Result<(), MetaError> {
    for (name, _) in writing.all(&KEYS, &format!("{tenant}/"))? {
        remove(writing, tenant, &name)?;
    }
    Ok(())
}
