//! What can go wrong with the data folder.

use std::io;
use std::path::PathBuf;

/// Why the data folder could not be used.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// Another process has it.
    #[error(
        "another server runs on {}. Use that one, stop it first, or give another folder: tidemill serve --data OTHER",
        root.display()
    )]
    AlreadyRunning {
        /// The folder.
        root: PathBuf,
    },
    /// There is no data folder.
    #[error("there is no data folder in {}: no server has run on it. Is the path right?", root.display())]
    NotFound {
        /// The folder.
        root: PathBuf,
    },
    /// The folder holds something else.
    #[error(
        "{} is not empty and no data folder of a server (it has {found:?}); nothing was changed. Give an empty or a new \
         folder with --data",
        root.display()
    )]
    NotEmpty {
        /// The folder.
        root: PathBuf,
        /// A name in it.
        found: String,
    },
    /// A newer version wrote it.
    #[error(
        "{} has format {format}, written by tidemill {created_by}; this program reads up to {supported}. Start that \
         version, or a newer one",
        root.display()
    )]
    VersionUnsupported {
        /// The folder.
        root: PathBuf,
        /// Its format.
        format: u64,
        /// Who made it.
        created_by: String,
        /// The newest that this program reads.
        supported: u64,
    },
    /// A file in it is not as it was written.
    #[error("{} is damaged: {defect}. Restore it from a backup", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        defect: &'static str,
    },
    /// The disk said no.
    #[error("the data folder cannot be used: {0}")]
    Disk(#[source] io::Error),
}

impl DataError {
    /// Its stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::AlreadyRunning { .. } => "SERVER_ALREADY_RUNNING",
            Self::NotFound { .. } => "DATA_NOT_FOUND",
            Self::NotEmpty { .. } => "DATA_NOT_EMPTY",
            Self::VersionUnsupported { .. } => "DATA_VERSION_UNSUPPORTED",
            Self::Damaged { .. } => "DATA_DAMAGED",
            Self::Disk(_) => "DATA_UNUSABLE",
        }
    }
}
