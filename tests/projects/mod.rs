//! Projects in four languages: begun, built, tested and run in a folder outside of the repository, and what an author is
//! told when something is missing or wrong.
//!
//! `TIDEMILL_LANGUAGES` restricts them as it does the set-up. Tools that `tidemill build` installs are those of the
//! machine's cache, so nothing is fetched.

mod begin;
mod dev;
mod mistakes;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::support::{succeed, tidemill, write_program};

/// What `tidemill new --lang` takes, with the language of the set-up that it needs.
const LANGUAGES: [(&str, &str); 5] = [("rust", "rust"), ("python", "python"), ("js", "js"), ("ts", "js"), ("go", "go")];

/// Whether this machine was set up for a language.
fn is_wanted(language: &str) -> bool {
    let needs = LANGUAGES.iter().find(|(name, _)| *name == language).unwrap().1;
    std::env::var("TIDEMILL_LANGUAGES").map_or(true, |wanted| wanted.split_whitespace().any(|name| name == needs))
}

/// A project that was begun in an empty folder.
struct Begun {
    place: TempDir,
}

impl Begun {
    fn new(language: &str) -> Self {
        let place = TempDir::new().unwrap();
        succeed(tidemill().current_dir(place.path()).args(["new", "visits", "--lang", language]));
        Self { place }
    }

    fn path(&self) -> PathBuf {
        self.place.path().join("visits")
    }

    /// A command in the project, which fetches nothing. What cargo has built of the SDK is kept from test to test.
    fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = tidemill();
        command.current_dir(self.path()).args(arguments).env("CARGO_TARGET_DIR", cargo_target());
        command
    }

    /// Changes a text in one of its files.
    fn change(&self, file: &str, from: &str, to: &str) {
        let path = self.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(from), "{file} has no {from:?}");
        fs::write(&path, text.replace(from, to)).unwrap();
    }
}

fn cargo_target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("projects")
}

/// The source file of a template.
fn source(language: &str) -> &'static str {
    match language {
        "rust" => "src/lib.rs",
        "python" => "processor.py",
        "js" => "src/processor.js",
        "ts" => "src/processor.ts",
        _ => "main.go",
    }
}

/// The manifest of a template.
fn manifest(language: &str) -> &'static str {
    match language {
        "rust" => "Cargo.toml",
        "python" => "pyproject.toml",
        "js" | "ts" => "package.json",
        _ => "go.mod",
    }
}

/// A folder of programs that are scripts of a shell.
fn programs(scripts: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().unwrap();
    for (name, script) in scripts {
        write_program(&folder.path().join(name), script);
    }
    folder
}
