//! Why a child was not started.

use std::io;

/// Why a child was not started. None is running after any of these.
#[derive(Debug, thiserror::Error)]
pub enum IsolationError {
    /// This program could not be started again.
    #[error("the {label} could not be started: {cause}; look at the limits on processes, memory and open files")]
    Start {
        /// Which child.
        label: String,
        /// What the system said.
        cause: io::Error,
    },
    /// The child ended, or said something else, before its walls stood.
    #[error("the {label} ended before its walls stood: {cause}. Its last words: {last_words:?}")]
    Died {
        /// Which child.
        label: String,
        /// What the server saw.
        cause: io::Error,
        /// What the child wrote on standard error.
        last_words: String,
    },
    /// A step that every supported system can do failed.
    #[error("the {label} could not close its walls: {step}: {cause}")]
    Step {
        /// Which child.
        label: String,
        /// Which step.
        step: String,
        /// What the system said.
        cause: String,
    },
    /// The system lacks a layer that is required.
    #[error(
        "the {label} was not started, because {layer} is missing: {reason}. Use a Linux kernel that has landlock (5.19 or \
         newer) and seccomp and does not forbid them here, or take the risk with `--sandbox warn`"
    )]
    Unavailable {
        /// Which child.
        label: String,
        /// The layer that is missing.
        layer: &'static str,
        /// Why.
        reason: String,
    },
}

impl IsolationError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Start { .. } => "CHILD_NOT_STARTED",
            Self::Died { .. } => "CHILD_DIED_EARLY",
            Self::Step { .. } => "SANDBOX_FAILED",
            Self::Unavailable { .. } => "SANDBOX_UNAVAILABLE",
        }
    }
}
