//! `tidemill serve`: the host as a service that a platform team runs for others.
//!
//! The server speaks HTTP and keeps metadata. It never compiles or runs what somebody uploaded: that is for processes of
//! their own, behind walls, whose word it does not trust.
//!
//! Read in this order: [`routes`] is the table of everything that a client can ask for, [`http`] what all routes have in
//! common, [`auth`] who may do what, [`meta`] what is remembered, [`data`] where it lies.

mod admin;
mod app;
pub mod auth;
mod components;
pub mod config;
pub mod data;
mod error;
pub mod hosting;
pub mod http;
pub mod id;
mod life;
mod listen;
pub mod meta;
pub mod metrics;
pub mod operations;
pub mod routes;
mod sweep;
mod tls;
pub mod tokens;
pub mod uploads;

pub use app::App;
pub use error::ServeError;
pub use life::{Started, run};
