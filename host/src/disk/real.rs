//! The disk of the machine.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::{Disk, DiskFile, Entry, ReadSeek};

/// The disk of the machine.
#[derive(Debug, Default, Clone, Copy)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = options().write(true).create_new(true).open(path).map_err(at("create", path))?;
        Ok(Box::new(RealFile { file, path: path.to_owned() }))
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        let file = options().append(true).open(path).map_err(at("open", path))?;
        Ok(Box::new(RealFile { file, path: path.to_owned() }))
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        open(path)?.read_to_end(&mut bytes).map_err(at("read", path))?;
        Ok(bytes)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>> {
        Ok(Box::new(open(path)?))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>> {
        let read = || {
            let mut entries = Vec::new();
            for entry in fs::read_dir(dir)? {
                let entry = entry?;
                match entry.metadata() {
                    Ok(metadata) => entries.push(Entry {
                        name: entry.file_name().to_string_lossy().into_owned(),
                        is_dir: metadata.is_dir(),
                        len: metadata.len(),
                        id: metadata.ino(),
                    }),
                    // It was removed since the folder was read.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(entries)
        };
        read().map_err(at("list", dir))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        match fs::symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(at("look at", path)(error)),
        }
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            done => done.map_err(at("create folder", path)),
        }
    }

    fn hard_link(&self, existing: &Path, new: &Path) -> io::Result<()> {
        fs::hard_link(existing, new).map_err(at("link to", new))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to).map_err(at("rename to", to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path).map_err(at("remove", path))
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path).map_err(at("remove folder", path))
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path).and_then(|folder| folder.sync_all()).map_err(at("sync folder", path))
    }

    fn sync_tree(&self, dir: &Path) -> io::Result<()> {
        for entry in self.list(dir)? {
            let path = dir.join(&entry.name);
            if entry.is_dir {
                self.sync_tree(&path)?;
            } else {
                open(&path)?.sync_all().map_err(at("sync", &path))?;
            }
        }
        self.sync_dir(dir)
    }
}

struct RealFile {
    file: File,
    path: PathBuf,
}

impl Write for RealFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A signal is no failure; `write_all` knows it by its kind, which `at` keeps.
        self.file.write(bytes).map_err(at("write", &self.path))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl DiskFile for RealFile {
    fn sync(&mut self) -> io::Result<()> {
        // Data and length; times and the like need not survive.
        self.file.sync_data().map_err(at("sync", &self.path))
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    options
}

fn open(path: &Path) -> io::Result<File> {
    options().read(true).open(path).map_err(at("open", path))
}

#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {}: {source}", path.display())]
struct DiskError {
    operation: &'static str,
    path: PathBuf,
    source: io::Error,
}

fn at(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |source| io::Error::new(source.kind(), DiskError { operation, path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_operation_and_the_path_and_keep_the_kind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("absent");

        let error = RealDisk.read(&path).unwrap_err();

        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().starts_with(&format!("cannot open {}: ", path.display())), "{error}");
    }

    #[test]
    fn a_file_is_created_only_where_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        RealDisk.create_new(&path).unwrap().write_all(b"first").unwrap();

        let error = RealDisk.create_new(&path).err().unwrap();

        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(RealDisk.read(&path).unwrap(), b"first");
    }

    #[test]
    fn symbolic_links_are_seen_but_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        fs::write(folder.path().join("target"), b"secret").unwrap();
        std::os::unix::fs::symlink(folder.path().join("target"), &link).unwrap();

        assert!(RealDisk.exists(&link).unwrap());
        assert!(RealDisk.read(&link).is_err());
        assert!(RealDisk.open_append(&link).is_err());
        assert!(RealDisk.create_new(&link).is_err());
    }

    #[test]
    fn a_folder_is_listed_by_name() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b"), b"12").unwrap();
        RealDisk.create_dir(&folder.path().join("a")).unwrap();
        RealDisk.create_dir(&folder.path().join("a")).unwrap();

        let entries = RealDisk.list(folder.path()).unwrap();

        let seen: Vec<_> = entries.iter().map(|entry| (entry.name.as_str(), entry.is_dir)).collect();
        assert_eq!(seen, [("a", true), ("b", false)]);
        assert_eq!(entries[1].len, 2);
    }
}
