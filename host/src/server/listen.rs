//! The two ports: bound before anything is served, told in the ports file, closed politely.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use serde::Serialize;
use tokio::net::TcpListener;

use super::ServeError;
use crate::disk::{RealDisk, write_durably};

/// Where the server is found; also the form of the ports file.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Addresses {
    /// The API.
    pub api: SocketAddr,
    /// Health and metrics.
    pub admin: SocketAddr,
}

/// Begins to listen. `flag`: what says where.
pub(super) async fn bind(address: SocketAddr, flag: &'static str) -> Result<(TcpListener, SocketAddr), ServeError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AddrInUse => ServeError::PortTaken { address, flag },
        _ => ServeError::Listen { address, flag, source },
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// Tells others where the server is.
pub(super) fn write_ports(path: &Path, addresses: &Addresses) -> Result<(), ServeError> {
    let text = serde_json::to_vec(addresses).map_err(io::Error::from);
    let written = text.and_then(|text| write_durably(&RealDisk, path, &text));
    written.map_err(|source| ServeError::PortsFile { path: path.to_owned(), source })
}

/// Serves until `handle` ends it.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    tls: Option<RustlsConfig>,
    header_timeout: Duration,
    handle: Handle<SocketAddr>,
) -> io::Result<()> {
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let mut server = axum_server::Server::from_listener(listener).handle(handle).http1_only();
    server.http_builder().http1().header_read_timeout(header_timeout).max_headers(64).max_buf_size(64 << 10);
    let server = server.first_request_timeout(header_timeout);
    match tls {
        Some(config) => server.acceptor(RustlsAcceptor::new(config)).serve(service).await,
        None => server.serve(service).await,
    }
}
