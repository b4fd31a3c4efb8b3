//! Why a worker, or a query in it, cannot go on.

use std::io;

use super::cut;
use crate::config::hosted::HostedError;
use crate::engine::error::QueryError;
use crate::engine::source::SourceError;
use crate::ipc::IpcError;
use crate::ipc::worker::{CODE_BYTES_MAX, Failure};
use crate::runtime::ComponentError;

/// Why a worker, or a query in it, cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The walls do not stand.
    #[error("a worker is started by a server, and cannot be otherwise: {0}")]
    Walls(io::Error),
    /// See [`IpcError`].
    #[error(transparent)]
    Ipc(#[from] IpcError),
    /// See [`HostedError`].
    #[error(transparent)]
    Document(#[from] HostedError),
    /// See [`ComponentError`].
    #[error(transparent)]
    Component(#[from] ComponentError),
    /// The server did not hand over what it named.
    #[error("the server did not hand over component {0}")]
    ComponentMissing(String),
    /// See [`QueryError`].
    #[error(transparent)]
    Query(#[from] QueryError),
    /// See [`SourceError`].
    #[error("ingest: {0}")]
    Source(#[from] SourceError),
}

impl WorkerError {
    /// The stable code of this error.
    pub fn code(&self) -> &str {
        match self {
            Self::Walls(_) => "WORKER_WITHOUT_SERVER",
            Self::Ipc(error) => error.code(),
            Self::Document(error) => error.code(),
            Self::Component(error) => error.code(),
            Self::ComponentMissing(_) => "HOST_DEFECT",
            Self::Query(error) => error.code(),
            Self::Source(error) => error.code,
        }
    }

    /// As the server is told.
    pub(super) fn failure(&self) -> Failure {
        let batch = match self {
            Self::Query(error) => error.batch(),
            _ => None,
        };
        let code = self.code().chars().take(CODE_BYTES_MAX / 4).collect();
        Failure { code, message: cut(self.to_string()), batch }
    }
}
