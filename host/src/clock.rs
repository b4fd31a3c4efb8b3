//! Where time comes from. Nothing else in the host reads the wall clock.
//!
//! A batch's processing time is fixed when the batch is planned; guests, timers and TTL see only that.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What time it is, in milliseconds since the epoch, UTC.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// The time now, as the batch numbered `batch` sees it. None: a script of times has no entry for that batch.
    fn now_ms(&self, batch: u64) -> Option<i64>;
}

/// The machine's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self, _batch: u64) -> Option<i64> {
        Some(wall_ms())
    }
}

/// A clock that a test moves by hand.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that stands at `now_ms`.
    pub fn at(now_ms: i64) -> Self {
        Self(AtomicI64::new(now_ms))
    }

    /// Moves the clock.
    pub fn set(&self, now_ms: i64) {
        self.0.store(now_ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self, _batch: u64) -> Option<i64> {
        Some(self.0.load(Ordering::SeqCst))
    }
}

/// A script of times (`run --clock FILE`): entry n is the time of batch n, so that a run after a crash sees the times
/// of an undisturbed one.
#[derive(Debug)]
pub struct ScriptedClock(Vec<i64>);

impl ScriptedClock {
    /// One entry per batch, in milliseconds.
    pub fn new(times_ms: Vec<i64>) -> Self {
        Self(times_ms)
    }
}

impl Clock for ScriptedClock {
    fn now_ms(&self, batch: u64) -> Option<i64> {
        self.0.get(usize::try_from(batch).ok()?).copied()
    }
}

/// Measures how long something took, for metrics and waiting only: never for a result.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[expect(clippy::disallowed_methods, reason = "this is the place that measures")]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    /// Since the start, in whole milliseconds.
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the place that reads the clock")]
fn wall_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
