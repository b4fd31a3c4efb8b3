//! A step of a query, ready to process batches: what the workers of one batch do, from grouped rows to state changes
//! and output. The same for a live batch and a replayed one.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;

use super::commit::{BatchKind, SkippedTimer};
use super::error::QueryError;
use super::faults;
use super::metrics::{Counted, Times};
use super::operator::{
    Closed, GroupedRows, Operator, OperatorError, OperatorPlan, QueryInfo, Task, TimeMode, TimerValues, Worker,
};
use super::output::{EventTimeGuard, Output, OutputLimits};
use super::route::{LateRows, Routed, Routing};
use super::settings::StepSettings;
use super::suspects;
use crate::clock::Stopwatch;
use crate::record::{GroupingKey, Schema};
use crate::state::{Changes, DueIndex, Finished, Scope, Session, StateLimits, Store, Variable};

/// One step of a query.
#[derive(Clone)]
pub struct Pipeline {
    /// What a person decided about it.
    pub settings: StepSettings,
    /// What processes the rows.
    pub operator: Arc<dyn Operator>,
    /// What it is told.
    pub info: Arc<QueryInfo>,
    /// What it answered.
    pub plan: Arc<OperatorPlan>,
    /// Its state variables.
    pub variables: Variables,
    /// How input rows reach it.
    pub routing: Routing,
    /// How rows of the initial state reach it.
    pub initial_routing: Option<Routing>,
    /// Columns that input rows must have a value in. Those of a source are held to it there.
    pub required: Schema,
    /// Whether the watermark comes as far as this step.
    pub sees_watermark: bool,
    /// Bounds per worker and batch.
    pub output_limits: OutputLimits,
    /// Bounds per worker and batch.
    pub state_limits: StateLimits,
    /// Where a large output is spilled.
    pub spill_folder: PathBuf,
}

/// The timers of a key that are due.
pub(super) struct DueTimers {
    /// The packed key row.
    pub(super) key: Vec<u8>,
    /// Ascending.
    pub(super) expiries_ms: Vec<i64>,
}

/// The state variables of a step, with their ids in the checkpoint.
#[derive(Debug, Clone)]
pub struct Variables {
    /// Those that the processor declares, in order.
    pub declared: Arc<[Variable]>,
    /// Ids of those that it drops, which are in the store until the first batch is committed.
    pub dropped: Arc<[u16]>,
}

/// What the workers of a batch need to know of it.
#[derive(Debug, Clone)]
pub struct BatchWork {
    /// The batch.
    pub batch_id: u64,
    /// What it consists of.
    pub kind: BatchKind,
    /// Its clock.
    pub time: TimerValues,
    /// The watermark of the batch before, by which rows are late.
    pub late_watermark_ms: i64,
}

/// A worker's part of a batch, before.
pub struct Share {
    /// Its key groups.
    pub key_groups: Range<u16>,
    /// Its rows.
    pub rows: GroupedRows,
    /// Whether the processor is needed at all: rows, or due timers.
    pub runs: Runs,
    /// Timers that are taken out instead of firing, of these key groups.
    pub skipped_timers: Vec<SkippedTimer>,
}

/// What a processor is given that runs without effect, to see whether it fails. It is not closed.
pub(super) struct Attempt<'a> {
    /// Key groups of its share.
    pub(super) key_groups: Range<u16>,
    /// Rows of the share.
    pub(super) rows: GroupedRows,
    /// The timers that fire; None: none does.
    pub(super) timers: Option<Fires<'a>>,
}

/// Timers that fire in an attempt.
pub(super) struct Fires<'a> {
    /// Those of these keys,
    pub(super) keys: Vec<&'a [u8]>,
    /// with an expiry at or before this one,
    pub(super) up_to_ms: i64,
    /// but for these.
    pub(super) skipped: &'a [SkippedTimer],
}

/// Whether a worker's instance runs in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// There are rows or due timers.
    Processor,
    /// Only expired state is removed.
    EvictionOnly,
}

/// A worker's part of a batch, after.
pub struct Done {
    /// Its key groups.
    pub key_groups: Range<u16>,
    /// Digest of what the processor was sent; None: it did not run.
    pub input_digest: Option<u128>,
    /// State changes.
    pub changes: Changes,
    /// Counts and times.
    pub counted: Counted,
    /// Emitted rows; None: the processor did not run.
    pub output: Option<Output>,
}

