//! The main path: one micro-batch, from a slice of input to published rows.
//!
//! `run` *is* the list plan, read, route, process, stage, commit, publish, report. Until the commit record is durable
//! nothing of the batch can be seen; after it the batch exists, whatever happens, and everything that follows can be
//! done again.

use super::commit::{
    BatchKind, COMMIT_FORMAT, Commit, CommitHeader, SinkCommit, SinkRole, SourceCommit, SourceRole, StepCommit,
    WorkerCommit,
};
use super::error::QueryError;
use super::faults;
use super::operator::TimeMode;
use super::pipeline::{BatchWork, Done, Runs, Share};
use super::plan::{self, Next, Plan};
use super::progress::{Durations, EventTime, Progress, SinkProgress, SourceProgress, StateOperator};
use super::publish;
use super::quarantine;
use super::query::{Query, Step, bookkeeping_prefix};
use super::route::{LateRows, Routed};
use super::settings::BadRows;
use super::stage::{StagedOutput, stage_output, stage_rows};
use crate::clock::Stopwatch;
use crate::log::{Durability, RecordRef};
use crate::state::{Changes, Family, SessionMetrics};

/// Runs the next batch, if there is something to do.
pub(super) fn run(query: &mut Query) -> Result<Step, QueryError> {
    let begun = Stopwatch::start();
    let mut plan = match plan::next(query)? {
        Next::Batch(plan) => plan,
        Next::Nothing(step) => return Ok(step),
    };
    faults::point("plan.done");
    refuse_bad_rows(query, &plan)?;

    let (routed, route_ms) = timed(|| route(query, &plan))?;
    let seen = Seen { late: routed.late, event_time_max_us: routed.event_time_max_us };

    let (done, process_ms) = timed(|| process(query, &plan, routed))?;
    faults::point("process.done");

    let (processed, stage_ms) = timed(|| stage(query, &plan, done))?;
    let counted = processed.counted.clone();

    let commit = record(query, &mut plan, processed, seen);
    query.committing = true;
    let (at, commit_ms) = timed(|| append(query, &commit))?;

    let ((), publish_ms) = timed(|| publish::publish(query, &commit, at))?;
    query.committing = false;

    let durations = Durations {
        read: plan.read_ms,
        route: route_ms,
        process: process_ms,
        stage: stage_ms,
        commit: commit_ms,
        publish: publish_ms,
        trigger_execution: begun.elapsed().as_secs_f64() * 1e3,
    };
    Ok(Step::Ran(Box::new(report(query, &commit.header, counted, durations))))
}

fn refuse_bad_rows(query: &Query, plan: &Plan) -> Result<(), QueryError> {
    match (query.settings.bad_rows, plan.slice.rejected.first()) {
        (BadRows::Fail, Some(first)) => Err(QueryError::BadRows {
            batch_id: plan.batch_id,
            rejected: plan.slice.rejected.len(),
            code: first.code.clone(),
            origin: first.origin.clone(),
            row: first.row,
            reason: first.reason.clone(),
            text: first.text.chars().take(200).collect(),
        }),
        _ => Ok(()),
    }
}

fn route(query: &Query, plan: &Plan) -> Result<Routed, QueryError> {
    let pipeline = &query.pipeline;
    match (plan.role, &pipeline.initial_routing) {
        (SourceRole::InitialState, Some(routing)) => routing.route(&plan.slice.batches, LateRows::Keep),
        _ => {
            let late = match pipeline.info.time_mode {
                TimeMode::EventTime => LateRows::DropUpTo(query.head.watermark.last_ms()),
                TimeMode::None | TimeMode::ProcessingTime => LateRows::Keep,
            };
            pipeline.routing.route(&plan.slice.batches, late)
        }
    }
}

