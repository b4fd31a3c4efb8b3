//! The server's side of workers: which queries shall run, and the processes that run them.
//!
//! Each tenant has a thread ([`tenant`]) that starts and ends its one worker ([`process`]) and knows of each of its queries
//! where it stands ([`query`]). It sleeps until someone wants something, the worker says something, or a query's time has come.
//!
//! Invariants:
//! - A tenant has at most one worker: the one before is dead and reaped before the next is started. What it had open, nobody
//!   writes then; the lock in each checkpoint says so once more.
//! - A query that shall run is either in the worker, or there is a time, or a row, at which it will be opened.
//! - Nothing that a worker says is believed without bounds, and it concerns only its own tenant.
//!
//! It knows nothing of HTTP, tokens or metadata: what shall run after a restart, its caller remembers.

mod error;
mod folders;
mod process;
mod query;
mod status;
mod tenant;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::clock::Clock;
use crate::ingest::IngestLog;
use crate::ipc::Sealed;
use crate::isolation::{Limits, Sandbox};
pub use error::SupervisorError;
pub use folders::{make_folders, remove_folders};
pub use status::{Failure, State, Status, WorkerStatus};
use tenant::{Command, Mailbox, Tenant};

/// How workers are run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// This program, which is started again as a worker.
    pub executable: PathBuf,
    /// What becomes of a worker where walls are missing.
    pub sandbox: Sandbox,
    /// What a worker may use up.
    pub limits: Limits,
    /// Queries that a worker has loaded at the same time. Others wait until one of them has nothing to do.
    pub loaded_max: usize,
    /// A query that has nothing to do for so long is unloaded.
    pub unload_after: Duration,
    /// How a failed query is tried again.
    pub retry: Retry,
}

impl Default for Settings {
    /// A worker with room for as many queries as it may load, each with the memory that its processor may have, compiled
    /// code of Python or JavaScript, and some 40 MB for its store and threads.
    fn default() -> Self {
        Self {
            executable: PathBuf::from("/proc/self/exe"),
            sandbox: Sandbox::Require,
            limits: Limits {
                data_bytes: Some(4 << 30),
                open_files: Some(4_096),
                threads: Some(512),
                ..Limits::default()
            },
            loaded_max: 16,
            unload_after: Duration::from_secs(10),
            retry: Retry::default(),
        }
    }
}

/// How often, and when, something that failed is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// A query that fails more often, without a batch between, has failed.
    pub attempts: u32,
    /// Before the first attempt; doubled before each further one.
    pub pause: Duration,
    /// Never longer than this.
    pub pause_max: Duration,
}

impl Default for Retry {
    /// Half a minute in all: a full disk or a slow machine may have been put right by then.
    fn default() -> Self {
        Self { attempts: 5, pause: Duration::from_secs(1), pause_max: Duration::from_secs(30) }
    }
}

impl Retry {
    /// How long to wait before this attempt, from 1.
    fn pause_ms(&self, attempt: u32) -> u64 {
        let doubled = 1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        let pause = self.pause.saturating_mul(doubled).min(self.pause_max);
        u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)
    }
}

/// What a tenant wants of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// It runs whenever there is something to do.
    Running,
    /// It takes rows, and runs no batches.
    Paused,
    /// It is closed.
    Stopped,
}

/// Gives a component, by its SHA-256 in hex, and its native code, which it vouches for.
pub type LoadComponent = dyn Fn(&str) -> Result<(Sealed, Sealed), Failure> + Send + Sync;

/// A query to run.
pub struct Hosted {
    /// Its tenant's id.
    pub tenant: String,
    /// Its tenant's folder, in which [`QueryFolders`](crate::ipc::worker::QueryFolders) says what lies where. The folders of
    /// the query are there.
    pub tenant_folder: PathBuf,
    /// The user that the tenant's worker becomes. None: it stays who the server is.
    pub user: Option<u32>,
    /// Its id.
    pub query: String,
    /// What the tenant wrote about it.
    pub document: String,
    /// The component of each step, by digest.
    pub components: Vec<String>,
    /// Where they are.
    pub load: Arc<LoadComponent>,
    /// Its rows.
    pub ingest: Arc<IngestLog>,
    /// Told after each change of [`QueryHandle::status`], on a thread that must not be kept waiting.
    pub changed: Box<dyn Fn() + Send + Sync>,
}

