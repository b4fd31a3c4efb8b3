//! The folder that a query keeps everything in.
//!
//! ```text
//! metadata.json                     what is fixed for the checkpoint's life
//! lock                              held by the process that has it open
//! log/                              the query's log, the only truth
//! components/<digest>.wasm          the programs that retained batches ran
//! staging/<batch>-<random>          final bytes of large outputs, named by records of the log
//! snapshots/<batch>-<generation>/   the state store as it was, whole
//! live/                             the state store; of a process that has ended it is not trusted
//! tmp/                              emptied at every start
//! suspect                           left by a run that met damage: the next start reads snapshots whole
//! ```
//!
//! Its one job is this layout: who may use it, and that what is in it is durable before anything relies on it. What the
//! records of the log mean is not known here.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{Disk, create_dir_durably, write_durably};

mod error;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod manifest;
mod metadata;
mod programs;
mod sealed;
mod snapshot;
mod staging;
#[cfg(test)]
mod tests;

pub use error::CheckpointError;
pub use manifest::Check;
pub use metadata::{Fork, Metadata, NewCheckpoint};
pub use snapshot::{Restored, SnapshotFolder, SnapshotName};
pub use staging::StagedFile;

use metadata::METADATA;

const LOCK: &str = "lock";
const LOG: &str = "log";
const COMPONENTS: &str = "components";
const STAGING: &str = "staging";
const SNAPSHOTS: &str = "snapshots";
const LIVE: &str = "live";
const TMP: &str = "tmp";
const SUSPECT: &str = "suspect";

/// What stands in a folder in which a checkpoint was about to be made.
const BEFORE_METADATA: [&str; 2] = [LOCK, ".metadata.json.tmp"];

/// A checkpoint, open: no other process has it as long as this lives.
#[derive(Debug)]
pub struct Checkpoint {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    metadata: Metadata,
    is_new: bool,
    /// The lock goes with it.
    _lock: Option<Lock>,
}

impl Checkpoint {
    /// Opens a checkpoint for a query to go on with, or makes one where there is nothing or an empty folder.
    ///
    /// # Errors
    /// `CHECKPOINT_IN_USE`, `CHECKPOINT_NOT_EMPTY`, `CHECKPOINT_NAME_MISMATCH`, `CHECKPOINT_VERSION_UNSUPPORTED`,
    /// `CHECKPOINT_DAMAGED`, what the disk says. Nothing was changed, except in the last case.
    pub fn open(disk: Arc<dyn Disk>, path: &Path, new: &NewCheckpoint) -> Result<Self, CheckpointError> {
        let failed = |source| CheckpointError::Disk { path: path.to_owned(), source };
        refuse_foreign(disk.as_ref(), path)?;
        create_dir_durably(disk.as_ref(), path).map_err(failed)?;
        let lock = lock(path)?;
        let found = Metadata::read(disk.as_ref(), path)?;
        let is_new = found.is_none();
        let metadata = match found {
            Some(metadata) => metadata,
            None => Metadata::create(disk.as_ref(), path, new)?,
        };
        if let (Some(name), Some(wanted)) = (&metadata.name, &new.name)
            && name != wanted
        {
            let (path, name, wanted) = (path.to_owned(), name.clone(), wanted.clone());
            return Err(CheckpointError::NameMismatch { path, name, wanted });
        }
        lay_out(disk.as_ref(), path).map_err(failed)?;
        Ok(Self { disk, path: path.to_owned(), metadata, is_new, _lock: Some(lock) })
    }

