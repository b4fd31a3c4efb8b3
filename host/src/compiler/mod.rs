//! From uploaded bytes to a processor that workers can load: counted, compiled and rehearsed in a process that may die of it.
//!
//! Compiling takes twenty times a component's bytes in memory and seconds of CPU, and the compiler is a large program that
//! reads what a stranger wrote. So each upload is compiled by a child process of its own, within walls ([`crate::isolation`]);
//! the server only ever sees its answer.
//!
//! Read in this order: [`messages`] (what the two say to each other), [`child`], [`server`] (starts a child, bounds it, sorts out
//! how it ended), [`store`] (what is kept of it all).
//!
//! Invariants:
//! - Whatever is uploaded, the server neither parses, compiles nor runs it, and each way in which that fails has a code.
//! - Native code is what a child of this program compiled from bytes with the digest in its name, or it is not loaded: the
//!   server keeps it under a message authentication code.

mod child;
mod error;
mod limits;
mod messages;
mod server;
mod store;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;

pub use child::run;
pub use error::CompileError;
pub use limits::CompileLimits;
pub use messages::{Description, Init, InitAnswer, InitQuery, Variable};
pub use server::{Compiled, Compiler};
pub use store::{NativeStore, StoreError};
