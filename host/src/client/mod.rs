//! A client of `tidemill serve`: what the commands of the command line say to a server, over HTTP.
//!
//! It knows how to reach a server, how to prove who asks, and how the server refuses; what it asks for, the commands know.
//! Read in this order: [`profile`] (which server, as whom), [`Connection`], [`Events`] (streams that go on).
//!
//! Invariants:
//! - A token is sent to the server of its profile only, never along a redirect, and over plain HTTP to this machine only.
//! - Answers are bounded: a server that is broken cannot fill this process's memory.

mod connection;
mod error;
mod events;
pub mod profile;

pub use connection::{Answer, Body, Connection, Method};
pub use error::{ClientError, Problem};
pub use events::{Event, Events};