    /// Opens a checkpoint that is there, of a query that does not run, to change it.
    ///
    /// # Errors
    /// As [`Self::open_existing`].
    pub fn open_stopped(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, CheckpointError> {
        drop(Self::open_existing(Arc::clone(&disk), path)?);
        let lock = lock(path)?;
        let metadata =
            Metadata::read(disk.as_ref(), path)?.ok_or_else(|| CheckpointError::NotFound { path: path.to_owned() })?;
        lay_out(disk.as_ref(), path).map_err(|source| CheckpointError::Disk { path: path.to_owned(), source })?;
        Ok(Self { disk, path: path.to_owned(), metadata, is_new: false, _lock: Some(lock) })
    }

    /// Opens a checkpoint to look at it. Nothing in it is changed; others may look at the same time.
    ///
    /// # Errors
    /// `CHECKPOINT_NOT_FOUND`, `CHECKPOINT_IN_USE` while a query goes on with it, `CHECKPOINT_VERSION_UNSUPPORTED`,
    /// `CHECKPOINT_DAMAGED`, what the disk says.
    pub fn open_existing(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, CheckpointError> {
        let lock = share_lock(path)?;
        Ok(Self { _lock: lock, ..Self::look_at(disk, path)? })
    }

    /// Looks at a checkpoint that a query may go on with meanwhile. Nothing in it is changed, and nobody is kept out.
    ///
    /// # Errors
    /// As [`Self::open_existing`], but for `CHECKPOINT_IN_USE`.
    pub fn look_at(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, CheckpointError> {
        match Metadata::read(disk.as_ref(), path)? {
            None => {
                refuse_without_metadata(disk.as_ref(), path)?;
                Err(CheckpointError::NotFound { path: path.to_owned() })
            }
            Some(metadata) => Ok(Self { disk, path: path.to_owned(), metadata, is_new: false, _lock: None }),
        }
    }

    /// Gives the copy of a checkpoint that this is a query id of its own, durably; `last_batch` is the last one in its log.
    ///
    /// # Errors
    /// What the disk says.
    pub fn fork(&mut self, last_batch: Option<u64>) -> Result<(), CheckpointError> {
        self.metadata = self.metadata.fork(self.disk.as_ref(), &self.path, last_batch)?;
        Ok(())
    }

    /// Whether it was made just now.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// What is fixed for its life.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The disk that it is on.
    pub fn disk(&self) -> Arc<dyn Disk> {
        Arc::clone(&self.disk)
    }

    /// Where the query's log is.
    pub fn log_dir(&self) -> PathBuf {
        self.path.join(LOG)
    }

    /// Where staged files are.
    pub fn staging_dir(&self) -> PathBuf {
        self.path.join(STAGING)
    }

    /// Where the state store is while the query runs.
    pub fn live_dir(&self) -> PathBuf {
        self.path.join(LIVE)
    }

    /// For what need not outlive the process.
    pub fn tmp_dir(&self) -> PathBuf {
        self.path.join(TMP)
    }

    /// Begins a staged file for a batch.
    ///
    /// # Errors
    /// What the disk says.
    pub fn stage(&self, batch_id: u64) -> io::Result<StagedFile> {
        StagedFile::create(&self.disk, &self.staging_dir(), batch_id)
    }

    /// Where the staged file is that a record names.
    ///
    /// # Errors
    /// `CHECKPOINT_DAMAGED` when no staged file can have this name.
    pub fn staged_path(&self, name: &str) -> Result<PathBuf, CheckpointError> {
        if staging::is_staged_name(name) {
            return Ok(self.staging_dir().join(name));
        }
        let defect = format!("a record names the staged file {name:?}, and none can have this name");
        Err(CheckpointError::Damaged { path: self.log_dir(), defect })
    }

    /// Removes the staged files that have none of these names.
    ///
    /// # Errors
    /// What the disk says; some may be gone then.
    pub fn keep_staged(&self, names: &[String]) -> Result<(), CheckpointError> {
        let dir = self.staging_dir();
        staging::keep(self.disk.as_ref(), &dir, names).map_err(|source| CheckpointError::Disk { path: dir, source })
    }

    /// Where kept programs are.
    pub fn components_dir(&self) -> PathBuf {
        self.path.join(COMPONENTS)
    }

    /// Keeps the program of this identity for as long as a retained batch names it. Durable when this returns.
    ///
    /// # Errors
    /// What the disk says.
    pub fn keep_program(&self, identity: &str, program: &[u8]) -> Result<(), CheckpointError> {
        self.in_components(|dir| programs::keep(self.disk.as_ref(), dir, identity, program))
    }

    /// The program of this identity, if it was kept.
    ///
    /// # Errors
    /// What the disk says.
    pub fn program(&self, identity: &str) -> Result<Option<Vec<u8>>, CheckpointError> {
        self.in_components(|dir| programs::read(self.disk.as_ref(), dir, identity))
    }

    /// Removes the programs that have none of these identities.
    ///
    /// # Errors
    /// What the disk says; some may be gone then.
    pub fn retain_programs(&self, identities: &[&str]) -> Result<(), CheckpointError> {
        self.in_components(|dir| programs::retain(self.disk.as_ref(), dir, identities))
    }

    fn in_components<T>(&self, step: impl FnOnce(&Path) -> io::Result<T>) -> Result<T, CheckpointError> {
        let dir = self.components_dir();
        step(&dir).map_err(|source| CheckpointError::Disk { path: dir, source })
    }

    /// The snapshots of the state store.
    pub fn snapshots(&self) -> SnapshotFolder {
        SnapshotFolder { disk: self.disk(), dir: self.path.join(SNAPSHOTS), tmp_dir: self.tmp_dir() }
    }

    /// Notes, in the checkpoint of a path, that damage to the state was met while it was used.
    ///
    /// # Errors
    /// What the disk says.
    pub fn suspect(disk: &dyn Disk, path: &Path) -> io::Result<()> {
        write_durably(disk, &path.join(SUSPECT), b"")
    }

    /// Whether damage was met since the snapshots were last read whole.
    ///
    /// # Errors
    /// What the disk says.
    pub fn is_suspect(&self) -> Result<bool, CheckpointError> {
        self.in_root(|disk, path| disk.exists(&path.join(SUSPECT)))
    }

    /// Notes that snapshots have been read whole.
    ///
    /// # Errors
    /// What the disk says.
    pub fn clear_suspicion(&self) -> Result<(), CheckpointError> {
        self.in_root(|disk, path| disk.remove_file(&path.join(SUSPECT)).and_then(|()| disk.sync_dir(path)))
    }

    fn in_root<T>(&self, step: impl FnOnce(&dyn Disk, &Path) -> io::Result<T>) -> Result<T, CheckpointError> {
        step(self.disk.as_ref(), &self.path).map_err(|source| CheckpointError::Disk { path: self.path.clone(), source })
    }
}

/// Refuses a folder in which something else is.
fn refuse_foreign(disk: &dyn Disk, path: &Path) -> Result<(), CheckpointError> {
    let failed = |source| CheckpointError::Disk { path: path.to_owned(), source };
    if !disk.exists(path).map_err(failed)? || disk.exists(&path.join(METADATA)).map_err(failed)? {
        return Ok(());
    }
    refuse_without_metadata(disk, path)
}

/// Refuses a folder without metadata, unless a checkpoint may be made in it.
fn refuse_without_metadata(disk: &dyn Disk, path: &Path) -> Result<(), CheckpointError> {
    let entries = match disk.list(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        listed => listed.map_err(|source| CheckpointError::Disk { path: path.to_owned(), source })?,
    };
    let mut others = entries.iter().filter(|entry| !BEFORE_METADATA.contains(&entry.name.as_str())).peekable();
    let Some(first) = others.peek() else { return Ok(()) };
    let found = first.name.clone();
    if others.all(|entry| [LOG, COMPONENTS, STAGING, SNAPSHOTS, LIVE, TMP].contains(&entry.name.as_str())) {
        let defect = "it is missing, and the rest of the checkpoint is there".into();
        return Err(CheckpointError::Damaged { path: path.join(METADATA), defect });
    }
    Err(CheckpointError::NotEmpty { path: path.to_owned(), found })
}

/// Folders come after the metadata, so that a crash never leaves them without it.
fn lay_out(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    let tmp = path.join(TMP);
    if disk.exists(&tmp)? {
        disk.remove_dir_all(&tmp)?;
    }
    for folder in [LOG, COMPONENTS, STAGING, SNAPSHOTS, TMP] {
        disk.create_dir(&path.join(folder))?;
    }
    disk.sync_dir(path)
}

/// A lock that ends when this is dropped, also while a process that was just started still has a copy of the file.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file unlocks it anyway, later at worst.
        drop(self.0.unlock());
    }
}

/// A lock is of the running system and gone with the process, so it is no business of [`Disk`].
fn lock(path: &Path) -> Result<Lock, CheckpointError> {
    let failed = |source| CheckpointError::Disk { path: path.to_owned(), source };
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(path.join(LOCK)).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(CheckpointError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

/// None: nobody has ever locked it.
fn share_lock(path: &Path) -> Result<Option<Lock>, CheckpointError> {
    let failed = |source| CheckpointError::Disk { path: path.to_owned(), source };
    let file = match File::open(path.join(LOCK)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(Some(Lock(file))),
        Err(TryLockError::WouldBlock) => Err(CheckpointError::InUse { path: path.to_owned() }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}
