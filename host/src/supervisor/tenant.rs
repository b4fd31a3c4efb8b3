//! One tenant: a thread that has its worker and its queries.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::error::SupervisorError;
use super::process::{Owner, Worker};
use super::query::{Action, Managed};
use super::status::{Failure, Status, WorkerStatus};
use super::{Hosted, Retry, Settings, Wanted};
use crate::clock::{Clock, Stopwatch};
use crate::ipc::IpcError;
use crate::ipc::worker::{Input, Line, Open, Order, Report};

/// What happens to a tenant.
pub(super) enum Event {
    /// Someone wants something.
    Asked(Command),
    /// Its worker says something.
    Said { incarnation: u64, report: Report },
    /// Its worker is gone, or is to be: of itself, or because of what it said.
    Gone { incarnation: u64, reason: Option<IpcError> },
}

/// What someone wants.
pub(super) enum Command {
    Host { hosted: Box<Hosted>, wanted: Wanted, status: Arc<Mutex<Status>> },
    Want { query: String, wanted: Wanted },
    Rows { query: String },
    Remove { query: String, done: Sender<()> },
    ShutDown { patience: Duration },
}

/// Events that wait. A worker that says more has to wait itself.
const EVENTS_MAX: usize = 64;

/// Where commands to a tenant go.
#[derive(Clone)]
pub(super) struct Mailbox(SyncSender<Event>);

impl Mailbox {
    pub(super) fn send(&self, command: Command) -> Result<(), SupervisorError> {
        self.0.send(Event::Asked(command)).map_err(|_| SupervisorError::Stopped)
    }
}

/// The machine's clock may be set; so often, times are compared with it anew.
const LOOK_AT_THE_CLOCK: Duration = Duration::from_secs(30);

/// A worker that could not be started, or died, is tried again like this, for as long as it takes.
const WORKER_RETRY: Retry =
    Retry { attempts: u32::MAX, pause: Duration::from_millis(200), pause_max: Duration::from_secs(30) };

/// Queries that take turns in a worker leave it when they have had nothing to do for so long.
const TAKING_TURNS: Duration = Duration::from_millis(100);

/// A worker that lived so long has not died because it was started.
const SETTLED: Duration = Duration::from_secs(60);

pub(super) struct Tenant {
    id: String,
    folder: PathBuf,
    user: Option<u32>,
    settings: Settings,
    clock: Arc<dyn Clock>,
    events: Receiver<Event>,
    sender: SyncSender<Event>,
    queries: BTreeMap<String, Managed>,
    worker: Option<(Worker, Stopwatch)>,
    /// What others see of it.
    shown: Arc<Mutex<Option<WorkerStatus>>>,
    /// Counts the workers, so that the last words of one are not taken for those of the next.
    incarnation: u64,
    /// Workers in a row that died soon.
    deaths: u32,
    /// No worker is started before, in milliseconds since the epoch.
    not_before_ms: i64,
}

impl Tenant {
    /// Starts the thread.
    pub(super) fn start(
        hosted: &Hosted,
        settings: Settings,
        clock: Arc<dyn Clock>,
        shown: Arc<Mutex<Option<WorkerStatus>>>,
    ) -> io::Result<(Mailbox, JoinHandle<()>)> {
        let (sender, events) = sync_channel(EVENTS_MAX);
        let tenant = Self {
            id: hosted.tenant.clone(),
            folder: hosted.tenant_folder.clone(),
            user: hosted.user,
            settings,
            clock,
            events,
            sender: sender.clone(),
            queries: BTreeMap::new(),
            worker: None,
            shown,
            incarnation: 0,
            deaths: 0,
            not_before_ms: i64::MIN,
        };
        let thread = thread::Builder::new().name("tenant".to_owned()).spawn(move || tenant.run())?;
        Ok((Mailbox(sender), thread))
    }

    fn run(mut self) {
        loop {
            match self.events.recv_timeout(self.rest()) {
                Ok(Event::Asked(Command::ShutDown { patience })) => return self.shut_down(patience),
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout) => {}
                // Cannot be: the sender is ours as well.
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.act();
        }
    }

