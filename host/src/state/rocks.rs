//! The store on disk: RocksDB, without its write-ahead log. The query's log is the truth; this is a view of it that can
//! be made anew from a snapshot and the records after it, so a crash may leave anything here.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rocksdb::checkpoint::Checkpoint;
use rocksdb::properties::{ESTIMATE_TABLE_READERS_MEM, PropName, SIZE_ALL_MEM_TABLES, TOTAL_SST_FILES_SIZE};
use rocksdb::statistics::{StatsLevel, Ticker};
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB, DBCompressionType, DataBlockIndexType, Error,
    ErrorKind, LogLevel, Options, ReadOptions, WriteBatch, WriteOptions,
};

use super::changes::{Changes, Operation};
use super::error::StateError;
use super::keys::{APPLIED, APPLYING, FORMAT};
use super::store::{Applied, Family, Reader, Store, StoreActivity, StoreMetrics, Visit, get};

/// Version of the bytes in the store. Kept in family `Meta`; another one is refused.
const FORMAT_VERSION: u32 = 1;

/// Bytes of one write batch. A batch is held twice while it is written, so a huge change is written in parts.
const WRITE_BATCH_BYTES: usize = 8 << 20;

/// Block size. Small blocks make a get of a small row cheap; larger ones only help scans.
const BLOCK_BYTES: usize = 4 << 10;

/// Bits per key of the bloom filters: about one in a hundred absent keys costs a read.
const BLOOM_BITS: f64 = 10.0;

/// Share of a write buffer that its own bloom filter takes; spares the search for keys that were not written lately.
const WRITE_BUFFER_BLOOM_SHARE: f64 = 0.02;

/// What the rows of the processor are kept with beside the rest: batches read and write them in order of their keys, variable
/// by variable. So the search in a write buffer goes on from the key before, of the same step and variable (3 bytes) when
/// it is a write, instead of from the top.
const SORTED_ACCESS: &str =
    "memtable_insert_with_hint_prefix_extractor=fixed:3;memtable_batch_lookup_optimization=true";

/// Share of entries to slots in the hash index of a block; RocksDB's own advice.
const BLOCK_HASH_SHARE: f64 = 0.75;

/// Threads that flush and compact. More would take the cores that the workers need.
const BACKGROUND_JOBS: i32 = 2;

/// Log files of RocksDB that are kept, and the size of each; enough to see what it did last.
const INFO_LOGS_KEPT: usize = 2;
const INFO_LOG_BYTES: usize = 1 << 20;

/// Memory of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RocksSettings {
    /// Bytes of the block cache, which all families share.
    pub cache_bytes: usize,
    /// Bytes of a family's write buffer before it is written out. There are at most two per family.
    pub write_buffer_bytes: usize,
}

impl Default for RocksSettings {
    fn default() -> Self {
        Self {
            // Holds the blocks of a few million small rows.
            cache_bytes: 256 << 20,
            // RocksDB's own default: fewer and larger files than smaller ones give, still quickly searched.
            write_buffer_bytes: 64 << 20,
        }
    }
}

/// A store in a folder of its own.
pub struct RocksStore {
    db: DB,
    path: PathBuf,
    cache: Cache,
    /// The options that the store was opened with: they share its counters.
    statistics: Options,
    measured: AtomicBool,
}

