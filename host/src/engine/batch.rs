//! The main path: one micro-batch, from a slice of input to published rows.
//!
//! `run` *is* the list plan, read, route, process, stage, commit, publish, report; routing and processing come once for
//! each step of the query. Until the commit record is durable nothing of the batch can be seen; after it the batch
//! exists, whatever happens, and everything that follows can be done again.

use arrow_array::RecordBatch;

use super::commit::{BatchKind, COMMIT_FORMAT, Commit, CommitHeader, SinkCommit, SinkRole, SourceCommit, StepCommit};
use super::dead_letters::{self, DeadLetter, StepLetters, skipped};
use super::error::QueryError;
use super::faults;
use super::handover::{HandedOver, hand_over};
use super::metrics::Counted;
use super::pipeline::{BatchWork, Runs, Share};
use super::plan::{self, Next, Plan};
use super::poison;
use super::progress::{self, Durations};
use super::publish;
use super::quarantine;
use super::query::{Outlet, Query, RunningStep, SourceOf, Step, bookkeeping_prefix};
use super::route::Routed;
use super::settings::{BadRows, OnPoison, PoisonPolicy};
use super::source::RejectedRow;
use super::stage::{StagedOutput, stage_output, stage_rows};
use super::step_done::StepDone;
use super::watermark::{Seen, SourceTime, horizon_us};
use crate::clock::Stopwatch;
use crate::log::{Durability, RecordRef};
use crate::record::RowLayout;
use crate::state::{Changes, Family};

/// Runs the next batch, if there is something to do.
pub(super) fn run(query: &mut Query) -> Result<Step, QueryError> {
    let begun = Stopwatch::start();
    let mut plan = match plan::next(query)? {
        Next::Batch(plan) => plan,
        Next::Nothing(step) => return Ok(step),
    };
    let planned_ms = begun.elapsed().as_secs_f64() * 1e3 - plan.read_ms;
    faults::point("plan.done");
    refuse_bad_rows(query, &plan)?;

    let mut durations = Durations { plan: planned_ms, read: plan.read_ms, ..Durations::default() };
    let (mut handed, mut done, mut in_future) = (HandedOver::default(), Vec::new(), 0);
    for (number, step) in query.steps.iter().enumerate() {
        // What was read is for one step; the others get what the step before emitted.
        let (rows, horizons_us) = match plan.first_step() == number {
            true => (plan.batches(), horizons_us(query, &plan)),
            false => (handed.batches, Vec::new()),
        };
        let (routed, route_ms) = timed(|| route(query, &plan, step, &rows, &horizons_us))?;
        in_future += routed.in_future;
        let letters_before = letters(&done).map(|letters| letters.len() as u64).sum();
        let (mut ran, process_ms) = timed(|| process(query, &plan, step, &rows, routed, letters_before))?;
        handed = hand_on(query, &mut plan, number, &mut ran)?;
        done.push(ran);
        (durations.route, durations.process) = (durations.route + route_ms, durations.process + process_ms);
    }
    warn_of_future(query, &plan, in_future);
    faults::point("process.done");

    let (staged, stage_ms) = timed(|| stage(query, &plan, &mut done))?;

    hold(query, &plan, &done);
    let (commit, counted) = record(query, &mut plan, done, staged);
    query.committing = true;
    let (at, commit_ms) = timed(|| append(query, &commit))?;

    let (apply_ms, publish_ms) = timed(|| publish::publish(query, &commit, at))?;
    query.committing = false;

    let trigger_execution = begun.elapsed().as_secs_f64() * 1e3;
    let durations =
        Durations { stage: stage_ms, commit: commit_ms, publish: publish_ms, trigger_execution, ..durations };
    Ok(Step::Ran(Box::new(progress::report(query, &commit.header, &counted, apply_ms, durations))))
}

fn refuse_bad_rows(query: &Query, plan: &Plan) -> Result<(), QueryError> {
    match (query.settings.bad_rows, plan.rejected().next()) {
        (BadRows::Fail, Some(first)) => Err(QueryError::BadRows {
            batch_id: plan.batch_id,
            rejected: plan.rejected().count(),
            code: first.code.clone(),
            origin: first.origin.clone(),
            row: first.row,
            reason: first.reason.clone(),
            text: first.text.chars().take(200).collect(),
        }),
        _ => Ok(()),
    }
}

fn work(query: &Query, plan: &Plan) -> BatchWork {
    BatchWork {
        batch_id: plan.batch_id,
        kind: plan.kind,
        time: plan.time,
        late_watermark_ms: query.head.watermark.last_ms(),
    }
}