    /// Closes all queries, waits for that, and ends the worker.
    fn shut_down(mut self, patience: Duration) {
        self.queries.values_mut().for_each(|query| query.want(Wanted::Stopped));
        let watch = Stopwatch::start();
        self.act();
        while self.worker.is_some() {
            let left = patience.saturating_sub(watch.elapsed());
            match self.events.recv_timeout(left) {
                Ok(event) => self.take(event),
                Err(_) => {
                    tracing::warn!(tenant = self.id, "the worker did not end in time and was killed");
                    break;
                }
            }
            self.act();
        }
        self.end_worker();
    }

    /// How long nothing is to be done, if nothing happens.
    fn rest(&self) -> Duration {
        if self.is_full() {
            // What is due waits for a query to be closed, of which the worker tells.
            return LOOK_AT_THE_CLOCK;
        }
        let due_ms = self.queries.values().filter_map(Managed::due_ms).min();
        let Some(due_ms) = due_ms else { return LOOK_AT_THE_CLOCK };
        let wait_ms = due_ms.max(self.not_before_ms).saturating_sub(self.now_ms());
        Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0)).min(LOOK_AT_THE_CLOCK)
    }

    /// Whether the worker has as many queries as it may.
    fn is_full(&self) -> bool {
        self.queries.values().filter(|query| query.is_loaded()).count() >= self.settings.loaded_max
    }

    /// How long a query with nothing to do stays loaded: not long where there are more queries than there is room for.
    fn unload_after(&self) -> Duration {
        match self.queries.len() > self.settings.loaded_max {
            true => self.settings.unload_after.min(TAKING_TURNS),
            false => self.settings.unload_after,
        }
    }

    fn now_ms(&self) -> i64 {
        self.clock.now_ms(0).unwrap_or_default()
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Asked(command) => self.obey(command),
            Event::Said { incarnation, report } if incarnation == self.incarnation => self.hear(report),
            Event::Gone { incarnation, reason } if incarnation == self.incarnation && self.worker.is_some() => {
                self.worker_died(reason.as_ref());
            }
            // Of a worker that is no more.
            Event::Said { .. } | Event::Gone { .. } => {}
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Host { hosted, wanted, status } => {
                let query = hosted.query.clone();
                self.queries.insert(query, Managed::new(*hosted, wanted, status));
            }
            Command::Want { query, wanted } => {
                if let Some(query) = self.queries.get_mut(&query) {
                    query.want(wanted);
                }
            }
            Command::Rows { query } => {
                if let Some(managed) = self.queries.get(&query).filter(|query| query.takes_rows()) {
                    let end = managed.hosted.ingest.end();
                    self.say(&Order::Rows { query, end });
                }
            }
            Command::Remove { query, done } => match self.queries.get_mut(&query) {
                Some(query) => query.remove(done),
                None => drop(done.send(())),
            },
            // Taken before, by whom it ends.
            Command::ShutDown { .. } => {}
        }
    }

    fn hear(&mut self, report: Report) {
        let now_ms = self.now_ms();
        match report {
            Report::Opened { query, output_schema, input } => {
                if let Some(managed) = self.queries.get_mut(&query) {
                    managed.opened(output_schema, input);
                    trim(managed, input);
                }
            }
            Report::Batch { query, progress, input } => {
                if let Some(managed) = self.queries.get_mut(&query) {
                    managed.batch(progress, input);
                    trim(managed, input);
                }
            }
            Report::Closed { query, end } => {
                if let Some(managed) = self.queries.get_mut(&query) {
                    managed.closed(end, now_ms, &self.settings.retry);
                }
            }
            Report::Line(line) => log(&self.id, &line),
        }
    }

    /// Does what is to be done.
    fn act(&mut self) {
        let now_ms = self.now_ms();
        let ids: Vec<_> = self.queries.keys().cloned().collect();
        for id in ids {
            let has_room = !self.is_full();
            let Some(query) = self.queries.get_mut(&id) else { continue };
            let may_open = has_room && (self.worker.is_some() || self.not_before_ms <= now_ms);
            if !may_open && !query.is_loaded() {
                continue;
            }
            match query.act(now_ms, query.hosted.ingest.end()) {
                Action::Open => self.open(&id),
                Action::Close => self.say(&Order::Close { query: id }),
                Action::Nothing => {}
            }
        }
        self.queries.retain(|_, query| !query.is_gone());
        if !self.queries.values().any(Managed::is_loaded) {
            self.end_worker();
        }
    }

    fn open(&mut self, id: &str) {
        let (now_ms, retry) = (self.now_ms(), self.settings.retry);
        if self.worker.is_none() && !self.start_worker() {
            return;
        }
        let unload_after = self.unload_after();
        let Some(query) = self.queries.get_mut(id) else { return };
        let hosted = &query.hosted;
        let mut components = BTreeMap::new();
        for digest in &hosted.components {
            match (hosted.load)(digest) {
                Ok(parts) => drop(components.insert(digest.clone(), parts)),
                Err(failure) => return query.failed(failure, now_ms, &retry),
            }
        }
        let open = Open {
            query: hosted.query.clone(),
            document: hosted.document.clone(),
            components: hosted.components.clone(),
            end: hosted.ingest.end(),
            unload_after_ms: u64::try_from(unload_after.as_millis()).unwrap_or(u64::MAX),
        };
        let components: Vec<_> = components.into_iter().collect();
        let said = self.worker.as_ref().map(|(worker, _)| worker.open(open, &components));
        if let Some(Err(error)) = said {
            self.worker_died(Some(&error));
        }
    }

    fn say(&mut self, order: &Order) {
        let said = self.worker.as_ref().map(|(worker, _)| worker.say(order));
        if let Some(Err(error)) = said {
            self.worker_died(Some(&error));
        }
    }

    /// Answers whether there is one then.
    fn start_worker(&mut self) -> bool {
        self.incarnation += 1;
        let owner = Owner { tenant: &self.id, folder: self.folder.clone(), user: self.user };
        match Worker::start(owner, &self.settings, self.incarnation, self.sender.clone()) {
            Ok(worker) => {
                self.show(Some(worker.describe(&self.id)));
                self.worker = Some((worker, Stopwatch::start()));
                true
            }
            Err(error) => {
                tracing::error!(tenant = self.id, code = error.code(), "{error}");
                self.lost(error.code(), error.to_string());
                false
            }
        }
    }

    /// Its queries go on in the next one.
    fn worker_died(&mut self, reason: Option<&IpcError>) {
        let Some((worker, lived)) = self.worker.take() else { return };
        self.show(None);
        if lived.elapsed() > SETTLED {
            self.deaths = 0;
        }
        let last_words = worker.end();
        let (code, reason) = match reason {
            Some(error) => (error.code(), error.to_string()),
            None => ("WORKER_DIED", "it ended by itself, or was killed".to_owned()),
        };
        tracing::error!(tenant = self.id, code, reason, last_words, "the worker is gone; another one is started");
        self.lost(code, format!("the worker that ran the query is gone: {reason}. Another one is started"));
    }

    fn lost(&mut self, code: &str, message: String) {
        self.deaths = self.deaths.saturating_add(1);
        self.not_before_ms = self.now_ms().saturating_add_unsigned(WORKER_RETRY.pause_ms(self.deaths));
        let failure = Failure { code: code.to_owned(), message, batch: None };
        for query in self.queries.values_mut().filter(|query| query.is_loaded()) {
            query.lost(failure.clone(), self.not_before_ms);
        }
    }

    /// Nothing is loaded any more, so nothing is lost.
    fn end_worker(&mut self) {
        if let Some((worker, _)) = self.worker.take() {
            self.show(None);
            drop(worker.end());
        }
    }

    fn show(&self, worker: Option<WorkerStatus>) {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = worker;
    }
}

/// Gives up rows that nobody needs any more. A worker that lies gives up its tenant's.
fn trim(query: &Managed, Input { consumed, needed }: Input) {
    let ingest = &query.hosted.ingest;
    let consumed = consumed.min(ingest.end());
    ingest.consumed(consumed);
    if let Err(error) = ingest.trim(needed.min(consumed)) {
        tracing::warn!(query = query.hosted.query, code = error.code(), "ingested rows could not be removed: {error}");
    }
}

fn log(tenant: &str, line: &Line) {
    let Line { query, level, of_processor, batch, text } = line;
    let query = query.as_deref().unwrap_or_default();
    let batch = batch.map(tracing::field::display);
    match level {
        0 => tracing::error!(target: "worker", tenant, query, of_processor, batch, "{text}"),
        1 => tracing::warn!(target: "worker", tenant, query, of_processor, batch, "{text}"),
        _ => tracing::info!(target: "worker", tenant, query, of_processor, batch, "{text}"),
    }
}
