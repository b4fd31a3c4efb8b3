//! A case as it is written down.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use toml::Table;

use crate::record::parse_timestamp;

/// A case: a query and the steps of its life.
///
/// ```toml
/// about = "A count goes on after a restart"
/// component = "counter"
/// settings.query.key = ["word"]
/// settings.source.schema = "word STRING"
///
/// [[step]]
/// clock = 1_000
/// rows = '''
/// {"word":"a"}
/// {"word":"a"}
/// '''
/// expect = '''
/// {"word":"a","count":2}
/// '''
///
/// [[step]]
/// restart = "clean"
/// rows = '{"word":"a"}'
/// expect = '{"word":"a","count":3}'
/// ```
///
/// `query.toml` beside the case, else in the folder above, gives the settings under those of the case. The kit puts its own
/// under both where they say nothing: one worker, the trigger `continuous`, no waiting between batches, a TTL sweep in every
/// batch, seed 0. Rows are JSON Lines; where they come from and go to is the kit's.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The name of its file without ending.
    #[serde(skip)]
    pub name: String,
    /// The folder that it stands in.
    #[serde(skip)]
    pub folder: PathBuf,
    /// What it shows, in a sentence.
    #[serde(default)]
    pub about: String,
    /// Lines of a list of requirements that it shows, by their names.
    #[serde(default)]
    pub shows: Vec<String>,
    /// The processor: the name of a component of the kit, or the path of a `.wasm` file, relative to the case. Else the
    /// one of `query.toml`, else the kit's.
    pub component: Option<String>,
    /// Settings as in `query.toml`.
    #[serde(default)]
    pub settings: Table,
    /// Rows of the initial state, JSON Lines.
    pub initial_state: Option<String>,
    /// What happens, in order.
    #[serde(rename = "step")]
    pub steps: Vec<Step>,
}

/// One step. What it does comes in the order of these fields; then what it says is compared with what happened.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// For reports.
    #[serde(default)]
    pub about: String,
    /// Stops the query before anything else; it is opened again for this step.
    pub restart: Option<Restart>,
    /// Another component from here on. Stops the query, as `restart`.
    pub component: Option<String>,
    /// Settings that change, from here on. Stops the query, as `restart`.
    pub settings: Option<Table>,
    /// The time from here on: milliseconds since the epoch, or RFC 3339.
    #[serde(default, deserialize_with = "instant")]
    pub clock: Option<i64>,
    /// As `clock`, from where it stands: milliseconds, or a duration such as `5m`.
    #[serde(default, deserialize_with = "duration")]
    pub advance: Option<i64>,
    /// Rows that come in, JSON Lines; a file of a directory that the query reads.
    pub rows: Option<String>,
    /// State that is put in place before the processor of the step's batch begins, as in `state`: a value, the elements
    /// of a list, entries of a map. Without `value` it is cleared, or the entry removed.
    #[serde(default)]
    pub put: BTreeMap<String, String>,
    /// The point of [`crate::engine::faults`] at which the process dies in this step, `name` or `name:n`. The query is
    /// then opened again, and the step goes on unless what it wanted was committed.
    pub crash: Option<String>,
    /// How long batches are run.
    #[serde(default)]
    pub run: Until,

    /// Rows that the batches of this step publish, JSON Lines. Those of one grouping key (the columns that rows have of
    /// it) must come in this order; the order of keys does not matter.
    #[serde(default)]
    pub expect: String,
    /// The error that the step ends with.
    pub error: Option<ExpectedError>,
    /// How many batches run.
    pub batches: Option<u64>,
    /// Numbers of the progress report by their names, over all batches of the step: of `stateOperators`, of its
    /// `customMetrics`, or of the report itself. Numbers of a total count as they are at the end.
    #[serde(default)]
    pub metrics: BTreeMap<String, i64>,
    /// Numbers of the progress report, named as in `metrics`, that are above zero in a batch of the step: times.
    #[serde(default)]
    pub above_zero: Vec<String>,
    /// What a state variable holds at the end, all of it: one JSON document per value, element or entry, with `key`,
    /// `entry` (maps), `value` and `expires_ms` (with a TTL). Elements come in order, all else in any.
    #[serde(default)]
    pub state: BTreeMap<String, String>,
    /// The timers at the end, all of them: JSON documents with `key` and `expires_ms`.
    pub timers: Option<String>,

    /// Why `expect` and `error` are not what `reference` says.
    pub differs: Option<String>,
    /// What another implementation published, where `differs` tells why it was right or wrong.
    pub reference: Option<String>,
}

/// How a query is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// As by Ctrl-C: the batch in hand ends, everything is synced.
    Clean,
    /// As by `kill -9` between two batches.
    Killed,
}

