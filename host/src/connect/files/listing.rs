//! The files of a directory, in the order in which they are read.

use std::fs;
use std::io;
use std::path::Path;

use super::fingerprint::Stamp;
use crate::connect::error::ReadError;

/// A file that is there to be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    /// Comes first in the order: older files are read first.
    pub(super) modified_ns: i64,
    /// Relative to the directory.
    pub(super) name: String,
}

/// What a directory holds.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// Files, in the order in which they are read.
    pub(super) files: Vec<Candidate>,
    /// Names of what is neither a file nor a directory, such as a link to nothing.
    pub(super) others: Vec<String>,
}

/// What is in the directory and wanted; files by (modification time, name). Names that begin with `.` or `_` are left
/// out, by which programs hide files that are not whole yet; so are directories.
///
/// A file that vanishes meanwhile is not there.
pub(super) fn list(directory: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Entries, ReadError> {
    let unreadable = |error| ReadError::unreadable(directory, error);
    let mut entries = Entries::default();
    for entry in fs::read_dir(directory).map_err(|error| not_found_or(directory, error))? {
        let entry = entry.map_err(unreadable)?;
        let name = match entry.file_name().into_string() {
            Ok(name) => name,
            Err(name) => return Err(ReadError::NameNotUnicode { path: directory.join(name) }),
        };
        if name.starts_with(['.', '_']) || !wanted(&name) {
            continue;
        }
        // Follows symbolic links, which are as good as files.
        match fs::metadata(entry.path()) {
            Ok(metadata) if metadata.is_file() => {
                let modified_ns = Stamp::of(&metadata).map_err(unreadable)?.modified_ns;
                entries.files.push(Candidate { modified_ns, name });
            }
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => entries.others.push(name),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if entry.path().is_symlink() {
                    entries.others.push(name);
                }
            }
            Err(error) => return Err(ReadError::unreadable(&entry.path(), error)),
        }
    }
    entries.files.sort_unstable();
    Ok(entries)
}

/// Nothing at a path is an error of its own.
pub(super) fn not_found_or(path: &Path, error: io::Error) -> ReadError {
    match error.kind() {
        io::ErrorKind::NotFound => ReadError::NotFound { path: path.to_owned() },
        _ => ReadError::unreadable(path, error),
    }
}
