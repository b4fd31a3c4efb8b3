//! Puts what happened into the text of a case, and leaves the rest of it as it is written.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;
use toml::Spanned;

use super::compare::metric;
use super::report::{Part, Report, StepReport};

/// Where a case says what.
#[derive(Deserialize)]
struct Written {
    step: Vec<Spanned<WrittenStep>>,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct WrittenStep {
    about: Option<Spanned<toml::Value>>,
    restart: Option<Spanned<toml::Value>>,
    component: Option<Spanned<toml::Value>>,
    clock: Option<Spanned<toml::Value>>,
    advance: Option<Spanned<toml::Value>>,
    rows: Option<Spanned<toml::Value>>,
    crash: Option<Spanned<toml::Value>>,
    run: Option<Spanned<toml::Value>>,
    expect: Option<Spanned<toml::Value>>,
    error: Option<Spanned<toml::Value>>,
    batches: Option<Spanned<toml::Value>>,
    metrics: BTreeMap<String, Spanned<toml::Value>>,
    state: BTreeMap<String, Spanned<toml::Value>>,
    timers: Option<Spanned<toml::Value>>,
}

/// A part of the text and what takes its place.
type Edit = (Range<usize>, String);

/// The text of a case with what happened where that is not what it says. None: the text is no case, or not that of the
/// report.
pub fn updated(text: &str, report: &Report) -> Option<String> {
    let written: Written = toml::from_str(text).ok()?;
    let mut edits = Vec::new();
    for (step, report) in written.step.iter().zip(&report.steps) {
        for part in parts(report) {
            edits.extend(edit(text, step, &part, report));
        }
    }
    edits.sort_by_key(|(place, _)| std::cmp::Reverse((place.start, place.end)));
    let mut text = text.to_owned();
    for (place, replacement) in edits {
        text.get(place.clone())?;
        text.replace_range(place, &replacement);
    }
    Some(text)
}

/// The parts that differ, each once.
fn parts(report: &StepReport) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for difference in &report.differences {
        if !parts.contains(&difference.part) {
            parts.push(difference.part.clone());
        }
    }
    parts
}

fn edit(text: &str, step: &Spanned<WrittenStep>, part: &Part, report: &StepReport) -> Option<Edit> {
    let (header, step) = (step.span(), step.get_ref());
    let actual = &report.actual;
    let (written, name, value) = match part {
        Part::Rows => (step.expect.as_ref(), "expect", Some(documents(&actual.rows))),
        Part::Error => {
            let code = actual.failure.as_ref().map(|failure| toml::Value::from(failure.code.as_str()).to_string());
            (step.error.as_ref(), "error", code)
        }
        Part::Batches => (step.batches.as_ref(), "batches", Some(actual.batches.len().to_string())),
        Part::Metric(name) => {
            (step.metrics.get(name), name.as_str(), metric(&actual.batches, name).map(|number| number.to_string()))
        }
        Part::State(name) => (step.state.get(name), name.as_str(), actual.state.get(name).map(|rows| documents(rows))),
        Part::Timers => (step.timers.as_ref(), "timers", actual.timers.as_ref().map(|rows| documents(rows))),
        // What the author must decide.
        Part::Positive | Part::Reference => return None,
    };
    match (written, value) {
        (Some(written), Some(value)) => Some((written.span(), value)),
        // Only an error that no longer comes; of a metric that there is not, the author must decide.
        (Some(written), None) if *part == Part::Error => Some((whole_lines(text, written.span()), String::new())),
        (None, Some(value)) => {
            let at = whole_lines(text, 0..step.last_input(header)).end;
            let begin = if text.get(..at).is_some_and(|before| before.ends_with('\n')) { "" } else { "\n" };
            Some((at..at, format!("{begin}{name} = {value}\n")))
        }
        _ => None,
    }
}

impl WrittenStep {
    /// Where what goes in ends; what comes out stands behind it.
    fn last_input(&self, header: Range<usize>) -> usize {
        let inputs = [
            &self.about,
            &self.restart,
            &self.component,
            &self.clock,
            &self.advance,
            &self.rows,
            &self.crash,
            &self.run,
        ];
        inputs.into_iter().flatten().map(|input| input.span().end).max().unwrap_or(header.end)
    }
}

/// From the beginning of the line in which it begins to the end of that in which it ends.
fn whole_lines(text: &str, place: Range<usize>) -> Range<usize> {
    let begin = text.get(..place.start).and_then(|before| before.rfind('\n')).map_or(0, |line| line + 1);
    let end = text.get(place.end..).and_then(|after| after.find('\n')).map_or(text.len(), |line| place.end + line + 1);
    begin..end
}

/// Documents as a literal of TOML, one a line.
fn documents(rows: &[Value]) -> String {
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    match lines.as_str() {
        "" => "''".to_owned(),
        lines if lines.contains("'''") => toml::Value::from(lines).to_string(),
        lines => format!("'''\n{lines}'''"),
    }
}