/// How long a step runs batches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Until {
    /// As one tick of a trigger: the initial state to its end, then at most one batch.
    #[default]
    Batch,
    /// Until there is nothing to do at the time that it is; with the trigger `available-now`, until that ends.
    Drained,
    /// Not at all: the query is opened, or not even that.
    Opened,
    /// Nothing is run or opened.
    Nothing,
}

/// The error that a step must end with: its code, or also what its message says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum ExpectedError {
    /// The code.
    Code(String),
    /// The code, and texts that the message contains.
    Detailed {
        /// The code.
        code: String,
        /// Texts that the message contains.
        says: Vec<String>,
    },
}

impl ExpectedError {
    /// The code.
    pub fn code(&self) -> &str {
        match self {
            Self::Code(code) | Self::Detailed { code, .. } => code,
        }
    }

    /// Texts that the message contains.
    pub fn says(&self) -> &[String] {
        match self {
            Self::Code(_) => &[],
            Self::Detailed { says, .. } => says,
        }
    }
}

/// Why a file is no case.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// It cannot be read.
    #[error("{} cannot be read: {source}; check the path", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The failure.
        source: std::io::Error,
    },
    /// There is none.
    #[error("there is no case in {}: cases are .toml files with [[step]] tables (docs/testing.md)", path.display())]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// There is none of that name.
    #[error("no case has {filter:?} in its path; see which there are without --filter")]
    Filtered {
        /// The text.
        filter: String,
    },
    /// It is not what a case looks like.
    #[error("{}: {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column.
        message: String,
    },
}

impl CaseError {
    /// The stable code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "CASE_UNREADABLE",
            Self::Missing { .. } | Self::Filtered { .. } => "CASE_MISSING",
            Self::Malformed { .. } => "CASE_INVALID",
        }
    }
}

impl Case {
    /// Reads a case.
    ///
    /// # Errors
    /// A file that cannot be read or is no case.
    pub fn load(path: &Path) -> Result<Self, CaseError> {
        let unreadable = |source| CaseError::Unreadable { path: path.to_owned(), source };
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        let malformed = |message| CaseError::Malformed { path: path.to_owned(), message };
        Self::parse(&name, folder, &text).map_err(malformed)
    }

    /// The files of cases in a folder and those below, in order; or the one file. `query.toml` is none.
    ///
    /// # Errors
    /// `CASE_MISSING`, `CASE_UNREADABLE`.
    pub fn find(place: &Path) -> Result<Vec<PathBuf>, CaseError> {
        let mut found = Vec::new();
        if place.is_dir() {
            collect(place, &mut found).map_err(|source| CaseError::Unreadable { path: place.to_owned(), source })?;
            found.sort();
        } else {
            found.push(place.to_owned());
        }
        if found.is_empty() { Err(CaseError::Missing { path: place.to_owned() }) } else { Ok(found) }
    }

    /// A case from its text.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(name: &str, folder: &Path, text: &str) -> Result<Self, String> {
        let case: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for (number, step) in case.steps.iter().enumerate() {
            step.check().map_err(|reason| format!("step {}: {reason}", number + 1))?;
        }
        Ok(Self { name: name.to_owned(), folder: folder.to_owned(), ..case })
    }
}

impl Step {
    /// Texts that are parsed when they are compared are so here too, so that a misspelt case is told from a wrong answer.
    fn check(&self) -> Result<(), String> {
        let texts = [Some(&self.expect), self.timers.as_ref(), self.reference.as_ref()];
        for text in texts.into_iter().flatten().chain(self.state.values()).chain(self.put.values()) {
            json_lines(text)?;
        }
        match (&self.clock, &self.advance) {
            (Some(_), Some(_)) => Err("give the time as clock or as advance, not as both".to_owned()),
            _ => Ok(()),
        }
    }
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "toml") && !path.ends_with("query.toml") {
            found.push(path);
        }
    }
    Ok(())
}

/// Milliseconds as they are, or what a text says.
#[derive(Deserialize)]
#[serde(untagged)]
enum Time {
    Ms(i64),
    Text(String),
}

fn instant<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    time(from, "time", |text| parse_timestamp(text).map(|us| us.div_euclid(1_000)))
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    let parse = |text: &str| i64::try_from(humantime::parse_duration(text).ok()?.as_millis()).ok();
    time(from, "duration", parse)
}

fn time<'de, D: Deserializer<'de>>(
    from: D,
    what: &str,
    parse: impl Fn(&str) -> Option<i64>,
) -> Result<Option<i64>, D::Error> {
    match Time::deserialize(from)? {
        Time::Ms(ms) => Ok(Some(ms)),
        Time::Text(text) => parse(&text).map(Some).ok_or_else(|| D::Error::custom(format!("{text:?} is no {what}"))),
    }
}

/// The documents of JSON Lines; blank lines are none.
pub(super) fn json_lines(text: &str) -> Result<Vec<Value>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line).map_err(|error| format!("{line}: {error}"))).collect()
}
