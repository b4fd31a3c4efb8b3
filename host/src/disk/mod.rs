//! The durable I/O of the host: everything that must survive a power loss goes through [`Disk`].
//!
//! Its one job is to make each durable step a call that can be seen from outside, so that a test ([`testing`]) records
//! the steps of a run and rebuilds the disk as a power loss at any point may leave it.
//!
//! Invariants:
//! - Nothing is durable until it is synced: a file's bytes by [`DiskFile::sync`], its name by [`Disk::sync_dir`] of the
//!   folder that holds it. Neither implies the other.
//! - Files are never written in place: they are created new, appended to, renamed and removed.
//! - The last name of a path is never followed if it is a symbolic link.
//!
//! It knows nothing of logs, batches or checkpoints.

use std::io::{self, Read, Seek, Write};
use std::path::Path;

mod durable;
pub(crate) mod fields;
mod real;
pub mod testing;

pub use durable::{create_dir_durably, write_durably};
pub use real::RealDisk;

/// What the host does to files that must survive. Errors name the operation and the path, and keep the
/// [`io::ErrorKind`] of the system.
pub trait Disk: Send + Sync + std::fmt::Debug {
    /// Creates a file that must not exist, open for writing.
    ///
    /// # Errors
    /// `AlreadyExists`, or what the system says.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file that must exist; writes go to its end.
    ///
    /// # Errors
    /// `NotFound`, or what the system says.
    fn open_append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;

    /// The whole content of a file, for files known to be small.
    ///
    /// # Errors
    /// What the system says.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;

    /// Opens a file for reading.
    ///
    /// # Errors
    /// What the system says.
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>>;

    /// What stands in a folder, sorted by name.
    ///
    /// # Errors
    /// What the system says.
    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>>;

    /// Whether something stands at this path, be it a file, a folder or a symbolic link.
    ///
    /// # Errors
    /// What the system says, except that nothing is there.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Creates a folder in an existing one; a folder that exists is fine.
    ///
    /// # Errors
    /// What the system says.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Gives a file a second name on the same file system; that name must be free.
    ///
    /// # Errors
    /// What the system says.
    fn hard_link(&self, existing: &Path, new: &Path) -> io::Result<()>;

    /// Renames a file or folder within one file system; a file that has the new name is replaced.
    ///
    /// # Errors
    /// What the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file, or a symbolic link itself.
    ///
    /// # Errors
    /// What the system says.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes a folder and everything in it, without following symbolic links.
    ///
    /// # Errors
    /// What the system says; a part may be gone then.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable: what was created, renamed and removed in it.
    ///
    /// # Errors
    /// What the system says.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes every file and folder in a folder durable, and the folder itself, though not its name in its parent: for
    /// files that something else wrote.
    ///
    /// # Errors
    /// What the system says.
    fn sync_tree(&self, dir: &Path) -> io::Result<()>;
}

/// A file open for writing at its end.
pub trait DiskFile: Write + Send {
    /// Makes every byte written so far durable.
    ///
    /// # Errors
    /// What the system says. Whether the bytes are durable is unknown then, and a second call proves nothing.
    fn sync(&mut self) -> io::Result<()>;
}

/// What can be read at any position.
pub trait ReadSeek: Read + Seek + Send {}

impl<T: Read + Seek + Send> ReadSeek for T {}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name; what is no Unicode in it is replaced, so such an entry can be counted but not opened.
    pub name: String,
    /// Whether it is a folder. A symbolic link never is.
    pub is_dir: bool,
    /// Bytes of a file.
    pub len: u64,
    /// The same for two names of one file, and for no two files of one file system that exist at the same time.
    pub id: u64,
}