/// Runs the queries of all tenants.
pub struct Supervisor {
    settings: Settings,
    clock: Arc<dyn Clock>,
    tenants: Mutex<BTreeMap<String, Running>>,
}

/// The thread of a tenant.
struct Running {
    mailbox: Mailbox,
    thread: JoinHandle<()>,
    worker: Arc<Mutex<Option<WorkerStatus>>>,
}

impl Supervisor {
    /// Runs nothing yet.
    pub fn new(settings: Settings, clock: Arc<dyn Clock>) -> Self {
        Self { settings, clock, tenants: Mutex::default() }
    }

    /// Takes a query. From now on it is kept as it is wanted.
    ///
    /// # Errors
    /// No thread can be started for the tenant; the supervisor has been stopped.
    pub fn host(&self, hosted: Hosted, wanted: Wanted) -> Result<QueryHandle, SupervisorError> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let mailbox = match tenants.get(&hosted.tenant) {
            Some(running) => running.mailbox.clone(),
            None => {
                let (settings, clock) = (self.settings.clone(), Arc::clone(&self.clock));
                let worker = Arc::default();
                let (mailbox, thread) =
                    Tenant::start(&hosted, settings, clock, Arc::clone(&worker)).map_err(SupervisorError::NoThread)?;
                tenants.insert(hosted.tenant.clone(), Running { mailbox: mailbox.clone(), thread, worker });
                mailbox
            }
        };
        let handle =
            QueryHandle { query: hosted.query.clone(), status: Arc::new(Mutex::new(Status::default())), mailbox };
        let status = Arc::clone(&handle.status);
        handle.mailbox.send(Command::Host { hosted: Box::new(hosted), wanted, status })?;
        Ok(handle)
    }

    /// The workers that run now.
    pub fn workers(&self) -> Vec<WorkerStatus> {
        let tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        let workers = tenants.values().map(|of| of.worker.lock().unwrap_or_else(PoisonError::into_inner).clone());
        workers.flatten().collect()
    }

    /// Closes all queries, each after the batch in hand, and ends the workers. One that does not come to an end within this
    /// time is killed, which loses nothing but a quick next start.
    pub fn stop(&self, patience: Duration) {
        let tenants = std::mem::take(&mut *self.tenants.lock().unwrap_or_else(PoisonError::into_inner));
        for running in tenants.values() {
            // One that has ended is joined below.
            drop(running.mailbox.send(Command::ShutDown { patience }));
        }
        for running in tenants.into_values() {
            drop(running.thread.join());
        }
    }
}

/// A query that is hosted. It is not ended by dropping this.
#[derive(Clone)]
pub struct QueryHandle {
    query: String,
    status: Arc<Mutex<Status>>,
    mailbox: Mailbox,
}

impl QueryHandle {
    /// Changes what is wanted of it. [`State::Running`] after a failure means: try again.
    ///
    /// # Errors
    /// The supervisor has been stopped.
    pub fn want(&self, wanted: Wanted) -> Result<(), SupervisorError> {
        self.mailbox.send(Command::Want { query: self.query.clone(), wanted })
    }

    /// More rows of it are durable.
    ///
    /// # Errors
    /// The supervisor has been stopped.
    pub fn rows(&self) -> Result<(), SupervisorError> {
        self.mailbox.send(Command::Rows { query: self.query.clone() })
    }

    /// Where it stands.
    pub fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives it up, and comes back when it is closed and nobody has its folders open.
    ///
    /// # Errors
    /// The supervisor has been stopped.
    pub fn remove(&self) -> Result<(), SupervisorError> {
        let (done, removed) = std::sync::mpsc::channel();
        self.mailbox.send(Command::Remove { query: self.query.clone(), done })?;
        removed.recv().map_err(|_| SupervisorError::Stopped)
    }
}

impl std::fmt::Debug for QueryHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueryHandle").field("query", &self.query).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Supervisor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervisor").field("settings", &self.settings).finish_non_exhaustive()
    }
}
