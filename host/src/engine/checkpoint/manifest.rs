//! What a snapshot consists of, so that damage to it is noticed before it is used.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::sealed::{self, Defect};
use crate::disk::Disk;

pub(super) const MANIFEST: &str = "manifest.json";

/// How files end that hold the state itself. They are immutable once written, and every block of them carries a checksum
/// that is looked at whenever it is read.
pub(super) const TABLE_SUFFIX: &str = ".sst";

/// How closely a snapshot is looked at before it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Every file is there with its size, and the small ones that lead to the state are as they were. Costs nothing of
    /// the size of the state.
    Sizes,
    /// Every byte is as it was written.
    Bytes,
}

/// Read at once when a file is digested.
const CHUNK_BYTES: usize = 1 << 18;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// By name; the manifest itself is not among them.
    pub(super) files: Vec<FileEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileEntry {
    pub(super) name: String,
    pub(super) bytes: u64,
    /// XXH3-64 of the content, in hex.
    pub(super) digest: String,
}

/// Digests of files known from an earlier snapshot, by [`crate::disk::Entry::id`]: a snapshot shares most of its files
/// with the one before, which need not be read again.
pub(super) type KnownDigests = BTreeMap<u64, FileEntry>;

impl Manifest {
    /// Of a folder of files.
    pub(super) fn of(disk: &dyn Disk, dir: &Path, known: &KnownDigests) -> io::Result<Self> {
        let mut files = Vec::new();
        for entry in disk.list(dir)? {
            if entry.is_dir {
                return Err(io::Error::other(format!("a snapshot has files only, {:?} is a folder", entry.name)));
            }
            let earlier = known.get(&entry.id).filter(|file| file.name == entry.name && file.bytes == entry.len);
            let digest = match earlier {
                Some(file) => file.digest.clone(),
                None => digest(disk, &dir.join(&entry.name))?,
            };
            files.push(FileEntry { name: entry.name, bytes: entry.len, digest });
        }
        Ok(Self { files })
    }

    pub(super) fn write(&self, disk: &dyn Disk, dir: &Path) -> io::Result<()> {
        let bytes = sealed::seal(self).map_err(io::Error::other)?;
        let mut file = disk.create_new(&dir.join(MANIFEST))?;
        file.write_all(&bytes)?;
        file.sync()
    }

    pub(super) fn read(disk: &dyn Disk, dir: &Path) -> Result<Self, Defect> {
        let bytes = disk.read(&dir.join(MANIFEST)).map_err(|error| Defect::Damaged(error.to_string()))?;
        let manifest: Self = sealed::unseal(&bytes)?;
        // Names are joined to folders: none may lead out of them.
        match manifest
            .files
            .iter()
            .find(|file| file.name.contains('/') || matches!(file.name.as_str(), "" | "." | ".."))
        {
            Some(file) => Err(Defect::Damaged(format!("its manifest names {:?}", file.name))),
            None => Ok(manifest),
        }
    }

    /// What is wrong with the first file that is not as it was, if there is one.
    pub(super) fn check(&self, disk: &dyn Disk, dir: &Path, check: Check) -> Result<(), String> {
        let entries = disk.list(dir).map_err(|error| error.to_string())?;
        let sizes: BTreeMap<_, _> = entries.iter().map(|entry| (entry.name.as_str(), entry.len)).collect();
        for file in &self.files {
            match sizes.get(file.name.as_str()) {
                None => return Err(format!("{} is missing", file.name)),
                Some(bytes) if *bytes != file.bytes => return Err(format!("{} has another size", file.name)),
                Some(_) => {}
            }
            if check == Check::Sizes && file.name.ends_with(TABLE_SUFFIX) {
                continue;
            }
            match digest(disk, &dir.join(&file.name)) {
                Ok(digest) if digest == file.digest => {}
                Ok(_) => return Err(format!("{} is not as it was written", file.name)),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    /// What this snapshot tells of the files that it shares with others.
    pub(super) fn known(&self, disk: &dyn Disk, dir: &Path) -> io::Result<KnownDigests> {
        let files: BTreeMap<_, _> = self.files.iter().map(|file| (file.name.as_str(), file)).collect();
        let entries = disk.list(dir)?.into_iter();
        Ok(entries.filter_map(|entry| Some((entry.id, (*files.get(entry.name.as_str())?).clone()))).collect())
    }
}

fn digest(disk: &dyn Disk, path: &Path) -> io::Result<String> {
    let mut file = disk.open(path)?;
    let mut hasher = Xxh3::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(format!("{:016x}", hasher.digest())),
            read => hasher.update(chunk.get(..read).unwrap_or_default()),
        }
    }
}
