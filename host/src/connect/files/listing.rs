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

/// All files in the directory that are wanted, by (modification time, name). Names that begin with `.` or `_` are left
/// out, by which programs hide files that are not whole yet; so are directories.
///
/// A file that vanishes meanwhile is not there.
pub(super) fn list(directory: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Candidate>, ReadError> {
    let unreadable = |error| ReadError::unreadable(directory, error);
    let mut candidates = Vec::new();
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
                candidates.push(Candidate { modified_ns, name });
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(ReadError::unreadable(&entry.path(), error)),
        }
    }
    candidates.sort_unstable();
    Ok(candidates)
}

/// Nothing at a path is an error of its own.
pub(super) fn not_found_or(path: &Path, error: io::Error) -> ReadError {
    match error.kind() {
        io::ErrorKind::NotFound => ReadError::NotFound { path: path.to_owned() },
        _ => ReadError::unreadable(path, error),
    }
}
