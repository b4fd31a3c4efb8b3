//! What the next batch consists of. Made in memory and nowhere else: a batch that is not committed is planned anew.

use super::commit::{BatchKind, Bootstrap, LeftOut, SourceRole};
use super::error::QueryError;
use super::operator::{TimeMode, TimerValues};
use super::query::{Query, Step};
use super::settings::Trigger;
use super::source::{Outlook, Slice};
use crate::clock::Stopwatch;
use crate::log::Durability;

/// What one batch consists of.
pub(super) struct Plan {
    pub(super) batch_id: u64,
    pub(super) kind: BatchKind,
    pub(super) role: SourceRole,
    pub(super) bootstrap: Bootstrap,
    pub(super) time: TimerValues,
    pub(super) slice: Slice,
    pub(super) read_ms: f64,
}

/// A batch, or none for now.
pub(super) enum Next {
    Batch(Plan),
    Nothing(Step),
}

/// Batches without rows in a row that event-time timers may cause while the watermark stands still. A processor that
/// re-arms a timer in the past would otherwise keep the query busy for ever.
const ROWLESS_IN_EVENT_TIME_MAX: u32 = 100;

/// Plans the next batch, reading its rows.
pub(super) fn next(query: &mut Query) -> Result<Next, QueryError> {
    if query.bootstrapping() {
        return bootstrap(query);
    }
    let watch = Stopwatch::start();
    let limits = query.settings.read;
    let slice = query.input.next(&limits).map_err(|source| query.source_failed(SourceRole::Input, source))?;
    match slice {
        Some(slice) => {
            let read_ms = watch.elapsed().as_secs_f64() * 1e3;
            let now_ms = query.now_ms().ok_or(QueryError::ClockExhausted { batch_id: query.head.next_batch() })?;
            query.rowless.reset();
            Ok(Next::Batch(plan(query, BatchKind::Input, SourceRole::Input, now_ms, slice, read_ms)))
        }
        None => without_rows(query),
    }
}

fn bootstrap(query: &mut Query) -> Result<Next, QueryError> {
    let watch = Stopwatch::start();
    let limits = query.settings.read;
    let Some(source) = &mut query.initial_state else { return Ok(Next::Nothing(Step::Idle)) };
    let slice = source.next(&limits).map_err(|error| query.source_failed(SourceRole::InitialState, error))?;
    let read_ms = watch.elapsed().as_secs_f64() * 1e3;
    let done = slice.is_none() || query.initial_state.as_ref().is_some_and(|source| source.outlook() == Outlook::Ended);
    let now_ms = query.now_ms().ok_or(QueryError::ClockExhausted { batch_id: query.head.next_batch() })?;
    let slice = slice.unwrap_or_default();
    let mut plan = plan(query, BatchKind::Bootstrap, SourceRole::InitialState, now_ms, slice, read_ms);
    plan.bootstrap = if done { Bootstrap::Done } else { Bootstrap::Running };
    Ok(Next::Batch(plan))
}

fn without_rows(query: &mut Query) -> Result<Next, QueryError> {
    let now_ms = query.now_ms();
    if due(query, now_ms) {
        let now_ms = now_ms.ok_or(QueryError::ClockExhausted { batch_id: query.head.next_batch() })?;
        let waits = query.settings.trigger != Trigger::AvailableNow
            && query.rowless.elapsed_ms().is_some_and(|ms| ms < query.settings.min_batch_interval_ms);
        if waits {
            return Ok(Next::Nothing(Step::Waiting));
        }
        query.rowless.begin();
        let plan = plan(query, BatchKind::Rowless, SourceRole::Input, now_ms, Slice::default(), 0.0);
        return Ok(Next::Batch(plan));
    }
    leave_out(query)?;
    Ok(Next::Nothing(match query.input.outlook() {
        // Whether anything will be due by the clock, a script that has ended does not tell.
        _ if now_ms.is_none() => Step::Ended,
        Outlook::Open => Step::Waiting,
        Outlook::Growing => Step::Idle,
        Outlook::Ended if waits_for_timers(query) => Step::Idle,
        Outlook::Ended => Step::Ended,
    }))
}

/// Whether a batch without rows has something to do. Event time goes on also where a script of times has ended.
fn due(query: &mut Query, now_ms: Option<i64>) -> bool {
    let timer = query.due.earliest_timer_ms();
    match query.pipeline.info.time_mode {
        TimeMode::None => false,
        TimeMode::ProcessingTime => {
            now_ms.is_some_and(|now_ms| timer.is_some_and(|at| at <= now_ms) || sweep_due(query, now_ms))
        }
        TimeMode::EventTime => {
            let watermark_ms = query.head.watermark.next_ms();
            if watermark_ms > query.head.watermark.last_ms() {
                query.rowless.reset();
            }
            let due = timer.filter(|&at| at <= watermark_ms);
            if let Some(at_ms) = due
                && query.rowless.in_a_row() >= ROWLESS_IN_EVENT_TIME_MAX
            {
                query.rowless.warn_once(at_ms);
                return false;
            }
            due.is_some()
        }
    }
}

/// Expired state alone wakes a query only now and then; a query that ends leaves it for the next start.
fn sweep_due(query: &Query, now_ms: i64) -> bool {
    query.settings.trigger != Trigger::AvailableNow
        && query.due.earliest_ttl_ms().is_some_and(|at| at <= now_ms)
        && now_ms.saturating_sub(query.head.last_time_ms)
            >= i64::try_from(query.settings.ttl_sweep_ms).unwrap_or(i64::MAX)
}

/// A drained source ends a query, unless timers of the clock are still to come and the trigger goes on.
fn waits_for_timers(query: &Query) -> bool {
    query.settings.trigger != Trigger::AvailableNow
        && query.pipeline.info.time_mode == TimeMode::ProcessingTime
        && query.due.earliest_timer_ms().is_some()
}

/// A batch that does not run because it has no rows still counts for lateness.
fn leave_out(query: &mut Query) -> Result<(), QueryError> {
    let watermark_ms = query.head.watermark.next_ms();
    if watermark_ms > query.head.watermark.last_ms() {
        query.committing = true;
        LeftOut { watermark_ms }.append(&mut query.log, Durability::WithNext)?;
        query.committing = false;
        query.head.watermark = query.head.watermark.after_left_out();
    }
    Ok(())
}

fn plan(query: &Query, kind: BatchKind, role: SourceRole, now_ms: i64, slice: Slice, read_ms: f64) -> Plan {
    Plan {
        batch_id: query.head.next_batch(),
        kind,
        role,
        bootstrap: query.head.bootstrap,
        time: TimerValues {
            processing_time_ms: now_ms,
            watermark_ms: match kind {
                BatchKind::Bootstrap => query.head.watermark.last_ms(),
                BatchKind::Input | BatchKind::Rowless => query.head.watermark.next_ms(),
            },
        },
        slice,
        read_ms,
    }
}
