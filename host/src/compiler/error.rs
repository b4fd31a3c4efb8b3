//! Why an upload was not compiled.

use std::io;
use std::time::Duration;

use crate::ipc::IpcError;
use crate::isolation::IsolationError;

/// Why an upload was not compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// It is no processor that this host runs. Code and message are those of the child, the code checked, the message bounded
    /// and cleaned.
    #[error("{message}")]
    Refused {
        /// Stable code.
        code: String,
        /// What is wrong with it and what to do.
        message: String,
    },
    /// The child had no memory left.
    #[error(
        "compiling {name} takes more than {bytes} bytes of memory; leave out what the processor does not use, or have the \
         limit raised"
    )]
    Memory {
        /// What is called so.
        name: String,
        /// The limit.
        bytes: u64,
    },
    /// The child used up its CPU time.
    #[error(
        "compiling {name} and running its init takes more than {seconds} s of CPU time; leave out what the processor does not \
         use, or have the limit raised"
    )]
    CpuTime {
        /// What is called so.
        name: String,
        /// The limit.
        seconds: u64,
    },
    /// The child did not answer in time.
    #[error("compiling {name} takes longer than {wall:?}; try again when the server is less busy")]
    WallTime {
        /// What is called so.
        name: String,
        /// The limit.
        wall: Duration,
    },
    /// The child ended in another way.
    #[error("the compiler of {name} ended without an answer: {how}; leave out what is unusual in the component")]
    Crashed {
        /// What is called so.
        name: String,
        /// Signal or exit code.
        how: String,
        /// What it wrote before; for the operator's eyes, escaped.
        last_words: String,
    },
    /// The child sent what it must not.
    #[error("the compiler of {name} answered what it must not: {source}")]
    Answer {
        /// What is called so.
        name: String,
        /// What.
        source: IpcError,
    },
    /// The child could not be started.
    #[error(transparent)]
    Start(#[from] IsolationError),
    /// The server has no memory or descriptors left.
    #[error("the compiler of {name} could not be given its work: {source}")]
    System {
        /// What is called so.
        name: String,
        /// What the system said.
        source: io::Error,
    },
}

impl CompileError {
    /// The stable code of this error.
    pub fn code(&self) -> &str {
        match self {
            Self::Refused { code, .. } => code,
            Self::Memory { .. } => "COMPILE_MEMORY",
            Self::CpuTime { .. } => "COMPILE_CPU_TIME",
            Self::WallTime { .. } => "COMPILE_WALL_TIME",
            Self::Crashed { .. } => "COMPILER_CRASHED",
            Self::Answer { source, .. } => source.code(),
            Self::Start(error) => error.code(),
            Self::System { .. } => "COMPILER_UNAVAILABLE",
        }
    }

    /// Whether it is the upload that is at fault, and not the host.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Refused { .. } | Self::Memory { .. } | Self::CpuTime { .. } | Self::Crashed { .. } => true,
            Self::WallTime { .. } | Self::Answer { .. } | Self::Start(_) | Self::System { .. } => false,
        }
    }
}
