//! What is fixed for a checkpoint's life.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::super::identity::{random_id, random_u64};
use super::error::CheckpointError;
use super::sealed::{self, Defect};
use crate::disk::{Disk, write_durably};

pub(super) const METADATA: &str = "metadata.json";

/// What is fixed for a checkpoint's life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Of the query; made with the checkpoint.
    pub query_id: String,
    /// For people, if one was given.
    pub name: Option<String>,
    /// Of everything random in the query.
    pub seed: u64,
    /// Into how many key groups grouping keys are hashed; at least 1.
    pub key_groups: u16,
    /// Version of the program that made the checkpoint.
    pub created_by: String,
}

/// What a checkpoint is made with, if it is new.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCheckpoint {
    /// For people; an existing checkpoint of another name is refused.
    pub name: Option<String>,
    /// None: a random one.
    pub seed: Option<u64>,
    /// At least 1.
    pub key_groups: u16,
}

impl Metadata {
    /// None: there is none.
    pub(super) fn read(disk: &dyn Disk, checkpoint: &Path) -> Result<Option<Self>, CheckpointError> {
        let path = checkpoint.join(METADATA);
        let failed = |source| CheckpointError::Disk { path: checkpoint.to_owned(), source };
        if !disk.exists(&path).map_err(failed)? {
            return Ok(None);
        }
        let bytes = disk.read(&path).map_err(failed)?;
        let metadata: Self = match sealed::unseal(&bytes) {
            Ok(metadata) => metadata,
            Err(Defect::Damaged(defect)) => return Err(CheckpointError::Damaged { path, defect }),
            Err(Defect::Newer(version)) => {
                return Err(CheckpointError::VersionUnsupported { path, version, supported: sealed::FORMAT });
            }
        };
        if metadata.key_groups == 0 || metadata.query_id.is_empty() {
            return Err(CheckpointError::Damaged { path, defect: "it names no key groups or no query".into() });
        }
        Ok(Some(metadata))
    }

    pub(super) fn create(disk: &dyn Disk, checkpoint: &Path, new: &NewCheckpoint) -> Result<Self, CheckpointError> {
        let metadata = Self {
            query_id: random_id(),
            name: new.name.clone(),
            seed: new.seed.unwrap_or_else(random_u64),
            key_groups: new.key_groups.max(1),
            created_by: env!("CARGO_PKG_VERSION").into(),
        };
        let written = sealed::seal(&metadata)
            .map_err(std::io::Error::other)
            .and_then(|bytes| write_durably(disk, &checkpoint.join(METADATA), &bytes));
        written.map_err(|source| CheckpointError::Disk { path: checkpoint.to_owned(), source })?;
        Ok(metadata)
    }
}
