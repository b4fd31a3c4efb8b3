//! What a supervisor cannot do.

use std::io;

/// What a supervisor cannot do.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// The system has no threads left.
    #[error("no thread could be started for the tenant: {0}; look at the limits on processes and memory")]
    NoThread(io::Error),
    /// The server is stopping.
    #[error("the server is stopping; ask again when it runs")]
    Stopped,
}

impl SupervisorError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoThread(_) => "WORKER_THREAD_FAILED",
            Self::Stopped => "SERVER_STOPPING",
        }
    }
}
