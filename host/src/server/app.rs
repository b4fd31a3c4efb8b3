//! What all requests share.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use tokio::sync::{Semaphore, watch};

use super::auth::{Auth, Caller, holds};
use super::config::Settings;
use super::data::DataFolder;
use super::hosting::Hosting;
use super::http::{Names, Problem};
use super::meta::{Meta, Reading, Writing, tokens};
use super::metrics::Metrics;
use super::operations::Operations;
use super::{ServeError, components};
use crate::clock::Clock;
use crate::compiler::{Compiler, NativeStore};
use crate::disk::RealDisk;

/// The server's state.
#[derive(Debug)]
pub struct App {
    /// What it goes by.
    pub settings: Settings,
    /// Where everything lies.
    pub data: DataFolder,
    /// What is remembered.
    pub meta: Meta,
    /// Failed logins, and the news of revocations.
    pub auth: Auth,
    /// Names that requests may be sent to.
    pub names: Names,
    /// Room for requests.
    pub room: Arc<Semaphore>,
    /// Compiles what is uploaded.
    pub compiler: Arc<Compiler>,
    /// Uploaded components, and their native code.
    pub store: Arc<NativeStore>,
    /// The queries that are hosted.
    pub hosting: Hosting,
    /// Becomes true when the server stops.
    stopping: watch::Sender<bool>,
    /// What is counted.
    pub metrics: Metrics,
    /// Long work that goes on.
    pub operations: Operations,
    /// Held while versions and the store are changed together.
    pub components: Mutex<()>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

impl App {
    /// Over an open data folder.
    ///
    /// # Errors
    /// The metadata does not open, or the system cannot wall off what is uploaded.
    pub fn new(settings: Settings, data: DataFolder, clock: Arc<dyn Clock>) -> Result<Self, ServeError> {
        let meta = Meta::open(&data.meta())?;
        let compiler = Arc::new(Compiler::start(settings.sandbox.into(), settings.compilers, None)?);
        let store = Arc::new(NativeStore::open(Arc::new(RealDisk), data.root(), *data.secret().bytes())?);
        let load = components::loader(Arc::clone(&compiler), Arc::clone(&store));
        let hosting = Hosting::new(&settings, &data, load, Arc::clone(&clock));
        let room = usize::try_from(settings.requests_max).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        Ok(Self {
            metrics: Metrics::default(),
            operations: Operations::default(),
            components: Mutex::new(()),
            auth: Auth::new(settings.failed_logins_per_minute),
            names: Names::new(settings.listen.ip(), &settings.public_names),
            room: Arc::new(Semaphore::new(room)),
            settings,
            data,
            meta,
            clock,
            compiler,
            store,
            hosting,
            stopping: watch::Sender::new(false),
        })
    }

    /// Milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms(0).unwrap_or_default()
    }

    /// Does something that may block, apart from the threads that serve requests.
    ///
    /// # Errors
    /// A panic in it, which is a defect; what it says itself.
    pub async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let app = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&app)).await;
        done.map_err(|error| Problem::new("SERVER_DEFECT", error.to_string()))?
    }

    /// Reads metadata.
    ///
    /// # Errors
    /// The store fails, or what the closure says.
    pub async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        reads: impl FnOnce(&Reading) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        self.blocking(move |app| app.meta.read(reads)).await
    }

    /// Changes metadata, durably.
    ///
    /// # Errors
    /// The store fails, or what the closure says; nothing has changed then.
    pub async fn write<T: Send + 'static>(
        self: &Arc<Self>,
        writes: impl FnOnce(&Writing) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        self.blocking(move |app| app.meta.write(writes)).await
    }

    /// The answer to a request without a right token: what it says, or that there were too many.
    pub fn failed_login(&self, from: IpAddr, otherwise: Problem) -> Problem {
        self.metrics.failed_login();
        match self.auth.failed(from, self.now_ms()) {
            Ok(()) => otherwise,
            Err(seconds) => {
                let detail =
                    format!("too many requests without a right token came from this address; wait {seconds} s");
                Problem::new("LOGIN_RATE_LIMITED", detail).retry_after(seconds)
            }
        }
    }

    /// Lets everything that waits know that the server stops.
    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    /// Comes back when the server stops.
    pub async fn stopped(&self) {
        // The sender lives as long as this.
        drop(self.stopping.subscribe().wait_for(|stopping| *stopping).await);
    }

    /// Comes back when a caller's token does not hold any more: for answers that go on and on.
    pub async fn ended(self: Arc<Self>, caller: Caller) {
        let mut revocations = self.auth.revocations();
        loop {
            let token = caller.token.clone();
            let now_ms = self.now_ms();
            let found = self.read(move |view| Ok(tokens::get(view, &token)?)).await;
            if !found.is_ok_and(|token| token.is_some_and(|token| holds(&token, now_ms))) {
                return;
            }
            let left_ms = caller
                .expires_ms
                .map_or(u64::MAX, |expires| u64::try_from(expires.saturating_sub(now_ms)).unwrap_or_default());
            // A day at most: timers do not reach further, and looking again costs nothing.
            let left = std::time::Duration::from_millis(left_ms.min(86_400_000));
            tokio::select! {
                news = revocations.changed() => if news.is_err() { return },
                () = tokio::time::sleep(left) => {}
            }
        }
    }
}
