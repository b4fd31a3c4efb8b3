//! `tidemill test`: cases against a component, on the engine of `tidemill run`.

mod junit;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use toml::Table;

use super::Format;
use super::output::{self, Coded};
use super::query_args::QUERY_FILE;
use crate::config::{Environment, QueryConfig};
use crate::testkit::{Case, CaseError, Failure, Kit, Report, updated};

/// Run test cases against a processor: rows and times in, rows, state and timers out
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TestArgs {
    /// Folders of cases, or single ones.
    #[arg(value_name = "CASES", default_value = "cases")]
    cases: Vec<PathBuf>,

    /// The component, for cases that name none; instead of the one of query.toml.
    #[arg(short, long, value_name = "WASM")]
    component: Option<PathBuf>,

    /// Only cases with this text in their path.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,

    /// Write what happened into the cases, where that is not what they say. Read the difference before you commit it.
    #[arg(long)]
    update: bool,

    /// Write the results to this file as JUnit XML too.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

impl TestArgs {
    /// All cases of a folder against a component.
    pub(super) fn of(cases: PathBuf, component: PathBuf) -> Self {
        Self { cases: vec![cases], component: Some(component), filter: None, update: false, junit: None }
    }
}

const EXAMPLES: &str = "\
A case is a .toml file: steps with what goes in (rows, time, a restart, a crash) and what must come out. Settings are those of
query.toml beside the case or in the folder above. docs/testing.md tells more.

  [[step]]
  clock = \"2026-01-01T12:00:00Z\"
  rows = '{\"key\":\"a\",\"n\":1}'
  expect = '{\"key\":\"a\",\"count\":1}'

Examples:
  tidemill test
  tidemill test cases --component target/components/counter.wasm --filter restart
  tidemill test --update

Exit codes: 0 all passed; 1 they could not be run; 3 a case failed.";

/// Exit code when a case failed.
const CASE_FAILED: u8 = 3;

/// Runs the command.
pub(super) fn run(args: &TestArgs, format: Format, environment: &Environment) -> anyhow::Result<u8> {
    let cases = load(args).map_err(|error| Coded::wrap(error.code(), error))?;
    let kit = kit(args, &cases, environment)?;
    let color = std::io::stdout().is_terminal() && !environment.no_color;
    let mut results = Vec::new();
    for (path, case) in &cases {
        let report = kit.run(case);
        let was_updated = args.update && !report.passed() && update(path, &report)?;
        output::result(&match format {
            Format::Text => text(&report, was_updated, color),
            Format::Json => format!("{}\n", document(path, &report, was_updated)),
        })?;
        results.push(Outcome { path, report, was_updated });
    }
    if let Some(file) = &args.junit {
        std::fs::write(file, junit::document(&results)).map_err(|error| Coded::wrap("OUTPUT_FAILED", error))?;
    }
    let failed = results.iter().filter(|result| !result.passed()).count();
    let passed = results.len() - failed;
    output::result(&match format {
        Format::Text => format!("\n{passed} passed, {failed} failed\n"),
        Format::Json => format!("{}\n", json!({ "passed": passed, "failed": failed })),
    })?;
    Ok(if failed == 0 { 0 } else { CASE_FAILED })
}

/// What became of a case.
struct Outcome<'a> {
    path: &'a Path,
    report: Report,
    was_updated: bool,
}

impl Outcome<'_> {
    fn passed(&self) -> bool {
        self.report.passed() || self.was_updated
    }
}

fn load(args: &TestArgs) -> Result<Vec<(PathBuf, Case)>, CaseError> {
    let mut cases = Vec::new();
    for place in &args.cases {
        let wanted = |path: &PathBuf| args.filter.as_ref().is_none_or(|text| path.to_string_lossy().contains(text));
        for path in Case::find(place)?.into_iter().filter(wanted) {
            cases.push((path.clone(), Case::load(&path)?));
        }
    }
    match (cases.is_empty(), &args.filter) {
        (true, Some(filter)) => Err(CaseError::Filtered { filter: filter.clone() }),
        _ => Ok(cases),
    }
}

fn kit(args: &TestArgs, cases: &[(PathBuf, Case)], environment: &Environment) -> anyhow::Result<Kit> {
    let cache = environment.cache_dir.as_ref().map(|folder| folder.join("compiled"));
    let folder = args.component.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    let kit = Kit::new(folder, cache.as_deref()).map_err(|error| Coded::wrap(error.code(), error))?;
    let Some(component) = &args.component else {
        // Else each step of each case would tell it.
        if let Some(missing) = not_built(cases) {
            kit.check(&missing).map_err(|error| Coded::wrap(error.code(), error))?;
        }
        return Ok(kit);
    };
    let kit = kit.with_component(component);
    kit.check(component).map_err(|error| Coded::wrap(error.code(), error))?;
    Ok(kit)
}

/// The component of the project in hand, if cases want it and it is not there.
fn not_built(cases: &[(PathBuf, Case)]) -> Option<PathBuf> {
    let query = QueryConfig::load(Some(Path::new(QUERY_FILE)), Table::new()).ok()?;
    let is_wanted = cases.iter().any(|(_, case)| case.component.is_none());
    query.steps.into_iter().map(|step| step.component).find(|component| is_wanted && !component.exists())
}

/// Writes what happened into the case; false if it cannot be written down.
fn update(path: &Path, report: &Report) -> anyhow::Result<bool> {
    let unreadable = |source| Coded::wrap("CASE_UNREADABLE", CaseError::Unreadable { path: path.to_owned(), source });
    let before = std::fs::read_to_string(path).map_err(unreadable)?;
    match updated(&before, report) {
        Some(after) if report.broken.is_none() && after != before => {
            std::fs::write(path, after).map_err(unreadable)?;
            Ok(true)
        }
        _ => Ok(false),
    }
}

fn text(report: &Report, was_updated: bool, color: bool) -> String {
    let (mark, paint) = match (report.passed(), was_updated) {
        (true, _) => ("ok      ", "32"),
        (false, true) => ("updated ", "33"),
        (false, false) => ("FAILED  ", "31"),
    };
    let painted = |text: &str, paint: &str| if color { format!("\x1b[{paint}m{text}\x1b[0m") } else { text.to_owned() };
    let steps = report.steps.len();
    let mut out =
        format!("{}{} ({steps} step{})\n", painted(mark, paint), report.name, if steps == 1 { "" } else { "s" });
    // The first line of a report is its name.
    for line in report.to_string().lines().skip(1) {
        let paint = match line.trim_start().as_bytes().first() {
            Some(b'-') => "31",
            Some(b'+') => "32",
            _ => "0",
        };
        out.push_str(&painted(line, paint));
        out.push('\n');
    }
    out
}

fn document(path: &Path, report: &Report, was_updated: bool) -> Value {
    let failure = |failure: &Failure| json!({ "code": failure.code, "message": failure.message });
    let differences = report.steps.iter().enumerate().flat_map(|(number, step)| {
        step.differences.iter().map(move |difference| {
            json!({ "step": number + 1, "about": step.about, "what": difference.what, "lines": difference.lines })
        })
    });
    json!({
        "case": report.name,
        "path": path,
        "passed": report.passed(),
        "updated": was_updated,
        "steps": report.steps.len(),
        "error": report.broken.as_ref().map(failure),
        "differences": differences.collect::<Vec<_>>(),
    })
}
