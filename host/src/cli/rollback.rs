//! `tidemill rollback`: a stopped query goes back to an earlier batch.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::Format;
use super::listing::plain;
use super::output::{self, Coded};
use crate::connect::DirectorySink;
use crate::disk::{Disk, RealDisk};
use crate::engine::rollback::{Mode, PublishedRows, RolledBack, roll_back};
use crate::engine::sink::Sink;

/// Take a stopped query back to an earlier batch
///
/// The query then goes on from that batch: its state, its place in the input, its watermark. Batches after it no longer
/// count. Files that they published are removed, so that what stands in the output is what the batches up to that one gave.
/// New batches take new ids; the ids of those taken back are never used again.
///
/// A crash at any moment leaves the query where it was or where it should go; give the same command again to finish.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RollbackArgs {
    /// The checkpoint's folder
    checkpoint: PathBuf,

    /// The batch to go back to: the last one whose effects stay
    #[arg(long, value_name = "BATCH")]
    to: u64,

    /// Leave published rows where they are. For output that cannot be taken back: stdout, or files that a consumer has taken
    /// away. The same input then gives rows again, under new batch ids
    #[arg(long)]
    keep_published: bool,

    /// Only say what would happen
    #[arg(long)]
    dry_run: bool,
}

const EXAMPLES: &str = "\
Examples:
  tidemill state checkpoint metadata                  which batches there are to go back to
  tidemill state checkpoint scan count --batch 41     what the state was
  tidemill rollback checkpoint --to 41 --dry-run      what would be taken back
  tidemill rollback checkpoint --to 41
  tidemill run --config query.toml                    goes on after batch 41, with the processor as it is now

Files are read again from where batch 41 had come to. Rows that came through standard input are not: give them again.";

/// Runs the command.
pub(super) fn run(args: &RollbackArgs, format: Format) -> anyhow::Result<u8> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let published = if args.keep_published { PublishedRows::Keep } else { PublishedRows::Withdraw };
    let mode = if args.dry_run { Mode::DryRun } else { Mode::Perform };
    let sinks = Arc::clone(&disk);
    let open_sink = move |description: &str| -> Option<Box<dyn Sink>> {
        Some(Box::new(DirectorySink::described(Arc::clone(&sinks), description)?))
    };
    let done = roll_back(disk, &args.checkpoint, args.to, published, mode, &open_sink)
        .map_err(|error| Coded::wrap(error.code().to_owned(), error))?;
    output::result(&match format {
        Format::Json => format!("{}\n", serde_json::to_string(&done)?),
        Format::Text => text(&args.checkpoint, &done, mode),
    })?;
    Ok(0)
}

fn text(checkpoint: &Path, done: &RolledBack, mode: Mode) -> String {
    let (begins, takes) = match mode {
        Mode::DryRun => ("Would go back", "Would take back"),
        Mode::Perform => ("Went back", "Took back"),
    };
    let mut text = format!(
        "{begins} to batch {} of {} as generation {}; the next batch is {}.\n{takes} {}.\n",
        done.to,
        checkpoint.display(),
        done.generation,
        done.next_batch,
        batches(&done.superseded)
    );
    for source in &done.sources {
        let again = if source.source == "stdin" { "must be given again" } else { "will be read again" };
        text.push_str(&format!("{} rows of {} {again}.\n", source.rows, plain(&source.source)));
    }
    for sink in &done.sinks {
        let fate = match (sink.published, mode) {
            (PublishedRows::Keep, _) => "Kept",
            (PublishedRows::Withdraw, Mode::DryRun) => "Would remove",
            (PublishedRows::Withdraw, Mode::Perform) => "Removed",
        };
        text.push_str(&format!("{fate} {} rows of {}, {}:\n", sink.rows, batches(&sink.batches), plain(&sink.sink)));
        for place in &sink.places {
            text.push_str(&format!("  {}\n", plain(place)));
        }
    }
    text
}

/// `batch 7`, `batches 7 to 9`.
fn batches(ids: &[u64]) -> String {
    match ids {
        [] => "no batch".to_owned(),
        [only] => format!("batch {only}"),
        [first, .., last] => format!("{} batches from {first} to {last}", ids.len()),
    }
}
