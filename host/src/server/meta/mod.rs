//! Metadata: what the server knows about tenants, tokens, processors, queries and operations, in one embedded store.
//!
//! A request reads in one snapshot ([`Meta::read`]) and writes in one transaction ([`Meta::write`]), which is durable
//! when that returns. One file per family of records; a record is a version byte and JSON.

mod error;
pub mod idempotency;
pub mod operations;
pub mod processors;
pub mod queries;
pub mod signing_keys;
pub mod tenants;
pub mod tokens;
pub mod users;
mod view;

use std::path::Path;

use redb::{Database, ReadableDatabase};

pub use error::MetaError;
pub use view::{Family, Page, Reading, View, Writing};

/// Memory for pages of the store. What is looked at often is far less.
const CACHE_BYTES: usize = 16 << 20;

/// The store, open.
#[derive(Debug)]
pub struct Meta(Database);

impl Meta {
    /// Opens the store, or makes an empty one.
    ///
    /// # Errors
    /// The file cannot be read or is damaged.
    pub fn open(path: &Path) -> Result<Self, MetaError> {
        let database = Database::builder().set_cache_size(CACHE_BYTES).create(path).map_err(MetaError::open)?;
        Ok(Self(database))
    }

    /// Reads one consistent snapshot.
    ///
    /// # Errors
    /// The store fails, or what the closure says.
    pub fn read<T, E: From<MetaError>>(&self, reads: impl FnOnce(&Reading) -> Result<T, E>) -> Result<T, E> {
        reads(&Reading::new(self.0.begin_read().map_err(MetaError::access)?))
    }

    /// Changes something, all of it or nothing: nothing where the closure fails. Waits for other writers.
    ///
    /// # Errors
    /// The store fails, or what the closure says.
    pub fn write<T, E: From<MetaError>>(&self, writes: impl FnOnce(&Writing) -> Result<T, E>) -> Result<T, E> {
        let writing = Writing::new(self.0.begin_write().map_err(MetaError::access)?);
        let done = writes(&writing)?;
        writing.commit()?;
        Ok(done)
    }
}

#[cfg(test)]
mod tests;
