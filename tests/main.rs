//! Tests of the whole product: the command, the library, and the shape of the code.
//!
//! They run the built `tidemill` over components that `scripts/build-guests.sh` made. Run them with `scripts/test.sh`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, says so, and may be told how long to run"
)]

mod bad_input;
mod cli;
mod conformance;
mod copies;
mod dead_letters;
mod docs;
mod durability;
mod event_time;
mod examples;
mod hostile;
mod hosting;
mod initial_state;
mod isolation;
mod kit;
mod languages;
mod metrics;
mod model;
mod native_query;
mod poison;
mod projects;
mod reader;
mod recovery;
mod rest;
mod restarts;
mod results;
mod rollback;
mod server;
mod sources;
mod steps;
mod support;
mod tally;
mod tidy;
mod upgrade;
mod uploads;
