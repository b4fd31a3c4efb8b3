//! `tidemill worker`, hidden: the child that a server starts to run the queries of one tenant.

use super::output::Coded;
use crate::worker;

/// Runs the command, until the server ends the conversation.
pub(super) fn run() -> anyhow::Result<u8> {
    worker::run().map_err(|error| Coded::wrap(error.code().to_owned(), error))?;
    Ok(0)
}
