//! What the next batch consists of. Made in memory and nowhere else: a batch that is not committed is planned anew.

use arrow_array::RecordBatch;

use super::commit::{BatchKind, Bootstrap, LeftOut};
use super::error::QueryError;
use super::operator::{TimeMode, TimerValues};
use super::query::{Query, RunningStep, SourceOf, Step};
use super::settings::Trigger;
use super::source::{Outlook, RejectedRow, Slice};
use crate::clock::Stopwatch;
use crate::log::Durability;

/// What one batch consists of.
pub(super) struct Plan {
    pub(super) batch_id: u64,
    pub(super) kind: BatchKind,
    /// The step whose initial state it reads, and how far that has then been read.
    pub(super) bootstraps: Option<(usize, Bootstrap)>,
    pub(super) time: TimerValues,
    /// What was read, of each source.
    pub(super) slices: Vec<(SourceOf, Slice)>,
    /// Rows that a step emitted and the next does not take, found while the batch runs.
    pub(super) rejected_between: Vec<RejectedRow>,
    pub(super) read_ms: f64,
}

impl Plan {
    /// The step that what was read is for.
    pub(super) fn first_step(&self) -> usize {
        self.bootstraps.map_or(0, |(step, _)| step)
    }

    /// The rows that were read.
    pub(super) fn batches(&self) -> Vec<RecordBatch> {
        self.slices.iter().flat_map(|(_, slice)| slice.batches.iter().cloned()).collect()
    }

    /// Rows that do not fit, in order.
    pub(super) fn rejected(&self) -> impl Iterator<Item = &RejectedRow> {
        self.slices.iter().flat_map(|(_, slice)| &slice.rejected).chain(&self.rejected_between)
    }

    /// How far the initial state of a step will have been read.
    pub(super) fn bootstrap(&self, query: &Query, number: usize) -> Bootstrap {
        match self.bootstraps {
            Some((step, reached)) if step == number => reached,
            _ if query.bootstraps(number) => Bootstrap::Running,
            _ => query.head.step(number).bootstrap,
        }
    }
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
    if let Some(step) = (0..query.steps.len()).find(|step| query.bootstraps(*step)) {
        return bootstrap(query, step);
    }
    let watch = Stopwatch::start();
    let slices = query.inputs.next(&query.settings.read, &query.head.watermark)?;
    if slices.is_empty() {
        return without_rows(query);
    }
    let read_ms = watch.elapsed().as_secs_f64() * 1e3;
    let now_ms = query.now_ms().ok_or(QueryError::ClockExhausted { batch_id: query.head.next_batch() })?;
    query.rowless.reset();
    let slices = slices.into_iter().map(|(source, slice)| (SourceOf::Input { source }, slice)).collect();
    Ok(Next::Batch(Plan { read_ms, slices, ..plan(query, BatchKind::Input, now_ms) }))
}

