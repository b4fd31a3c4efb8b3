//! How much a guest may take, and the limiter that wasmtime asks before memory and tables grow.
//!
//! Every limit has a default that all examples run at. A limit that is passed stops the batch with a stable code and the
//! name of the setting, never the host.

use std::time::Duration;

use wasmtime::ResourceLimiter;

use super::engine::TICK;

/// What one instance, that is one worker in one batch, may use.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Linear memory, all memories of the instance together.
    pub memory_bytes: usize,
    /// Elements of each table.
    pub table_elements: usize,
    /// Linear memories.
    pub memories: usize,
    /// Tables.
    pub tables: usize,
    /// Core instances.
    pub instances: usize,
    /// Time that a guest may spend on one chunk; with [`super::Metering::Epoch`] only.
    pub chunk_time_ms: u64,
    /// Instructions that a guest may spend on one chunk; with [`super::Metering::Fuel`] only.
    pub chunk_fuel: u64,
    /// Calls of host functions for one chunk.
    pub chunk_host_calls: u32,
    /// Bytes that a guest may hand over in one call of a host function.
    pub host_call_bytes: usize,
    /// Reads of lists, maps and timers that have further pages, at the same time.
    pub open_cursors: usize,
    /// Text that is logged or printed in one batch.
    pub log_bytes: usize,
    /// Lines that are logged or printed in one batch.
    pub log_lines: usize,
    /// Length of a schema in DDL.
    pub schema_bytes: usize,
    /// Resources of the virtual WASI (streams, pollables) at the same time.
    pub wasi_resources: usize,
}

/// A JavaScript guest lets its heap grow to about 95 MiB before it collects for the first time.
const MEMORY_BYTES: usize = 128 << 20;
/// CPython has about 7,700 functions in its table; large compiled programs some ten thousand.
const TABLE_ELEMENTS: usize = 100_000;
/// A Python component has two memories, its own and that of its adapters; the rest is for composed components.
const MEMORIES: usize = 8;
/// As [`MEMORIES`], with a table for each core module and for the shims of the component.
const TABLES: usize = 64;
/// A Python component has 14 core modules; one that is composed of several has a few times that.
const INSTANCES: usize = 256;
/// A chunk is 128 KiB: milliseconds for any language. Ten seconds are a loop that does not end, or a machine so busy
/// that stopping is right.
const CHUNK_TIME_MS: u64 = 10_000;
/// About ten seconds of compiled code at one instruction a nanosecond.
const CHUNK_FUEL: u64 = 10_000_000_000;
/// A chunk has at most about 5,000 rows; this allows two hundred reads for each.
const CHUNK_HOST_CALLS: u32 = 1_000_000;
/// SDKs apply at 64 KiB; a single row of some MiB must pass as well.
const HOST_CALL_BYTES: usize = 4 << 20;
/// Nested loops over a few lists or maps; more is a reader that forgets its cursors.
const OPEN_CURSORS: usize = 64;
/// More than anybody reads for one batch, little enough to keep for all workers.
const LOG_BYTES: usize = 256 << 10;
/// As [`LOG_BYTES`].
const LOG_LINES: usize = 1_000;
/// 1,024 columns of 60 characters.
const SCHEMA_BYTES: usize = 64 << 10;
/// A runtime opens three streams and polls a few timers.
const WASI_RESOURCES: usize = 1_024;

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: MEMORY_BYTES,
            table_elements: TABLE_ELEMENTS,
            memories: MEMORIES,
            tables: TABLES,
            instances: INSTANCES,
            chunk_time_ms: CHUNK_TIME_MS,
            chunk_fuel: CHUNK_FUEL,
            chunk_host_calls: CHUNK_HOST_CALLS,
            host_call_bytes: HOST_CALL_BYTES,
            open_cursors: OPEN_CURSORS,
            log_bytes: LOG_BYTES,
            log_lines: LOG_LINES,
            schema_bytes: SCHEMA_BYTES,
            wasi_resources: WASI_RESOURCES,
        }
    }
}

/// A pointer.
const TABLE_ELEMENT_BYTES: usize = 8;

impl Limits {
    /// The deadline of a chunk in epochs. One more than the division says, since the first tick may come at once.
    pub(super) fn chunk_epochs(&self) -> u64 {
        Duration::from_millis(self.chunk_time_ms).as_millis().div_ceil(TICK.as_millis()) as u64 + 1
    }
}

/// Counts what one instance has, and remembers what it was refused: a guest that gets no memory usually dies of
/// something else a moment later.
#[derive(Debug)]
pub(super) struct Limiter {
    memory_bytes_max: usize,
    table_elements_max: usize,
    memories_max: usize,
    tables_max: usize,
    instances_max: usize,
    memory_bytes: usize,
    granted_last: usize,
    table_elements: usize,
    refused: Option<String>,
    machine_lacks: Option<String>,
}

