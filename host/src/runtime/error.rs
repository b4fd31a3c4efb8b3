//! What is wrong with a component, before any of its code runs.

use std::io;
use std::path::PathBuf;

/// Why a file cannot be used as a processor.
#[derive(Debug, thiserror::Error)]
pub enum ComponentError {
    /// No bytes at all.
    #[error("{name} is empty; build the processor again")]
    Empty {
        /// File or label of the component.
        name: String,
    },
    /// A core module where a component is due.
    #[error(
        "{name} is a core WebAssembly module, not a component; turn it into one (`tidemill build` does it for every supported language)"
    )]
    CoreModule {
        /// File or label of the component.
        name: String,
    },
    /// Not WebAssembly, or of a kind that this host does not accept.
    #[error(
        "{name} is not a WebAssembly component that this host accepts: {reason}; `tidemill build` makes one of a compiled processor"
    )]
    Invalid {
        /// File or label of the component.
        name: String,
        /// What the parser or compiler says.
        reason: String,
    },
    /// Beyond the size that is compiled.
    #[error("{name} has {bytes} bytes, at most {bytes_max} are compiled; leave out what the processor does not use")]
    TooLarge {
        /// File or label of the component.
        name: String,
        /// Its size.
        bytes: u64,
        /// The bound.
        bytes_max: u64,
    },
    /// More of something than an upload may have.
    #[error("{name} has {found} {}, at most {most} are accepted (limit {bound}); leave out what the processor does not use", bound.replace('_', " "))]
    OutOfBounds {
        /// File or label of the component.
        name: String,
        /// Of what, a field of [`super::Bounds`].
        bound: &'static str,
        /// How much it has.
        found: u64,
        /// The bound.
        most: u64,
    },
    /// There is no memory left to compile it.
    #[error("there is no memory to compile {name}; leave out what the processor does not use")]
    OutOfMemory {
        /// File or label of the component.
        name: String,
    },
    /// Imports that this host does not grant.
    #[error(
        "{name} imports what this host does not offer: {}; it grants only its own interfaces and a virtual WASI 0.2 (clocks, random, standard streams; no files, no network, no http)",
        imports.join(", ")
    )]
    ImportsUnknown {
        /// File or label of the component.
        name: String,
        /// The imports.
        imports: Vec<String>,
    },
    /// Made for another version of the contract, or for something else.
    #[error("{name} does not implement the world of this host, {ours}: {reason}; build it with a matching SDK")]
    WorldMismatch {
        /// File or label of the component.
        name: String,
        /// The interface and version that this host offers.
        ours: String,
        /// The difference, with the version found.
        reason: String,
    },
    /// The file could not be read.
    #[error("{} could not be read: {source}; check the path, and build it first if it is that of a project (`tidemill build`)", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The failure.
        source: io::Error,
    },
    /// The compile cache is not fit to hold native code.
    #[error("the compile cache {} cannot be used: {reason}", folder.display())]
    Cache {
        /// The cache's folder.
        folder: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },
    /// Compiled code that this process cannot load.
    #[error("the compiled code of {name} cannot be loaded: {reason}; it must be compiled again on this machine")]
    Native {
        /// File or label of the component.
        name: String,
        /// What wasmtime says.
        reason: String,
    },
    /// wasmtime does not start on this machine.
    #[error("the sandbox cannot be set up: {0}")]
    Sandbox(String),
}

impl ComponentError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty { .. } => "COMPONENT_EMPTY",
            Self::CoreModule { .. } => "COMPONENT_IS_CORE_MODULE",
            Self::Invalid { .. } => "COMPONENT_INVALID",
            Self::TooLarge { .. } => "COMPONENT_TOO_LARGE",
            Self::OutOfBounds { .. } => "COMPONENT_OUT_OF_BOUNDS",
            Self::OutOfMemory { .. } => "COMPILE_MEMORY",
            Self::ImportsUnknown { .. } => "COMPONENT_IMPORTS_UNKNOWN",
            Self::WorldMismatch { .. } => "COMPONENT_WORLD_MISMATCH",
            Self::Read { .. } => "COMPONENT_UNREADABLE",
            Self::Cache { .. } => "COMPILE_CACHE_UNUSABLE",
            Self::Native { .. } => "NATIVE_CODE_UNUSABLE",
            Self::Sandbox(_) => "SANDBOX_UNAVAILABLE",
        }
    }
}
