//! What can go wrong with a query's log.

use std::io;
use std::path::PathBuf;

/// Why the log could not be read or written. Except for [`LogError::Write`], nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Bytes that were durable are not what was written.
    #[error(
        "{} is damaged at byte {offset}: {defect}; nothing was cut or changed. Restore the file, or the whole \
         checkpoint, from a copy",
        path.display()
    )]
    Corrupt {
        /// The segment.
        path: PathBuf,
        /// Where in it.
        offset: u64,
        /// What is wrong there.
        defect: &'static str,
    },
    /// A segment between two others is gone.
    #[error(
        "the log misses the records {first} to {last}, which stood in a segment between {} and {}; nothing was changed. \
         Restore it, or the whole checkpoint, from a copy",
        before.display(),
        after.display()
    )]
    MissingSegment {
        /// The segment before the gap.
        before: PathBuf,
        /// The segment after it.
        after: PathBuf,
        /// First record that is missing.
        first: u64,
        /// Last record that is missing.
        last: u64,
    },
    /// The segment was written by a newer version of this program.
    #[error(
        "{} has format version {version}, this program reads up to {supported}: use a newer version of tidemill",
        path.display()
    )]
    VersionUnsupported {
        /// The segment.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The newest that this program reads.
        supported: u32,
    },
    /// The segment was put here from the log of another query, or under another name.
    #[error("{} does not belong to this log: {defect}. Remove it, or restore the checkpoint from a copy", path.display())]
    Foreign {
        /// The segment.
        path: PathBuf,
        /// What does not fit.
        defect: &'static str,
    },
    /// An earlier write or sync failed, so what is durable is unknown until the log is opened again.
    #[error(
        "the log in {} takes no more records, because an earlier write to it failed; mend the cause and start the \
         query again",
        dir.display()
    )]
    Poisoned {
        /// The folder of the log.
        dir: PathBuf,
    },
    /// A write or sync failed; the log is poisoned.
    #[error(
        "the log in {} could not be written: {source}. Nothing committed is lost; mend the cause (a full disk?) and \
         start the query again",
        dir.display()
    )]
    Write {
        /// The folder of the log.
        dir: PathBuf,
        /// The failure.
        source: io::Error,
    },
    /// A reader that a record's section was to come from failed; the log is poisoned, as half a record is in it.
    #[error("a section of a record could not be read: {source}")]
    Section {
        /// The failure.
        source: io::Error,
    },
    /// The disk failed.
    #[error("the log in {} could not be read: {source}", dir.display())]
    Read {
        /// The folder of the log.
        dir: PathBuf,
        /// The failure.
        source: io::Error,
    },
}

impl LogError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Corrupt { .. } | Self::MissingSegment { .. } => "LOG_CORRUPT",
            Self::VersionUnsupported { .. } => "LOG_VERSION_UNSUPPORTED",
            Self::Foreign { .. } => "LOG_FOREIGN",
            Self::Poisoned { .. } => "LOG_POISONED",
            Self::Write { .. } => "LOG_WRITE_FAILED",
            Self::Section { .. } => "LOG_SECTION_FAILED",
            Self::Read { .. } => "LOG_READ_FAILED",
        }
    }
}
