//! What a child may have: one value that says it all, made by the server, obeyed by the child.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::users;

/// What a child may do. It cannot be widened once the child has entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Walls {
    /// Which system calls the child may make.
    pub profile: Profile,
    /// The folder that becomes the child's working directory, and its root directory where the system lets us. Paths that the
    /// child uses are relative to it; it is never told where the folder lies.
    pub home: Option<PathBuf>,
    /// Folders that the child may change, relative to `home`.
    pub read_write: Vec<PathBuf>,
    /// Folders that the child may read, relative to `home`.
    pub read_only: Vec<PathBuf>,
    /// The user and group that the child becomes. None: it stays who the server is.
    pub user: Option<u32>,
    /// What the child may use up.
    pub limits: Limits,
    /// What becomes of a child where layers are missing.
    pub sandbox: Sandbox,
}

impl Walls {
    /// A compiler of uploads: it gets bytes by its socket, and needs no file at all.
    #[must_use]
    pub fn compiler(limits: Limits, sandbox: Sandbox) -> Self {
        Self {
            profile: Profile::Compiler,
            home: None,
            read_write: Vec::new(),
            read_only: Vec::new(),
            user: users::of_compiler(),
            limits,
            sandbox,
        }
    }

    /// A worker: the engine of one tenant, whose folder is `home`. It may change all that lies there.
    #[must_use]
    pub fn worker(home: PathBuf, user: Option<u32>, limits: Limits, sandbox: Sandbox) -> Self {
        Self {
            profile: Profile::Worker,
            home: Some(home),
            read_write: vec![PathBuf::from(".")],
            read_only: Vec::new(),
            user,
            limits,
            sandbox,
        }
    }
}

/// Which system calls a child may make: both run wasmtime and threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Compiles an upload and runs its `init`. Opens no file.
    Compiler,
    /// Runs a tenant's queries, with their state in files.
    Worker,
}

/// What a child may use up; None: as much as the server may. Limits that the kernel puts on one process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Writable private memory in bytes (`RLIMIT_DATA`): heap, stacks of threads, and memories of guests as far as they have
    /// grown. Address space is not limited, because every memory of a guest reserves 4 GiB of it.
    pub data_bytes: Option<u64>,
    /// CPU time in seconds, of all threads together. Then the child is killed.
    pub cpu_seconds: Option<u64>,
    /// Descriptors open at once.
    pub open_files: Option<u64>,
    /// Length in bytes of each file that it writes.
    pub file_bytes: Option<u64>,
    /// Threads at once. Holds only together with [`Walls::user`], because the kernel counts them by user.
    pub threads: Option<u64>,
}

/// What becomes of a child where the kernel lacks landlock or seccomp.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    /// It does not start.
    #[default]
    Require,
    /// It runs, and the report says what is missing.
    Warn,
}