impl Pipeline {
    /// Runs every share on a thread of its own (a single one on this thread) and returns the results in range order.
    /// `rows` are those that the shares were routed from.
    ///
    /// # Errors
    /// The failure of the first worker in range order that failed, with the key at which it did where that can be found.
    pub fn process(
        &self,
        store: &Arc<dyn Store>,
        due: &Arc<DueIndex>,
        work: &BatchWork,
        rows: &[RecordBatch],
        shares: Vec<Share>,
    ) -> Result<Vec<Done>, QueryError> {
        let done = self.run_shares(store, due, work, shares).into_iter().collect::<Result<_, _>>();
        done.map_err(|error| suspects::name_key(self, store, due, work, rows, error))
    }

    /// As [`Self::process`], each share with its own outcome.
    pub(super) fn run_shares(
        &self,
        store: &Arc<dyn Store>,
        due: &Arc<DueIndex>,
        work: &BatchWork,
        shares: Vec<Share>,
    ) -> Vec<Result<Done, QueryError>> {
        let run = |share: Share| guarded(work.batch_id, || self.run_share(store, due, work, share));
        if shares.len() <= 1 {
            return shares.into_iter().map(run).collect();
        }
        std::thread::scope(|scope| {
            let workers: Vec<_> = shares.into_iter().map(|share| scope.spawn(|| run(share))).collect();
            let results: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
            results
                .into_iter()
                .map(|joined| joined.unwrap_or_else(|panic| Err(worker_panicked(work.batch_id, panic.as_ref()))))
                .collect()
        })
    }

    /// Routes input rows to the workers.
    ///
    /// # Errors
    /// As [`Routing::route`].
    pub fn route(&self, rows: &[RecordBatch], work: &BatchWork, horizons_us: &[i64]) -> Result<Routed, QueryError> {
        match (work.kind, &self.initial_routing) {
            (BatchKind::Bootstrap, Some(routing)) => routing.route(rows, LateRows::Keep, horizons_us),
            _ => self.routing.route(rows, self.late_rows(work), horizons_us),
        }
    }

    fn late_rows(&self, work: &BatchWork) -> LateRows {
        match self.info.time_mode {
            TimeMode::EventTime => LateRows::DropUpTo(work.late_watermark_ms),
            TimeMode::None | TimeMode::ProcessingTime => LateRows::Keep,
        }
    }

    /// The clock of a batch, as this step sees it.
    fn time(&self, time: TimerValues) -> TimerValues {
        TimerValues { watermark_ms: if self.sees_watermark { time.watermark_ms } else { 0 }, ..time }
    }

    fn event_time_guard(&self, work: &BatchWork) -> Option<EventTimeGuard> {
        let column = self.settings.output_event_time.as_ref()?;
        let output = &self.plan.output;
        output.index_of(column).map(|index| EventTimeGuard {
            column: column.clone(),
            index,
            columns: output.len(),
            watermark_ms: work.late_watermark_ms,
        })
    }

    /// The expiry up to which timers fire in a batch with this clock. None: there are no timers.
    pub fn timer_threshold_ms(&self, time: TimerValues) -> Option<i64> {
        match self.info.time_mode {
            TimeMode::None => None,
            TimeMode::ProcessingTime => Some(time.processing_time_ms),
            TimeMode::EventTime => Some(time.watermark_ms),
        }
    }

    fn run_share(
        &self,
        store: &Arc<dyn Store>,
        due: &Arc<DueIndex>,
        work: &BatchWork,
        share: Share,
    ) -> Result<Done, QueryError> {
        let Share { key_groups, rows, runs, skipped_timers } = share;
        let mut session = self.session(store, due, work, key_groups.clone());
        skip_timers(&mut session, &skipped_timers);
        let mut counted = Counted::default();
        let (mut session, output, input_digest) = match runs {
            Runs::EvictionOnly => (session, None, None),
            Runs::Processor => {
                let closed = self.run_operator(work, key_groups.clone(), rows, session, &mut counted.times)?;
                counted.fuel = closed.fuel;
                counted.sandbox_bytes = closed.sandbox_bytes;
                (closed.session, Some(closed.output), Some(closed.input_digest))
            }
        };
        timed(&mut counted.times.eviction, || session.evict_expired())?;
        let Finished { changes, metrics } = timed(&mut counted.times.changes, || session.finish())?;
        counted.state = metrics;
        Ok(Done { key_groups, input_digest, changes, counted, output })
    }

