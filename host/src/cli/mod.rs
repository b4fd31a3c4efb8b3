//! What a person types. Each command is a function from arguments to an outcome; printing happens in
//! [`output`] and nowhere else.

mod output;
mod progress;
mod run;

use clap::{Parser, Subcommand, ValueEnum};

use crate::config::Environment;

/// Runs stateful stream processors, compiled to WebAssembly components, over rows in micro-batches.
#[derive(Debug, Parser)]
#[command(name = "tidemill", version, arg_required_else_help = true, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Command,

    /// How results are printed on standard output.
    #[arg(short, long, global = true, value_enum, default_value_t = Format::Text)]
    output: Format,

    /// More of what happens, on standard error; twice for debugging. TIDEMILL_LOG gives a filter instead.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

const EXIT_CODES: &str = "Exit codes: 0 done; 1 failed (the error's code is printed); 2 wrong usage; 3 a check found a \
difference (replay); 130 interrupted twice, the batch in hand was abandoned.";

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One JSON document per line, for programs.
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a processor over rows.
    Run(Box<run::RunArgs>),
}

/// Runs the command line and answers with the process's exit code.
pub fn main(arguments: impl IntoIterator<Item = std::ffi::OsString>, environment: Environment) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return output::usage(&error),
    };
    output::start_logging(cli.verbose, &environment);
    let outcome = match cli.command {
        Command::Run(args) => run::run(*args, cli.output, &environment),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => output::failure(&error, cli.output),
    }
}
