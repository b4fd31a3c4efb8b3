//! The files of the repository that this program carries: `build.rs` lists them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::error::ProjectError;

/// Files of a folder by their paths within it.
pub(super) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// Paths in the repository, with what stands there.
const CARRIED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/carried.rs"));

/// What is carried of a folder of the repository.
pub(super) fn files(folder: &str) -> Files {
    let inside =
        |(path, bytes): &(&str, &[u8])| Some((Path::new(path).strip_prefix(folder).ok()?.to_owned(), bytes.to_vec()));
    CARRIED.iter().filter_map(inside).collect()
}

/// Writes files into a folder.
pub(super) fn write_files(folder: &Path, files: &Files) -> Result<(), ProjectError> {
    for (name, bytes) in files {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(ProjectError::file(parent))?;
        }
        fs::write(&path, bytes).map_err(ProjectError::file(&path))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_carried_and_nothing_that_was_built_or_tests() {
        let names: Vec<_> = CARRIED.iter().map(|(name, _)| *name).collect();
        assert!(names.contains(&"guest-sdk/rust/src/lib.rs") && names.contains(&"wit/world.wit"));
        for part in ["/tests/", "/test/", "_test.go", "/node_modules/", "__pycache__", "/target/"] {
            let carried = names.iter().find(|name| name.starts_with("guest-sdk") && name.contains(part));
            assert_eq!(carried, None, "{part}");
        }
    }
}
