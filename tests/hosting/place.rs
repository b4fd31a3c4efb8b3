//! Where hosted queries live in a test: a tenant's folder, a supervisor, and what goes in and comes out.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidemill_host::clock::SystemClock;
use tidemill_host::config::hosted::HostedQuery;
use tidemill_host::disk::RealDisk;
use tidemill_host::ingest::{BodyFormat, BodyLimits, Dedup, IngestLog, IngestSettings, parse};
use tidemill_host::ipc::Sealed;
use tidemill_host::ipc::worker::QueryFolders;
use tidemill_host::results::{Entry, PageLimits, Position, ResultsReader, open_folder};
use tidemill_host::runtime::{Limits, Metering, Processor, Sandbox};
use tidemill_host::supervisor::{
    Failure, Hosted, QueryHandle, Retry, Settings, State, Status, Supervisor, Wanted, make_folders,
};

use crate::support::component;

/// Longer than anything takes here, on a machine that does much else.
const PATIENCE: Duration = Duration::from_secs(60);

/// A tenant of a server.
pub struct Place {
    pub ingest: IngestSettings,
    folder: TempDir,
    settings: Settings,
    pub supervisor: Supervisor,
    user: Option<u32>,
}

impl Place {
    pub fn new() -> Self {
        Self::with(Settings::default())
    }

    /// With settings for this tenant's workers.
    pub fn with(settings: Settings) -> Self {
        let settings = Settings { executable: PathBuf::from(env!("CARGO_BIN_EXE_tidemill")), ..settings };
        let supervisor = Supervisor::new(settings.clone(), Arc::new(SystemClock));
        // A user of its own can be had by root only.
        let user = rustix::process::geteuid().is_root().then_some(0x4000_1000);
        Self { ingest: IngestSettings::default(), folder: TempDir::new().unwrap(), settings, supervisor, user }
    }

    /// Lets the server stop, and start again on the same folder.
    pub fn restart(&mut self) {
        self.supervisor.stop(PATIENCE);
        self.supervisor = Supervisor::new(self.settings.clone(), Arc::new(SystemClock));
    }

    /// Has a query run that the document describes, of the component with this name.
    pub fn run(&self, name: &str, document: &Value, of: &str) -> Running<'_> {
        make_folders(self.folder.path(), name, self.user).unwrap();
        let text = document.to_string();
        let schema = HostedQuery::parse(text.as_bytes()).unwrap().input_schema;
        let folders = QueryFolders::of(name);
        let ingest = Arc::new(
            IngestLog::open(
                Arc::new(RealDisk),
                &self.folder.path().join(&folders.ingest),
                name,
                &schema,
                self.ingest,
                Arc::new(SystemClock),
            )
            .unwrap(),
        );
        let news = Arc::new((Mutex::new(()), Condvar::new()));
        let told = Arc::clone(&news);
        let hosted = Hosted {
            tenant: "tenant".to_owned(),
            tenant_folder: self.folder.path().to_owned(),
            user: self.user,
            query: name.to_owned(),
            document: text,
            components: vec![of.to_owned()],
            load: Arc::new(load),
            ingest: Arc::clone(&ingest),
            changed: Box::new(move || {
                let _guard = told.0.lock().unwrap();
                told.1.notify_all();
            }),
        };
        let handle = self.supervisor.host(hosted, Wanted::Running).unwrap();
        let root = fs::File::open(self.folder.path()).unwrap();
        let results = open_folder(std::os::fd::AsFd::as_fd(&root), &folders.results).unwrap();
        Running { place: self, handle, schema, ingest, news, results: Mutex::new(ResultsReader::new(results)) }
    }
}

/// Components stand for their names here.
fn load(name: &str) -> Result<(Sealed, Sealed), Failure> {
    let bytes = fs::read(component(name)).unwrap();
    let sandbox = Sandbox::new(Metering::Fuel).unwrap();
    let processor = Processor::from_bytes(&sandbox, name, &bytes, Limits::default(), None).unwrap();
    Ok((Sealed::of(&bytes).unwrap(), Sealed::of(&processor.native().unwrap()).unwrap()))
}

/// A query that is hosted.
pub struct Running<'p> {
    place: &'p Place,
    pub handle: QueryHandle,
    schema: tidemill_host::record::Schema,
    pub ingest: Arc<IngestLog>,
    news: Arc<(Mutex<()>, Condvar)>,
    results: Mutex<ResultsReader>,
}

impl Running<'_> {
    /// Hands over rows, as a client does.
    pub fn ingest(&self, rows: &[Value]) {
        let body: String = rows.iter().map(|row| format!("{row}\n")).collect();
        let rows = parse(BodyFormat::JsonLines, body.as_bytes(), &self.schema, &BodyLimits::default()).unwrap();
        self.ingest.append(rows, Dedup::None).unwrap();
        self.handle.rows().unwrap();
    }

    /// Waits until it stands so.
    pub fn wait_until(&self, what: &str, stands: impl Fn(&Status) -> bool) -> Status {
        let guard = self.news.0.lock().unwrap();
        let (_guard, waited) =
            self.news.1.wait_timeout_while(guard, PATIENCE, |()| !stands(&self.handle.status())).unwrap();
        let status = self.handle.status();
        assert!(!waited.timed_out(), "{what} did not come about: {status:?}");
        status
    }

    /// Waits until it is in this state.
    pub fn wait_for(&self, state: State) -> Status {
        self.wait_until(&format!("{state:?}"), |status| status.state == state)
    }

    /// Waits until all that was handed over is committed, and gives the results from the beginning.
    pub fn results(&self) -> Vec<Value> {
        let end = self.ingest.end();
        self.wait_until("all rows", |status| status.input.consumed >= end);
        self.emitted().into_iter().map(|(_, row)| row).collect()
    }

    /// What is in the results now.
    pub fn emitted(&self) -> Vec<(Position, Value)> {
        let mut results = self.results.lock().unwrap();
        let (mut rows, mut after) = (Vec::new(), None);
        loop {
            let limits = PageLimits { rows_max: 100, bytes_max: 1 << 20 };
            let page = results.read_after(after, limits).unwrap();
            rows.extend(page.entries.iter().map(|entry| match entry {
                Entry::Row { position, json } => (*position, serde_json::from_str(json).unwrap()),
                Entry::Rollback(_) => panic!("nothing was rolled back"),
            }));
            if page.end_reached {
                return rows;
            }
            after = page.next;
        }
    }

    /// The process that runs it.
    pub fn worker(&self) -> u32 {
        self.place.supervisor.workers()[0].pid
    }

    /// Kills that process, as a power loss would.
    pub fn kill_worker(&self) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.worker()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    }
}

/// Counts rows by key.
pub fn counter() -> Value {
    json!({ "name": "counts", "processor": "counter@1", "input_schema": "key STRING, n BIGINT", "key": ["key"] })
}

/// Does what its rows say.
pub fn script() -> Value {
    json!({
        "name": "script", "processor": "script@1", "input_schema": "key STRING, op STRING NOT NULL, arg STRING",
        "key": ["key"], "time_mode": "processing-time",
    })
}

/// A row of a script.
pub fn step(key: &str, op: &str, arg: &str) -> Value {
    json!({ "key": key, "op": op, "arg": arg })
}

/// Unloads at once what has nothing to do.
pub fn hasty() -> Settings {
    Settings { unload_after: Duration::from_millis(50), ..Settings::default() }
}

/// Tries again at once.
pub fn impatient(attempts: u32) -> Settings {
    let pause = Duration::from_millis(10);
    Settings { retry: Retry { attempts, pause, pause_max: pause }, ..Settings::default() }
}
