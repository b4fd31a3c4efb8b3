//! What a step says against what happened.

use serde_json::Value;

use super::case::{Step, json_lines};
use super::report::{Actual, Difference, Part};
use crate::engine::progress::Progress;

/// Where what happened is not what the step says. `key`: columns of the grouping key.
pub(super) fn differences(step: &Step, actual: &Actual, key: &[String]) -> Vec<Difference> {
    let mut found = Vec::new();
    error(step, actual, &mut found);
    let expected = documents(&step.expect);
    rows(&expected, &actual.rows, key, &mut found);
    if let Some(batches) = step.batches {
        number(Part::Batches, "batches", as_i64(batches), Some(as_i64(actual.batches.len() as u64)), &mut found);
    }
    for (name, expected) in &step.metrics {
        number(Part::Metric(name.clone()), name, *expected, metric(&actual.batches, name), &mut found);
    }
    for name in &step.above_zero {
        if !actual.batches.iter().any(|progress| {
            of_progress(progress, name).and_then(|number| number.as_f64()).is_some_and(|number| number > 0.0)
        }) {
            let what = format!("{name} is not above zero");
            found.push(Difference { part: Part::Positive, what, lines: Vec::new() });
        }
    }
    if actual.failure.is_none() {
        for (name, expected) in &step.state {
            let rows = actual.state.get(name).map(Vec::as_slice).unwrap_or_default();
            by_key(Part::State(name.clone()), &format!("state {name}"), &documents(expected), rows, found.as_mut());
        }
        if let Some(expected) = &step.timers {
            let timers = actual.timers.as_deref().unwrap_or_default();
            unordered(Part::Timers, "timers", &documents(expected), timers, &mut found);
        }
    }
    if let Some(reference) = &step.reference
        && same_by_key(&documents(reference), &actual.rows, key)
        && step.error.is_none()
    {
        let what = "it says how it differs from its reference, and does not; take `differs` away".to_owned();
        found.push(Difference { part: Part::Reference, what, lines: Vec::new() });
    }
    found
}

fn error(step: &Step, actual: &Actual, found: &mut Vec<Difference>) {
    let expected = step.error.as_ref();
    let (what, mut lines) = match (expected, &actual.failure) {
        (None, None) => return,
        (None, Some(failure)) => ("an error that is not expected", vec![format!("+ {failure}")]),
        (Some(expected), None) => ("no error", vec![format!("- error[{}]", expected.code())]),
        (Some(expected), Some(failure)) => {
            let missing: Vec<_> = expected.says().iter().filter(|text| !failure.message.contains(*text)).collect();
            if failure.code == expected.code() && missing.is_empty() {
                return;
            }
            let texts = missing.iter().map(|text| format!("- ... {text} ..."));
            let lines = std::iter::once(format!("- error[{}]", expected.code())).chain(texts);
            ("another error", lines.chain(std::iter::once(format!("+ {failure}"))).collect())
        }
    };
    // A message of several lines stays within its place.
    lines.iter_mut().for_each(|line| *line = line.replace('\n', "\n        "));
    found.push(Difference { part: Part::Error, what: what.to_owned(), lines });
}

/// Rows of one grouping key keep their order; keys have none.
fn rows(expected: &[Value], actual: &[Value], key: &[String], found: &mut Vec<Difference>) {
    for (key, expected, actual) in paired(expected, actual, |row| key_of(row, key)) {
        if expected != actual {
            let what = format!("rows of key {key}");
            found.push(Difference { part: Part::Rows, what, lines: lines(&expected, &actual) });
        }
    }
}

fn same_by_key(expected: &[Value], actual: &[Value], key: &[String]) -> bool {
    paired(expected, actual, |row| key_of(row, key)).iter().all(|(_, expected, actual)| expected == actual)
}

/// The columns of the key that a row has.
fn key_of(row: &Value, key: &[String]) -> String {
    let columns = key.iter().filter_map(|column| row.get(column)).map(Value::to_string);
    columns.collect::<Vec<_>>().join(", ")
}

fn by_key(part: Part, what: &str, expected: &[Value], actual: &[Value], found: &mut Vec<Difference>) {
    let order = |row: &Value| (row.get("entry").is_none(), row.get("key").map(Value::to_string).unwrap_or_default());
    if expected.iter().chain(actual).any(|row| !order(row).0) {
        return unordered(part, what, expected, actual, found);
    }
    for (key, expected, actual) in paired(expected, actual, |row| order(row).1) {
        if expected != actual {
            let what = format!("{what} of key {key}");
            found.push(Difference { part: part.clone(), what, lines: lines(&expected, &actual) });
        }
    }
}

