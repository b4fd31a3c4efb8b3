//! Clocks, and what is said of many runs.

use std::fmt;

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this thread so far.
pub fn thread_cpu_ns() -> u64 {
    nanoseconds(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of this process so far.
pub fn process_cpu_ns() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The same thing measured several times.
#[derive(Debug, Default)]
pub struct Runs(Vec<f64>);

impl Runs {
    /// Adds a run; true if none was shorter.
    pub fn push(&mut self, run: f64) -> bool {
        let least = self.0.is_empty() || run < self.least();
        self.0.push(run);
        least
    }

    /// The least: what the work takes when nothing disturbs it.
    pub fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// The run that so many of a hundred are not longer than.
    pub fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or(f64::NAN)
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }
}

/// All runs, in order.
impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|run| write!(f, " {run:7.1}"))
    }
}
