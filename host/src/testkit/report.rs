//! What a case did, and how that differs from what it says.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::engine::progress::Progress;

/// What a case did.
#[derive(Debug, Clone)]
pub struct Report {
    /// Its name.
    pub name: String,
    /// Why it could not begin.
    pub broken: Option<Failure>,
    /// Step by step.
    pub steps: Vec<StepReport>,
}

/// What a step did.
#[derive(Debug, Clone)]
pub struct StepReport {
    /// The step's own words.
    pub about: String,
    /// Why it is not as the reference.
    pub differs: Option<String>,
    /// What happened.
    pub actual: Actual,
    /// Where that is not what the step says; empty if it passed.
    pub differences: Vec<Difference>,
}

/// What happened in a step.
#[derive(Debug, Clone, Default)]
pub struct Actual {
    /// The batches that ran to their end, or were published after a crash only by their rows.
    pub batches: Vec<Progress>,
    /// Rows published, in order.
    pub rows: Vec<Value>,
    /// What ended it.
    pub failure: Option<Failure>,
    /// Contents of the state variables that the step asks for.
    pub state: BTreeMap<String, Vec<Value>>,
    /// Timers, if the step asks for them.
    pub timers: Option<Vec<Value>>,
}

/// An error with its code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Stable code.
    pub code: String,
    /// What it says.
    pub message: String,
}

impl Failure {
    pub(super) fn new(code: &str, error: &dyn fmt::Display) -> Self {
        Self { code: code.to_owned(), message: error.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.code, self.message)
    }
}

/// Something that is not what the step says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Which part of the step.
    pub part: Part,
    /// What: rows and whose, an error, a metric, a variable.
    pub what: String,
    /// Lines, each with `-` (expected and not there), `+` (there and not expected) or a blank.
    pub lines: Vec<String>,
}

/// A part of what a step says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Its error.
    Error,
    /// Its rows.
    Rows,
    /// Its number of batches.
    Batches,
    /// A metric.
    Metric(String),
    /// A metric that must be above zero.
    Positive,
    /// A state variable.
    State(String),
    /// Its timers.
    Timers,
    /// How it differs from a reference.
    Reference,
}

impl Report {
    /// Whether everything was as the case says.
    pub fn passed(&self) -> bool {
        self.broken.is_none() && self.steps.iter().all(|step| step.differences.is_empty())
    }
}

impl fmt::Display for Report {
    /// Nothing but the name if it passed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}{}", self.name, if self.passed() { "" } else { " FAILED" })?;
        if let Some(broken) = &self.broken {
            writeln!(f, "  {broken}")?;
        }
        for (number, step) in self.steps.iter().enumerate().filter(|(_, step)| !step.differences.is_empty()) {
            let about = if step.about.is_empty() { String::new() } else { format!(": {}", step.about) };
            writeln!(f, "  step {}{about}", number + 1)?;
            for difference in &step.differences {
                writeln!(f, "    {}", difference.what)?;
                for line in &difference.lines {
                    writeln!(f, "      {line}")?;
                }
            }
        }
        Ok(())
    }
}
