//! `tidemill serve`, from outside: the real binary, over HTTP.

pub mod harness;
mod life;
mod tenants;
