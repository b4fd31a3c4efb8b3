//! Coverage of the list of behaviours (`lines.toml`): every line is shown by a case or test that exists, or says why not.
//! `COVERAGE.md` is written from it; set `TIDEMILL_UPDATE=1` to write it anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use serde::Deserialize;
use tidemill_host::testkit::Case;
use toml::Table;

use super::{cases, files, folder};
use crate::support::repository;

/// Lines whose behaviour is shown as it is in Spark, or as we do it instead. Raise it with every line; it may not fall.
const SHOWN_MIN: usize = 227;
const DIFFERS_MAX: usize = 30;
const NOT_APPLICABLE_MAX: usize = 40;

/// A line of the list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    says: String,
    #[serde(default)]
    tests: Vec<String>,
    differs: Option<String>,
    not_applicable: Option<String>,
    nearest: Option<String>,
    pending: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Column {
    Passes,
    Differs,
    NotApplicable,
    Pending,
}

impl Line {
    fn column(&self) -> Column {
        match self {
            Self { differs: Some(_), .. } => Column::Differs,
            Self { not_applicable: Some(_), .. } => Column::NotApplicable,
            Self { pending: Some(_), .. } => Column::Pending,
            _ => Column::Passes,
        }
    }

    fn reason(&self) -> &str {
        let reasons = [&self.differs, &self.not_applicable, &self.pending];
        reasons.into_iter().flatten().next().map_or("", String::as_str)
    }

    /// Tests that show it, those of the list and cases.
    fn shown_by(&self, name: &str, cases: &[Case]) -> Vec<String> {
        let showing = cases.iter().filter(|case| case.shows.iter().any(|line| line == name));
        let showing = showing.map(|case| format!("case `{}`", case.name));
        showing.chain(self.tests.iter().chain(&self.nearest).map(|test| format!("`{test}`"))).collect()
    }
}

struct List {
    groups: BTreeMap<String, String>,
    lines: Vec<(String, Line)>,
}

fn list() -> List {
    let mut table: Table = fs::read_to_string(folder().join("lines.toml")).unwrap().parse().unwrap();
    let groups = table.remove("groups").unwrap().try_into().unwrap();
    let line = |(name, line): (String, toml::Value)| {
        let line = line.try_into().unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, line)
    };
    List { groups, lines: table.into_iter().map(line).collect() }
}