    /// How the processor fails that is given nothing but this key, its rows and its timers. No effect of it is kept.
    pub(super) fn failure_alone(
        &self,
        store: &Arc<dyn Store>,
        due: &Arc<DueIndex>,
        work: &BatchWork,
        key_groups: Range<u16>,
        key: GroupingKey<'_>,
        rows: GroupedRows,
    ) -> Option<QueryError> {
        let mut session = self.session(store, due, work, key_groups.clone());
        session.fire_only([key]);
        let mut times = Times::default();
        guarded(work.batch_id, || self.run_operator(work, key_groups, rows, session, &mut times)).err()
    }

    /// Runs the processor without effect; answers also with the fuel it burnt, where that is metered.
    pub(super) fn attempt(
        &self,
        store: &Arc<dyn Store>,
        due: &Arc<DueIndex>,
        work: &BatchWork,
        attempt: Attempt<'_>,
    ) -> (Result<(), QueryError>, Option<u64>) {
        let Attempt { key_groups, rows, timers } = attempt;
        let fuel = Arc::<OnceLock<u64>>::default();
        let mut session = self.session(store, due, work, key_groups.clone());
        if let Some(fires) = &timers {
            session.fire_only(fires.keys.iter().map(|key| GroupingKey::new(key)));
            skip_timers(&mut session, fires.skipped);
        }
        let outcome = guarded(work.batch_id, || {
            let mut worker = self.open(work, key_groups.clone(), session, &fuel)?;
            let handed = hand_rows(worker.as_mut(), work, rows).and_then(|()| match &timers {
                Some(fires) => worker.expired_timers(fires.up_to_ms),
                None => Ok(()),
            });
            handed.map_err(|source| failed(work, &key_groups, source))
        });
        (outcome, fuel.get().copied())
    }

    /// The timers that are due once a share's rows have been handled: key by key, in the order in which they fire. No
    /// effect of it is kept.
    ///
    /// # Errors
    /// The processor's failure.
    pub(super) fn due_timers(
        &self,
        store: &Arc<dyn Store>,
        due: &Arc<DueIndex>,
        work: &BatchWork,
        share: Share,
    ) -> Result<Vec<DueTimers>, QueryError> {
        let Share { key_groups, rows, skipped_timers, .. } = share;
        let Some(threshold_ms) = self.timer_threshold_ms(work.time) else { return Ok(Vec::new()) };
        let mut session = self.session(store, due, work, key_groups.clone());
        skip_timers(&mut session, &skipped_timers);
        let mut session = guarded(work.batch_id, || {
            let mut worker = self.open(work, key_groups.clone(), session, &Arc::default())?;
            let closed = hand_rows(worker.as_mut(), work, rows).and_then(|()| worker.close());
            closed.map(|closed| closed.session).map_err(|source| failed(work, &key_groups, source))
        })?;
        session.open_due(threshold_ms)?;
        let (mut timers, mut expiries_ms) = (Vec::new(), Vec::new());
        while let Some(group) = session.next_due(&mut expiries_ms)? {
            timers.push(DueTimers { key: session.key(group).row.to_vec(), expiries_ms: expiries_ms.clone() });
        }
        Ok(timers)
    }

    fn session(
        &self,
        store: &Arc<dyn Store>,
        due: &Arc<DueIndex>,
        work: &BatchWork,
        key_groups: Range<u16>,
    ) -> Session {
        let scope = Scope {
            step: self.info.step,
            groups: self.routing.key_groups,
            range: key_groups,
            now_ms: work.time.processing_time_ms,
            limits: self.state_limits,
            due: Arc::clone(due),
            dropped: Arc::clone(&self.variables.dropped),
        };
        Session::new(Arc::clone(store), Arc::clone(&self.variables.declared), scope)
    }

