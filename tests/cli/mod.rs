//! The command line as a person meets it: what `inspect`, `state` and `replay` print, and with which exit code.

mod inspect;
mod replay;
mod state;
mod steps;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::support::{EXAMPLES, Example, Said, published, rows, succeed, tidemill};

#[test]
fn examples_give_the_rows_that_they_promise() {
    for name in EXAMPLES.into_iter().filter(|name| *name != "flights") {
        let ran = Ran::new(name);
        assert_eq!(rows(&ran.place.path().join("rows")), ran.example.expected(), "{name}");
    }
}

#[test]
fn two_runs_give_identical_files() {
    let example = Example::new("flights");
    let files = |arguments: &[&'static str]| {
        let place = TempDir::new().unwrap();
        succeed(&mut example.command(place.path(), arguments.iter().copied()));
        published(&place.path().join("rows"))
    };

    let first = files(&[]);

    assert!(first.len() > 5, "{} files", first.len());
    assert!(files(&[]) == first);
    assert!(files(&["--workers", "5"]) == first, "another number of workers gives other files");
}

#[test]
fn every_command_teaches_with_examples() {
    for command in ["run", "new", "build", "dev", "doctor", "test", "inspect", "state", "replay", "rollback", "fork"] {
        let said = succeed(tidemill().args([command, "--help"]));
        let example = format!("\n  tidemill {command} ");
        assert!(said.out.contains("Examples:\n  ") && said.out.contains(&example), "{}", said.out);
    }
}

/// An example that was run, with its checkpoint.
struct Ran {
    example: Example,
    place: TempDir,
}

impl Ran {
    fn new(name: &'static str) -> Self {
        Self::with(name, |_| {})
    }

    /// Of a copy of the example that was changed before.
    fn with(name: &'static str, change: impl FnOnce(&Example)) -> Self {
        Self::with_arguments(name, change, [])
    }

    fn with_arguments<'a>(
        name: &'static str,
        change: impl FnOnce(&Example),
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let (example, place) = (Example::new(name), TempDir::new().unwrap());
        change(&example);
        succeed(&mut example.command(place.path(), arguments));
        Self { example, place }
    }

    fn checkpoint(&self) -> PathBuf {
        self.place.path().join("checkpoint")
    }

    fn state<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = tidemill();
        command.arg("state").arg(self.checkpoint()).args(arguments);
        command
    }

    fn replay<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = tidemill();
        command.arg("replay").arg("--config").arg(self.example.path().join("query.toml"));
        command.arg("--checkpoint").arg(self.checkpoint()).args(arguments);
        command
    }
}

/// What a command printed, without what is of this build or machine.
fn shown(said: &Said) -> String {
    assert_eq!(said.err, "");
    let mut text = String::new();
    for line in said.out.lines() {
        let words = line.split(' ').map(|word| match word.strip_prefix("sha256:") {
            Some(_) => "sha256:[digest]".to_owned(),
            None if word.starts_with('/') => Path::new(word).file_name().unwrap().to_string_lossy().into_owned(),
            None => word.to_owned(),
        });
        let line = words.collect::<Vec<_>>().join(" ");
        text += if line.starts_with("size ") { "size          [n] bytes" } else { &line };
        text.push('\n');
    }
    text
}

/// Everything below a folder.
fn files_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut folders, mut files) = (vec![folder.to_owned()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
    files
}
