//! `tidemill probe-walls`, hidden: the child that `tidemill doctor` starts to see whether the walls of workers hold here.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use clap::Args;

use crate::isolation::{self, probe};

#[derive(Debug, Args)]
pub(super) struct ProbeWallsArgs {
    /// Attack without walls, for tests: what succeeds then is what the walls hold back.
    #[arg(long)]
    without: bool,
}

/// Runs the command: enters a worker's walls and makes the attack that it is told to.
pub(super) fn run(args: &ProbeWallsArgs) -> anyhow::Result<u8> {
    let socket =
        if args.without { UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?) } else { isolation::enter()? };
    probe::attack(&socket)?;
    Ok(0)
}
