//! What can go wrong with metadata.

/// Why metadata could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum MetaError {
    /// The store does not open.
    #[error("the metadata cannot be opened: {0}. Restore meta.redb from a backup")]
    Open(#[source] Box<redb::Error>),
    /// The store fails while it is used.
    #[error("the metadata cannot be used: {0}")]
    Access(#[source] Box<redb::Error>),
    /// A record does not read.
    #[error("a record of {family} is damaged: {defect}")]
    Record {
        /// Which records.
        family: &'static str,
        /// What is wrong.
        defect: String,
    },
    /// A newer version wrote a record.
    #[error(
        "a record of {family} has version {version}, which this program does not read: use a newer version of tidemill"
    )]
    RecordVersion {
        /// Which records.
        family: &'static str,
        /// Its version.
        version: u8,
    },
}

impl MetaError {
    /// Its stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Open(_) | Self::Access(_) => "META_UNUSABLE",
            Self::Record { .. } => "META_DAMAGED",
            Self::RecordVersion { .. } => "META_VERSION_UNSUPPORTED",
        }
    }

    pub(super) fn open(error: impl Into<redb::Error>) -> Self {
        Self::Open(Box::new(error.into()))
    }

    pub(super) fn access(error: impl Into<redb::Error>) -> Self {
        Self::Access(Box::new(error.into()))
    }
}