impl RocksStore {
    /// Opens the store in `dir`, or makes an empty one.
    ///
    /// # Errors
    /// `STATE_LOCKED`, `STATE_CORRUPT`, `STATE_FORMAT_UNSUPPORTED`, or the disk.
    pub fn open(dir: &Path, settings: &RocksSettings) -> Result<Self, StateError> {
        let cache = Cache::new_lru_cache(settings.cache_bytes);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        // Without a write-ahead log only this keeps the families of one state together.
        options.set_atomic_flush(true);
        options.set_max_background_jobs(BACKGROUND_JOBS);
        options.set_paranoid_checks(true);
        options.set_keep_log_file_num(INFO_LOGS_KEPT);
        options.set_max_log_file_size(INFO_LOG_BYTES);
        options.set_log_level(LogLevel::Warn);
        options.set_stats_dump_period_sec(0);
        // They take a few percent of a read's time, so they count only once someone asks.
        options.enable_statistics();
        options.set_statistics_level(StatsLevel::DisableAll);
        let families = Family::ALL
            .iter()
            .map(|family| Ok(ColumnFamilyDescriptor::new(family.name(), family_options(*family, &cache, settings)?)))
            .collect::<Result<Vec<_>, Error>>()
            .map_err(|error| fault(dir, "opening", &error))?;
        // RocksDB insists on a family of its own, which stays empty. Left to itself it would map memory for a cache of its
        // own, for every store anew.
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&cache);
        let mut unused = Options::default();
        unused.set_block_based_table_factory(&blocks);
        let default = ColumnFamilyDescriptor::new("default", unused);
        let db = DB::open_cf_descriptors(&options, dir, families.into_iter().chain([default]))
            .map_err(|error| fault(dir, "opening", &error))?;
        let store = Self { db, path: dir.to_owned(), cache, statistics: options, measured: AtomicBool::new(false) };
        store.check_format()?;
        Ok(store)
    }

    /// Makes a snapshot in `dir`, which must not exist, mostly of hard links. It can be opened as a store.
    ///
    /// It holds every batch applied before; batches may be applied meanwhile. What it then holds of a later batch
    /// without its mark does no harm, since that batch is applied to it again.
    ///
    /// # Errors
    /// The disk.
    pub fn snapshot(&self, dir: &Path) -> Result<(), StateError> {
        Checkpoint::new(&self.db)
            .and_then(|checkpoint| checkpoint.create_checkpoint(dir))
            .map_err(|error| fault(&self.path, "making a snapshot", &error))
    }

    /// The batch that the store holds a part of, beside those whose mark it has. Only a snapshot that was made while a
    /// large batch was applied does.
    ///
    /// # Errors
    /// The disk, or damage.
    pub fn applying(&self) -> Result<Option<Applied>, StateError> {
        get(self, Family::Meta, APPLYING)?.map(|bytes| Applied::from_bytes(&bytes)).transpose()
    }

    /// The folder of the store.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn check_format(&self) -> Result<(), StateError> {
        match get(self, Family::Meta, FORMAT)? {
            None => {
                let mut batch = WriteBatch::new();
                batch.put_cf(self.family(Family::Meta)?, FORMAT, FORMAT_VERSION.to_le_bytes());
                self.write(batch)
            }
            Some(found) if found == FORMAT_VERSION.to_le_bytes() => Ok(()),
            Some(found) => {
                let found = match <[u8; 4]>::try_from(found.as_slice()) {
                    Ok(version) => u32::from_le_bytes(version).to_string(),
                    Err(_) => "unknown".to_owned(),
                };
                Err(StateError::Format { found, supported: FORMAT_VERSION })
            }
        }
    }

    fn family(&self, family: Family) -> Result<&ColumnFamily, StateError> {
        self.db.cf_handle(family.name()).ok_or_else(|| self.damaged(format!("family {} is missing", family.name())))
    }

    /// Gives back the space of keys that have just been deleted: files that hold nothing else at once, what is left of
    /// the others by a compaction of that range.
    fn reclaim(&self, family: &ColumnFamily, from: &[u8], to: &[u8]) -> Result<(), StateError> {
        self.db
            .delete_file_in_range_cf(family, from, to)
            .map_err(|error| fault(&self.path, "giving back space", &error))?;
        self.db.compact_range_cf(family, Some(from), Some(to));
        Ok(())
    }

    fn write(&self, batch: WriteBatch) -> Result<(), StateError> {
        let mut options = WriteOptions::default();
        options.disable_wal(true);
        self.db.write_opt(batch, &options).map_err(|error| fault(&self.path, "writing", &error))
    }

    fn damaged(&self, message: String) -> StateError {
        StateError::Corrupt { place: self.path.display().to_string(), message }
    }
}

impl Reader for RocksStore {
    fn multi_get(
        &self,
        family: Family,
        sorted_keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), StateError> {
        debug_assert!(sorted_keys.is_sorted(), "multi_get wants sorted keys");
        let family = self.family(family)?;
        if let [key] = sorted_keys {
            let found = self.db.get_pinned_cf(family, key).map_err(|error| fault(&self.path, "reading", &error))?;
            visit(0, found.as_deref());
            return Ok(());
        }
        let found = self.db.batched_multi_get_cf(family, sorted_keys.iter().copied(), true);
        for (position, record) in found.into_iter().enumerate() {
            let record = record.map_err(|error| fault(&self.path, "reading", &error))?;
            visit(position, record.as_deref());
        }
        Ok(())
    }

    fn scan(&self, family: Family, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), StateError> {
        if from >= to {
            return Ok(());
        }
        // Both bounds, so that it never walks over what was deleted outside of them.
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(from);
        options.set_iterate_upper_bound(to);
        let mut iterator = self.db.raw_iterator_cf_opt(self.family(family)?, options);
        iterator.seek_to_first();
        while let Some((key, value)) = iterator.item() {
            if visit(key, value).is_break() {
                return Ok(());
            }
            iterator.next();
        }
        iterator.status().map_err(|error| fault(&self.path, "reading", &error))
    }
}