fn bootstrap(query: &mut Query, step: usize) -> Result<Next, QueryError> {
    let watch = Stopwatch::start();
    let (limits, of) = (query.settings.read, SourceOf::InitialState { step });
    let Some(source) = query.steps.get_mut(step).and_then(|step| step.initial_state.as_mut()) else {
        return Ok(Next::Nothing(Step::Idle));
    };
    let failed = |name: String, source| QueryError::Source { source_name: name, source };
    let slice = source.next(&limits).map_err(|error| failed(source.describe(), error))?;
    let read_ms = watch.elapsed().as_secs_f64() * 1e3;
    let done = slice.is_none() || source.outlook() == Outlook::Ended;
    let now_ms = query.now_ms().ok_or(QueryError::ClockExhausted { batch_id: query.head.next_batch() })?;
    let reached = if done { Bootstrap::Done } else { Bootstrap::Running };
    Ok(Next::Batch(Plan {
        bootstraps: Some((step, reached)),
        slices: vec![(of, slice.unwrap_or_default())],
        read_ms,
        ..plan(query, BatchKind::Bootstrap, now_ms)
    }))
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
        return Ok(Next::Batch(plan(query, BatchKind::Rowless, now_ms)));
    }
    leave_out(query, now_ms)?;
    Ok(Next::Nothing(match query.inputs.outlook() {
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
    let watermark_ms = query.next_watermark_ms(now_ms);
    if query.fires_in_event_time() && watermark_ms > query.head.watermark.last_ms() {
        query.rowless.reset();
    }
    let due_by_clock = now_ms.is_some_and(|now_ms| {
        query.steps.iter().any(|step| timer_due_by_clock(query, step, now_ms) || sweep_due(query, step, now_ms))
    });
    if due_by_clock {
        return true;
    }
    let in_event_time = query.steps.iter().filter(|step| step.pipeline.info.time_mode == TimeMode::EventTime);
    let earliest_ms = in_event_time.filter_map(|step| step.due.earliest_timer_ms()).min();
    match earliest_ms.filter(|&at_ms| at_ms <= watermark_ms) {
        Some(at_ms) if query.rowless.in_a_row() >= ROWLESS_IN_EVENT_TIME_MAX => {
            query.rowless.warn_once(at_ms);
            false
        }
        earliest_ms => earliest_ms.is_some(),
    }
}

/// How long until a batch without rows may have something to do, in milliseconds of the query's clock and never too long;
/// None: only rows can bring one. To be asked when there is nothing to do now.
pub(super) fn due_in_ms(query: &Query) -> Option<u64> {
    let now_ms = query.now_ms()?;
    let by_clock = query.steps.iter().filter(|step| step.pipeline.info.time_mode == TimeMode::ProcessingTime);
    let by_clock = by_clock.flat_map(|step| {
        let sweep_ms = query.head.last_time_ms.saturating_add_unsigned(query.settings.ttl_sweep_ms);
        let ttl_ms = step.due.earliest_ttl_ms().map(|at_ms| at_ms.max(sweep_ms));
        [step.due.earliest_timer_ms(), ttl_ms].into_iter().flatten()
    });
    let due_ms = by_clock.chain(due_in_event_time_ms(query, now_ms)).min()?;
    let wait_ms = u64::try_from(due_ms.saturating_sub(now_ms)).unwrap_or(0);
    let since_last_ms = query.rowless.elapsed_ms().unwrap_or(u64::MAX);
    Some(wait_ms.max(query.settings.min_batch_interval_ms.saturating_sub(since_last_ms)))
}

/// When a timer of event time may be due: now, or when a source that holds the watermark back falls idle.
fn due_in_event_time_ms(query: &Query, now_ms: i64) -> Option<i64> {
    let in_event_time = query.steps.iter().filter(|step| step.pipeline.info.time_mode == TimeMode::EventTime);
    let earliest_ms = in_event_time.filter_map(|step| step.due.earliest_timer_ms()).min()?;
    let watermark = &query.head.watermark;
    let watermark_ms = query.next_watermark_ms(Some(now_ms));
    let loops = query.rowless.in_a_row() >= ROWLESS_IN_EVENT_TIME_MAX && watermark_ms <= watermark.last_ms();
    if earliest_ms <= watermark_ms && !loops {
        return Some(now_ms);
    }
    let falls_idle = query.settings.sources.iter().filter_map(|input| {
        let time = watermark.source(&input.name)?;
        Some(time.active_ms.saturating_add_unsigned(input.idle_timeout_ms?))
    });
    falls_idle.filter(|&at_ms| at_ms > now_ms).min()
}

/// A timer of the clock that re-arms itself must not keep a query from ending that goes on in event time only.
fn timer_due_by_clock(query: &Query, step: &RunningStep, now_ms: i64) -> bool {
    let ends = query.settings.trigger == Trigger::AvailableNow && query.fires_in_event_time();
    step.pipeline.info.time_mode == TimeMode::ProcessingTime
        && step.due.earliest_timer_ms().is_some_and(|at_ms| at_ms <= now_ms)
        && !(ends && query.rowless.in_a_row() > 0)
}

/// Expired state alone wakes a query only now and then; a query that ends leaves it for the next start.
fn sweep_due(query: &Query, step: &RunningStep, now_ms: i64) -> bool {
    step.pipeline.info.time_mode == TimeMode::ProcessingTime
        && query.settings.trigger != Trigger::AvailableNow
        && step.due.earliest_ttl_ms().is_some_and(|at_ms| at_ms <= now_ms)
        && now_ms.saturating_sub(query.head.last_time_ms)
            >= i64::try_from(query.settings.ttl_sweep_ms).unwrap_or(i64::MAX)
}

/// A drained source ends a query, unless timers of the clock are still to come and the trigger goes on.
fn waits_for_timers(query: &Query) -> bool {
    let waits = |step: &RunningStep| {
        step.pipeline.info.time_mode == TimeMode::ProcessingTime && step.due.earliest_timer_ms().is_some()
    };
    query.settings.trigger != Trigger::AvailableNow && query.steps.iter().any(waits)
}

/// A batch that does not run because it has no rows still counts for lateness.
fn leave_out(query: &mut Query, now_ms: Option<i64>) -> Result<(), QueryError> {
    let watermark_ms = query.next_watermark_ms(now_ms);
    if watermark_ms > query.head.watermark.last_ms() {
        query.committing = true;
        LeftOut { watermark_ms }.append(&mut query.log, Durability::WithNext)?;
        query.committing = false;
        query.head.watermark.leave_out(watermark_ms);
    }
    Ok(())
}

/// A batch that has read nothing.
fn plan(query: &Query, kind: BatchKind, now_ms: i64) -> Plan {
    Plan {
        batch_id: query.head.next_batch(),
        kind,
        bootstraps: None,
        time: TimerValues {
            processing_time_ms: now_ms,
            watermark_ms: match kind {
                BatchKind::Bootstrap => query.head.watermark.last_ms(),
                BatchKind::Input | BatchKind::Rowless => query.next_watermark_ms(Some(now_ms)),
            },
        },
        slices: Vec::new(),
        rejected_between: Vec::new(),
        read_ms: 0.0,
    }
}
