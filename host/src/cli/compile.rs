//! `tidemill compile`, hidden: the child that a server starts for each upload.

use super::output::Coded;
use crate::compiler;
use crate::isolation;

/// Runs the command: enters the walls that the server gives, obeys one order, ends.
pub(super) fn run() -> anyhow::Result<u8> {
    let socket = isolation::enter()?;
    compiler::run(socket).map_err(|error| Coded::wrap(error.code(), error))?;
    Ok(0)
}