impl Store for RocksStore {
    fn apply(&self, changes: &[Changes], applied: Applied) -> Result<(), StateError> {
        let families = [Family::Meta, Family::State, Family::Ttl, Family::Timers];
        let [meta, state, ttl, timers] = families.map(|family| self.family(family));
        let (meta, state, ttl, timers) = (meta?, state?, ttl?, timers?);
        let mut batch = WriteBatch::new();
        let (mut in_parts, mut ranges) = (false, Vec::new());
        for change in changes.iter().flat_map(Changes::iter) {
            let change = change?;
            let family = match change.family {
                Family::Meta => meta,
                Family::State => state,
                Family::Ttl => ttl,
                Family::Timers => timers,
            };
            match change.operation {
                Operation::Put(value) => batch.put_cf(family, change.key, value),
                Operation::Delete => batch.delete_cf(family, change.key),
                Operation::DeleteBelow(to) => {
                    batch.delete_range_cf(family, change.key, to);
                    ranges.push((family, change.key, to));
                }
            }
            if batch.size_in_bytes() >= WRITE_BATCH_BYTES {
                batch.put_cf(meta, APPLYING, applied.to_bytes());
                in_parts = true;
                self.write(std::mem::take(&mut batch))?;
            }
        }
        if in_parts {
            batch.delete_cf(meta, APPLYING);
        }
        batch.put_cf(meta, APPLIED, applied.to_bytes());
        self.write(batch)?;
        ranges.into_iter().try_for_each(|(family, from, to)| self.reclaim(family, from, to))
    }

    fn applied(&self) -> Result<Applied, StateError> {
        get(self, Family::Meta, APPLIED)?.map_or(Ok(Applied::default()), |bytes| Applied::from_bytes(&bytes))
    }

    fn measure(&self) {
        // Counters only: to measure times costs two looks at the clock per read.
        self.statistics.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
        self.measured.store(true, Ordering::Relaxed);
    }

    fn metrics(&self) -> StoreMetrics {
        let sum = |property: &PropName| {
            let of = |family: &Family| {
                let handle = self.db.cf_handle(family.name())?;
                self.db.property_int_value_cf(handle, property).ok().flatten()
            };
            Family::ALL.iter().filter_map(of).sum::<u64>()
        };
        let count = |ticker| self.statistics.get_ticker_count(ticker);
        StoreMetrics {
            disk_bytes: sum(TOTAL_SST_FILES_SIZE),
            memory_bytes: sum(SIZE_ALL_MEM_TABLES) + sum(ESTIMATE_TABLE_READERS_MEM) + self.cache.get_usage() as u64,
            pinned_bytes: self.cache.get_pinned_usage() as u64,
            activity: self.measured.load(Ordering::Relaxed).then(|| StoreActivity {
                gets: count(Ticker::NumberKeysRead) + count(Ticker::NumberMultigetKeysRead),
                puts: count(Ticker::NumberKeysWritten),
                read_bytes: count(Ticker::BytesRead) + count(Ticker::NumberMultigetBytesRead),
                scanned_bytes: count(Ticker::IterBytesRead),
                written_bytes: count(Ticker::BytesWritten),
                flushed_bytes: count(Ticker::FlushWriteBytes),
                compaction_read_bytes: count(Ticker::CompactReadBytes),
                compaction_written_bytes: count(Ticker::CompactWriteBytes),
                compaction_us: count(Ticker::CompactionCpuTotalTime),
                cache_hits: count(Ticker::BlockCacheHit),
                cache_misses: count(Ticker::BlockCacheMiss),
                stall_us: count(Ticker::StallMicros),
            }),
        }
    }
}

impl std::fmt::Debug for RocksStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RocksStore").field("path", &self.path).finish_non_exhaustive()
    }
}

fn family_options(family: Family, cache: &Cache, settings: &RocksSettings) -> Result<Options, Error> {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_size(BLOCK_BYTES);
    blocks.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    blocks.set_data_block_hash_ratio(BLOCK_HASH_SHARE);
    blocks.set_bloom_filter(BLOOM_BITS, false);
    blocks.set_whole_key_filtering(true);
    blocks.set_block_cache(cache);
    // Counted against the cache, so that its size bounds the memory of a large state.
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
    let mut options = Options::default();
    if family == Family::State {
        options = options.get_options_from_string(SORTED_ACCESS)?;
    }
    options.set_block_based_table_factory(&blocks);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_write_buffer_size(settings.write_buffer_bytes);
    options.set_memtable_prefix_bloom_ratio(WRITE_BUFFER_BLOOM_SHARE);
    options.set_memtable_whole_key_filtering(true);
    options.set_level_compaction_dynamic_level_bytes(true);
    Ok(options)
}

fn fault(path: &Path, operation: &'static str, error: &Error) -> StateError {
    let message = error.to_string();
    match error.kind() {
        ErrorKind::Corruption => StateError::Corrupt { place: path.display().to_string(), message },
        // RocksDB has no code for it; these are its words, for a lock of this process and of another.
        ErrorKind::IOError if message.contains("lock hold by") || message.contains("While lock file") => {
            StateError::Locked { path: path.to_owned(), message }
        }
        _ => StateError::Storage { path: path.to_owned(), operation, message },
    }
}