fn unordered(part: Part, what: &str, expected: &[Value], actual: &[Value], found: &mut Vec<Difference>) {
    let sorted = |rows: &[Value]| {
        let mut rows: Vec<_> = rows.iter().map(canonical).collect();
        rows.sort_unstable();
        rows
    };
    let (expected, actual) = (sorted(expected), sorted(actual));
    if expected != actual {
        found.push(Difference { part, what: what.to_owned(), lines: lines(&expected, &actual) });
    }
}

/// Rows as text, by what `group` makes of them: expected and actual.
fn paired(
    expected: &[Value],
    actual: &[Value],
    group: impl Fn(&Value) -> String,
) -> Vec<(String, Vec<String>, Vec<String>)> {
    let mut pairs = std::collections::BTreeMap::<String, (Vec<String>, Vec<String>)>::new();
    for row in expected {
        pairs.entry(group(row)).or_default().0.push(canonical(row));
    }
    for row in actual {
        pairs.entry(group(row)).or_default().1.push(canonical(row));
    }
    pairs.into_iter().map(|(key, (expected, actual))| (key, expected, actual)).collect()
}

/// A row as text in which a field that is NULL and one that is not there are the same, and fields have one order.
fn canonical(row: &Value) -> String {
    let Value::Object(fields) = row else { return row.to_string() };
    let mut fields: Vec<_> = fields.iter().filter(|(_, value)| !value.is_null()).collect();
    fields.sort_by_key(|(name, _)| *name);
    let fields =
        fields.into_iter().map(|(name, value)| format!("{}: {}", Value::from(name.as_str()), canonical(value)));
    format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
}

fn number(part: Part, name: &str, expected: i64, actual: Option<i64>, found: &mut Vec<Difference>) {
    if actual != Some(expected) {
        let actual = actual.map_or_else(|| "there is none".to_owned(), |actual| actual.to_string());
        let lines = vec![format!("- {expected}"), format!("+ {actual}")];
        found.push(Difference { part, what: name.to_owned(), lines });
    }
}

/// A number of the progress reports: the sum over the batches, except totals, which are as the last says.
pub(super) fn metric(batches: &[Progress], name: &str) -> Option<i64> {
    let is_total =
        name.ends_with("Total") || name.ends_with("Vars") || name.ends_with("Ms") || name.ends_with("Instances");
    let found: Vec<i64> = batches.iter().filter_map(|progress| of_progress(progress, name)?.as_i64()).collect();
    match (is_total, found.last()) {
        (true, last) => last.copied(),
        (false, None) => batches.is_empty().then_some(0),
        (false, Some(_)) => Some(found.iter().sum()),
    }
}

fn of_progress(progress: &Progress, name: &str) -> Option<Value> {
    let report = serde_json::to_value(progress).ok()?;
    let operator = report.get("stateOperators").and_then(|operators| operators.get(0));
    let custom = operator.and_then(|operator| operator.get("customMetrics"));
    let event_time = report.get("eventTime");
    [operator, custom, event_time, Some(&report)].into_iter().flatten().find_map(|place| place.get(name).cloned())
}

/// Expected against actual lines: the longest common beginning and end stand once.
fn lines(expected: &[String], actual: &[String]) -> Vec<String> {
    let begin = expected.iter().zip(actual).take_while(|(a, b)| a == b).count();
    let ends = expected.iter().skip(begin).rev().zip(actual.iter().skip(begin).rev());
    let end = ends.take_while(|(a, b)| a == b).count();
    let middle = |lines: &[String], mark: &str| -> Vec<String> {
        let lines = lines.iter().skip(begin).take(lines.len() - begin - end);
        lines.map(|line| format!("{mark} {line}")).collect()
    };
    let common = |line: &String| format!("  {line}");
    let mut all: Vec<String> = expected.iter().take(begin).map(common).collect();
    all.extend(middle(expected, "-"));
    all.extend(middle(actual, "+"));
    all.extend(expected.iter().skip(expected.len() - end).map(common));
    all
}

/// They were checked when the case was read.
fn documents(text: &str) -> Vec<Value> {
    json_lines(text).unwrap_or_default()
}

fn as_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
