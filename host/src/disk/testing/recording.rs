//! A disk that remembers every step.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::super::{Disk, DiskFile, Entry, ReadSeek, RealDisk};
use super::FaultyDisk;
use super::crash::{self, Loss};

/// The disk of the machine, with every change recorded in order.
///
/// Each of its roots is a file system of its own: nothing is renamed or linked from one to another, and a change outside
/// of them is refused. What stands in them at the start counts as durable. Files that something else writes (`RocksDB`)
/// are seen when their folder is synced as a tree. Syncs are recorded and not passed on: the scratch folder itself need not
/// survive.
#[derive(Debug)]
pub struct RecordingDisk {
    roots: Vec<PathBuf>,
    initial: Vec<Tree>,
    record: Arc<Mutex<Vec<Operation>>>,
}

impl RecordingDisk {
    /// Records what happens below these existing folders.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn over(roots: &[&Path]) -> io::Result<Self> {
        Ok(Self {
            roots: roots.iter().map(|root| (*root).to_owned()).collect(),
            initial: roots.iter().map(|root| tree(root, Path::new(""))).collect::<io::Result<_>>()?,
            record: Arc::default(),
        })
    }

    /// Records what happens below one folder, beneath a disk that fails on demand.
    ///
    /// # Errors
    /// As [`Self::over`].
    pub fn beneath_faults(root: &Path) -> io::Result<(Arc<Self>, FaultyDisk)> {
        let recording = Arc::new(Self::over(&[root])?);
        let faulty = FaultyDisk::over(Arc::<Self>::clone(&recording));
        Ok((recording, faulty))
    }

    /// How many operations have been recorded: the points of a crash are 0 to this.
    pub fn operations(&self) -> usize {
        self.lock().len()
    }

    /// The operations just before a point of a crash, for the message of a test that fails.
    pub fn describe(&self, point: usize) -> String {
        let record = self.lock();
        let before = record.iter().enumerate().take(point).skip(point.saturating_sub(8));
        before.map(|(index, operation)| format!("{index}: {operation:?}\n")).collect()
    }

    /// How many of the operations recorded so far were syncs of a file, a folder or a tree.
    pub fn syncs(&self) -> usize {
        self.lock().iter().filter(|operation| operation.is_sync()).count()
    }

    /// Rebuilds the one root as a power loss at every operation from `from` on may leave it, see [`Loss::at`], and gives the
    /// first outcome in which `broken`, told the operation and the rebuilt root, finds something wrong.
    ///
    /// # Errors
    /// Scratch space that cannot be written.
    pub fn first_broken(
        &self,
        from: usize,
        random: usize,
        broken: impl Fn(usize, &Path) -> Option<String>,
    ) -> io::Result<Option<String>> {
        for point in from..=self.operations() {
            for loss in Loss::at(point, random) {
                let rebuilt = tempfile::TempDir::new()?;
                self.rebuild(point, loss, &[rebuilt.path()])?;
                if let Some(broken) = broken(point, rebuilt.path()) {
                    let before = self.describe(point);
                    return Ok(Some(format!("{loss:?} at operation {point}: {broken}\n{before}")));
                }
            }
        }
        Ok(None)
    }

    /// Builds the disk as a power loss after the first `point` operations leaves it, each root in a folder of `into`
    /// that is created.
    ///
    /// # Errors
    /// A folder of `into` that cannot be written.
    pub fn rebuild(&self, point: usize, loss: Loss, into: &[&Path]) -> io::Result<()> {
        if into.len() != self.roots.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "each root needs a folder to be rebuilt in"));
        }
        let record = self.lock();
        crash::rebuild(&self.initial, record.get(..point).unwrap_or(&record), loss, into)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Operation>> {
        lock(&self.record)
    }

    fn place(&self, path: &Path) -> io::Result<Place> {
        let mut places = self
            .roots
            .iter()
            .enumerate()
            .filter_map(|(root, folder)| Some(Place { root, path: path.strip_prefix(folder).ok()?.to_owned() }));
        places.next().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{} is outside of what is recorded", path.display()))
        })
    }

    fn places_on_one_root(&self, from: &Path, to: &Path) -> io::Result<(Place, Place)> {
        let (from, to) = (self.place(from)?, self.place(to)?);
        if from.root == to.root {
            Ok((from, to))
        } else {
            Err(io::Error::new(io::ErrorKind::CrossesDevices, format!("{from:?} and {to:?} are on two file systems")))
        }
    }

    /// Does something on the real disk and records it, in one order for all threads.
    fn done<T>(
        &self,
        what: io::Result<T>,
        mut record: MutexGuard<'_, Vec<Operation>>,
        as_: Operation,
    ) -> io::Result<T> {
        let done = what?;
        record.push(as_);
        Ok(done)
    }
}

