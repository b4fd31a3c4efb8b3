//! Reads a checkpoint whole and says what of it is not as it should be.

use std::path::Path;
use std::sync::Arc;

use super::super::Format;
use super::super::listing::plain;
use super::super::output;
use super::query_failed;
use crate::disk::RealDisk;
use crate::engine::verify::{Verified, verify};

/// Exit code when something is wrong.
const WRONG: u8 = 1;

/// Prints what was read and found; answers with the exit code.
pub(super) fn run(checkpoint: &Path, scratch: &Path, format: Format) -> anyhow::Result<u8> {
    let verified = verify(Arc::new(RealDisk), checkpoint, scratch).map_err(query_failed)?;
    output::result(&match format {
        Format::Json => format!("{}\n", serde_json::to_string(&verified)?),
        Format::Text => text(&verified),
    })?;
    Ok(if verified.findings.is_empty() { 0 } else { WRONG })
}

fn text(verified: &Verified) -> String {
    let Verified { batches, rollbacks, snapshots, rows, timers, findings } = verified;
    let mut text = format!(
        "Read {batches} batch(es) and {rollbacks} rollback(s) of the log, {snapshots} snapshot(s), a state of {rows} rows \
         and {timers} timers.\n"
    );
    for finding in findings {
        text.push_str(&format!("{}: {}\n", finding.code, plain(&finding.message)));
    }
    text.push_str(&match findings.len() {
        0 => "Everything is as it was written.\n".to_owned(),
        wrong => format!("{wrong} finding(s).\n"),
    });
    text
}
