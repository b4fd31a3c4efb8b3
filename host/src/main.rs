//! The `tidemill` command.

use std::process::ExitCode;

use tidemill_host::cli;
use tidemill_host::config::Environment;

fn main() -> ExitCode {
    cli::main(std::env::args_os(), &Environment::read()).into()
}
