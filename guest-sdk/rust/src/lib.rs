//! Write stateful stream processors for Tidemill in Rust.
//!
//! Implement [`StatefulProcessor`], derive [`Row`] for the rows it takes, keeps and emits, and export it with
//! [`export_processor!`]. Built for `wasm32-unknown-unknown` the crate becomes a component with no imports but the
//! host's; built natively the same code runs under [`testing`], without WebAssembly and without a host.

extern crate self as tidemill;

#[doc(hidden)]
pub mod codec;
mod column;
#[cfg(target_arch = "wasm32")]
#[doc(hidden)]
pub mod component;
#[doc(hidden)]
pub mod contract;
mod ddl;
mod error;
#[doc(hidden)]
pub mod export;
mod feed;
mod handle;
#[doc(hidden)]
pub mod instance;
pub mod log;
#[cfg(not(target_arch = "wasm32"))]
mod memory;
mod ops;
mod panic;
mod processor;
#[doc(hidden)]
pub mod row;
mod session;
pub mod state;
#[cfg(not(target_arch = "wasm32"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod timers;
mod types;

pub use contract::{OutputMode, Query, TimeMode};
pub use error::{Error, Result};
pub use handle::Handle;
pub use processor::{Out, Rows, StatefulProcessor, StatefulProcessorWithInitialState};
pub use row::{Column, Row, schema};
pub use state::{ListState, MapState, ValueState};
pub use tidemill_derive::Row;
pub use timers::{TimerIter, Timers};
pub use types::{Binary, Date, Decimal, ParseDecimalError, Timestamp};

#[cfg(target_arch = "wasm32")]
use component::Host;
#[cfg(not(target_arch = "wasm32"))]
use memory::Host;

/// The processors that the pages show compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/authors.md")]
mod pages {}
