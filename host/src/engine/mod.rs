//! Time and order: what a micro-batch is, when one runs, and how it becomes durable exactly once.
//!
//! The engine owns the traits that the layers above implement ([`operator::Operator`], [`source::Source`],
//! [`sink::Sink`]). It knows nothing of WebAssembly, file formats or the network.

pub mod operator;
pub mod output;
pub mod sink;
pub mod source;
