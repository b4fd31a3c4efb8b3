//! The folder of the compile cache: files that this host alone writes, each with a checksum beside it, bounded in size.
//!
//! Any number of processes share it without a lock: files are replaced by renaming, so a reader sees a whole one or none,
//! and one whose checksum is missing or another's counts as none. The time of change of a file is that of its last use.

use std::fs::{self, DirBuilder, DirEntry};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, utimensat};
use xxhash_rust::xxh3::xxh3_128;

use super::super::error::ComponentError;

/// What the name of a checksum's file has after that of the file it belongs to.
const CHECKSUM: &str = ".xxh3";

#[derive(Debug, Clone)]
pub(super) struct Folder {
    path: PathBuf,
    bytes_max: u64,
}

impl Folder {
    /// Opens the folder, made if it is missing.
    pub(super) fn open(path: &Path, bytes_max: u64) -> Result<Self, ComponentError> {
        let unusable = |reason: String| ComponentError::Cache { folder: path.to_owned(), reason };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(|e| unusable(e.to_string()))?;
        let metadata = fs::metadata(path).map_err(|e| unusable(e.to_string()))?;
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(unusable(
                "it belongs to another user, who could put native code there; choose another folder".into(),
            ));
        }
        if metadata.mode() & 0o077 != 0 {
            return Err(unusable("other users may enter it; run `chmod 700` on it or choose another folder".into()));
        }
        Ok(Self { path: path.to_owned(), bytes_max })
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// What a file holds, if it is there and sound. One that is not sound is removed.
    pub(super) fn read(&self, name: &str) -> Option<Vec<u8>> {
        let path = self.file(name);
        let expected = fs::read_to_string(checksum_file(&path)).ok()?;
        let bytes = fs::read(&path).ok()?;
        if checksum(&bytes) == expected {
            return Some(bytes);
        }
        tracing::warn!(file = %path.display(), "a file of the compile cache is damaged; what it held is compiled again");
        let _ = fs::remove_file(&path);
        None
    }

    /// Keeps a file, and removes those that were not used for longest if there are too many now.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.file(name);
        self.replace(&path, bytes)?;
        self.replace(&checksum_file(&path), checksum(bytes).as_bytes())?;
        self.evict();
        Ok(())
    }

    /// Says that a file was used.
    pub(super) fn used(&self, name: &str) {
        let at = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
        let now = Timestamps { last_access: at(UTIME_OMIT), last_modification: at(UTIME_NOW) };
        // A file that another process has just removed needs no time.
        let _ = utimensat(CWD, self.file(name), &now, AtFlags::empty());
    }

    /// Names of the files that end so, and their sizes, last used first.
    pub(super) fn names(&self, ending: &str) -> Vec<(String, u64)> {
        let mut entries = self.entries();
        entries.retain(|entry| entry.name.ends_with(ending));
        entries.reverse();
        entries.into_iter().map(|entry| (entry.name, entry.bytes)).collect()
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.path)?;
        file.write_all(bytes)?;
        file.persist(path).map_err(|e| e.error)?;
        Ok(())
    }

    /// Removes files until the rest fits, but never the one that was used last.
    fn evict(&self) {
        let entries = self.entries();
        let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
        let Some((_, others)) = entries.split_last() else { return };
        for entry in others {
            if bytes <= self.bytes_max {
                return;
            }
            let path = self.file(&entry.name);
            // What is mapped into a process stays there.
            let _ = fs::remove_file(&path);
            let _ = fs::remove_file(checksum_file(&path));
            bytes = bytes.saturating_sub(entry.bytes);
        }
    }

    /// All files but checksums, also those that a process which was killed has left half written; last used last.
    fn entries(&self) -> Vec<Entry> {
        let Ok(files) = fs::read_dir(&self.path) else { return Vec::new() };
        let mut entries: Vec<_> = files.filter_map(|file| Entry::of(&file.ok()?)).collect();
        entries.sort();
        entries
    }
}

/// A file, in order of its last use.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    last_used: (i64, i64),
    name: String,
    bytes: u64,
}

impl Entry {
    fn of(file: &DirEntry) -> Option<Self> {
        let name = file.file_name().into_string().ok()?;
        let metadata = file.metadata().ok()?;
        let is_entry = metadata.is_file() && !name.ends_with(CHECKSUM);
        is_entry.then(|| Self { last_used: (metadata.mtime(), metadata.mtime_nsec()), name, bytes: metadata.len() })
    }
}

fn checksum_file(path: &Path) -> PathBuf {
    let mut file = path.as_os_str().to_owned();
    file.push(CHECKSUM);
    file.into()
}

fn checksum(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn folder(bytes_max: u64) -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(&place.path().join("cache"), bytes_max).unwrap();
        (place, folder)
    }

    /// Times of change are as coarse as the system's clock, so the tests set them.
    fn last_used(folder: &Folder, name: &str, second: i64) {
        let at = Timespec { tv_sec: second, tv_nsec: 0 };
        let times = Timestamps { last_access: at, last_modification: at };
        utimensat(CWD, folder.file(name), &times, AtFlags::empty()).unwrap();
    }

    fn names(folder: &Folder) -> Vec<String> {
        folder.names("").into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn what_was_written_is_read() {
        let (_place, folder) = folder(100);
        folder.write("a.x", b"content").unwrap();
        assert_eq!(folder.read("a.x").unwrap(), b"content");
        assert_eq!(folder.read("b.x"), None);
    }

    #[test]
    fn a_file_that_was_changed_or_cut_is_never_read_and_goes() {
        let (_place, folder) = folder(100);
        for damage in [&b"contenT"[..], b"conten", b""] {
            folder.write("a.x", b"content").unwrap();
            fs::write(folder.file("a.x"), damage).unwrap();
            assert_eq!(folder.read("a.x"), None);
            assert!(!folder.file("a.x").exists());
        }
    }

    #[test]
    fn a_file_without_a_checksum_is_never_read() {
        let (_place, folder) = folder(100);
        fs::write(folder.file("a.x"), b"put there by hand").unwrap();
        assert_eq!(folder.read("a.x"), None);
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let (_place, folder) = folder(30);
        for (name, second) in [("a.x", 1), ("b.x", 2), ("c.x", 3)] {
            folder.write(name, &[0; 10]).unwrap();
            last_used(&folder, name, second);
        }
        folder.used("a.x");

        folder.write("d.x", &[0; 10]).unwrap();

        let mut left = names(&folder);
        left.sort();
        assert_eq!(left, ["a.x", "c.x", "d.x"]);
        assert!(!checksum_file(&folder.file("b.x")).exists());
    }

    #[test]
    fn a_file_that_is_larger_than_the_bound_stays_alone() {
        let (_place, folder) = folder(30);
        folder.write("a.x", &[0; 10]).unwrap();
        last_used(&folder, "a.x", 1);
        folder.write("b.x", &[0; 100]).unwrap();
        assert_eq!(names(&folder), ["b.x"]);
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let error = Folder::open(folder.path(), 100).unwrap_err();
        assert_eq!(error.code(), "COMPILE_CACHE_UNUSABLE");
    }
}
