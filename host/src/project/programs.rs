//! Programs that the author installs, found on the path and asked for their version.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::ProjectError;
use super::language::Language;
use super::toolbox::Toolbox;

/// A program that the author installs.
pub(super) struct Program {
    pub(super) language: Language,
    /// Names it may have, best first.
    pub(super) names: &'static [&'static str],
    /// The argument that asks for its version.
    pub(super) version_argument: &'static str,
    /// Major and minor version that are needed at least.
    pub(super) at_least: (u32, u32),
    /// With its version, for people.
    pub(super) what: &'static str,
    /// How to get it.
    pub(super) how: &'static str,
}

/// A program that was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    /// Major and minor.
    pub(super) version: (u32, u32),
    /// As it tells it.
    pub(super) shown: String,
}

impl Program {
    /// The program of the path, if it is new enough.
    ///
    /// # Errors
    /// There is none, or only older ones; with how to get it.
    pub(super) fn find(&self, tools: &Toolbox) -> Result<Found, ProjectError> {
        let mut too_old = None;
        for name in self.names {
            let Ok(path) = which::which_in(name, Some(&tools.path), Path::new("/")) else { continue };
            let done = tools.run(Command::new(&path).arg(self.version_argument))?;
            let Some((version, shown)) = version(&done.said()) else { continue };
            if version >= self.at_least {
                return Ok(Found { path, version, shown });
            }
            too_old.get_or_insert((path, shown));
        }
        let (language, what, how) = (self.language, self.what.to_owned(), self.how.to_owned());
        Err(match too_old {
            Some((program, found)) => ProjectError::ToolOutdated { language, what, program, found, how },
            None => ProjectError::ToolMissing { language, what, how },
        })
    }
}

/// The first version in a text: `v20.20.2`, `go version go1.26.8 linux/amd64`, `Python 3.11.7`.
fn version(text: &str) -> Option<((u32, u32), String)> {
    text.split_whitespace().find_map(|word| {
        let numbers = word.trim_start_matches(|c: char| !c.is_ascii_digit());
        let mut parts = numbers.split(|c: char| !c.is_ascii_digit());
        let (major, minor) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(((major, minor), numbers.trim_end_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const NODE: Program = Program {
        language: Language::JavaScript,
        names: &["node"],
        version_argument: "--version",
        at_least: (20, 0),
        what: "Node.js 20 or later",
        how: "Get it.",
    };

    fn program_that_says(folder: &Path, name: &str, words: &str) {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\necho '{words}'\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn versions_are_read_as_tools_tell_them() {
        for (said, expected) in [
            ("v20.20.2", (20, 20)),
            ("go version go1.26.8 linux/amd64", (1, 26)),
            ("Python 3.9.2", (3, 9)),
            ("cargo 1.95.0 (f2d3ce0bd 2026-03-21)", (1, 95)),
            ("go version go1.25rc1 linux/amd64", (1, 25)),
        ] {
            assert_eq!(version(said).unwrap().0, expected, "{said}");
        }
        assert!(version("no version here").is_none());
    }

    #[test]
    fn a_program_is_missing_outdated_or_found() {
        let folder = tempfile::tempdir().unwrap();
        let tools = Toolbox { path: folder.path().into(), ..Toolbox::for_tests() };
        assert_eq!(NODE.find(&tools).unwrap_err().code(), "TOOL_MISSING");

        program_that_says(folder.path(), "node", "v18.19.0");
        let error = NODE.find(&tools).unwrap_err();
        assert_eq!(error.code(), "TOOL_OUTDATED");
        assert!(error.to_string().contains("18.19.0") && error.to_string().contains("Get it."), "{error}");

        program_that_says(folder.path(), "node", "v20.1.0");
        assert_eq!(NODE.find(&tools).unwrap().version, (20, 1));
    }
}
