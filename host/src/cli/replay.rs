//! `tidemill replay`: runs the committed batches of a stopped query again and compares.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::Format;
use super::open;
use super::output::{Coded, Results};
use super::query_args::QueryArgs;
use super::state::scratch;
use crate::config::Environment;
use crate::disk::RealDisk;
use crate::engine::operator::Operator;
use crate::engine::replay::{Beginning, ChangedInput, Compared, Observer, ReplayParts, replay};
use crate::engine::settings::ONLY_STEP;
use crate::runtime::Metering;

/// Run the committed batches of a stopped query again and compare
///
/// Takes the state as it was before the oldest batch that the checkpoint retains, runs the processor over the same rows
/// at the same times, and proves batch by batch that what went in, what came out and how the state changed have the
/// digests that the commit record has. Nothing is published and nothing in the checkpoint is changed. Each batch runs
/// with the component that it ran then: the checkpoint keeps it as long as the batch.
///
/// A difference in `input` means that rows have changed; in `output` or `state` alone, that the processor is not
/// deterministic: the same rows, state and time made it do something else.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    query: QueryArgs,

    /// What to do when the input is not what it was
    #[arg(long, value_enum, value_name = "ACTION", default_value_t = OnChange::Refuse)]
    changed_input: OnChange,

    /// No line per batch, just the result
    #[arg(short, long)]
    quiet: bool,

    /// Folder for the temporary copy of the state [default: that of the system]
    #[arg(long, value_name = "DIR")]
    scratch: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  tidemill replay --config query.toml
  tidemill replay --config query.toml --quiet --output json
  tidemill replay --config query.toml --changed-input replay

Exit codes: 0 everything is as recorded; 3 a batch is not, it is the last one shown; 1 the batches cannot be replayed, \
for example SOURCE_FILE_CHANGED: a file that was read has changed since. How far back batches are retained is set by \
retention.batches.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnChange {
    /// Say so before anything runs, with SOURCE_FILE_CHANGED
    Refuse,
    /// Warn, go on with the rows as they are now, and name the first batch that differs
    Replay,
}

/// Exit code when a batch is not as recorded.
const DIFFERENT: u8 = 3;

/// Runs the command.
pub(super) fn run(args: &ReplayArgs, format: Format, environment: &Environment) -> anyhow::Result<u8> {
    let config = args.query.load()?;
    let processors = open::Processors::new(Metering::Epoch, environment)?;
    let limits: Vec<_> = config.steps.iter().map(open::without_deadline).collect();
    let operators = config.steps.iter().zip(&limits).map(|(step, limits)| {
        let processor = processors.file(&step.component, limits.clone())?;
        Ok(Arc::new(processor) as Arc<dyn Operator>)
    });
    let scratch = scratch(args.scratch.as_deref())?;
    let parts = ReplayParts {
        operators: operators.collect::<anyhow::Result<_>>()?,
        load: Box::new(move |step, name, program| {
            processors.program(name, program, limits.get(step).cloned().unwrap_or_default())
        }),
        inputs: open::committed_inputs(&config)?,
        initial_states: config
            .steps
            .iter()
            .map(|step| open::initial_state(&config, step))
            .collect::<anyhow::Result<_>>()?,
        disk: Arc::new(RealDisk),
        checkpoint: open::kept_checkpoint(&config)?,
        scratch: scratch.path().to_owned(),
    };
    let changed = match args.changed_input {
        OnChange::Refuse => ChangedInput::Refuse,
        OnChange::Replay => ChangedInput::Replay,
    };
    let mut report = Report::new(format, args.quiet);
    replay(&config.settings(), parts, changed, &mut report)
        .map_err(|error| Coded::wrap(error.code().to_owned(), error))?;
    report.finish()
}

/// Prints how it goes.
struct Report {
    out: Results,
    format: Format,
    quiet: bool,
    batches: u64,
    rows: u64,
    different: Option<Compared>,
    /// What came of printing so far.
    printed: anyhow::Result<ControlFlow<()>>,
}

impl Report {
    fn new(format: Format, quiet: bool) -> Self {
        let printed = Ok(ControlFlow::Continue(()));
        Self { out: Results::start(), format, quiet, batches: 0, rows: 0, different: None, printed }
    }

    fn finish(mut self) -> anyhow::Result<u8> {
        let text = match (self.format, &self.different) {
            (Format::Json, different) => {
                let different = different.as_ref().map(|batch| batch.batch_id);
                format!("{}\n", json!({ "batches": self.batches, "rowsIn": self.rows, "firstDifferent": different }))
            }
            (Format::Text, None) => {
                format!("{} batch(es) with {} rows in are as recorded.\n", self.batches, self.rows)
            }
            (Format::Text, Some(batch)) => format!(
                "Batch {} is not as recorded: {} differ(s); the {} batch(es) before are.\n",
                batch.batch_id,
                differences(batch),
                self.batches - 1,
            ),
        };
        self.print(&text);
        let _reader_may_have_gone = self.printed?;
        Ok(if self.different.is_some() { DIFFERENT } else { 0 })
    }

    /// When nobody reads any more, the exit code still tells.
    fn print(&mut self, text: &str) {
        if let Ok(ControlFlow::Continue(())) = self.printed {
            self.printed = self.out.write(text).and_then(|_| self.out.flush());
        }
    }
}

impl Observer for Report {
    fn begins(&mut self, beginning: &Beginning) {
        if self.quiet || self.format == Format::Json {
            return;
        }
        let from = match &beginning.snapshot {
            Some(snapshot) => format!("from snapshot {snapshot}"),
            None => "from the empty state".to_owned(),
        };
        self.print(&format!("Replaying {} batch(es) {from}.\n", beginning.batches));
    }

    fn compared(&mut self, batch: &Compared) {
        self.batches += 1;
        self.rows += batch.rows_in;
        if !self.quiet {
            let text = match self.format {
                Format::Json => format!("{}\n", serde_json::to_value(batch).unwrap_or(Value::Null)),
                Format::Text => format!(
                    "batch {:<8}{:>10} rows in{:>10} out  {}\n",
                    batch.batch_id,
                    batch.rows_in,
                    batch.rows_out,
                    if batch.differences.is_empty() {
                        "as recorded".to_owned()
                    } else {
                        format!("DIFFERENT: {}", differences(batch))
                    },
                ),
            };
            self.print(&text);
        }
        if !batch.differences.is_empty() {
            self.different = Some(batch.clone());
        }
    }
}

fn differences(batch: &Compared) -> String {
    let names = batch.differences.iter().map(|difference| difference.name()).collect::<Vec<_>>().join(", ");
    match batch.step.as_deref() {
        Some(step) if step != ONLY_STEP => format!("{names} of step {step}"),
        _ => names,
    }
}
