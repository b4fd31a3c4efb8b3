//! What nobody who keeps counts in RocksDB can do without: sorted, batched multi-gets and one write batch, on a database
//! with the options of the state store and keys and values of its sizes. Nothing is read, sorted, logged or emitted.

use std::path::Path;

use anyhow::{Context, Result};
use rocksdb::{Cache, DB, Env, Options, WriteBatch, WriteOptions};
use tidemill_host::record::{GroupingKey, KeyEncoder, Schema, key_layout};
use tidemill_host::state::{Family, RocksSettings, RocksStore};

use crate::native::{count_of, value_row};
use crate::workload::{self, Workload};

/// Keys of a multi-get, as many as a session reads.
const KEYS_AT_A_TIME: usize = 128;

/// Bytes of a write batch, as many as the store writes.
const WRITE_BATCH_BYTES: usize = 8 << 20;

/// Counts without an engine.
pub struct Bare {
    db: DB,
}

/// State keys in their order, prepared before the clock starts.
pub struct SortedKeys(Vec<Vec<u8>>);

impl Bare {
    /// An empty database.
    pub fn open(folder: &Path) -> Result<Self> {
        let settings = RocksSettings::default();
        // The store leaves its options in the folder, from where they are taken.
        drop(RocksStore::open(folder, &settings)?);
        let cache = Cache::new_lru_cache(settings.cache_bytes);
        let (options, families) = Options::load_latest(folder, Env::new()?, false, cache)?;
        Ok(Self { db: DB::open_cf_descriptors(&options, folder, families)? })
    }

    /// Adds `rows` to the count of each key.
    pub fn count(&self, keys: &SortedKeys, rows: i64) -> Result<()> {
        let family = self.db.cf_handle(Family::State.name()).context("the family of the state")?;
        let mut batch = WriteBatch::new();
        for keys in keys.0.chunks(KEYS_AT_A_TIME) {
            let found = self.db.batched_multi_get_cf(family, keys, true);
            for (key, found) in keys.iter().zip(found) {
                let before = found?.map_or(0, |record| count_of(&record));
                // A tag, the number of the schema, the row.
                let mut record = [1; 19];
                record[3..].copy_from_slice(&value_row(before + rows));
                batch.put_cf(family, key, record);
            }
            if batch.size_in_bytes() >= WRITE_BATCH_BYTES {
                self.write(std::mem::take(&mut batch))?;
            }
        }
        self.write(batch)
    }

    fn write(&self, batch: WriteBatch) -> Result<()> {
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        Ok(self.db.write_opt(batch, &options)?)
    }
}

impl SortedKeys {
    /// Those of one batch.
    pub fn of(workload: &Workload, number: u64) -> Result<Self> {
        Self::new(workload.keys_of(number))
    }

    /// Those of any keys.
    pub fn new(keys: impl Iterator<Item = u64>) -> Result<Self> {
        let layout = key_layout(&Schema::parse("key STRING")?)?;
        let batch = workload::rows(keys)?.project(&[0])?;
        let encoder = KeyEncoder::new(&layout, &batch)?;
        let mut row = Vec::new();
        let mut sorted: Vec<Vec<u8>> = (0..encoder.rows())
            .map(|number| {
                row.clear();
                encoder.encode(number, &mut row);
                state_key(GroupingKey::new(&row))
            })
            .collect();
        sorted.sort_unstable();
        Ok(Self(sorted))
    }
}

/// Step, variable, hash, length of the key row, key row.
fn state_key(key: GroupingKey<'_>) -> Vec<u8> {
    let mut out = vec![0, 0, 1];
    out.extend_from_slice(&key.hash.to_be_bytes());
    out.extend_from_slice(&(key.row.len() as u32).to_be_bytes());
    out.extend_from_slice(key.row);
    out
}
