//! The stores that every test runs on, with recovery: in memory from all changes, on disk from a snapshot and those
//! after it.

use std::path::PathBuf;
use std::sync::Arc;

use super::super::{Applied, Changes, MemoryStore, RocksSettings, RocksStore, Store};

/// What was committed: the changes of each batch with its mark.
pub(super) type Log = Vec<(Vec<Changes>, Applied)>;

pub(super) enum Backing {
    Memory(Arc<MemoryStore>),
    Rocks { dir: tempfile::TempDir, store: Arc<RocksStore>, snapshot: Option<PathBuf>, opened: u32 },
}

impl Backing {
    pub(super) fn memory() -> Self {
        Self::Memory(Arc::new(MemoryStore::new()))
    }

    pub(super) fn rocks() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(open(dir.path().join("live-0")));
        Self::Rocks { dir, store, snapshot: None, opened: 0 }
    }

    pub(super) fn all() -> [Self; 2] {
        [Self::memory(), Self::rocks()]
    }

    pub(super) fn store(&self) -> Arc<dyn Store> {
        match self {
            Self::Memory(store) => Arc::clone(store) as Arc<dyn Store>,
            Self::Rocks { store, .. } => Arc::clone(store) as Arc<dyn Store>,
        }
    }

    pub(super) fn snapshot(&mut self) {
        if let Self::Rocks { dir, store, snapshot, .. } = self {
            let batch = store.applied().unwrap().batch;
            let path = dir.path().join(format!("snapshot-{}", batch.map_or(-1, |batch| batch as i64)));
            if !path.exists() {
                store.snapshot(&path).unwrap();
            }
            *snapshot = Some(path);
        }
    }

    /// Throws the live store away and makes it anew.
    pub(super) fn recover(&mut self, log: &Log) {
        match self {
            Self::Memory(store) => *store = Arc::new(MemoryStore::new()),
            Self::Rocks { dir, store, snapshot, opened } => {
                *opened += 1;
                let path = dir.path().join(format!("live-{opened}"));
                if let Some(snapshot) = snapshot {
                    std::fs::create_dir(&path).unwrap();
                    for file in std::fs::read_dir(snapshot).unwrap() {
                        let file = file.unwrap();
                        std::fs::copy(file.path(), path.join(file.file_name())).unwrap();
                    }
                }
                *store = Arc::new(open(path));
            }
        }
        let store = self.store();
        let applied = store.applied().unwrap();
        for (changes, mark) in log.iter().filter(|(_, mark)| *mark > applied) {
            store.apply(changes, *mark).unwrap();
        }
    }
}

fn open(path: PathBuf) -> RocksStore {
    // Small, so that tests also see tables and not only write buffers.
    RocksStore::open(&path, &RocksSettings { cache_bytes: 1 << 20, write_buffer_bytes: 64 << 10 }).unwrap()
}
