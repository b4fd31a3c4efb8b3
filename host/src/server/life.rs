//! From start to stop.

use std::io;
use std::sync::Arc;

use axum_server::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::config::Settings;
use super::data::DataFolder;
use super::listen::{self, Addresses};
use super::{App, ServeError, admin, operations, routes, sweep, tls, tokens};
use crate::clock::Clock;

/// What is to be told once the server answers.
#[derive(Debug)]
pub struct Started {
    /// Where it is.
    pub addresses: Addresses,
    /// The first token, at the first start.
    pub first_token: Option<String>,
}

/// Runs the server until it is told to stop by a signal: the first one lets requests in hand end, the second one does
/// not wait.
///
/// # Errors
/// It does not start.
pub fn run(settings: Settings, clock: Arc<dyn Clock>, started: impl FnOnce(&Started)) -> Result<(), ServeError> {
    let data = DataFolder::open(&settings.data)?;
    let app = Arc::new(App::new(settings, data, clock)?);
    operations::cut_off(&app)?;
    let first_token = tokens::first(&app)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(ServeError::System)?;
    let done = runtime.block_on(async {
        // Before the first request: who asks for a query finds it.
        app.blocking(|app| app.hosting.host_all(&app.meta)).await.map_err(ServeError::Hosting)?;
        serve(Arc::clone(&app), first_token, started).await
    });
    app.hosting.stop(app.settings.stop_timeout);
    runtime.shutdown_background();
    done
}

async fn serve(app: Arc<App>, first_token: Option<String>, started: impl FnOnce(&Started)) -> Result<(), ServeError> {
    let mut signals = Signals::watch().map_err(ServeError::System)?;
    let tls = app.settings.tls.as_ref().map(tls::load).transpose()?;
    let (api, api_address) = listen::bind(app.settings.listen, "--listen").await?;
    let (admin, admin_address) = listen::bind(app.settings.admin_listen, "--admin-listen").await?;
    let addresses = Addresses { api: api_address, admin: admin_address };
    let header_timeout = app.settings.header_timeout;
    let (api_handle, admin_handle) = (Handle::new(), Handle::new());
    let api = listen::serve(api, routes::router(&app), tls.clone(), header_timeout, api_handle.clone());
    let admin = listen::serve(admin, admin::router(&app), tls, header_timeout, admin_handle.clone());
    let (api, admin) = (tokio::spawn(api), tokio::spawn(admin));
    if let Some(path) = &app.settings.ports_file {
        listen::write_ports(path, &addresses)?;
    }
    tokio::spawn(sweep::regularly(Arc::clone(&app)));
    started(&Started { addresses, first_token });

    signals.next().await;
    tracing::info!("stopping: requests in hand may end");
    app.stop();
    let patience = Some(app.settings.stop_timeout);
    api_handle.graceful_shutdown(patience);
    admin_handle.graceful_shutdown(patience);
    tokio::select! {
        _ = async { (api.await, admin.await) } => {}
        () = signals.next() => tracing::warn!("stopped at once"),
    }
    Ok(())
}

/// Ctrl-C and a polite kill.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn watch() -> io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