fn process(query: &Query, plan: &Plan, routed: Routed) -> Result<Vec<Done>, QueryError> {
    let work = BatchWork { batch_id: plan.batch_id, kind: plan.kind, time: plan.time };
    let threshold_ms = match plan.kind {
        BatchKind::Bootstrap => None,
        BatchKind::Input | BatchKind::Rowless => query.pipeline.timer_threshold_ms(plan.time),
    };
    let shares = routed.into_shares(&query.ranges, query.key_groups);
    let shares = query.ranges.iter().zip(shares).map(|(key_groups, rows)| {
        // A timer registered by a row of this batch may be due at once, so every share with rows runs both phases.
        let runs = if !rows.groups.is_empty()
            || threshold_ms.is_some_and(|at| key_groups.clone().any(|group| query.due.timers_due(group, at).is_some()))
        {
            Some(Runs::Processor)
        } else if key_groups.clone().any(|group| query.due.ttl_due(group, plan.time.processing_time_ms).is_some()) {
            Some(Runs::EvictionOnly)
        } else {
            None
        };
        runs.map(|runs| Share { key_groups: key_groups.clone(), rows, runs })
    });
    let shares = shares.flatten().collect();
    query.pipeline.process(&query.store, &query.due, &work, shares)
}

struct Seen {
    late: u64,
    event_time_max_us: Option<i64>,
}

struct Processed {
    workers: Vec<WorkerCommit>,
    changes: Vec<Changes>,
    counted: Counted,
    output: StagedOutput,
    quarantine: Option<StagedOutput>,
}

#[derive(Clone)]
struct Counted {
    metrics: SessionMetrics,
    fuel: Option<u64>,
    variables_dropped: u64,
}

fn stage(query: &Query, plan: &Plan, done: Vec<Done>) -> Result<Processed, QueryError> {
    let (mut workers, mut changes, mut outputs) = (Vec::new(), Vec::new(), Vec::new());
    let (mut metrics, mut fuel) = (SessionMetrics::default(), None);
    for worker in done {
        workers.push(WorkerCommit {
            key_groups: worker.key_groups,
            input_digest: worker.input_digest.map(|digest| format!("{digest:032x}")),
        });
        changes.push(worker.changes);
        metrics.add(&worker.metrics);
        fuel = worker.fuel.map(|burnt| burnt + fuel.unwrap_or(0)).or(fuel);
        outputs.extend(worker.output);
    }
    let output =
        stage_output(&query.checkpoint, query.output.sink.as_ref(), &query.output.layout, outputs, plan.batch_id)?;
    let quarantine = match &query.quarantine {
        None => None,
        Some(outlet) => {
            let rows = quarantine::rows(plan.batch_id, &plan.slice.rejected)?;
            Some(stage_rows(&query.checkpoint, outlet.sink.as_ref(), &outlet.layout, rows, plan.batch_id)?)
        }
    };
    Ok(Processed {
        workers,
        changes,
        counted: Counted { metrics, fuel, variables_dropped: query.pending.dropped },
        output,
        quarantine,
    })
}

