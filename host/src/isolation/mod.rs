//! The walls around a child process that runs or compiles what tenants uploaded: what it cannot reach, even if native code
//! in it is the attacker's.
//!
//! The server calls [`spawn()`] with a [`Program`] and its [`Walls`]. The child, which is this program again, calls [`enter()`]
//! before anything else: it closes the walls behind itself and tells the server by a [`Report`] which [`Layer`]s hold. Both
//! are then connected by one socket, and the child has nothing else.
//!
//! Layers overlap on purpose: where a kernel lacks one, or one has a hole, others still stand. Two are demanded by
//! [`Sandbox::Require`]: landlock for files and seccomp for everything else.

mod calls;
mod enter;
mod error;
mod files;
mod handshake;
mod identity;
pub mod probe;
mod report;
mod spawn;
mod system;
mod users;
mod walls;

pub use enter::enter;
pub use error::IsolationError;
pub use report::{Layer, LayerState, Report};
pub use spawn::{LastWords, Program, Spawned, spawn};
pub use walls::{Limits, Profile, Sandbox, Walls};
