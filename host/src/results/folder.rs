//! The folder as its reader has it: a descriptor, through which nothing outside can be reached.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::error::ResultsError;
use super::{segment_name, segment_number};

/// A folder with more segments is none that a sink has written: 400 GiB of them.
const SEGMENTS_MAX: usize = 100_000;
/// As [`SEGMENTS_MAX`], with other names counted in.
const NAMES_MAX: usize = 2 * SEGMENTS_MAX;

/// Opens a folder below another one, for [`super::ResultsReader`]; no link on the way is followed.
///
/// # Errors
/// What the system says.
pub fn open_folder(root: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat2(root, path, flags, Mode::empty(), RESOLVE)?)
}

const RESOLVE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

pub(super) struct Folder(OwnedFd);

impl Folder {
    pub(super) fn new(folder: OwnedFd) -> Self {
        Self(folder)
    }

    /// Numbers of the segments, ascending.
    pub(super) fn segments(&self) -> Result<Vec<u64>, ResultsError> {
        let unreadable = |error: Errno| ResultsError::unreadable("the folder", error.into());
        let mut segments = Vec::new();
        for (count, entry) in Dir::read_from(self.0.as_fd()).map_err(unreadable)?.enumerate() {
            let entry = entry.map_err(unreadable)?;
            if count >= NAMES_MAX || segments.len() >= SEGMENTS_MAX {
                return Err(ResultsError::corrupt("the folder", 0, "it holds more files than a query writes"));
            }
            segments.extend(entry.file_name().to_str().ok().and_then(segment_number));
        }
        segments.sort_unstable();
        Ok(segments)
    }

    /// Opens a segment. None: there is none of this number.
    pub(super) fn open(&self, number: u64) -> Result<Option<File>, ResultsError> {
        let name = segment_name(number);
        let not_a_file = || ResultsError::corrupt(&name, 0, "it is no regular file");
        // A device may do something when it is opened, so that is looked at before and after.
        let before = rustix::fs::statat(&self.0, &name, AtFlags::SYMLINK_NOFOLLOW);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = before.and_then(|stat| match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => rustix::fs::openat2(&self.0, &name, flags, Mode::empty(), RESOLVE).map(Some),
            _ => Ok(None),
        });
        match opened {
            Ok(Some(file)) => {
                let stat = rustix::fs::fstat(&file).map_err(|error| ResultsError::unreadable(&name, error.into()))?;
                let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
                if is_file { Ok(Some(file.into())) } else { Err(not_a_file()) }
            }
            Ok(None) => Err(not_a_file()),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(ResultsError::unreadable(&name, error.into())),
        }
    }

    /// Bytes of a segment; 0 if there is none of this number.
    pub(super) fn bytes(&self, number: u64) -> Result<u64, ResultsError> {
        match rustix::fs::statat(&self.0, segment_name(number), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(u64::try_from(stat.st_size).unwrap_or(0)),
            Err(Errno::NOENT) => Ok(0),
            Err(error) => Err(ResultsError::unreadable(&segment_name(number), error.into())),
        }
    }

    /// Removes a segment, durably.
    pub(super) fn remove(&self, number: u64) -> Result<(), ResultsError> {
        let name = segment_name(number);
        let removed = rustix::fs::unlinkat(&self.0, &name, AtFlags::empty()).and_then(|()| rustix::fs::fsync(&self.0));
        removed.map_err(|error| ResultsError::Remove { name, source: error.into() })
    }
}