fn route(
    query: &Query,
    plan: &Plan,
    step: &RunningStep,
    rows: &[RecordBatch],
    horizons_us: &[i64],
) -> Result<Routed, QueryError> {
    let pipeline = &step.pipeline;
    let routed = pipeline.route(rows, &work(query, plan), horizons_us);
    routed.map_err(|error| query.settings.in_step(&pipeline.settings.name, error))
}

/// The event time up to which the rows of each batch that was read move the watermark.
fn horizons_us(query: &Query, plan: &Plan) -> Vec<i64> {
    let horizon = |of: &SourceOf| match of {
        SourceOf::Input { source } => {
            let watermark = query.settings.sources.get(*source).and_then(|input| input.watermark.as_ref());
            horizon_us(watermark, plan.time.processing_time_ms)
        }
        SourceOf::InitialState { .. } => i64::MAX,
    };
    plan.slices.iter().flat_map(|(of, slice)| std::iter::repeat_n(horizon(of), slice.batches.len())).collect()
}

fn warn_of_future(query: &mut Query, plan: &Plan, rows: u64) {
    if rows > 0 && !std::mem::replace(&mut query.warned_of_future, true) {
        tracing::warn!(
            code = "EVENT_TIME_IN_FUTURE",
            batch_id = plan.batch_id,
            "{rows} row(s) of this batch have an event time further ahead of its processing time than \
             watermark.max_future; such rows are processed, but do not move the watermark, as that would make the rows of all \
             others late. This is said once"
        );
    }
}

fn process(
    query: &Query,
    plan: &Plan,
    step: &RunningStep,
    rows: &[RecordBatch],
    mut routed: Routed,
    letters_before: u64,
) -> Result<StepDone, QueryError> {
    let RunningStep { pipeline, due, held, .. } = step;
    let mut letters = held.rows(&routed);
    let held = skipped(&letters).rows;
    routed.leave_out(&held);
    let (rows_in, late) = (routed.rows(), routed.late);
    let event_time_max_us = std::mem::take(&mut routed.event_time_max_us);
    let threshold_ms = match plan.kind {
        BatchKind::Bootstrap => None,
        BatchKind::Input | BatchKind::Rowless => pipeline.timer_threshold_ms(plan.time),
    };
    let shares = routed.into_shares(&query.ranges, query.key_groups)?;
    let shares = query.ranges.iter().zip(shares).map(|(key_groups, rows)| {
        // A timer registered by a row of this batch may be due at once, so every share with rows runs both phases.
        let runs = if !rows.groups.is_empty()
            || threshold_ms.is_some_and(|at| key_groups.clone().any(|group| due.timers_due(group, at).is_some()))
        {
            Some(Runs::Processor)
        } else if key_groups.clone().any(|group| due.ttl_due(group, plan.time.processing_time_ms).is_some()) {
            Some(Runs::EvictionOnly)
        } else {
            None
        };
        runs.map(|runs| Share { key_groups: key_groups.clone(), rows, runs, skipped_timers: Vec::new() })
    });
    let (shares, work) = (shares.flatten().collect(), work(query, plan));
    let PoisonPolicy { on_poison, after_poison, limits } = query.settings.poison;
    let done = match on_poison {
        OnPoison::Fail => pipeline.process(&query.store, due, &work, rows, shares),
        OnPoison::DeadLetter => {
            let letters_max = limits.dead_letters_max.saturating_sub(letters_before);
            let step = poison::Step {
                pipeline,
                store: &query.store,
                due,
                work: &work,
                rows,
                held: &held,
                after_poison,
                limits,
                letters_max,
            };
            poison::process(&step, shares).map(|(done, mut found)| {
                letters.append(&mut found);
                done
            })
        }
    };
    let workers = done.map_err(|error| query.settings.in_step(&pipeline.settings.name, error))?;
    let dead_rows = letters.iter().filter(|letter| letter.row().is_some()).count() - held.len();
    let rows_in = rows_in - dead_rows as u64;
    let dead = StepLetters::new(pipeline, rows, letters)?;
    Ok(StepDone { rows_in, late, event_time_max_us, dead, ..StepDone::of(workers) })
}

fn letters(done: &[StepDone]) -> impl Iterator<Item = &[DeadLetter]> + Clone {
    done.iter().map(|step| step.dead.letters.as_slice())
}