#[test]
fn every_line_of_the_list_is_shown_or_says_why_not() {
    let (list, cases, sources) = (list(), cases(), Sources::read());
    let mut wrong = Vec::new();
    for (name, line) in &list.lines {
        let shown = line.shown_by(name, &cases);
        if shown.is_empty() && line.column() != Column::Pending {
            wrong.push(format!("{name}: nothing shows it ({})", line.says));
        }
        wrong.extend(line.tests.iter().chain(&line.nearest).filter_map(|test| missing(name, test, &sources)));
    }
    let known: Vec<_> = list.lines.iter().map(|(name, _)| name).collect();
    for case in &cases {
        let unknown = case.shows.iter().filter(|name| !known.contains(name));
        wrong.extend(unknown.map(|name| format!("case {}: there is no line {name}", case.name)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is wrong with the name of a test.
fn missing(line: &str, test: &str, sources: &Sources) -> Option<String> {
    match sources.locate(test).len() {
        1 => None,
        0 => Some(format!("{line}: there is no test {test}")),
        _ => Some(format!("{line}: {test} stands in {}", sources.locate(test).join(", "))),
    }
}

/// The Rust sources that hold tests, by path within the repository.
struct Sources(Vec<(String, String)>);

impl Sources {
    fn read() -> Self {
        let root = repository();
        let folders = ["host/src", "tests", "guest-sdk/rust/src"].map(|folder| root.join(folder));
        let paths = folders.iter().flat_map(|folder| files(folder));
        let rust = paths.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
        let named = rust.map(|path| {
            let name = path.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        });
        Self(named.collect())
    }

    /// Files with the test `place::name` that have the place in their path.
    fn locate(&self, test: &str) -> Vec<&str> {
        let (place, name) = test.rsplit_once("::").unwrap_or(("", test));
        let holds = |(path, text): &&(String, String)| path.contains(place) && text.contains(&format!("fn {name}("));
        self.0.iter().filter(holds).map(|(path, _)| path.as_str()).collect()
    }
}

#[test]
fn coverage_does_not_drop() {
    let list = list();
    let count = |column| list.lines.iter().filter(|(_, line)| line.column() == column).count();
    let shown = count(Column::Passes) + count(Column::Differs);
    assert!(shown >= SHOWN_MIN, "{shown} lines are shown, and it was {SHOWN_MIN}");
    assert!(count(Column::Differs) <= DIFFERS_MAX, "{} lines differ", count(Column::Differs));
    assert!(count(Column::NotApplicable) <= NOT_APPLICABLE_MAX, "{} do not apply", count(Column::NotApplicable));
    println!("{shown} of {} lines are shown, {} are pending", list.lines.len(), count(Column::Pending));
}

#[test]
fn coverage_md_is_what_the_list_and_the_cases_say() {
    let path = folder().join("COVERAGE.md");
    let text = coverage_md(&list(), &cases());
    if std::env::var_os("TIDEMILL_UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let there = fs::read_to_string(&path).unwrap_or_default();
    assert!(there == text, "{} is out of date: TIDEMILL_UPDATE=1 writes it anew", path.display());
}

fn coverage_md(list: &List, cases: &[Case]) -> String {
    let count = |column| list.lines.iter().filter(|(_, line)| line.column() == column).count();
    let mut text = String::from("# Coverage\n\nWritten by the tests from `lines.toml` and the cases; do not edit.\n\n");
    let columns = [
        ("passes", Column::Passes, "as in Spark"),
        ("differs", Column::Differs, "we do something else, and the tests show what"),
        ("not applicable", Column::NotApplicable, "about a thing that exists in Spark alone; the nearest test of ours"),
        ("pending", Column::Pending, "nothing shows it yet"),
    ];
    text.push_str("| | lines | |\n|---|---|---|\n");
    for (name, column, meaning) in columns {
        writeln!(text, "| {name} | {} | {meaning} |", count(column)).unwrap();
    }
    writeln!(text, "| all | {} | |", list.lines.len()).unwrap();
    for (group, title) in &list.groups {
        writeln!(text, "\n## {group}. {title}\n\n| line | what | | shown by |\n|---|---|---|---|").unwrap();
        for (name, line) in list.lines.iter().filter(|(name, _)| name.starts_with(group.as_str())) {
            let column = columns.iter().find(|(_, column, _)| *column == line.column()).unwrap().0;
            let column =
                if line.reason().is_empty() { column.to_owned() } else { format!("{column}: {}", line.reason()) };
            let shown = line.shown_by(name, cases).join(", ");
            writeln!(text, "| {name} | {} | {} | {shown} |", cell(&line.says), cell(&column)).unwrap();
        }
    }
    text
}

/// Between these stands, in `docs/spark.md`, what the tests write.
const DIFFERENCES: [&str; 2] = ["<!-- differences, written by the tests -->\n", "<!-- end of the differences -->"];

#[test]
fn the_page_about_spark_lists_every_difference() {
    let path = repository().join("docs/spark.md");
    let there = fs::read_to_string(&path).unwrap();
    let [begin, end] = DIFFERENCES;
    let (before, rest) = there.split_once(begin).unwrap();
    let (_, after) = rest.split_once(end).unwrap();
    let text = format!("{before}{begin}{}{end}{after}", differences(&list(), &cases()));
    if std::env::var_os("TIDEMILL_UPDATE").is_some() {
        fs::write(&path, &text).unwrap();
        return;
    }
    assert!(there == text, "{} is out of date: TIDEMILL_UPDATE=1 writes it anew", path.display());
}

fn differences(list: &List, cases: &[Case]) -> String {
    let mut text = String::from("| line | Spark | here | shown by |\n|---|---|---|---|\n");
    for (name, line) in list.lines.iter().filter(|(_, line)| line.column() == Column::Differs) {
        let shown = line.shown_by(name, cases).join(", ");
        writeln!(text, "| {name} | {} | {} | {shown} |", cell(&line.says), cell(line.reason())).unwrap();
    }
    text.push_str(
        "\nIn the recorded scenarios we do something else at these steps:\n\n| reason | scenarios |\n|---|---|\n",
    );
    let mut reasons = BTreeMap::<&str, Vec<&str>>::new();
    for case in cases {
        for reason in case.steps.iter().filter_map(|step| step.differs.as_deref()) {
            let scenarios = reasons.entry(reason).or_default();
            if scenarios.last() != Some(&case.name.as_str()) {
                scenarios.push(&case.name);
            }
        }
    }
    for (reason, scenarios) in reasons {
        let scenarios: Vec<_> = scenarios.iter().map(|name| format!("`{name}`")).collect();
        writeln!(text, "| {} | {} |", cell(reason), scenarios.join(", ")).unwrap();
    }
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[test]
fn cases_that_the_page_about_spark_names_exist() {
    let page = fs::read_to_string(repository().join("docs/spark.md")).unwrap();
    let (_, traps) = page.split_once("## Faults and traps").unwrap();
    let (traps, _) = traps.split_once("\n## ").unwrap();
    let cells = traps.lines().filter_map(|line| line.rsplit('|').nth(1));
    let named = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let (cases, sources) = (cases(), Sources::read());
    let exists =
        |name: &&str| cases.iter().any(|case| case.name == *name) || !sources.locate(&format!("::{name}")).is_empty();
    let missing: Vec<_> = named.filter(|name| !exists(name)).collect();
    assert!(missing.is_empty(), "neither cases nor tests: {}", missing.join(", "));
}
