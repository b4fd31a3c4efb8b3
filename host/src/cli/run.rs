//! `tidemill run`: a processor over rows, until the source is drained or someone presses Ctrl-C.

use std::path::PathBuf;

use clap::Args;

use super::Format;
use super::open::{self, Lifetime, Opened};
use super::output::{self, Coded};
use super::progress::ProgressLine;
use super::query_args::QueryArgs;
use crate::config::Environment;
use crate::engine::trigger::{self, Stop};

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RunArgs {
    #[command(flatten)]
    query: QueryArgs,

    /// Keep nothing: state in memory, checkpoint in a temporary folder.
    #[arg(long, conflicts_with = "checkpoint")]
    ephemeral: bool,

    /// Write the metrics of every batch to this file, one JSON document per line (docs/metrics.md).
    #[arg(long, value_name = "FILE")]
    progress: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tidemill run --config query.toml
  tidemill run counter.wasm --input rows.jsonl --key key --sink out --checkpoint checkpoint
  cat rows.jsonl | tidemill run counter.wasm --input - --schema 'key STRING, n BIGINT' --key key --sink - --ephemeral

A query that was stopped, even by a power loss, goes on where its checkpoint stands: give the same command again.";

const AFTER_BATCH: &str = "Stopping after the batch in hand; interrupt again to abandon it.";

/// Runs the command.
pub(super) fn run(args: RunArgs, format: Format, environment: &Environment) -> anyhow::Result<u8> {
    let config = args.query.load()?;
    let lifetime = if args.ephemeral { Lifetime::Ephemeral } else { Lifetime::Kept };
    let Opened { mut query, folder } = open::query(&config, lifetime, environment)?;
    if args.progress.is_some() {
        query.measure_store();
    }
    let mut line = ProgressLine::start(&query, args.progress.as_deref(), format)?;

    let stop = Stop::default();
    let interrupts = super::interrupt::watch(stop.clone(), AFTER_BATCH)?;
    let outcome = trigger::run(&mut query, &stop, &mut |progress| line.batch(progress));
    drop(interrupts);
    let head = query.head().clone();
    let closed = query.close();
    line.finish(&head, stop.requested());
    outcome.and(closed).map_err(|error| Coded::wrap(error.code().to_owned(), error))?;
    drop(folder);
    if format == Format::Json {
        output::result(&line.summary(&head))?;
    }
    Ok(0)
}
