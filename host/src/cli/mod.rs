//! What a person types. Each command is a function from arguments to an outcome; text leaves the program through
//! `output` and nowhere else.

mod build;
mod compile;
mod dev;
mod doctor;
mod fork;
mod inspect;
mod interrupt;
mod listing;
mod new;
mod open;
mod output;
mod probe_walls;
mod progress;
mod query_args;
mod remote;
mod replay;
mod rollback;
mod run;
mod serve;
mod state;
mod test;
mod token;
mod upgrade;
mod worker;

use clap::{Parser, Subcommand, ValueEnum};

use crate::config::Environment;
use crate::engine::faults;

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

const EXIT_CODES: &str = "Exit codes: 0 done; 1 failed, with the error's code on standard error; 2 wrong usage; 3 a replay \
or a test found a difference, or a component does not fit a checkpoint; 130 interrupted twice, the batch in hand was \
abandoned.";

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// JSON, one document per line.
    Json,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a processor over rows.
    Run(Box<run::RunArgs>),
    New(new::NewArgs),
    Build(build::BuildArgs),
    Dev(dev::DevArgs),
    Doctor(doctor::DoctorArgs),
    Inspect(Box<inspect::InspectArgs>),
    State(state::StateArgs),
    Replay(Box<replay::ReplayArgs>),
    Rollback(rollback::RollbackArgs),
    Fork(fork::ForkArgs),
    Test(test::TestArgs),
    Login(remote::login::LoginArgs),
    Tenant(remote::tenant::TenantArgs),
    Deploy(remote::deploy::DeployArgs),
    Query(remote::query::QueryArgs),
    Ingest(remote::ingest::IngestArgs),
    Results(remote::results::ResultsArgs),
    Serve(Box<serve::ServeArgs>),
    Token(token::TokenArgs),
    /// Started by `serve`, for one upload.
    #[command(hide = true)]
    Compile,
    /// Started by `serve`, for one tenant.
    #[command(hide = true)]
    Worker,
    /// Started by `doctor`.
    #[command(hide = true)]
    ProbeWalls(probe_walls::ProbeWallsArgs),
}

/// Runs the command line and answers with the process's exit code.
pub fn main(arguments: impl IntoIterator<Item = std::ffi::OsString>, environment: &Environment) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => return output::usage(&error),
    };
    // A worker's lines go to its server.
    if !matches!(cli.command, Command::Worker) {
        output::start_logging(cli.verbose, environment);
    }
    dispatch(cli.command, cli.output, environment).unwrap_or_else(|error| output::failure(&error, cli.output))
}

fn dispatch(command: Command, format: Format, environment: &Environment) -> anyhow::Result<u8> {
    if let Some(fault) = &environment.crash_at {
        faults::arm(fault).map_err(|error| output::Coded::wrap(error.code(), error))?;
    }
    match command {
        Command::Run(args) => run::run(*args, format, environment),
        Command::Inspect(args) => inspect::run(&args, format, environment),
        Command::Replay(args) => replay::run(&args, format, environment),
        Command::State(args) => state::run(&args, format),
        Command::Rollback(args) => rollback::run(&args, format),
        Command::Fork(args) => fork::run(&args, format),
        Command::Test(args) => test::run(&args, format, environment),
        Command::New(args) => new::run(&args, format, environment),
        Command::Dev(args) => dev::run(&args, format, environment),
        Command::Doctor(args) => doctor::run(&args, format, environment),
        Command::Login(args) => remote::login::run(args, format, environment),
        Command::Tenant(args) => remote::tenant::run(&args, format, environment),
        Command::Deploy(args) => remote::deploy::run(&args, format, environment),
        Command::Query(args) => remote::query::run(&args, format, environment),
        Command::Ingest(args) => remote::ingest::run(&args, format, environment),
        Command::Results(args) => remote::results::run(&args, environment),
        Command::Serve(args) => serve::run(*args, format, environment),
        Command::Token(args) => token::run(args, format),
        Command::ProbeWalls(args) => probe_walls::run(&args),
        Command::Compile => compile::run(),
        Command::Worker => worker::run(),
        Command::Build(args) => build::run(&args, format, environment),
    }
}
