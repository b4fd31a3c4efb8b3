//! Progress on standard error: one line that follows the query when it is a terminal, nothing otherwise.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Format;
use super::listing::plain;
use super::output::{Coded, note};
use super::upgrade::details;
use crate::clock::Stopwatch;
use crate::engine::head::Head;
use crate::engine::progress::Progress;
use crate::engine::query::Query;
use crate::engine::recovery::StepUpgrade;
use crate::engine::upgrade::Upgrade;

/// Follows one run.
pub(super) struct ProgressLine {
    bar: ProgressBar,
    terminal: bool,
    file: Option<File>,
    watch: Stopwatch,
    batches: u64,
    rows: u64,
    emitted: u64,
    late: u64,
    rejected: u64,
    dead_letters: u64,
}

impl ProgressLine {
    /// Shows what opening the query found.
    pub(super) fn start(query: &Query, file: Option<&Path>, format: Format) -> anyhow::Result<Self> {
        let terminal = std::io::stderr().is_terminal() && format == Format::Text;
        let bar = ProgressBar::with_draw_target(
            None,
            if terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() },
        );
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}") {
            bar.set_style(style);
        }
        let recovered = query.recovered();
        if let (true, Some(last)) = (terminal, recovered.last_batch) {
            note(&format!(
                "Continuing behind batch {last}: {} batch(es) applied again, {} published again.",
                recovered.applied, recovered.published
            ));
        }
        for upgrade in &recovered.upgrades {
            note(&upgraded(upgrade, recovered.last_batch));
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        let file = file.map(|path| File::options().create(true).append(true).open(path)).transpose();
        Ok(Self {
            bar,
            terminal,
            file: file.map_err(|error| Coded::wrap("PROGRESS_FILE_FAILED", error))?,
            watch: Stopwatch::start(),
            batches: 0,
            rows: 0,
            emitted: 0,
            late: 0,
            rejected: 0,
            dead_letters: 0,
        })
    }

    /// After every batch.
    pub(super) fn batch(&mut self, progress: &Progress) {
        self.batches += 1;
        self.rows += progress.num_input_rows;
        self.emitted += progress.sink.num_output_rows;
        self.late += progress.state_operators.iter().map(|step| step.num_rows_dropped_by_watermark).sum::<u64>();
        self.rejected += progress.sources.iter().map(|source| source.num_rejected_rows).sum::<u64>();
        self.dead_letters += progress.state_operators.iter().map(|step| step.num_dead_letters).sum::<u64>();
        if let (Some(file), Ok(json)) = (&mut self.file, serde_json::to_string(progress)) {
            drop(writeln!(file, "{json}"));
        }
        if self.terminal {
            let state_rows: u64 = progress.state_operators.iter().map(|step| step.num_rows_total).sum();
            self.bar.set_message(format!(
                "batch {}  {} rows in  {} out  {:.0} rows/s  watermark {}  {} state rows",
                progress.batch_id,
                self.rows,
                self.emitted,
                self.rows as f64 / self.watch.elapsed().as_secs_f64().max(1e-3),
                instant(progress.event_time.watermark_ms),
                state_rows,
            ));
        }
    }

    /// After the last one.
    pub(super) fn finish(&self, head: &Head, interrupted: bool) {
        self.bar.finish_and_clear();
        if self.terminal {
            note(&format!(
                "{}: {} batch(es), {} rows in, {} out, {} late, {} rejected, {} dead letters, {} state rows, {:.1} s.",
                if interrupted { "Stopped" } else { "Done" },
                self.batches,
                self.rows,
                self.emitted,
                self.late,
                self.rejected,
                self.dead_letters,
                head.state_rows(),
                self.watch.elapsed().as_secs_f64(),
            ));
        }
    }

    /// The run in one JSON document.
    pub(super) fn summary(&self, head: &Head) -> String {
        let summary = serde_json::json!({
            "batches": self.batches,
            "lastBatch": head.last_batch,
            "rowsIn": self.rows,
            "rowsOut": self.emitted,
            "rowsLate": self.late,
            "rowsRejected": self.rejected,
            "deadLetters": self.dead_letters,
            "stateRows": head.state_rows(),
            "watermarkMs": head.watermark.last_ms(),
        });
        format!("{summary}\n")
    }
}

/// What takes over, and what that changes in the state: one line, and one per variable that is not as it was.
fn upgraded(upgrade: &StepUpgrade, last_batch: Option<u64>) -> String {
    let StepUpgrade { step, processor, upgrade: Upgrade { from, variables } } = upgrade;
    let of_step = step.as_ref().map(|step| format!(" in step {step}")).unwrap_or_default();
    let behind = last_batch.map(|last| format!(" behind batch {last}")).unwrap_or_default();
    let mut text = if from == processor {
        format!("Other state variables{of_step}{behind}.")
    } else {
        format!("Upgraded{of_step}{behind}: from {from} to {processor}.")
    };
    for variable in variables {
        text.push_str(&format!("\n  {}: {}", plain(&variable.name), plain(&details(variable).join("; "))));
    }
    text
}

fn instant(ms: i64) -> String {
    if ms == 0 { "none".to_owned() } else { crate::record::timestamp_text(ms.saturating_mul(1000)) }
}
