//! Query files, queries of tenants, and clock files.

#![allow(clippy::unwrap_used, reason = "a fuzzer is told by a panic")]

use std::fs;

use tempfile::TempDir;

use super::hosted::{Ceilings, HostedQuery};
use super::tables::TriggerConfig;
use super::{QueryConfig, read_clock};

/// A file that is read as a query, as a clock, and as a trigger.
pub(crate) fn query_files(bytes: &[u8]) {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("query.toml");
    fs::write(&file, bytes).unwrap();
    match QueryConfig::load(Some(&file), toml::Table::new()) {
        Ok(config) => assert!(config.settings().workers > 0),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    let _ = read_clock(&file);
    let _ = std::str::from_utf8(bytes).map(str::parse::<TriggerConfig>);
}

/// A document that a tenant sends as a query.
pub(crate) fn hosted_queries(bytes: &[u8]) {
    match HostedQuery::parse(bytes) {
        Ok(query) => {
            assert!(!query.settings().steps.iter().any(|step| step.name.contains('/')));
            drop(Ceilings::default().check(&query));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