/// Holds the keys of dead letters from the next batch on, and says that there are some.
fn hold(query: &mut Query, plan: &Plan, done: &[StepDone]) {
    let poison = letters(done).flatten().filter(|letter| letter.is_poison());
    if let Some(first) = poison.clone().next() {
        tracing::warn!(
            code = "DEAD_LETTERS",
            batch_id = plan.batch_id,
            "{} row(s) or timer(s) of this batch make the processor fail, and became dead letters; the first with [{}]",
            poison.count(),
            first.code
        );
    }
    if !query.settings.poison.holds() {
        return;
    }
    let mut first = 0;
    for (step, done) in query.steps.iter_mut().zip(done) {
        for (id, letter) in done.dead.ids(plan.batch_id, first).filter(|(_, letter)| letter.is_poison()) {
            step.held.hold(&letter.key, &id, &mut query.pending_meta);
        }
        first += done.dead.letters.len();
    }
}

/// What a step emitted is the input of the next; what the last one emitted stays for the sink.
fn hand_on(query: &Query, plan: &mut Plan, number: usize, done: &mut StepDone) -> Result<HandedOver, QueryError> {
    let (Some(step), Some(next)) = (query.steps.get(number), query.steps.get(number + 1)) else {
        return Ok(HandedOver::default());
    };
    let layout = RowLayout::new(&step.pipeline.plan.output);
    let outputs = std::mem::take(&mut done.outputs);
    let mut handed = hand_over(&step.pipeline.settings.name, &layout, &next.pipeline.required, outputs)?;
    (done.rows_out, done.rows_refused) = (handed.rows, handed.rejected.len() as u64);
    done.output_digest = std::mem::take(&mut handed.digest);
    plan.rejected_between.append(&mut handed.rejected);
    refuse_bad_rows(query, plan)?;
    Ok(handed)
}

struct Staged {
    output: StagedOutput,
    quarantine: Option<StagedOutput>,
    dead_letters: Option<StagedOutput>,
}

fn stage(query: &Query, plan: &Plan, done: &mut [StepDone]) -> Result<Staged, QueryError> {
    let outputs = done.last_mut().map(|last| std::mem::take(&mut last.outputs)).unwrap_or_default();
    let output =
        stage_output(&query.checkpoint, query.output.sink.as_ref(), &query.output.layout, outputs, plan.batch_id)?;
    if let Some(last) = done.last_mut() {
        (last.rows_out, last.output_digest) = (output.rows, output.digest.clone());
    }
    let stage = |outlet: &Outlet, rows| {
        stage_rows(&query.checkpoint, outlet.sink.as_ref(), &outlet.layout, rows, plan.batch_id)
    };
    let quarantine = query.quarantine.as_ref().map(|outlet| {
        let rejected: Vec<&RejectedRow> = plan.rejected().collect();
        stage(outlet, quarantine::rows(plan.batch_id, &rejected)?)
    });
    let dead_letters = query.dead_letters.as_ref().map(|outlet| {
        let steps: Vec<_> = done.iter().map(|step| &step.dead).collect();
        stage(outlet, dead_letters::rows(plan.batch_id, &steps)?)
    });
    Ok(Staged { output, quarantine: quarantine.transpose()?, dead_letters: dead_letters.transpose()? })
}

