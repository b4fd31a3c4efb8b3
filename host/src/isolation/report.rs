//! Which walls a child has around it, by name, for the log, the status and `tidemill doctor`.

use serde::{Deserialize, Serialize};

/// One wall. Its name in kebab-case is stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// Environment empty, no descriptor but the socket.
    NothingInherited,
    /// Limits on memory, CPU time, files and descriptors.
    ResourceLimits,
    /// Network, System V IPC and host name of its own, all empty.
    Namespaces,
    /// The child's folder is its root directory.
    RootDirectory,
    /// A user of its own.
    User,
    /// No privilege of root, whoever it is.
    NoCapabilities,
    /// It is killed when the server ends.
    DiesWithServer,
    /// No core dumps, and no other process of that user may look into it.
    NoDumps,
    /// Programs that give their caller more rights do not do so.
    NoNewPrivileges,
    /// Only the given folders.
    LandlockFiles,
    /// No TCP.
    LandlockNetwork,
    /// No signals to other processes, no abstract Unix sockets of theirs.
    LandlockScopes,
    /// Only the system calls that it needs.
    Seccomp,
}

impl Layer {
    /// The stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NothingInherited => "nothing-inherited",
            Self::ResourceLimits => "resource-limits",
            Self::Namespaces => "namespaces",
            Self::RootDirectory => "root-directory",
            Self::User => "user",
            Self::NoCapabilities => "no-capabilities",
            Self::DiesWithServer => "dies-with-server",
            Self::NoDumps => "no-dumps",
            Self::NoNewPrivileges => "no-new-privileges",
            Self::LandlockFiles => "landlock-files",
            Self::LandlockNetwork => "landlock-network",
            Self::LandlockScopes => "landlock-scopes",
            Self::Seccomp => "seccomp",
        }
    }

    /// Whether a child without it does not start under [`Sandbox::Require`](super::Sandbox::Require).
    #[must_use]
    pub const fn is_required(self) -> bool {
        matches!(self, Self::LandlockFiles | Self::Seccomp)
    }
}

/// One wall of a child, and whether it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerState {
    /// Which.
    pub layer: Layer,
    /// Why it is missing; None: it is active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// The walls of a child, in the order in which they were closed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Report {
    /// Every layer once.
    pub layers: Vec<LayerState>,
}

impl Report {
    /// Whether a layer is active.
    #[must_use]
    pub fn is_active(&self, layer: Layer) -> bool {
        self.layers.iter().any(|state| state.layer == layer && state.missing.is_none())
    }

    /// The layers that are missing, with the reason.
    pub fn missing(&self) -> impl Iterator<Item = (Layer, &str)> {
        self.layers.iter().filter_map(|state| Some((state.layer, state.missing.as_deref()?)))
    }

    pub(super) fn add(&mut self, layer: Layer, missing: Option<String>) {
        self.layers.push(LayerState { layer, missing });
    }
}
