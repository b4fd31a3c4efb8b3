//! The queries of all tenants as they run: for each its rows on the way in, its place with the supervisor, and its results.
//!
//! Metadata say which queries there are and what is wanted of them; this is what comes of it in this process. It is made anew
//! at each start.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::watch;

use super::config::Settings;
use super::data::DataFolder;
use super::http::Problem;
use super::id::Id;
use super::meta::queries::{self, Desired, Query};
use super::meta::tenants::TENANTS;
use super::meta::{Meta, View, users};
use crate::clock::Clock;
use crate::config::hosted::HostedQuery;
use crate::disk::RealDisk;
use crate::ingest::{IngestLog, IngestSettings};
use crate::ipc::worker::QueryFolders;
use crate::isolation::Limits;
use crate::record::Schema;
use crate::results::{ResultsReader, open_folder};
use crate::supervisor::{
    self, Hosted, LoadComponent, QueryHandle, Status, Supervisor, Wanted, WorkerStatus, make_folders,
};

/// The queries that are hosted.
pub struct Hosting {
    supervisor: Supervisor,
    load: Arc<LoadComponent>,
    clock: Arc<dyn Clock>,
    ingest: IngestSettings,
    results_bytes_max: u64,
    tenants: PathBuf,
    /// Workers become users of their own.
    gives_users: bool,
    queries: RwLock<HashMap<Id, Arc<OpenQuery>>>,
    taking_up: Mutex<()>,
}

/// A tenant, as far as its queries need it.
#[derive(Debug, Clone, Copy)]
struct Home<'a> {
    tenant: &'a Id,
    folder: &'a Path,
    /// The user that its worker becomes.
    user: Option<u32>,
}

/// A query that is hosted.
pub struct OpenQuery {
    /// Columns of the rows that it takes.
    pub schema: Schema,
    /// Its rows.
    pub ingest: Arc<IngestLog>,
    handle: QueryHandle,
    results: Mutex<ResultsReader>,
    results_bytes_max: u64,
    desired: Mutex<Desired>,
    /// Its results have no room, so it rests until some are trimmed.
    full: AtomicBool,
    news: watch::Sender<()>,
}

impl Hosting {
    /// Hosts nothing yet. `load` gives the components of queries with their native code.
    pub fn new(settings: &Settings, data: &DataFolder, load: Arc<LoadComponent>, clock: Arc<dyn Clock>) -> Self {
        let usual = supervisor::Settings::default();
        let workers = supervisor::Settings {
            sandbox: settings.sandbox.into(),
            limits: Limits { data_bytes: Some(settings.worker_memory_bytes), ..usual.limits },
            loaded_max: settings.worker_queries_max,
            unload_after: settings.unload_after,
            ..usual
        };
        Self {
            supervisor: Supervisor::new(workers, Arc::clone(&clock)),
            load,
            clock,
            ingest: IngestSettings { backlog_bytes_max: settings.backlog_max_bytes, ..IngestSettings::default() },
            results_bytes_max: settings.results_max_bytes,
            tenants: data.tenants(),
            gives_users: gives_users(&data.tmp()),
            queries: RwLock::default(),
            taking_up: Mutex::default(),
        }
    }

    /// Takes up every query that is remembered. Blocks.
    ///
    /// # Errors
    /// The metadata cannot be read. A query that cannot be taken up keeps no other one from it: the log says why.
    pub fn host_all(&self, meta: &Meta) -> Result<(), Problem> {
        let tenants = meta.read(|view| view.all(&TENANTS, ""))?;
        for (_, tenant) in tenants {
            let found = meta.read(|view| queries::page(view, &tenant.id, None, usize::MAX))?;
            for (_, query) in found.records {
                if let Err(problem) = self.host(meta, &tenant.id, &query) {
                    let (tenant, query) = (&tenant.name, &query.name);
                    tracing::error!(%tenant, %query, code = problem.code(), "the query is not taken up: {problem:?}");
                }
            }
        }
        Ok(())
    }

    /// Takes a query up: from now on it takes rows, and runs if that is wanted. Does nothing if it is taken up already. Blocks
    /// while its log of rows is read.
    ///
    /// # Errors
    /// Its folders cannot be made or read.
    pub fn host(&self, meta: &Meta, tenant: &Id, query: &Query) -> Result<(), Problem> {
        // Of two that take a query up, one does. Those who only ask for queries do not wait for the disk meanwhile.
        let _taking_up = self.taking_up.lock().unwrap_or_else(PoisonError::into_inner);
        if self.get(&query.id).is_ok() {
            return Ok(());
        }
        let user = if self.gives_users { Some(meta.write(|writing| users::of(writing, tenant))?) } else { None };
        let home = Home { tenant, folder: &self.tenants.join(tenant.as_str()), user };
        let open = self.open(home, query)?;
        self.queries.write().unwrap_or_else(PoisonError::into_inner).insert(query.id.clone(), open);
        Ok(())
    }