fn record(query: &Query, plan: &mut Plan, done: Vec<StepDone>, staged: Staged) -> (Commit, Vec<Counted>) {
    let mut input = Vec::new();
    let mut sources = Vec::new();
    let mut meta = query.pending_meta.clone();
    for (of, slice) in &mut plan.slices {
        let (role, name, source) = query.source_identity(*of);
        let inline = slice.range.inline.take();
        let in_record = inline.is_some();
        input.extend(inline.map(|rows| (sources.len() as u8, rows)));
        let prefix = bookkeeping_prefix(role, name);
        for (key, value) in std::mem::take(&mut slice.bookkeeping) {
            meta.push(Family::Meta, &[prefix.as_slice(), &key].concat(), value.as_deref());
        }
        sources.push(SourceCommit {
            role,
            name: name.to_owned(),
            source,
            range: slice.range.clone(),
            rows: slice.rows(),
            rejected: slice.rejected.len() as u64,
            bytes: slice.bytes,
            in_record,
        });
    }
    let mut sinks = Vec::new();
    let mut output = Vec::new();
    let outlets = [
        (SinkRole::Output, Some(&query.output), Some(staged.output)),
        (SinkRole::Quarantine, query.quarantine.as_ref(), staged.quarantine),
        (SinkRole::DeadLetters, query.dead_letters.as_ref(), staged.dead_letters),
    ];
    for (role, outlet, staged) in outlets {
        if let (Some(outlet), Some(staged)) = (outlet, staged) {
            let sink = outlet.sink.describe();
            if let Some(bytes) = staged.inline {
                output.push((sinks.len() as u8, bytes));
            }
            sinks.push(SinkCommit {
                role,
                rows: staged.rows,
                rows_total: query.head.rows_published(role, &sink) + staged.rows,
                sink,
                staged: staged.at,
                digest: staged.digest,
            });
        }
    }
    let event_times = event_times(query, plan, &done);
    let (mut steps, mut changes, mut counted) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (step, done)) in query.steps.iter().zip(done).enumerate() {
        steps.push(step_commit(query, plan, number, step, &done));
        changes.extend(done.changes);
        counted.push(Counted { dropped_variables: step.pending.variables_dropped, ..done.counted });
    }
    changes.push(meta);
    let header = CommitHeader {
        format: COMMIT_FORMAT,
        written_by: env!("CARGO_PKG_VERSION").to_owned(),
        batch_id: plan.batch_id,
        generation: query.head.generation,
        run_id: query.run_id.clone(),
        kind: plan.kind,
        time: plan.time,
        late_watermark_ms: query.head.watermark.last_ms(),
        event_times,
        watermark_policy: query.settings.watermark_policy,
        sources,
        sinks,
        steps,
        key_groups: query.key_groups,
        whole_rows: query.settings.poison.on_poison == OnPoison::DeadLetter,
    };
    (Commit { header, changes, output, input }, counted)
}

/// Where the event time of each source stands with the rows of this batch.
fn event_times(query: &Query, plan: &Plan, done: &[StepDone]) -> Vec<SourceTime> {
    let mut times_us = done.first().map(|first| first.event_time_max_us.as_slice()).unwrap_or_default();
    let mut seen = Vec::new();
    for (of, slice) in plan.slices.iter().filter(|_| plan.kind == BatchKind::Input) {
        let (of_slice, rest) = times_us.split_at_checked(slice.batches.len()).unwrap_or((times_us, &[]));
        times_us = rest;
        let (_, name, _) = query.source_identity(*of);
        seen.push((name, Seen { rows: slice.rows(), event_time_max_us: of_slice.iter().copied().flatten().max() }));
    }
    let (sources, now_ms) = (&query.settings.sources, plan.time.processing_time_ms);
    query.head.watermark.sources_after(sources, now_ms, |name| {
        let of_source = seen.iter().find(|(seen, _)| *seen == name).map(|(_, seen)| *seen);
        (plan.kind == BatchKind::Input).then(|| of_source.unwrap_or_default())
    })
}

fn step_commit(query: &Query, plan: &Plan, number: usize, step: &RunningStep, done: &StepDone) -> StepCommit {
    let pipeline = &step.pipeline;
    let state_rows = query.head.step(number).state_rows.saturating_sub(step.pending.rows_dropped);
    StepCommit {
        name: pipeline.settings.name.clone(),
        bootstrap: plan.bootstrap(query, number),
        processor: pipeline.operator.identity(),
        time_mode: pipeline.info.time_mode,
        output_mode: pipeline.info.output_mode,
        key: pipeline.plan.key.to_string(),
        output: pipeline.plan.output.to_string(),
        output_event_time: pipeline.settings.output_event_time.clone(),
        parameters: pipeline.info.parameters.clone(),
        output_limits: pipeline.output_limits,
        state_limits: pipeline.state_limits,
        rows_in: done.rows_in,
        late: done.late,
        rows_out: done.rows_out,
        rows_refused: done.rows_refused,
        output_digest: done.output_digest.clone(),
        state_rows: state_rows.saturating_add_signed(done.counted.state.rows_total_change()),
        state_digest: Changes::digest(&done.changes),
        workers: done.workers.clone(),
        upgrade: step.pending.upgrade.clone(),
        skipped: skipped(&done.dead.letters),
    }
}

fn append(query: &mut Query, commit: &Commit) -> Result<RecordRef, QueryError> {
    faults::point("commit.before-append");
    let record = commit.append(&mut query.log, Durability::Synced)?;
    faults::point("commit.after-sync");
    Ok(record)
}

fn timed<T>(work: impl FnOnce() -> Result<T, QueryError>) -> Result<(T, f64), QueryError> {
    let watch = Stopwatch::start();
    let done = work()?;
    Ok((done, watch.elapsed().as_secs_f64() * 1e3))
}
