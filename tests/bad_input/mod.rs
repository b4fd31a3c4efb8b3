//! What people and files do wrong, and what the command answers: a code, what happened, where, and what to do. Nothing is
//! lost by it: once the cause is mended, the same command goes on.

mod checkpoint;
mod component;
mod files;
mod rows;
mod settings;
mod streams;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Said, component, json_lines, rows, succeed, tidemill, write_at};

const SCHEMA: &str = "key STRING, n BIGINT";
const A: &str = "{\"key\":\"a\",\"n\":1}\n";
const B: &str = "{\"key\":\"b\",\"n\":2}\n";

/// A query over the counter, or another component, in a folder of its own.
struct Counter(TempDir);

impl Counter {
    fn over(files: &[(&str, &str)]) -> Self {
        let query = Self(TempDir::new().unwrap());
        fs::create_dir(query.path().join("input")).unwrap();
        files.iter().for_each(|(name, text)| query.write(name, text));
        query
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file of the input; files are read in the order of the number that they begin with.
    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let number = name.split('.').next().and_then(|number| number.parse().ok()).unwrap();
        write_at(&self.path().join("input").join(name), text, number);
    }

    fn run_component<'a>(&self, component: &Path, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = tidemill();
        command.current_dir(self.path()).arg("run").arg(component);
        let defaults = ["--input", "input", "--sink", "rows", "--checkpoint", "checkpoint", "--key", "key"];
        // A flag may be given only once, so what the arguments say is left out of the defaults.
        let arguments: Vec<&str> = arguments.into_iter().collect();
        for pair in defaults.chunks(2) {
            if !arguments.contains(&pair[0]) {
                command.args(pair);
            }
        }
        command.args(arguments);
        command
    }

    fn without_schema<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        self.run_component(&component("counter"), arguments)
    }

    fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let arguments: Vec<&str> = arguments.into_iter().collect();
        let schema: &[&str] = if arguments.contains(&"--schema") { &[] } else { &["--schema", SCHEMA] };
        self.without_schema(arguments.into_iter().chain(schema.iter().copied()))
    }

    /// From standard input to standard output.
    fn streaming<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        self.command(["--input", "-", "--sink", "-"].into_iter().chain(arguments))
    }

    /// The script guest over the same input.
    fn script<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let schema = ["--schema", "key STRING, op STRING, arg STRING"];
        self.run_component(&component("script"), schema.into_iter().chain(arguments))
    }

    /// Events without duplicates; what goes in comes out.
    fn dedup<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let defaults = ["--key", "id", "--time-mode", "processing-time", "--schema", "id STRING, body STRING"];
        self.run_component(&component("dedup"), defaults.into_iter().chain(arguments))
    }

    /// Runs it, and answers the summary.
    fn summary<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Value {
        let said = succeed(self.command(arguments).args(["-o", "json"]));
        serde_json::from_str(&said.out).unwrap()
    }

    fn rows(&self) -> String {
        rows(&self.path().join("rows"))
    }

    /// Key and count of every row, sorted.
    fn counts(&self) -> Vec<(String, i64)> {
        let count = |row: &Value| (row["key"].as_str().unwrap().to_owned(), row["count"].as_i64().unwrap());
        let mut counts: Vec<_> = json_lines(&self.rows()).iter().map(count).collect();
        counts.sort();
        counts
    }
}

fn says(said: &Said, words: &[&str]) {
    for word in words {
        assert!(said.err.contains(word), "it should say {word:?}: {}", said.err);
    }
}

fn owned((key, count): (&str, i64)) -> (String, i64) {
    (key.to_owned(), count)
}
