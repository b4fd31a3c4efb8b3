//! Whole durable steps made of the single ones of [`Disk`].

use std::io;
use std::path::Path;

use super::Disk;

/// Puts a file with this content at `path`, durably: after a crash there is either what was there before or all of it.
/// A file that is there is replaced.
///
/// The bytes first go to `.<name>.tmp` next to it; one that a crash left behind is removed. One writer at a time.
///
/// # Errors
/// A path without a name (`InvalidInput`), or what the disk says; the file at `path` is the old or the new one then.
pub fn write_durably(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{} names no file", path.display())));
    };
    let hidden = folder.join(format!(".{}.tmp", name.to_string_lossy()));
    if disk.exists(&hidden)? {
        disk.remove_file(&hidden)?;
    }
    let mut file = disk.create_new(&hidden)?;
    file.write_all(bytes)?;
    file.sync()?;
    disk.rename(&hidden, path)?;
    disk.sync_dir(folder)
}

/// Creates a folder and those above it that are missing, durably.
///
/// # Errors
/// What the disk says.
pub fn create_dir_durably(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
        return create_named_dir(disk, path, Path::new("."));
    };
    if !disk.exists(parent)? {
        create_dir_durably(disk, parent)?;
    }
    create_named_dir(disk, path, parent)
}

/// Syncs even if the folder was there: its name may stem from a process that crashed before it could.
fn create_named_dir(disk: &dyn Disk, path: &Path, parent: &Path) -> io::Result<()> {
    disk.create_dir(path)?;
    disk.sync_dir(parent)
}
