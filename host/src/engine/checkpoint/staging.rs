//! Staged files: the final bytes of a batch's output, durable before the record that names them.

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::identity::random_u64;
use crate::disk::{Disk, DiskFile};

/// Encoders write a few bytes at a time.
const BUFFER_BYTES: usize = 1 << 18;

/// A staged file being written. Dropped unfinished, it stays until [`keep`] removes it.
pub struct StagedFile {
    file: BufWriter<Box<dyn DiskFile>>,
    name: String,
    dir: PathBuf,
    disk: Arc<dyn Disk>,
}

impl StagedFile {
    pub(super) fn create(disk: &Arc<dyn Disk>, dir: &Path, batch_id: u64) -> io::Result<Self> {
        let name = format!("{batch_id}-{:016x}", random_u64());
        let file = disk.create_new(&dir.join(&name))?;
        Ok(Self {
            file: BufWriter::with_capacity(BUFFER_BYTES, file),
            name,
            dir: dir.to_owned(),
            disk: Arc::clone(disk),
        })
    }

    /// Makes the file durable, with its name in the staging folder, which is given.
    ///
    /// # Errors
    /// What the disk says.
    pub fn finish(mut self) -> io::Result<String> {
        self.file.flush()?;
        self.file.get_mut().sync()?;
        self.disk.sync_dir(&self.dir)?;
        Ok(self.name)
    }
}

impl Write for StagedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl std::fmt::Debug for StagedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StagedFile").field("dir", &self.dir).field("name", &self.name).finish_non_exhaustive()
    }
}

/// Removes the staged files that have none of these names. A crash may bring them back; then they go the next time.
pub(super) fn keep(disk: &dyn Disk, dir: &Path, names: &[String]) -> io::Result<()> {
    let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    for entry in disk.list(dir)? {
        if is_staged_name(&entry.name) && !entry.is_dir && !names.contains(entry.name.as_str()) {
            disk.remove_file(&dir.join(&entry.name))?;
        }
    }
    Ok(())
}

/// `<batch>-<16 hexadecimal digits>`: what a record may name, and nothing that leads out of the folder.
pub(super) fn is_staged_name(name: &str) -> bool {
    name.split_once('-').is_some_and(|(batch, random)| {
        let is_number = !batch.is_empty() && batch.bytes().all(|byte| byte.is_ascii_digit());
        is_number && random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}
