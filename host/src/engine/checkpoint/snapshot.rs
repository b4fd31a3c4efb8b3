//! Snapshots of the state store: `snapshots/<batch>-<generation>/`, each complete and durable once it has its name.
//!
//! A snapshot is made in the temporary folder, with a manifest of its files, synced, and renamed. It goes the other way:
//! out of `snapshots/` by a rename, and only then file by file. So what stands in `snapshots/` was whole once, and what
//! is not as its manifest says has been damaged since.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use super::super::faults;
use super::error::CheckpointError;
use super::manifest::{Check, KnownDigests, Manifest, TABLE_SUFFIX};
use super::sealed::{self, Defect};
use crate::disk::Disk;

/// How the name of a damaged snapshot begins. It no longer counts, and stands aside until enough good ones are there.
const DAMAGED_PREFIX: &str = "damaged-";

/// Which state a snapshot holds: at least that of this batch. Ordered by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SnapshotName {
    /// Grows with every rollback.
    pub generation: u32,
    /// A batch that it contains.
    pub batch_id: u64,
}

impl fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.batch_id, self.generation)
    }
}

impl FromStr for SnapshotName {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let (batch_id, generation) = name.split_once('-').ok_or(())?;
        let parsed =
            Self { generation: generation.parse().map_err(|_| ())?, batch_id: batch_id.parse().map_err(|_| ())? };
        if parsed.to_string() == name { Ok(parsed) } else { Err(()) }
    }
}

/// What came of the wish to restore one of several snapshots.
#[derive(Debug)]
pub struct Restored<T> {
    /// The one that was, and what it was opened as.
    pub found: Option<(SnapshotName, T)>,
    /// Those that were tried before and are damaged.
    pub damaged: Vec<SnapshotName>,
}

/// The snapshots of a checkpoint. A clone can be given to the thread that takes them; one takes or removes at a time.
#[derive(Debug, Clone)]
pub struct SnapshotFolder {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) dir: PathBuf,
    /// On the same file system.
    pub(super) tmp_dir: PathBuf,
}

impl SnapshotFolder {
    /// Makes a snapshot: `fill` writes files, and no folders, into a folder that it creates. When this returns, the
    /// snapshot is durable; one of the same name is replaced.
    ///
    /// # Errors
    /// What `fill` fails with, or the disk; there is no new snapshot then.
    pub fn take<E: From<CheckpointError>>(
        &self,
        name: SnapshotName,
        fill: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        faults::point("snapshot.begin");
        let made = self.tmp_dir.join(format!("snapshot-{name}"));
        let failed = |source| self.disk_failed(source);
        self.remove_if_there(&made).map_err(failed)?;
        fill(&made)?;
        faults::point("snapshot.filled");
        self.publish(name, &made).map_err(failed)?;
        faults::point("snapshot.renamed");
        Ok(())
    }

