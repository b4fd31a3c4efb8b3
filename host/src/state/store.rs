//! What a store of bytes can do. Two implementations: [`super::RocksStore`] on disk and [`super::MemoryStore`].

use std::ops::ControlFlow;

use super::changes::Changes;
use super::error::StateError;

/// A key space of its own; a column family in RocksDB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Family {
    /// Format, catalog of variables, marker of the batch applied.
    Meta = 0,
    /// Values, lists, maps, and the timers of each key.
    State = 1,
    /// Index of what expires, by time.
    Ttl = 2,
    /// Index of timers, by time.
    Timers = 3,
}

impl Family {
    /// All of them, in the order of their bytes.
    pub const ALL: [Self; 4] = [Self::Meta, Self::State, Self::Ttl, Self::Timers];

    /// The name of the column family.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::State => "state",
            Self::Ttl => "ttl",
            Self::Timers => "timers",
        }
    }

    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|family| *family as u8 == byte)
    }
}

/// Which batch a store holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Applied {
    /// The last batch applied; None before the first.
    pub batch: Option<u64>,
    /// Grows with every rollback.
    pub generation: u32,
}

/// Sizes of a store, and what it did. Estimates, except where it is in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreMetrics {
    /// Bytes on disk; 0 in memory.
    pub disk_bytes: u64,
    /// Bytes of memory: write buffers, block cache and table readers, or the records themselves.
    pub memory_bytes: u64,
    /// Bytes of the block cache that are in use and cannot be evicted.
    pub pinned_bytes: u64,
    /// Since [`Store::measure`]; None before, and for a store in memory.
    pub activity: Option<StoreActivity>,
}

/// What a store on disk did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreActivity {
    /// Keys looked up.
    pub gets: u64,
    /// Keys put or deleted.
    pub puts: u64,
    /// Bytes of values found by lookups.
    pub read_bytes: u64,
    /// Bytes of keys and values found by scans.
    pub scanned_bytes: u64,
    /// Bytes of keys and values put or deleted.
    pub written_bytes: u64,
    /// Bytes of files written from write buffers.
    pub flushed_bytes: u64,
    /// Bytes that compactions read.
    pub compaction_read_bytes: u64,
    /// Bytes that compactions wrote.
    pub compaction_written_bytes: u64,
    /// CPU microseconds of compactions.
    pub compaction_us: u64,
    /// Blocks found in the cache.
    pub cache_hits: u64,
    /// Blocks read from files.
    pub cache_misses: u64,
    /// Microseconds that writes waited because flushes or compactions lag behind.
    pub stall_us: u64,
}

/// Sees a key and its value, and breaks to end the scan.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// Reads of committed state. Nothing of it changes while a batch runs.
pub trait Reader {
    /// Looks up keys, which must be sorted, and tells for each, by its position and in order, what is there.
    ///
    /// # Errors
    /// The disk, or damage.
    fn multi_get(
        &self,
        family: Family,
        sorted_keys: &[&[u8]],
        visit: &mut dyn FnMut(usize, Option<&[u8]>),
    ) -> Result<(), StateError>;

    /// Visits keys and values from `from` on, below `to`, in order of the keys, until `visit` breaks.
    ///
    /// # Errors
    /// The disk, or damage.
    fn scan(&self, family: Family, from: &[u8], to: &[u8], visit: &mut Visit<'_>) -> Result<(), StateError>;
}

/// A store of bytes: reads, and one way to change it.
pub trait Store: Reader + Send + Sync {
    /// Applies the changes of a batch and then marks the batch as applied. To apply them again changes nothing.
    ///
    /// After an error the store may hold a part of the batch without its mark: it must be made anew from a snapshot.
    ///
    /// # Errors
    /// The disk, or damage in `changes`.
    fn apply(&self, changes: &[Changes], applied: Applied) -> Result<(), StateError>;

    /// The batch that the store holds.
    ///
    /// # Errors
    /// The disk, or damage.
    fn applied(&self) -> Result<Applied, StateError>;

    /// Counts from here on what [`StoreMetrics::activity`] tells.
    fn measure(&self) {}

    /// Sizes and counters, for progress reports.
    fn metrics(&self) -> StoreMetrics;
}

/// Looks up one key.
pub(crate) fn get(reader: &(impl Reader + ?Sized), family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, StateError> {
    let mut found = None;
    reader.multi_get(family, &[key], &mut |_, value| found = value.map(<[u8]>::to_vec))?;
    Ok(found)
}

/// As [`Visit`], with errors.
pub(crate) type CheckedVisit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, StateError> + 'a;

/// A scan that ends, besides, at the first error of `visit`.
pub(crate) fn scan_checked(
    reader: &(impl Reader + ?Sized),
    family: Family,
    from: &[u8],
    to: &[u8],
    visit: &mut CheckedVisit<'_>,
) -> Result<(), StateError> {
    let mut result = Ok(());
    reader.scan(family, from, to, &mut |key, value| {
        visit(key, value).unwrap_or_else(|error| {
            result = Err(error);
            ControlFlow::Break(())
        })
    })?;
    result
}

impl Applied {
    pub(crate) fn to_bytes(self) -> [u8; 13] {
        let mut bytes = [0; 13];
        let (has, rest) = bytes.split_at_mut(1);
        has.fill(u8::from(self.batch.is_some()));
        let (batch, generation) = rest.split_at_mut(8);
        batch.copy_from_slice(&self.batch.unwrap_or(0).to_le_bytes());
        generation.copy_from_slice(&self.generation.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, StateError> {
        let parsed = bytes.split_first().and_then(|(has, rest)| {
            let (batch, rest) = rest.split_first_chunk::<8>()?;
            let generation: [u8; 4] = rest.try_into().ok()?;
            let batch = match has {
                0 => None,
                1 => Some(u64::from_le_bytes(*batch)),
                _ => return None,
            };
            Some(Self { batch, generation: u32::from_le_bytes(generation) })
        });
        parsed.ok_or_else(|| StateError::corrupt("family Meta", "the marker of the batch applied is not one"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_reads_as_it_was_written() {
        for applied in [
            Applied::default(),
            Applied { batch: Some(0), generation: 3 },
            Applied { batch: Some(u64::MAX), generation: 0 },
        ] {
            assert_eq!(Applied::from_bytes(&applied.to_bytes()).unwrap(), applied);
        }
        assert_eq!(Applied::from_bytes(b"x").unwrap_err().code(), "STATE_CORRUPT");
    }
}
