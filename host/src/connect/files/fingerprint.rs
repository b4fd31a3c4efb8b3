//! By what a file is known again.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::listing::not_found_or;
use crate::connect::error::ReadError;

/// Bytes at each end of a file that are hashed: enough to notice another file, little enough to cost nothing.
const ENDS_BYTES: u64 = 64 << 10;

/// Size, modification time and a hash of both ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    #[serde(flatten)]
    pub(super) stamp: Stamp,
    /// XXH3-128 of the first and the last 64 KiB, in hex; of a file up to 128 KiB, of all of it.
    pub(super) ends: String,
}

/// What the file system says about a file without opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Stamp {
    /// Nanoseconds since the epoch.
    pub(super) modified_ns: i64,
    /// Bytes.
    pub(super) size: u64,
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> io::Result<Self> {
        let modified = metadata.modified()?;
        let modified_ns = match modified.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
        };
        Ok(Self { modified_ns, size: metadata.len() })
    }

    /// What differs, for a person. None: nothing.
    pub(super) fn difference(&self, now: &Self) -> Option<String> {
        if self.size != now.size {
            Some(format!("it had {} bytes and has {}", self.size, now.size))
        } else if self.modified_ns != now.modified_ns {
            Some("its modification time is another".to_owned())
        } else {
            None
        }
    }
}

impl Fingerprint {
    /// Takes the fingerprint of an open file; its position is at the start afterwards.
    pub(super) fn of(file: &mut File) -> io::Result<Self> {
        let stamp = Stamp::of(&file.metadata()?)?;
        let mut hash = Xxh3::new();
        file.seek(SeekFrom::Start(0))?;
        hash_bytes(file, ENDS_BYTES, &mut hash)?;
        file.seek(SeekFrom::Start(stamp.size.saturating_sub(ENDS_BYTES).max(ENDS_BYTES)))?;
        hash_bytes(file, ENDS_BYTES, &mut hash)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(Self { stamp, ends: format!("{:032x}", hash.digest128()) })
    }

    /// Takes the fingerprint of the file at a path.
    pub(super) fn of_path(path: &Path) -> Result<Self, ReadError> {
        let mut file = File::open(path).map_err(|error| not_found_or(path, error))?;
        Self::of(&mut file).map_err(|error| ReadError::unreadable(path, error))
    }

    /// What differs, for a person. None: nothing.
    pub(super) fn difference(&self, now: &Self) -> Option<String> {
        let bytes = || (self.ends != now.ends).then(|| "its first or last 64 KiB are other bytes".to_owned());
        self.stamp.difference(&now.stamp).or_else(bytes)
    }
}

/// Opens a file of which rows up to `row` are committed, if it is still the same.
pub(super) fn open_known(path: &Path, fingerprint: &Fingerprint, row: u64) -> Result<File, ReadError> {
    let mut file = File::open(path).map_err(|error| missing_or(path, row, error))?;
    let now = Fingerprint::of(&mut file).map_err(|error| ReadError::unreadable(path, error))?;
    match fingerprint.difference(&now) {
        None => Ok(file),
        Some(detail) => Err(ReadError::Changed { path: path.to_owned(), row, detail }),
    }
}

/// The same, by what the file system says only.
pub(super) fn check_stamp(path: &Path, stamp: &Stamp, row: u64) -> Result<(), ReadError> {
    let metadata = fs::metadata(path).map_err(|error| missing_or(path, row, error))?;
    let now = Stamp::of(&metadata).map_err(|error| ReadError::unreadable(path, error))?;
    match stamp.difference(&now) {
        None => Ok(()),
        Some(detail) => Err(ReadError::Changed { path: path.to_owned(), row, detail }),
    }
}

pub(super) fn missing_or(path: &Path, row: u64, error: io::Error) -> ReadError {
    match error.kind() {
        io::ErrorKind::NotFound => ReadError::Missing { path: path.to_owned(), row: row + 1 },
        _ => ReadError::unreadable(path, error),
    }
}

fn hash_bytes(file: &mut File, bytes_max: u64, hash: &mut Xxh3) -> io::Result<()> {
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    hash.update(&bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_at_either_end_or_in_size_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let of = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            let mut fingerprint = Fingerprint::of(&mut File::open(&path).unwrap()).unwrap();
            fingerprint.stamp.modified_ns = 0;
            fingerprint
        };
        for size in [1_usize, 70_000, 300_000] {
            let bytes = vec![7_u8; size];
            let before = of(&bytes);
            assert_eq!(before.difference(&of(&bytes)), None);
            for at in [0, size - 1] {
                let mut changed = bytes.clone();
                changed[at] = 8;
                assert!(before.difference(&of(&changed)).is_some(), "{size} {at}");
            }
            assert!(before.difference(&of(&bytes[..size - 1])).is_some());
        }
    }
}
