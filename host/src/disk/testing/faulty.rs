//! A disk that fails, or lies, on demand.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::{Disk, DiskFile, Entry, ReadSeek};

/// What a sync is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncKind {
    /// The bytes of a file. Its path is the one that it was created with, which may be a hidden one.
    File,
    /// The names in a folder.
    Folder,
    /// A folder with all below it.
    Tree,
}

/// How an operation fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// No space is left; half of what was to be written is there. Only this operation fails.
    DiskFull,
    /// An error of the device; nothing was done. Only this operation fails.
    DeviceError,
    /// The process was killed: nothing was done, and nothing is done ever after.
    Killed,
}

/// Another disk, with faults. Operations are counted from 0 over everything that changes the disk or syncs it.
pub struct FaultyDisk {
    inner: Arc<dyn Disk>,
    faults: Arc<Mutex<Faults>>,
}

type DropSync = Box<dyn Fn(SyncKind, &Path) -> bool + Send>;

#[derive(Default)]
struct Faults {
    operations: usize,
    failure: Option<(usize, Failure)>,
    drop_sync: Option<DropSync>,
}

impl FaultyDisk {
    /// Without faults, until some are asked for.
    pub fn over(inner: Arc<dyn Disk>) -> Self {
        Self { inner, faults: Arc::default() }
    }

    /// From now on, every sync that matches does nothing and says that it did.
    pub fn drop_syncs(&self, matching: impl Fn(SyncKind, &Path) -> bool + Send + 'static) {
        lock(&self.faults).drop_sync = Some(Box::new(matching));
    }

    /// Makes the operation with this number fail. It replaces the failure asked for before.
    pub fn fail_at(&self, operation: usize, failure: Failure) {
        lock(&self.faults).failure = Some((operation, failure));
    }

    /// How many operations there have been.
    pub fn operations(&self) -> usize {
        lock(&self.faults).operations
    }

    fn begin(&self) -> io::Result<()> {
        lock(&self.faults).begin()
    }
}

impl fmt::Debug for FaultyDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults = lock(&self.faults);
        let (operations, failure) = (faults.operations, faults.failure);
        f.debug_struct("FaultyDisk")
            .field("inner", &self.inner)
            .field("operations", &operations)
            .field("failure", &failure)
            .finish_non_exhaustive()
    }
}

impl Faults {
    fn begin(&mut self) -> io::Result<()> {
        let operation = self.operations;
        self.operations += 1;
        match self.failure {
            Some((at, Failure::DiskFull)) if at == operation => Err(io::Error::from(io::ErrorKind::StorageFull)),
            Some((at, Failure::DeviceError)) if at == operation => Err(io::Error::other("device error")),
            Some((at, Failure::Killed)) if at <= operation => Err(io::Error::other("the process was killed")),
            _ => Ok(()),
        }
    }

    fn drops(&self, kind: SyncKind, path: &Path) -> bool {
        self.drop_sync.as_ref().is_some_and(|matching| matching(kind, path))
    }
}

impl Disk for FaultyDisk {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.begin()?;
        let inner = self.inner.create_new(path)?;
        Ok(Box::new(FaultyFile { inner, path: path.to_owned(), faults: Arc::clone(&self.faults) }))
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        self.begin()?;
        let inner = self.inner.open_append(path)?;
        Ok(Box::new(FaultyFile { inner, path: path.to_owned(), faults: Arc::clone(&self.faults) }))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.inner.read(path)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>> {
        self.inner.open(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        self.inner.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.inner.exists(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.begin()?;
        self.inner.create_dir(path)
    }

    fn hard_link(&self, existing: &Path, new: &Path) -> io::Result<()> {
        self.begin()?;
        self.inner.hard_link(existing, new)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.begin()?;
        self.inner.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.begin()?;
        self.inner.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        self.begin()?;
        self.inner.remove_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.begin()?;
        if lock(&self.faults).drops(SyncKind::Folder, path) { Ok(()) } else { self.inner.sync_dir(path) }
    }

    fn sync_tree(&self, dir: &Path) -> io::Result<()> {
        self.begin()?;
        if lock(&self.faults).drops(SyncKind::Tree, dir) { Ok(()) } else { self.inner.sync_tree(dir) }
    }
}

struct FaultyFile {
    inner: Box<dyn DiskFile>,
    path: PathBuf,
    faults: Arc<Mutex<Faults>>,
}

impl Write for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let begun = lock(&self.faults).begin();
        if let Err(error) = begun {
            if error.kind() == io::ErrorKind::StorageFull {
                self.inner.write_all(bytes.get(..bytes.len() / 2).unwrap_or_default())?;
            }
            return Err(error);
        }
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl DiskFile for FaultyFile {
    fn sync(&mut self) -> io::Result<()> {
        let faults = lock(&self.faults);
        let dropped = faults.drops(SyncKind::File, &self.path);
        drop(faults);
        lock(&self.faults).begin()?;
        if dropped { Ok(()) } else { self.inner.sync() }
    }
}

fn lock(faults: &Mutex<Faults>) -> MutexGuard<'_, Faults> {
    faults.lock().unwrap_or_else(PoisonError::into_inner)
}
