//! Families of records, and what can be done with them inside a transaction.

use std::marker::PhantomData;

use redb::{ReadTransaction, ReadableTable, TableDefinition, TableError, WriteTransaction};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::MetaError;

type Definition = TableDefinition<'static, &'static str, &'static [u8]>;

/// Records of one kind, by key. Keys are ids, names and numbers, joined by `/`, which none of them has.
#[derive(Debug)]
pub struct Family<V> {
    name: &'static str,
    /// Which form its records are written in. A record of an earlier form is still read, as serde fills what it lacks.
    version: u8,
    records: PhantomData<V>,
}

impl<V> Family<V> {
    pub(super) const fn new(name: &'static str) -> Self {
        Self { name, version: 1, records: PhantomData }
    }

    fn definition(&self) -> Definition {
        TableDefinition::new(self.name)
    }
}

impl<V: Serialize + DeserializeOwned> Family<V> {
    fn decode(&self, bytes: &[u8]) -> Result<V, MetaError> {
        let damaged = |defect: String| MetaError::Record { family: self.name, defect };
        let (&version, json) = bytes.split_first().ok_or_else(|| damaged("it is empty".to_owned()))?;
        if version > self.version {
            return Err(MetaError::RecordVersion { family: self.name, version });
        }
        serde_json::from_slice(json).map_err(|error| damaged(error.to_string()))
    }

    fn encode(&self, record: &V) -> Result<Vec<u8>, MetaError> {
        let mut bytes = vec![self.version];
        serde_json::to_writer(&mut bytes, record)
            .map_err(|error| MetaError::Record { family: self.name, defect: error.to_string() })?;
        Ok(bytes)
    }
}

/// Some records in order of their keys.
#[derive(Debug)]
pub struct Page<V> {
    /// Keys, without the prefix asked for, and records.
    pub records: Vec<(String, V)>,
    /// Whether there are more.
    pub more: bool,
}

/// What can be read in a transaction.
pub trait View {
    /// One record.
    ///
    /// # Errors
    /// The store fails; the record is damaged.
    fn get<V: Serialize + DeserializeOwned>(&self, family: &Family<V>, key: &str) -> Result<Option<V>, MetaError>;

    /// At most `limit` records whose keys begin with `prefix`, those whose keys go on with more than `after`.
    ///
    /// # Errors
    /// The store fails; a record is damaged.
    fn page<V: Serialize + DeserializeOwned>(
        &self,
        family: &Family<V>,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<V>, MetaError>;

    /// All records whose keys begin with `prefix`: for families that are bounded by a limit.
    ///
    /// # Errors
    /// The store fails; a record is damaged.
    fn all<V: Serialize + DeserializeOwned>(
        &self,
        family: &Family<V>,
        prefix: &str,
    ) -> Result<Vec<(String, V)>, MetaError> {
        Ok(self.page(family, prefix, None, usize::MAX)?.records)
    }
}

/// A snapshot.
#[derive(Debug)]
pub struct Reading(ReadTransaction);

impl Reading {
    pub(super) fn new(transaction: ReadTransaction) -> Self {
        Self(transaction)
    }
}

impl View for Reading {
    fn get<V: Serialize + DeserializeOwned>(&self, family: &Family<V>, key: &str) -> Result<Option<V>, MetaError> {
        match self.0.open_table(family.definition()) {
            Ok(table) => get_in(&table, family, key),
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            Err(error) => Err(MetaError::access(error)),
        }
    }

    fn page<V: Serialize + DeserializeOwned>(
        &self,
        family: &Family<V>,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<V>, MetaError> {
        match self.0.open_table(family.definition()) {
            Ok(table) => page_in(&table, family, prefix, after, limit),
            Err(TableError::TableDoesNotExist(_)) => Ok(Page { records: Vec::new(), more: false }),
            Err(error) => Err(MetaError::access(error)),
        }
    }
}

/// A transaction that changes something. Dropped without a commit, it changes nothing.
pub struct Writing(WriteTransaction);

impl std::fmt::Debug for Writing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Writing")
    }
}

impl Writing {
    pub(super) fn new(transaction: WriteTransaction) -> Self {
        Self(transaction)
    }

    /// Puts a record in place of the one with that key, if there is one.
    ///
    /// # Errors
    /// The store fails.
    pub fn put<V: Serialize + DeserializeOwned>(
        &self,
        family: &Family<V>,
        key: &str,
        record: &V,
    ) -> Result<(), MetaError> {
        let bytes = family.encode(record)?;
        let mut table = self.0.open_table(family.definition()).map_err(MetaError::access)?;
        table.insert(key, bytes.as_slice()).map_err(MetaError::access)?;
        Ok(())
    }

    /// Removes a record; answers whether there was one.
    ///
    /// # Errors
    /// The store fails.
    pub fn remove<V>(&self, family: &Family<V>, key: &str) -> Result<bool, MetaError> {
        let mut table = self.0.open_table(family.definition()).map_err(MetaError::access)?;
        let removed = table.remove(key).map_err(MetaError::access)?;
        Ok(removed.is_some())
    }

    pub(super) fn commit(self) -> Result<(), MetaError> {
        self.0.commit().map_err(MetaError::access)
    }
}

impl View for Writing {
    fn get<V: Serialize + DeserializeOwned>(&self, family: &Family<V>, key: &str) -> Result<Option<V>, MetaError> {
        get_in(&self.0.open_table(family.definition()).map_err(MetaError::access)?, family, key)
    }

    fn page<V: Serialize + DeserializeOwned>(
        &self,
        family: &Family<V>,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Page<V>, MetaError> {
        page_in(&self.0.open_table(family.definition()).map_err(MetaError::access)?, family, prefix, after, limit)
    }
}

fn get_in<V: Serialize + DeserializeOwned>(
    table: &impl ReadableTable<&'static str, &'static [u8]>,
    family: &Family<V>,
    key: &str,
) -> Result<Option<V>, MetaError> {
    let found = table.get(key).map_err(MetaError::access)?;
    found.map(|bytes| family.decode(bytes.value())).transpose()
}

fn page_in<V: Serialize + DeserializeOwned>(
    table: &impl ReadableTable<&'static str, &'static [u8]>,
    family: &Family<V>,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Page<V>, MetaError> {
    let start = format!("{prefix}{}", after.unwrap_or_default());
    let mut page = Page { records: Vec::new(), more: false };
    for entry in table.range(start.as_str()..).map_err(MetaError::access)? {
        let (key, bytes) = entry.map_err(MetaError::access)?;
        let Some(rest) = key.value().strip_prefix(prefix) else { break };
        if after == Some(rest) {
            continue;
        }
        if page.records.len() == limit {
            page.more = true;
            break;
        }
        page.records.push((rest.to_owned(), family.decode(bytes.value())?));
    }
    Ok(page)
}
