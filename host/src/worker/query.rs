//! One query: opened, run by what wakes it, closed.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use super::wake::Wake;
use super::{Host, WorkerError, lines};
use crate::clock::{Clock, Stopwatch};
use crate::config::hosted::{HostedQuery, HostedStep};
use crate::engine::commit::SourceRole;
use crate::engine::progress::Progress;
use crate::engine::query::{Parts, Query, Step, StepParts, StoreKind};
use crate::engine::settings::{ONLY_SOURCE, Trigger};
use crate::ingest::{IngestSource, rows_of};
use crate::ipc::Sealed;
use crate::ipc::worker::{End, Input, Open, PROGRESS_BYTES_MAX, QueryFolders, Report};
use crate::results::ResultsSink;
use crate::runtime::Processor;

/// Components with their native code, by digest.
pub(super) type Components = HashMap<String, (Sealed, Sealed)>;

/// A query in its thread.
pub(super) struct Running {
    pub(super) wake: Arc<Wake>,
    thread: JoinHandle<()>,
}

/// What the threads of queries are called, before the id.
const THREAD: &str = "query ";

/// The query that a thread runs.
pub(super) fn of_thread(thread: &Thread) -> Option<String> {
    thread.name()?.strip_prefix(THREAD).map(str::to_owned)
}

impl Running {
    /// Starts its thread, which opens it.
    pub(super) fn start(open: Open, components: Components, host: &Arc<Host>) -> io::Result<Self> {
        let wake = Arc::new(Wake::new(open.end));
        let (woken, host) = (Arc::clone(&wake), Arc::clone(host));
        let thread = thread::Builder::new().name(format!("{THREAD}{}", open.query)).spawn(move || {
            let end = run(&open, &components, &host, &woken).unwrap_or_else(|error| End::Failed(error.failure()));
            host.say(&Report::Closed { query: open.query, end });
        })?;
        Ok(Self { wake, thread })
    }

    /// Waits until it has ended.
    pub(super) fn join(self) {
        // A panic in it has ended the process.
        drop(self.thread.join());
    }
}

fn run(open: &Open, components: &Components, host: &Host, wake: &Wake) -> Result<End, WorkerError> {
    let mut query = open_query(open, components, host, wake)?;
    let mut reporter = Reporter { host, query: &open.query, needed: None };
    lines::name(query.id(), &open.query);
    reporter.opened(&query)?;
    let outcome = drive(&mut query, wake, Duration::from_millis(open.unload_after_ms), &mut reporter);
    let wake_at_ms = query.due_in().map(|due_in| at(host.clock.now_ms(0).unwrap_or_default(), due_in));
    let closed = query.close();
    let ended = outcome?;
    closed?;
    Ok(match ended {
        Ended::Stopped => End::Asked,
        Ended::Idle { end } => End::Idle { end, wake_at_ms },
    })
}

fn at(now_ms: i64, later: Duration) -> i64 {
    now_ms.saturating_add_unsigned(u64::try_from(later.as_millis()).unwrap_or(u64::MAX))
}

fn open_query(open: &Open, components: &Components, host: &Host, wake: &Wake) -> Result<Query, WorkerError> {
    let hosted = HostedQuery::parse(open.document.as_bytes())?;
    let folders = QueryFolders::of(&open.query);
    let steps = hosted.steps.iter().zip(&open.components).map(|(step, digest)| {
        let operator = Arc::new(processor(step, digest, components, host)?);
        Ok(StepParts { operator, initial_state: None })
    });
    let steps = steps.collect::<Result<_, WorkerError>>()?;
    let source = IngestSource::new(
        Arc::clone(&host.disk) as _,
        &folders.ingest,
        &open.query,
        hosted.input_schema.clone(),
        wake.durable().clone(),
    );
    let parts = Parts {
        steps,
        inputs: vec![Box::new(source)],
        sink: Box::new(ResultsSink::new(Arc::clone(&host.disk) as _, &folders.results)),
        quarantine: None,
        dead_letters: None,
        clock: Arc::clone(&host.clock) as _,
        disk: Arc::clone(&host.disk) as _,
        checkpoint: folders.checkpoint,
        store: StoreKind::Rocks,
    };
    Ok(Query::open(hosted.settings(), parts)?)
}

