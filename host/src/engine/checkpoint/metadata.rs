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
    /// What it was a copy of, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forks: Vec<Fork>,
}

/// A copy of a checkpoint got a query id of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Fork {
    /// The id before.
    pub query_id: String,
    /// The last batch that ran under it; what it published is no business of the copy.
    pub last_batch: Option<u64>,
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
            forks: Vec::new(),
        };
        metadata.write(disk, checkpoint)?;
        Ok(metadata)
    }

    /// The same with a query id of its own from the next batch on, durably.
    pub(super) fn fork(
        &self,
        disk: &dyn Disk,
        checkpoint: &Path,
        last_batch: Option<u64>,
    ) -> Result<Self, CheckpointError> {
        let mut metadata = self.clone();
        let query_id = std::mem::replace(&mut metadata.query_id, random_id());
        metadata.forks.push(Fork { query_id, last_batch });
        metadata.write(disk, checkpoint)?;
        Ok(metadata)
    }

    fn write(&self, disk: &dyn Disk, checkpoint: &Path) -> Result<(), CheckpointError> {
        let written = sealed::seal(self)
            .map_err(std::io::Error::other)
            .and_then(|bytes| write_durably(disk, &checkpoint.join(METADATA), &bytes));
        written.map_err(|source| CheckpointError::Disk { path: checkpoint.to_owned(), source })
    }

    /// The id that the segments of the log carry: that of the query that began it.
    pub fn log_id(&self) -> &str {
        self.forks.first().map_or(&self.query_id, |first| &first.query_id)
    }

    /// The id that a batch ran under.
    pub fn query_id_of(&self, batch_id: u64) -> &str {
        let fork = self.forks.iter().find(|fork| fork.last_batch >= Some(batch_id));
        fork.map_or(&self.query_id, |fork| &fork.query_id)
    }

    /// The last batch that ran under another id.
    pub fn forked_after(&self) -> Option<u64> {
        self.forks.last().and_then(|fork| fork.last_batch)
    }
}
