//! Tests of a processor as data: cases that run through the engine, the sandbox and the state store of `tidemill run`,
//! with a clock that stands still between steps, in this process.
//!
//! A [`Case`] is a TOML file: settings as in `query.toml`, then steps, each with what goes in (rows, time, a restart, a
//! crash) and what must come out (rows, an error, metrics, state, timers). A [`Kit`] runs it on a checkpoint in a
//! temporary folder and gives a [`Report`], which prints as a difference. Components are compiled once per kit.
//!
//! ```no_run
//! use std::path::Path;
//! use tidemill_host::testkit::{Case, Kit};
//!
//! let kit = Kit::new(Path::new("target/components"), None)?;
//! let report = kit.run(&Case::load(Path::new("tests/counts_words.toml"))?);
//! assert!(report.passed(), "{report}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The format of a case stands in `case`, field by field.

mod case;
mod compare;
mod kit;
mod peek;
mod poke;
mod report;
mod run;
mod update;

#[cfg(test)]
mod tests;

pub use case::{Case, CaseError, ExpectedError, Restart, Step, Until};
pub use kit::{Kit, KitError};
pub use report::{Actual, Difference, Failure, Part, Report, StepReport};
pub use update::updated;
