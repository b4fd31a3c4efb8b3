//! `tidemill serve`, from outside: the real binary, over HTTP.

mod attacks;
mod client;
mod consumers;
mod evil_client;
mod follow;
pub mod harness;
mod ingest;
mod life;
mod load;
mod openapi;
mod processors;
mod queries;
mod streams;
mod tenants;
mod walkthrough;
mod workers;