fn record(query: &Query, plan: &mut Plan, processed: Processed, seen: Seen) -> Commit {
    let Processed { workers, mut changes, counted, output, quarantine } = processed;
    let info = &query.pipeline.info;
    let mut sources = Vec::new();
    let mut input = Vec::new();
    let mut meta = query.pending.changes.clone();
    if plan.kind != BatchKind::Rowless {
        if let Some(inline) = plan.slice.range.inline.take() {
            input.push((0, inline));
        }
        let prefix = bookkeeping_prefix(plan.role);
        for (key, value) in std::mem::take(&mut plan.slice.bookkeeping) {
            let key = [prefix, &key].concat();
            meta.push(Family::Meta, &key, value.as_deref());
        }
        sources.push(SourceCommit {
            role: plan.role,
            source: query.source_name(plan.role),
            range: plan.slice.range.clone(),
            rows: plan.slice.rows(),
            rejected: plan.slice.rejected.len() as u64,
            late: seen.late,
            bytes: plan.slice.bytes,
        });
    }
    let mut sinks = Vec::new();
    let mut inline = Vec::new();
    let outlets = [
        (SinkRole::Output, Some(&query.output), Some(output)),
        (SinkRole::Quarantine, query.quarantine.as_ref(), quarantine),
    ];
    for (role, outlet, staged) in outlets {
        if let (Some(outlet), Some(staged)) = (outlet, staged) {
            let sink = outlet.sink.describe();
            if let Some(bytes) = staged.inline {
                inline.push((sinks.len() as u8, bytes));
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
    let header = CommitHeader {
        format: COMMIT_FORMAT,
        written_by: env!("CARGO_PKG_VERSION").to_owned(),
        batch_id: plan.batch_id,
        generation: query.head.generation,
        run_id: info.run_id.clone(),
        kind: plan.kind,
        bootstrap: plan.bootstrap,
        time: plan.time,
        late_watermark_ms: query.head.watermark.last_ms(),
        event_time_max_us: query.head.watermark.event_time_max_us().max(seen.event_time_max_us),
        sources,
        sinks,
        steps: vec![StepCommit {
            processor: query.pipeline.operator.identity(),
            time_mode: info.time_mode,
            output_mode: info.output_mode,
            key: query.pipeline.plan.key.to_string(),
            output: query.pipeline.plan.output.to_string(),
            parameters: info.parameters.clone(),
            output_limits: query.pipeline.output_limits,
            state_limits: query.pipeline.state_limits,
            state_rows: query
                .head
                .state_rows
                .saturating_add_signed(query.pending.rows + counted.metrics.rows_total_change()),
            state_digest: Changes::digest(&changes),
        }],
        key_groups: query.key_groups,
        ranges: workers,
    };
    changes.push(meta);
    Commit { header, changes, output: inline, input }
}

fn append(query: &mut Query, commit: &Commit) -> Result<RecordRef, QueryError> {
    faults::point("commit.before-append");
    let record = commit.append(&mut query.log, Durability::Synced)?;
    faults::point("commit.after-sync");
    Ok(record)
}

fn report(query: &Query, header: &CommitHeader, counted: Counted, durations: Durations) -> Progress {
    let rows: u64 = header.sources.iter().map(|source| source.rows).sum();
    Progress {
        id: query.pipeline.info.query_id.clone(),
        run_id: header.run_id.clone(),
        name: query.settings.name.clone(),
        batch_id: header.batch_id,
        batch_time_ms: header.time.processing_time_ms,
        num_input_rows: rows,
        processed_rows_per_second: rows as f64 / (durations.trigger_execution / 1e3).max(1e-6),
        duration_ms: durations,
        event_time: EventTime {
            watermark_ms: header.time.watermark_ms,
            late_watermark_ms: header.late_watermark_ms,
            max_ms: header.event_time_max_us.map(|max_us| max_us.div_euclid(1000)),
        },
        state_operators: vec![StateOperator {
            operator_name: "transformWithState",
            num_rows_total: header.steps.iter().map(|step| step.state_rows).sum(),
            num_rows_dropped_by_watermark: header.sources.iter().map(|source| source.late).sum(),
            metrics: counted.metrics,
            num_deleted_state_vars: counted.variables_dropped,
            fuel: counted.fuel,
        }],
        sources: header
            .sources
            .iter()
            .map(|source| SourceProgress {
                description: source.source.clone(),
                num_input_rows: source.rows,
                num_rejected_rows: source.rejected,
                num_input_bytes: source.bytes,
            })
            .collect(),
        sink: SinkProgress {
            description: query.output.sink.describe(),
            num_output_rows: header
                .sinks
                .iter()
                .filter(|sink| sink.role == SinkRole::Output)
                .map(|sink| sink.rows)
                .sum(),
        },
    }
}

fn timed<T>(work: impl FnOnce() -> Result<T, QueryError>) -> Result<(T, f64), QueryError> {
    let watch = Stopwatch::start();
    let done = work()?;
    Ok((done, watch.elapsed().as_secs_f64() * 1e3))
}
