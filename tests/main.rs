//! Tests of the whole product: the command, the library, and the shape of the code.
//!
//! They run the built `tidemill` over components that `scripts/build-guests.sh` made. Run them with `scripts/test.sh`.

mod bad_input;
mod examples;
mod hostile;
mod recovery;
mod support;
mod tidy;