impl Disk for RecordingDisk {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let at = self.place(path)?;
        let mut record = self.lock();
        let inner = RealDisk.create_new(path)?;
        let file = record.len() as u64;
        record.push(Operation::Create { file, at });
        Ok(Box::new(RecordingFile { inner, file, record: Arc::clone(&self.record) }))
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let at = self.place(path)?;
        let mut record = self.lock();
        let inner = RealDisk.open_append(path)?;
        let file = record.len() as u64;
        record.push(Operation::Open { file, at });
        Ok(Box::new(RecordingFile { inner, file, record: Arc::clone(&self.record) }))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        RealDisk.read(path)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>> {
        RealDisk.open(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        RealDisk.list(dir)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        RealDisk.exists(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let at = self.place(path)?;
        let record = self.lock();
        self.done(RealDisk.create_dir(path), record, Operation::CreateDir { at })
    }

    fn hard_link(&self, existing: &Path, new: &Path) -> io::Result<()> {
        let (from, to) = self.places_on_one_root(existing, new)?;
        let record = self.lock();
        self.done(RealDisk.hard_link(existing, new), record, Operation::HardLink { from, to })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (source, target) = self.places_on_one_root(from, to)?;
        let record = self.lock();
        self.done(RealDisk.rename(from, to), record, Operation::Rename { from: source, to: target })
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let at = self.place(path)?;
        let record = self.lock();
        self.done(RealDisk.remove_file(path), record, Operation::Remove { at })
    }

    /// Name by name, as the system does it, so that a crash can come in between.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        for entry in self.list(path)? {
            let path = path.join(&entry.name);
            if entry.is_dir {
                self.remove_dir_all(&path)?;
            } else {
                self.remove_file(&path)?;
            }
        }
        let at = self.place(path)?;
        let record = self.lock();
        self.done(fs::remove_dir(path), record, Operation::Remove { at })
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let at = self.place(path)?;
        let record = self.lock();
        self.done(fs::read_dir(path).map(|_| ()), record, Operation::SyncDir { at })
    }

    fn sync_tree(&self, dir: &Path) -> io::Result<()> {
        let at = self.place(dir)?;
        let record = self.lock();
        let tree = tree(dir, &at.path)?;
        self.done(Ok(()), record, Operation::SyncTree { at, tree })
    }
}

struct RecordingFile {
    inner: Box<dyn DiskFile>,
    file: u64,
    record: Arc<Mutex<Vec<Operation>>>,
}

impl Write for RecordingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut record = lock(&self.record);
        let written = self.inner.write(bytes)?;
        record.push(Operation::Append { file: self.file, bytes: bytes.iter().copied().take(written).collect() });
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl DiskFile for RecordingFile {
    fn sync(&mut self) -> io::Result<()> {
        lock(&self.record).push(Operation::SyncFile { file: self.file });
        Ok(())
    }
}

/// A path in one of the roots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) root: usize,
    pub(super) path: PathBuf,
}

/// Every path below a folder, relative to the root, parents first, with the content of files.
pub(super) type Tree = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// One change of the disk. A file is named by the operation that opened it, as it may be renamed while it is open.
pub(super) enum Operation {
    Create { file: u64, at: Place },
    Open { file: u64, at: Place },
    Append { file: u64, bytes: Vec<u8> },
    SyncFile { file: u64 },
    CreateDir { at: Place },
    HardLink { from: Place, to: Place },
    Rename { from: Place, to: Place },
    Remove { at: Place },
    SyncDir { at: Place },
    SyncTree { at: Place, tree: Tree },
}

impl Operation {
    fn is_sync(&self) -> bool {
        matches!(self, Self::SyncFile { .. } | Self::SyncDir { .. } | Self::SyncTree { .. })
    }
}

impl std::fmt::Debug for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = |at: &Place| format!("{}:{}", at.root, at.path.display());
        match self {
            Self::Create { file, at } => write!(f, "create {} as file {file}", path(at)),
            Self::Open { file, at } => write!(f, "open {} as file {file}", path(at)),
            Self::Append { file, bytes } => write!(f, "append {} bytes to file {file}", bytes.len()),
            Self::SyncFile { file } => write!(f, "sync file {file}"),
            Self::CreateDir { at } => write!(f, "create folder {}", path(at)),
            Self::HardLink { from, to } => write!(f, "link {} to {}", path(from), path(to)),
            Self::Rename { from, to } => write!(f, "rename {} to {}", path(from), path(to)),
            Self::Remove { at } => write!(f, "remove {}", path(at)),
            Self::SyncDir { at } => write!(f, "sync folder {}", path(at)),
            Self::SyncTree { at, tree } => write!(f, "sync {} names below {}", tree.len(), path(at)),
        }
    }
}

fn lock(record: &Mutex<Vec<Operation>>) -> MutexGuard<'_, Vec<Operation>> {
    record.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tree(folder: &Path, path: &Path) -> io::Result<Tree> {
    let mut found = Tree::new();
    for entry in RealDisk.list(folder)? {
        let (folder, path) = (folder.join(&entry.name), path.join(&entry.name));
        if entry.is_dir {
            found.insert(path.clone(), None);
            found.extend(tree(&folder, &path)?);
        } else {
            found.insert(path, Some(RealDisk.read(&folder)?));
        }
    }
    Ok(found)
}
