//! What ends the server, or keeps it from starting.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::config::SettingsError;
use super::data::DataError;
use super::http::Problem;
use super::meta::MetaError;
use crate::compiler::{CompileError, StoreError};

/// Why the server does not run.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The settings.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The data folder.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The metadata.
    #[error(transparent)]
    Meta(#[from] MetaError),
    /// No compiler can be started behind its walls.
    #[error(
        "{0}. `tidemill doctor` tells which walls this system has; --sandbox warn does without those that are missing"
    )]
    Compiler(#[from] CompileError),
    /// The store of components.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A query cannot be taken up.
    #[error("a query cannot be taken up: {0:?}")]
    Hosting(Problem),
    /// Another program listens there.
    #[error("{address} is taken by another program. Stop that one, or choose another port: tidemill serve {flag} {}:0", address.ip())]
    PortTaken {
        /// Where.
        address: SocketAddr,
        /// The flag that says where.
        flag: &'static str,
    },
    /// It cannot listen there.
    #[error("cannot listen on {address}: {source}. Choose another address with {flag}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// The flag that says where.
        flag: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Certificate or key is not what it should be.
    #[error("{} is no use for TLS: {defect}. Give PEM files of a certificate and its key", path.display())]
    Tls {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        defect: String,
    },
    /// The ports file cannot be written.
    #[error("the ports file {} cannot be written: {source}", path.display())]
    PortsFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system has no threads, signals or random bytes for it.
    #[error("the system does not let the server run: {0}")]
    System(#[source] io::Error),
}

impl ServeError {
    /// Its stable code.
    pub fn code(&self) -> &str {
        match self {
            Self::Settings(error) => error.code(),
            Self::Data(error) => error.code(),
            Self::Meta(error) => error.code(),
            Self::Compiler(error) => error.code(),
            Self::Store(error) => error.code(),
            Self::Hosting(problem) => problem.code(),
            Self::PortTaken { .. } => "PORT_TAKEN",
            Self::Listen { .. } => "LISTEN_FAILED",
            Self::Tls { .. } => "TLS_INVALID",
            Self::PortsFile { .. } => "PORTS_FILE_UNWRITABLE",
            Self::System(_) => "SERVER_SYSTEM_FAILED",
        }
    }
}
