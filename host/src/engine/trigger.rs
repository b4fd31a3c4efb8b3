//! When batches run, and how a running query is told to stop.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::error::QueryError;
use super::progress::Progress;
use super::query::{Query, Step};
use super::settings::Trigger;
use crate::clock::Stopwatch;

/// Asks a running query to end after the batch in hand. Cheap to clone; all clones are one.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<(Mutex<bool>, Condvar)>);

impl Stop {
    /// Asks.
    pub fn request(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    /// Whether someone asked.
    pub fn requested(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until someone asks, at most so long; whether someone did.
    pub fn wait(&self, at_most: Duration) -> bool {
        let asked = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (asked, _) =
            self.0.1.wait_timeout_while(asked, at_most, |asked| !*asked).unwrap_or_else(PoisonError::into_inner);
        *asked
    }
}

/// How often an idle query looks for new rows and due timers.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Runs batches by the query's trigger until it ends or is asked to stop. `report` sees every batch.
///
/// # Errors
/// The failure of a batch; nothing of that batch is committed, or it will be published by the next start.
pub fn run(query: &mut Query, stop: &Stop, report: &mut dyn FnMut(&Progress)) -> Result<(), QueryError> {
    match query.trigger() {
        Trigger::AvailableNow => run_available_now(query, stop, report),
        Trigger::Continuous => run_every(query, stop, report, Duration::ZERO),
        Trigger::Interval(interval_ms) => run_every(query, stop, report, Duration::from_millis(interval_ms)),
    }
}

fn run_available_now(query: &mut Query, stop: &Stop, report: &mut dyn FnMut(&Progress)) -> Result<(), QueryError> {
    while !stop.requested() {
        match query.step()? {
            Step::Ran(progress) => {
                report(&progress);
                // A timer that re-arms itself by the clock would keep a drained query busy for ever.
                if query.rowless.in_a_row() > 0 && !query.fires_in_event_time() {
                    break;
                }
            }
            Step::Waiting => drop(stop.wait(POLL_INTERVAL)),
            Step::Idle | Step::Ended => break,
        }
    }
    Ok(())
}

fn run_every(
    query: &mut Query,
    stop: &Stop,
    report: &mut dyn FnMut(&Progress),
    interval: Duration,
) -> Result<(), QueryError> {
    while !stop.requested() {
        let begun = Stopwatch::start();
        let wait = match query.step()? {
            Step::Ran(progress) => {
                report(&progress);
                interval.saturating_sub(begun.elapsed())
            }
            Step::Idle | Step::Waiting => interval.saturating_sub(begun.elapsed()).max(POLL_INTERVAL),
            Step::Ended => break,
        };
        if !wait.is_zero() {
            let _asked = stop.wait(wait);
        }
    }
    Ok(())
}
