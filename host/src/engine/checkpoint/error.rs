//! What can go wrong with a checkpoint's folder.

use std::io;
use std::path::PathBuf;

/// Why a checkpoint could not be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// Another process has it open.
    #[error(
        "the checkpoint {} is in use by another process. Wait until that ends or stop it, or give another checkpoint",
        path.display()
    )]
    InUse {
        /// The checkpoint.
        path: PathBuf,
    },
    /// The folder holds something else.
    #[error(
        "{} is no checkpoint and not empty (it has {found:?}); nothing was changed. Give an empty or a new folder",
        path.display()
    )]
    NotEmpty {
        /// The folder.
        path: PathBuf,
        /// A name in it.
        found: String,
    },
    /// There is no checkpoint to look at.
    #[error("there is no checkpoint in {}: it has no metadata.json. Is the path right?", path.display())]
    NotFound {
        /// The folder.
        path: PathBuf,
    },
    /// A file of the checkpoint was written by a newer version of this program.
    #[error(
        "{} has format version {version}, this program reads up to {supported}: use a newer version of tidemill",
        path.display()
    )]
    VersionUnsupported {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u64,
        /// The newest that this program reads.
        supported: u64,
    },
    /// A file of the checkpoint is not as it was written.
    #[error("{} is damaged: {defect}; nothing was changed. Restore it, or the whole checkpoint, from a copy", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        defect: String,
    },
    /// The checkpoint belongs to a query with another name.
    #[error(
        "the checkpoint {} belongs to the query {name:?}, not to {wanted:?}. Give that query's own checkpoint, or a new \
         folder",
        path.display()
    )]
    NameMismatch {
        /// The checkpoint.
        path: PathBuf,
        /// The name in it.
        name: String,
        /// The name asked for.
        wanted: String,
    },
    /// A snapshot is not as it was written.
    #[error("the snapshot {} is damaged: {defect}. An older one is used if there is one", path.display())]
    SnapshotDamaged {
        /// The snapshot.
        path: PathBuf,
        /// What is wrong with it.
        defect: String,
    },
    /// The disk failed.
    #[error("the checkpoint {}: {source}. Nothing committed is lost; mend the cause and start again", path.display())]
    Disk {
        /// The checkpoint, or the folder in it.
        path: PathBuf,
        /// The failure.
        source: io::Error,
    },
}

impl CheckpointError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InUse { .. } => "CHECKPOINT_IN_USE",
            Self::NotEmpty { .. } => "CHECKPOINT_NOT_EMPTY",
            Self::NotFound { .. } => "CHECKPOINT_NOT_FOUND",
            Self::VersionUnsupported { .. } => "CHECKPOINT_VERSION_UNSUPPORTED",
            Self::Damaged { .. } => "CHECKPOINT_DAMAGED",
            Self::NameMismatch { .. } => "CHECKPOINT_NAME_MISMATCH",
            Self::SnapshotDamaged { .. } => "SNAPSHOT_DAMAGED",
            Self::Disk { .. } => "CHECKPOINT_DISK_FAILED",
        }
    }
}