impl Limiter {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            memory_bytes_max: limits.memory_bytes,
            table_elements_max: limits.table_elements,
            memories_max: limits.memories,
            tables_max: limits.tables,
            instances_max: limits.instances,
            memory_bytes: 0,
            granted_last: 0,
            table_elements: 0,
            refused: None,
            machine_lacks: None,
        }
    }

    /// What was refused last, as a sentence with the setting to raise.
    pub(super) fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Set once the machine had no memory that the guest may have: whatever the guest then fails of, it is not its fault.
    pub(super) fn machine_lacks(&self) -> Option<&str> {
        self.machine_lacks.as_deref()
    }

    /// Linear memory and tables. Neither ever shrinks, so this is also the most that there was.
    pub(super) fn bytes(&self) -> usize {
        self.memory_bytes.saturating_add(self.table_elements.saturating_mul(TABLE_ELEMENT_BYTES))
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        self.granted_last = 0;
        let more = desired.saturating_sub(current);
        let total = self.memory_bytes.saturating_add(more);
        if total > self.memory_bytes_max {
            self.refused = Some(format!(
                "it asked for {total} bytes of memory, it may have {}; keep less in memory, or raise limits.sandbox.memory_bytes",
                self.memory_bytes_max
            ));
            return Ok(false);
        }
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.memory_bytes = total;
        self.granted_last = more;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, error: wasmtime::Error) -> wasmtime::Result<()> {
        // One that was not granted failed at the memory's own maximum.
        let granted = std::mem::take(&mut self.granted_last);
        self.memory_bytes = self.memory_bytes.saturating_sub(granted);
        if granted > 0 {
            self.machine_lacks = Some(format!("the machine has no memory for it: {error:#}"));
        }
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if desired > self.table_elements_max {
            self.refused = Some(format!(
                "it asked for a table of {desired} elements, it may have {}; raise limits.sandbox.table_elements",
                self.table_elements_max
            ));
            return Ok(false);
        }
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.table_elements = self.table_elements.saturating_add(desired.saturating_sub(current));
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.instances_max
    }

    fn tables(&self) -> usize {
        self.tables_max
    }

    fn memories(&self) -> usize {
        self.memories_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(memory_bytes: usize) -> Limiter {
        Limiter::new(&Limits { memory_bytes, ..Limits::default() })
    }

    #[test]
    fn memories_are_counted_together() {
        let mut limiter = limiter(100);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(limiter.memory_growing(0, 40, None).unwrap());
        assert!(!limiter.memory_growing(40, 41, None).unwrap());
        assert_eq!(limiter.bytes(), 100);
    }

    #[test]
    fn tables_are_counted_with_what_they_have() {
        let mut limiter = limiter(100);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(limiter.table_growing(0, 10, Some(20)).unwrap());
        assert!(limiter.table_growing(10, 15, Some(20)).unwrap());
        assert!(!limiter.table_growing(15, 21, Some(20)).unwrap());
        assert_eq!(limiter.bytes(), 60 + 15 * TABLE_ELEMENT_BYTES);
    }

    #[test]
    fn what_was_refused_names_the_setting() {
        let mut limiter = limiter(100);
        assert!(!limiter.memory_growing(0, 101, None).unwrap());
        assert!(limiter.refused().unwrap().contains("limits.sandbox.memory_bytes"));
    }

    #[test]
    fn a_growth_that_failed_is_not_counted() {
        let mut limiter = limiter(100);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        limiter.memory_grow_failed(wasmtime::Error::msg("no memory")).unwrap();
        assert_eq!(limiter.bytes(), 0);
        assert!(limiter.refused().is_none() && limiter.machine_lacks().is_some());
    }

    #[test]
    fn a_failure_at_the_memorys_own_maximum_is_not_subtracted() {
        let mut limiter = limiter(100);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.memory_growing(60, 80, Some(70)).unwrap());
        assert_eq!(limiter.bytes(), 60);
    }

    #[test]
    fn settings_are_read_with_defaults_and_unknown_ones_refused() {
        let limits: Limits = serde_json::from_str(r#"{"memory_bytes": 1048576}"#).unwrap();
        assert_eq!(limits.memory_bytes, 1 << 20);
        assert_eq!(limits.open_cursors, OPEN_CURSORS);
        assert!(serde_json::from_str::<Limits>(r#"{"memory": 1}"#).is_err());
    }

    #[test]
    fn a_deadline_is_never_shorter_than_asked_for() {
        let limits = Limits { chunk_time_ms: 15, ..Limits::default() };
        assert_eq!(limits.chunk_epochs(), 3);
    }
}
