//! `tidemill serve`, from outside: the real binary, over HTTP.

mod attacks;
mod client;
mod evil_client;
pub mod harness;
mod life;
mod load;
mod openapi;
mod processors;
mod queries;
mod streams;
mod tenants;
mod walkthrough;
