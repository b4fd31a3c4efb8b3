//! The sandbox: runs a component as an operator of the engine.
//!
//! A [`Processor`] is a component that has been compiled and found to fit the contract of `wit/`. For each worker and
//! batch it makes a fresh instance, which sees the batch's rows in chunks, reads and writes the worker's session, and is
//! dropped at the end; nothing leaks from batch to batch but state.
//!
//! Read in this order: [`processor`], [`instance`], [`chunk`] (what goes in), [`effects`] (what comes out),
//! [`state_host`], [`linker`] (what is granted), [`wasi`], [`engine`], [`limits`], [`failure`]. For uploads:
//! [`bounds`], [`rehearsal`], [`native`].
//!
//! Invariants:
//! - Whatever a guest does, the host neither panics nor blocks nor allocates without bound.
//! - Nothing that a guest can observe comes from this machine: no time, no randomness, no environment, no files.
//! - A component's compiled form is native code: it is only ever read from a folder that is ours alone, or from sealed memory
//!   that the server has vouched for.
//!
//! This is the only module that names wasmtime. It knows nothing of sources, sinks, logs or checkpoints.

mod ahead;
mod bindings;
mod bounds;
mod cache;
mod chunk;
mod componentize;
mod convert;
mod declarations;
mod effects;
mod engine;
mod error;
mod failure;
mod host;
mod instance;
mod limits;
mod linker;
mod logging;
mod native;
mod processor;
mod random;
mod rehearsal;
mod state_host;
mod wasi;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
#[cfg(any(test, fuzzing))]
mod testing;
#[cfg(test)]
mod tests;

pub use bounds::Bounds;
pub use cache::CompileCache;
pub(crate) use cache::sha256_hex;
pub use componentize::{ComponentizeError, WORLD, componentize, componentize_with_adapter, imports};
pub use engine::{Metering, Sandbox, TICK};
pub use error::ComponentError;
pub use limits::Limits;
pub use native::NATIVE_BYTES_MAX;
pub use processor::{COMPONENT_BYTES_MAX, Inspection, Processor};
pub use rehearsal::Rehearsed;
