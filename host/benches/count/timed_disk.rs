//! The machine's disk, with every sync counted and timed.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidemill_host::clock::Stopwatch;
use tidemill_host::disk::{Disk, DiskFile, Entry, ReadSeek, RealDisk};

/// The disk.
#[derive(Debug, Default)]
pub struct TimedDisk {
    syncs: Arc<Syncs>,
}

/// What was synced, in all.
#[derive(Debug, Default)]
pub struct Syncs {
    count: AtomicU64,
    nanoseconds: AtomicU64,
}

impl TimedDisk {
    /// The counts, which go on.
    pub fn syncs(&self) -> Arc<Syncs> {
        Arc::clone(&self.syncs)
    }
}

impl Syncs {
    /// Syncs so far, of files and folders.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Time that they took.
    pub fn nanoseconds(&self) -> u64 {
        self.nanoseconds.load(Ordering::Relaxed)
    }

    fn time(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let watch = Stopwatch::start();
        let done = sync();
        self.nanoseconds.fetch_add(watch.elapsed().as_nanos() as u64, Ordering::Relaxed);
        self.count.fetch_add(1, Ordering::Relaxed);
        done
    }
}

struct TimedFile {
    file: Box<dyn DiskFile>,
    syncs: Arc<Syncs>,
}

impl TimedDisk {
    fn file(&self, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        Box::new(TimedFile { file, syncs: self.syncs() })
    }
}

impl Write for TimedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl DiskFile for TimedFile {
    fn sync(&mut self) -> io::Result<()> {
        self.syncs.time(|| self.file.sync())
    }
}

impl Disk for TimedDisk {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.create_new(path).map(|file| self.file(file))
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.open_append(path).map(|file| self.file(file))
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
        RealDisk.create_dir(path)
    }

    fn hard_link(&self, existing: &Path, new: &Path) -> io::Result<()> {
        RealDisk.hard_link(existing, new)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.syncs.time(|| RealDisk.sync_dir(path))
    }

    fn sync_tree(&self, dir: &Path) -> io::Result<()> {
        self.syncs.time(|| RealDisk.sync_tree(dir))
    }
}
