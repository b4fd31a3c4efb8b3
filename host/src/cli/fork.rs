//! `tidemill fork`: a copy of a checkpoint becomes a query of its own.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::Format;
use super::output::{self, Coded};
use crate::disk::RealDisk;
use crate::engine::fork::fork;

/// Make the copy of a checkpoint a query of its own
///
/// A checkpoint may be moved, and a copy of it used instead, but two copies cannot write to one sink: the second is stopped
/// with SINK_DIVERGED. This gives a copy a query id of its own. It keeps the state and the past, goes on from there, and
/// publishes to a sink of its own. What was published before stays the original's.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ForkArgs {
    /// The folder of the copy
    checkpoint: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  cp -r checkpoint trial                                         while the query is stopped
  tidemill fork trial
  tidemill run --config query.toml --checkpoint trial --sink trial-out";

/// Runs the command.
pub(super) fn run(args: &ForkArgs, format: Format) -> anyhow::Result<u8> {
    let forked =
        fork(Arc::new(RealDisk), &args.checkpoint).map_err(|error| Coded::wrap(error.code().to_owned(), error))?;
    output::result(&match format {
        Format::Json => format!("{}\n", serde_json::to_string(&forked)?),
        Format::Text => format!(
            "{} was query {} and is query {} from now on, {}. Give it a sink of its own.\n",
            args.checkpoint.display(),
            forked.from,
            forked.query_id,
            match forked.last_batch {
                Some(batch) => format!("after batch {batch}"),
                None => "from the first batch on".to_owned(),
            }
        ),
    })?;
    Ok(0)
}
