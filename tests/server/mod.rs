//! `tidemill serve`, from outside: the real binary, over HTTP.

mod client;
pub mod harness;
mod life;
mod tenants;
