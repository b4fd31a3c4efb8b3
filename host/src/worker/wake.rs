//! What wakes a query that has nothing to do.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::ingest::DurableEnd;

/// News for a query's thread.
#[derive(Debug)]
pub(super) struct Wake {
    durable: DurableEnd,
    stop: Mutex<bool>,
    news: Condvar,
}

impl Wake {
    /// Of a query whose rows before `end` are durable.
    pub(super) fn new(end: u64) -> Self {
        Self { durable: DurableEnd::at(end), stop: Mutex::new(false), news: Condvar::new() }
    }

    /// Up to where its source reads.
    pub(super) fn durable(&self) -> &DurableEnd {
        &self.durable
    }

    /// Rows before this one are durable.
    pub(super) fn rows(&self, end: u64) {
        // Under the lock, so that a thread that is about to sleep does not miss it.
        let _stop = self.lock();
        self.durable.set(end);
        self.news.notify_all();
    }

    /// The query shall end.
    pub(super) fn stop(&self) {
        *self.lock() = true;
        self.news.notify_all();
    }

    /// Whether it shall.
    pub(super) fn stopped(&self) -> bool {
        *self.lock()
    }

    /// Sleeps until it shall end or there are rows behind `end`, at most so long.
    pub(super) fn wait_for_rows(&self, end: u64, at_most: Duration) {
        self.wait(at_most, |stop| !stop && self.durable.get() <= end);
    }

    /// Sleeps until it shall end, at most so long.
    pub(super) fn wait_for_stop(&self, at_most: Duration) {
        self.wait(at_most, |stop| !stop);
    }

    fn wait(&self, at_most: Duration, sleeps: impl Fn(bool) -> bool) {
        let waited = self.news.wait_timeout_while(self.lock(), at_most, |stop| sleeps(*stop));
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