    /// What there is, oldest first.
    ///
    /// # Errors
    /// What the disk says.
    pub fn list(&self) -> Result<Vec<SnapshotName>, CheckpointError> {
        let entries = self.disk.list(&self.dir).map_err(|source| self.disk_failed(source))?;
        let folders = entries.iter().filter(|entry| entry.is_dir);
        let mut names: Vec<SnapshotName> = folders.filter_map(|entry| entry.name.parse().ok()).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Makes `into`, which is removed if it is there, a copy of a snapshot that may be written to.
    ///
    /// # Errors
    /// `SNAPSHOT_DAMAGED`, `CHECKPOINT_VERSION_UNSUPPORTED`, what the disk says.
    pub fn restore(&self, name: SnapshotName, into: &Path, check: Check) -> Result<(), CheckpointError> {
        let manifest = self.checked(name, check)?;
        let from = self.dir.join(name.to_string());
        let copy = || {
            self.remove_if_there(into)?;
            self.disk.create_dir(into)?;
            manifest.files.iter().try_for_each(|file| self.take_over(&from.join(&file.name), &into.join(&file.name)))
        };
        copy().map_err(|source| self.disk_failed(source))
    }

    /// Restores the first of these that is not damaged and that `open` takes; damaged ones are reported as warnings. Without
    /// any, there is no `into` afterwards.
    ///
    /// # Errors
    /// `CHECKPOINT_VERSION_UNSUPPORTED`, what the disk says, what `open` fails with.
    pub fn restore_first<T, E: From<CheckpointError>>(
        &self,
        names: impl IntoIterator<Item = SnapshotName>,
        into: &Path,
        check: Check,
        mut open: impl FnMut(&Path) -> Result<Option<T>, E>,
    ) -> Result<Restored<T>, E> {
        let mut damaged = Vec::new();
        for name in names {
            match self.restore(name, into, check) {
                Ok(()) => {
                    if let Some(opened) = open(into)? {
                        return Ok(Restored { found: Some((name, opened)), damaged });
                    }
                }
                Err(error @ CheckpointError::SnapshotDamaged { .. }) => {
                    tracing::warn!(code = error.code(), "{error}");
                    damaged.push(name);
                }
                Err(error) => return Err(error.into()),
            }
        }
        self.remove_if_there(into).map_err(|source| self.disk_failed(source))?;
        Ok(Restored { found: None, damaged })
    }

    /// Takes a damaged snapshot out of those that count.
    ///
    /// # Errors
    /// What the disk says.
    pub fn disown(&self, name: SnapshotName) -> Result<(), CheckpointError> {
        let disown = || {
            let aside = self.dir.join(format!("{DAMAGED_PREFIX}{name}"));
            self.remove_if_there(&aside)?;
            self.disk.rename(&self.dir.join(name.to_string()), &aside)?;
            self.disk.sync_dir(&self.dir)
        };
        disown().map_err(|source| self.disk_failed(source))
    }

    /// Removes old snapshots, but never the newest `count_min`, nor the newest at or before `batch_id`, from which that
    /// batch can be reached; of those between, as many as leave gaps of `gap_batches`. Damaged ones go once there are
    /// `count_min` others. Gives the oldest that is left: the log is needed after it.
    ///
    /// # Errors
    /// What the disk says; some may be gone then.
    pub fn retain(
        &self,
        count_min: usize,
        batch_id: u64,
        gap_batches: u64,
    ) -> Result<Option<SnapshotName>, CheckpointError> {
        let names = self.list()?;
        let newest = names.len().saturating_sub(count_min);
        let reaching = names.iter().rposition(|name| name.batch_id <= batch_id).unwrap_or(0).min(newest);
        let mut kept: Option<SnapshotName> = None;
        for (number, name) in names.iter().enumerate().take(newest) {
            let next = names.get(number + 1).map_or(u64::MAX, |next| next.batch_id);
            let of_one_generation = |kept: SnapshotName| kept.generation == name.generation;
            let close =
                kept.is_some_and(|kept| of_one_generation(kept) && next.saturating_sub(kept.batch_id) < gap_batches);
            if number < reaching || number > reaching && close {
                self.remove(&name.to_string()).map_err(|source| self.disk_failed(source))?;
            } else {
                kept = Some(*name);
            }
        }
        if names.len() >= count_min {
            self.remove_damaged().map_err(|source| self.disk_failed(source))?;
        }
        Ok(names.get(reaching).copied())
    }

    fn remove_damaged(&self) -> io::Result<()> {
        let entries = self.disk.list(&self.dir)?;
        let mut damaged = entries.iter().filter(|entry| entry.name.starts_with(DAMAGED_PREFIX));
        damaged.try_for_each(|entry| self.remove(&entry.name))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let unnamed = self.set_aside(name)?;
        self.disk.sync_dir(&self.dir)?;
        self.disk.remove_dir_all(&unnamed)
    }

    fn publish(&self, name: SnapshotName, made: &Path) -> io::Result<()> {
        Manifest::of(self.disk.as_ref(), made, &self.known_digests())?.write(self.disk.as_ref(), made)?;
        self.disk.sync_tree(made)?;
        let path = self.dir.join(name.to_string());
        let replaced = if self.disk.exists(&path)? { Some(self.set_aside(&name.to_string())?) } else { None };
        self.disk.rename(made, &path)?;
        self.disk.sync_dir(&self.dir)?;
        replaced.map_or(Ok(()), |replaced| self.disk.remove_dir_all(&replaced))
    }

    /// Those of the newest snapshot. Without them, all files are read, so no failure matters.
    fn known_digests(&self) -> KnownDigests {
        let newest = self.list().ok().and_then(|names| names.last().map(|name| self.dir.join(name.to_string())));
        let known =
            newest.and_then(|dir| Manifest::read(self.disk.as_ref(), &dir).ok()?.known(self.disk.as_ref(), &dir).ok());
        known.unwrap_or_default()
    }

    fn set_aside(&self, name: &str) -> io::Result<PathBuf> {
        let aside = self.tmp_dir.join(format!("removed-{name}"));
        self.remove_if_there(&aside)?;
        self.disk.rename(&self.dir.join(name), &aside)?;
        Ok(aside)
    }

    fn checked(&self, name: SnapshotName, check: Check) -> Result<Manifest, CheckpointError> {
        let path = self.dir.join(name.to_string());
        let checked = Manifest::read(self.disk.as_ref(), &path).and_then(|manifest| {
            manifest.check(self.disk.as_ref(), &path, check).map_err(Defect::Damaged)?;
            Ok(manifest)
        });
        checked.map_err(|defect| match defect {
            // Removed as a whole meanwhile, by the query that runs on it.
            Defect::Damaged(_) if self.disk.exists(&path).is_ok_and(|exists| !exists) => {
                CheckpointError::Disk { path, source: io::ErrorKind::NotFound.into() }
            }
            Defect::Damaged(defect) => CheckpointError::SnapshotDamaged { path, defect },
            Defect::Newer(version) => CheckpointError::VersionUnsupported { path, version, supported: sealed::FORMAT },
        })
    }

    fn take_over(&self, from: &Path, to: &Path) -> io::Result<()> {
        // What never changes needs no copy. A scratch folder may be on another file system, or on one without links: then it gets a copy as well.
        if from.to_string_lossy().ends_with(TABLE_SUFFIX) && self.disk.hard_link(from, to).is_ok() {
            return Ok(());
        }
        let mut target = self.disk.create_new(to)?;
        io::copy(&mut self.disk.open(from)?, &mut target).map(|_| ())
    }

    /// Removes the snapshots that are not wanted any more, whatever their age.
    ///
    /// # Errors
    /// What the disk says; some may be gone then.
    pub fn remove_all_but(&self, wanted: impl Fn(SnapshotName) -> bool) -> Result<(), CheckpointError> {
        for name in self.list()?.into_iter().filter(|name| !wanted(*name)) {
            self.remove(&name.to_string()).map_err(|source| self.disk_failed(source))?;
        }
        Ok(())
    }

    fn remove_if_there(&self, dir: &Path) -> io::Result<()> {
        if self.disk.exists(dir)? { self.disk.remove_dir_all(dir) } else { Ok(()) }
    }

    fn disk_failed(&self, source: io::Error) -> CheckpointError {
        CheckpointError::Disk { path: self.dir.clone(), source }
    }
}