    fn open(&self, home: Home<'_>, query: &Query) -> Result<Arc<OpenQuery>, Problem> {
        let document = query.settings.to_string();
        let settings = HostedQuery::parse(document.as_bytes())?;
        let id = query.id.as_str();
        let failed = |error: std::io::Error| Problem::new("QUERY_FOLDER_FAILED", error.to_string());
        make_folders(home.folder, id, home.user).map_err(failed)?;
        let folders = QueryFolders::of(id);
        let ingest = IngestLog::open(
            Arc::new(RealDisk),
            &home.folder.join(&folders.ingest),
            id,
            &settings.input_schema,
            self.ingest,
            Arc::clone(&self.clock),
        );
        let ingest = Arc::new(ingest?);
        let root = File::open(home.folder).map_err(failed)?;
        let results = open_folder(std::os::fd::AsFd::as_fd(&root), &folders.results).map_err(failed)?;

        let (news, _) = watch::channel(());
        let changed = news.clone();
        let hosted = Hosted {
            tenant: home.tenant.to_string(),
            tenant_folder: home.folder.to_owned(),
            user: home.user,
            query: id.to_owned(),
            document,
            components: query.runs.iter().map(|version| version.sha256.clone()).collect(),
            load: Arc::clone(&self.load),
            ingest: Arc::clone(&ingest),
            changed: Box::new(move || {
                changed.send_replace(());
            }),
        };
        let handle = self.supervisor.host(hosted, wanted(query.desired));
        let open = Arc::new(OpenQuery {
            schema: settings.input_schema,
            ingest,
            handle: handle?,
            results: Mutex::new(ResultsReader::new(results)),
            results_bytes_max: self.results_bytes_max,
            desired: Mutex::new(query.desired),
            full: AtomicBool::new(false),
            news,
        });
        watch_results(&open);
        Ok(open)
    }

    /// A query.
    ///
    /// # Errors
    /// `NOT_FOUND` for one that is being deleted.
    pub fn get(&self, query: &Id) -> Result<Arc<OpenQuery>, Problem> {
        let queries = self.queries.read().unwrap_or_else(PoisonError::into_inner);
        queries.get(query).map(Arc::clone).ok_or_else(Problem::not_found)
    }

    /// Gives a query up, and removes what it kept once nobody has it open. Blocks for the batch in hand.
    ///
    /// # Errors
    /// The disk fails; a part may be left then, which nobody can name any more.
    pub fn remove(&self, tenant: &Id, query: &Id) -> Result<(), Problem> {
        let removed = self.queries.write().unwrap_or_else(PoisonError::into_inner).remove(query);
        if let Some(removed) = removed {
            // A supervisor that has been stopped has nothing open.
            drop(removed.handle.remove());
        }
        supervisor::remove_folders(&self.tenants.join(tenant.as_str()), query.as_str())
            .map_err(|error| Problem::new("QUERY_FOLDER_FAILED", error.to_string()))
    }

    /// The workers that run now.
    pub fn workers(&self) -> Vec<WorkerStatus> {
        self.supervisor.workers()
    }

    /// Closes all queries, each after the batch in hand.
    pub fn stop(&self, patience: Duration) {
        self.supervisor.stop(patience);
    }
}

impl std::fmt::Debug for Hosting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hosting").field("supervisor", &self.supervisor).finish_non_exhaustive()
    }
}

fn wanted(desired: Desired) -> Wanted {
    match desired {
        Desired::Running => Wanted::Running,
        Desired::Paused => Wanted::Paused,
        Desired::Stopped => Wanted::Stopped,
    }
}

impl OpenQuery {
    /// Changes what is wanted of it. Running after a failure means: try again.
    ///
    /// # Errors
    /// The server is stopping.
    pub fn want(&self, desired: Desired) -> Result<(), Problem> {
        *self.desired.lock().unwrap_or_else(PoisonError::into_inner) = desired;
        self.tell()
    }

    fn tell(&self) -> Result<(), Problem> {
        let desired = *self.desired.lock().unwrap_or_else(PoisonError::into_inner);
        let wanted = match desired {
            Desired::Running if self.full.load(Ordering::Acquire) => Wanted::Paused,
            desired => wanted(desired),
        };
        Ok(self.handle.want(wanted)?)
    }

    /// More rows of it are durable.
    ///
    /// # Errors
    /// The server is stopping.
    pub fn rows(&self) -> Result<(), Problem> {
        Ok(self.handle.rows()?)
    }

    /// Where it stands.
    pub fn status(&self) -> Status {
        self.handle.status()
    }

    /// Whether it rests because its results have no room.
    pub fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// Reads its results, or trims them. Blocks.
    pub fn results<T>(&self, work: impl FnOnce(&mut ResultsReader) -> T) -> T {
        work(&mut self.results.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes whenever its status does; after each batch at the least.
    pub fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// Lets the query rest while its results have no room, and go on when they have. A batch that was begun is published
    /// nevertheless, so results may be larger by one. Blocks.
    ///
    /// # Errors
    /// Results that cannot be read; the server is stopping.
    pub fn make_room(&self) -> Result<(), Problem> {
        let full = self.results(|results| results.bytes())? >= self.results_bytes_max;
        if self.full.swap(full, Ordering::AcqRel) == full {
            return Ok(());
        }
        self.tell()
    }
}

/// Whether files can be given to other users here: root may that, unless a container has no such users.
fn gives_users(tmp: &Path) -> bool {
    let probe = tmp.join("user-probe");
    let given = File::create(&probe).and_then(|_| chown(&probe, Some(users::FIRST), Some(users::FIRST)));
    // The folder is emptied at the next start.
    drop(std::fs::remove_file(&probe));
    rustix::process::geteuid().is_root() && given.is_ok()
}

/// Looks after each batch whether there is still room for the results of the next.
fn watch_results(query: &Arc<OpenQuery>) {
    let mut news = query.news();
    let query = Arc::downgrade(query);
    tokio::spawn(async move {
        while news.changed().await.is_ok() {
            let Some(query) = query.upgrade() else { return };
            let looked = tokio::task::spawn_blocking(move || query.make_room());
            if let Ok(Err(problem)) = looked.await {
                tracing::warn!(code = problem.code(), "whether results have room is not known: {problem:?}");
            }
        }
    });
}
