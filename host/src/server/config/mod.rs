//! Settings of the server: flags over environment over file, checked as a whole.

mod error;
mod layer;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use error::SettingsError;
pub use layer::Layer;

/// What the server goes by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Settings {
    /// The data folder.
    pub data: PathBuf,
    /// Where the API is.
    pub listen: SocketAddr,
    /// Where health and metrics are.
    pub admin_listen: SocketAddr,
    /// A file to write the ports to, once there are any.
    pub ports_file: Option<PathBuf>,
    /// Certificate and key, in PEM.
    pub tls: Option<Tls>,
    /// A proxy in front does TLS, and says in `X-Forwarded-For` who calls.
    pub behind_proxy: bool,
    /// Names beside loopback that requests may be sent to.
    pub public_names: Vec<String>,
    /// What happens where the system cannot wall off workers.
    pub sandbox: SandboxPolicy,
    /// Bytes that an uploaded component may have.
    pub upload_max_bytes: u64,
    /// Uploads that are compiled at the same time.
    pub compilers: usize,
    /// Bytes of a query's rows that may wait for it.
    pub backlog_max_bytes: u64,
    /// Bytes of a query's results from which on it rests until some are trimmed.
    pub results_max_bytes: u64,
    /// Queries that a tenant's worker has loaded at the same time; others take turns with them.
    pub worker_queries_max: usize,
    /// Bytes of memory that a tenant's worker may have.
    pub worker_memory_bytes: u64,
    /// A query that has nothing to do for so long is unloaded.
    #[serde(with = "layer::duration")]
    pub unload_after: Duration,
    /// Wrong tokens that one address may send in a minute.
    pub failed_logins_per_minute: u32,
    /// Requests in hand at the same time.
    pub requests_max: u32,
    /// Time for the head of a request.
    #[serde(with = "layer::duration")]
    pub header_timeout: Duration,
    /// Time between two pieces of a body.
    #[serde(with = "layer::duration")]
    pub body_timeout: Duration,
    /// Time that requests in hand have to end when the server stops.
    #[serde(with = "layer::duration")]
    pub stop_timeout: Duration,
}

/// Certificate and key, in PEM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tls {
    /// The chain of certificates.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// What happens where the system cannot wall off workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxPolicy {
    /// The server does not start.
    Require,
    /// It starts, and says so in its log and in its status.
    Warn,
}

impl From<SandboxPolicy> for crate::isolation::Sandbox {
    fn from(policy: SandboxPolicy) -> Self {
        match policy {
            SandboxPolicy::Require => Self::Require,
            SandboxPolicy::Warn => Self::Warn,
        }
    }
}

impl std::str::FromStr for SandboxPolicy {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "require" => Ok(Self::Require),
            "warn" => Ok(Self::Warn),
            _ => Err("one of require, warn"),
        }
    }
}

/// Where the API is, if nothing else is said.
const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);
/// Where health and metrics are, if nothing else is said.
const ADMIN_LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9090);
/// Room for components of Python, which carry their interpreter.
const UPLOAD_MAX_BYTES: u64 = 64 << 20;

impl Settings {
    /// The settings that the layers give together; earlier ones win.
    ///
    /// # Errors
    /// Something is missing, or does not go together.
    pub fn from_layers(layers: impl IntoIterator<Item = Layer>) -> Result<Self, SettingsError> {
        let said = layers.into_iter().fold(Layer::default(), Layer::over);
        let tls = match (said.tls_cert, said.tls_key) {
            (Some(cert), Some(key)) => Some(Tls { cert, key }),
            (None, None) => None,
            _ => return Err(SettingsError::TlsHalf),
        };
        let settings = Self {
            data: said.data.ok_or(SettingsError::DataMissing)?,
            listen: said.listen.unwrap_or(LISTEN),
            admin_listen: said.admin_listen.unwrap_or(ADMIN_LISTEN),
            ports_file: said.ports_file,
            tls,
            behind_proxy: said.behind_proxy.unwrap_or(false),
            public_names: said.public_names.unwrap_or_default(),
            sandbox: said.sandbox.unwrap_or(SandboxPolicy::Require),
            upload_max_bytes: said.upload_max_bytes.unwrap_or(UPLOAD_MAX_BYTES),
            compilers: said.compilers.unwrap_or(1).max(1),
            backlog_max_bytes: said.backlog_max_bytes.unwrap_or(1 << 30),
            results_max_bytes: said.results_max_bytes.unwrap_or(1 << 30),
            worker_queries_max: said.worker_queries_max.unwrap_or(16).max(1),
            worker_memory_bytes: said.worker_memory_bytes.unwrap_or(4 << 30),
            unload_after: said.unload_after.unwrap_or(Duration::from_secs(10)),
            failed_logins_per_minute: said.failed_logins_per_minute.unwrap_or(30),
            requests_max: said.requests_max.unwrap_or(1024),
            header_timeout: said.header_timeout.unwrap_or(Duration::from_secs(10)),
            body_timeout: said.body_timeout.unwrap_or(Duration::from_secs(10)),
            stop_timeout: said.stop_timeout.unwrap_or(Duration::from_secs(30)),
        };
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), SettingsError> {
        let guarded = self.tls.is_some() || self.behind_proxy;
        let open = [self.listen, self.admin_listen].into_iter().find(|address| !address.ip().is_loopback());
        match open {
            Some(address) if !guarded => Err(SettingsError::TlsRequired { address }),
            _ if self.tls.is_some() && self.behind_proxy => Err(SettingsError::TlsTwice),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
