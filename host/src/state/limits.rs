//! Bounds on what one worker's share of a batch may make of state, and on what the catalog keeps.

/// Bounds of a session, past which the batch fails with `STATE_LIMIT_EXCEEDED`, and of the catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StateLimits {
    /// Bytes of keys and rows written by one worker in one batch, as held in memory until the commit.
    pub write_bytes_max: usize,
    /// Timers of one grouping key.
    pub timers_per_key_max: usize,
    /// Elements of one list.
    pub list_elements_max: u64,
    /// Values that one worker's TTL sweep removes in one batch; the rest, hidden from every read, waits for the next
    /// sweep.
    pub ttl_evictions_max: usize,
    /// Value schemas that a variable may have had, today's included.
    pub value_schemas_max: u16,
}

impl Default for StateLimits {
    fn default() -> Self {
        Self {
            // A million keys with 200-byte rows fit; two workers stay within the memory of a small machine.
            write_bytes_max: 512 << 20,
            // A key's timers are one record, rewritten whole: at 10,000 it has 80 KB.
            timers_per_key_max: 10_000,
            // Elements are records of their own; this keeps a clear, which deletes each, within the write limit.
            list_elements_max: 1_000_000,
            // Some 100 MB of deletes.
            ttl_evictions_max: 500_000,
            // As many as the model that we follow allows; each is kept in the catalog for ever.
            value_schemas_max: 16,
        }
    }
}