    fn run_operator(
        &self,
        work: &BatchWork,
        key_groups: Range<u16>,
        rows: GroupedRows,
        session: Session,
        times: &mut Times,
    ) -> Result<Closed, QueryError> {
        let mut worker = self.open(work, key_groups.clone(), session, &Arc::default())?;
        faults::point("process.opened");
        let failed = |source| failed(work, &key_groups, source);
        if work.kind == BatchKind::Bootstrap {
            timed(&mut times.initial_state, || hand_rows(worker.as_mut(), work, rows)).map_err(failed)?;
        } else {
            timed(&mut times.input_rows, || hand_rows(worker.as_mut(), work, rows)).map_err(failed)?;
            faults::point("process.between-input-and-timers");
            if let Some(threshold_ms) = self.timer_threshold_ms(work.time) {
                timed(&mut times.timers, || worker.expired_timers(threshold_ms)).map_err(failed)?;
            }
        }
        worker.close().map_err(failed)
    }

    fn open(
        &self,
        work: &BatchWork,
        key_groups: Range<u16>,
        session: Session,
        fuel: &Arc<OnceLock<u64>>,
    ) -> Result<Box<dyn Worker>, QueryError> {
        let opened = self.operator.open(Task {
            query: Arc::clone(&self.info),
            plan: Arc::clone(&self.plan),
            batch_id: work.batch_id,
            time: self.time(work.time),
            key_groups: key_groups.clone(),
            session,
            output: Output::new(self.output_limits, &self.spill_folder).with_event_time(self.event_time_guard(work)),
            fuel: Arc::clone(fuel),
        });
        opened.map_err(|source| failed(work, &key_groups, source))
    }
}

fn hand_rows(worker: &mut dyn Worker, work: &BatchWork, rows: GroupedRows) -> Result<(), OperatorError> {
    match work.kind {
        BatchKind::Bootstrap => worker.initial_state(rows),
        BatchKind::Input | BatchKind::Rowless if rows.groups.is_empty() => Ok(()),
        BatchKind::Input | BatchKind::Rowless => worker.input_rows(rows),
    }
}

fn failed(work: &BatchWork, key_groups: &Range<u16>, source: OperatorError) -> QueryError {
    QueryError::Operator { batch_id: work.batch_id, key_groups: key_groups.clone(), source }
}

fn skip_timers(session: &mut Session, timers: &[SkippedTimer]) {
    timers.iter().for_each(|timer| session.skip_timer(GroupingKey::new(&timer.key), timer.expiry_ms));
}

fn timed<T>(ms: &mut f64, work: impl FnOnce() -> T) -> T {
    let watch = Stopwatch::start();
    let done = work();
    *ms = watch.elapsed().as_secs_f64() * 1e3;
    done
}

/// Splits the key groups among workers, as evenly as they go.
pub fn worker_ranges(key_groups: u16, workers: u16) -> Vec<Range<u16>> {
    let workers = u32::from(workers.clamp(1, key_groups.max(1)));
    let bound = |worker: u32| u16::try_from(u32::from(key_groups) * worker / workers).unwrap_or(u16::MAX);
    (0..workers).map(|worker| bound(worker)..bound(worker + 1)).collect()
}

/// A worker that panics fails its batch, and no more.
fn guarded<T>(batch_id: u64, work: impl FnOnce() -> Result<T, QueryError>) -> Result<T, QueryError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| match faults::is_abandoned(panic.as_ref()) {
        true => resume_unwind(panic),
        false => Err(worker_panicked(batch_id, panic.as_ref())),
    })
}

fn worker_panicked(batch_id: u64, panic: &(dyn std::any::Any + Send)) -> QueryError {
    let message = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    QueryError::WorkerPanicked { batch_id, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worker_ranges_cover_every_key_group_once_in_order() {
        for (key_groups, workers) in [(256, 1), (256, 3), (256, 256), (5, 8), (1, 1), (u16::MAX, 7)] {
            let ranges = worker_ranges(key_groups, workers);

            assert_eq!(ranges.first().map(|range| range.start), Some(0));
            assert_eq!(ranges.last().map(|range| range.end), Some(key_groups));
            assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start && pair[0].start < pair[0].end));
        }
    }
}