fn processor(step: &HostedStep, digest: &str, components: &Components, host: &Host) -> Result<Processor, WorkerError> {
    let missing = || WorkerError::ComponentMissing(digest.to_owned());
    let (wasm, native) = components.get(digest).ok_or_else(missing)?;
    let name = step.processor.to_string();
    Ok(Processor::from_native(&host.sandbox, &name, wasm, native, step.sandbox().clone())?)
}

/// Why a query is to be closed.
enum Ended {
    Stopped,
    /// It knew of the rows before this one.
    Idle {
        end: u64,
    },
}

/// A query that looks again at once would keep a core busy if it was wrong about when.
const WAIT_MIN: Duration = Duration::from_millis(1);

/// Runs batches whenever there are rows or timers are due, until the query is to be closed.
fn drive(
    query: &mut Query,
    wake: &Wake,
    unload_after: Duration,
    reporter: &mut Reporter<'_>,
) -> Result<Ended, WorkerError> {
    let interval = match query.trigger() {
        Trigger::Interval(ms) => Duration::from_millis(ms),
        Trigger::Continuous | Trigger::AvailableNow => Duration::ZERO,
    };
    let mut idle = Stopwatch::start();
    while !wake.stopped() {
        let end = wake.durable().get();
        let begun = Stopwatch::start();
        match query.step()? {
            Step::Ran(progress) => {
                reporter.batch(query, &progress)?;
                wake.wait_for_stop(interval.saturating_sub(begun.elapsed()));
                idle = Stopwatch::start();
            }
            Step::Idle | Step::Waiting | Step::Ended => {
                let due_in = query.due_in();
                let soon = due_in.filter(|due_in| *due_in <= unload_after);
                let rest = soon.unwrap_or_else(|| unload_after.saturating_sub(idle.elapsed()));
                if rest.is_zero() && soon.is_none() {
                    return Ok(Ended::Idle { end });
                }
                wake.wait_for_rows(end, rest.max(WAIT_MIN));
                wake.wait_for_stop(interval.saturating_sub(begun.elapsed()));
            }
        }
    }
    Ok(Ended::Stopped)
}

/// Tells the server what a query does.
struct Reporter<'a> {
    host: &'a Host,
    query: &'a str,
    /// The oldest batch that is kept, and the first row that it needs.
    needed: Option<(u64, u64)>,
}

impl Reporter<'_> {
    fn opened(&mut self, query: &Query) -> Result<(), WorkerError> {
        let (output_schema, input) = (query.output_schema().to_string(), self.input(query)?);
        self.host.say(&Report::Opened { query: self.query.to_owned(), output_schema, input });
        Ok(())
    }

    fn batch(&mut self, query: &Query, progress: &Progress) -> Result<(), WorkerError> {
        let text = serde_json::to_string(progress).unwrap_or_default();
        // A query of many steps has a report of some KiB for each.
        let progress = match text.len() <= PROGRESS_BYTES_MAX && !text.is_empty() {
            true => text,
            false => format!(r#"{{"batchId":{},"numInputRows":{}}}"#, progress.batch_id, progress.num_input_rows),
        };
        let input = self.input(query)?;
        self.host.say(&Report::Batch { query: self.query.to_owned(), progress, input });
        Ok(())
    }

    fn input(&mut self, query: &Query) -> Result<Input, WorkerError> {
        let last = query.head().last_read(SourceRole::Input, ONLY_SOURCE);
        let consumed = last.map(rows_of).transpose()?.map_or(0, |rows| rows.end);
        let oldest_batch = query.oldest_batch();
        let known = self.needed.filter(|(of, _)| Some(*of) == oldest_batch);
        let needed = match (known, oldest_batch) {
            (Some((_, needed)), _) => needed,
            (None, None) => consumed,
            (None, Some(batch)) => {
                let first = first_needed(query)?;
                self.needed = first.map(|first| (batch, first));
                first.unwrap_or(consumed)
            }
        };
        Ok(Input { consumed, needed: needed.min(consumed) })
    }
}

fn first_needed(query: &Query) -> Result<Option<u64>, WorkerError> {
    let read = query.oldest_read(ONLY_SOURCE)?;
    Ok(read.as_ref().map(rows_of).transpose()?.map(|rows| rows.start))
}
