//! What is there to build projects of a language, and what is missing.

use std::path::PathBuf;

use super::carried;
use super::error::ProjectError;
use super::language::Language;
use super::programs::Found;
use super::toolbox::{Installed, Toolbox};
use super::{go, javascript, python, rust};

/// What was found for a language.
#[derive(Debug)]
pub struct Checkup {
    /// The language.
    pub language: Language,
    /// What it needs, in the order in which it is needed.
    pub findings: Vec<Finding>,
}

/// Something that a build needs.
#[derive(Debug)]
pub struct Finding {
    /// What.
    pub what: String,
    /// Whether it is there.
    pub state: State,
}

/// Whether something is there.
#[derive(Debug)]
pub enum State {
    /// It is.
    There {
        /// Its version, if it tells one.
        version: Option<String>,
        /// Where it is, if it has a place.
        place: Option<PathBuf>,
    },
    /// `tidemill build` will install it.
    Later,
    /// The author must install it.
    Missing(ProjectError),
}

impl Checkup {
    /// Whether projects of the language can be built.
    pub fn is_usable(&self) -> bool {
        self.findings.iter().all(|finding| !matches!(finding.state, State::Missing(_)))
    }
}

/// Looks what is there for a language.
pub fn checkup(language: Language, tools: &Toolbox) -> Checkup {
    let findings = match language {
        Language::Rust => {
            let target = match rust::std_settings(tools) {
                Ok(_) => State::There { version: None, place: None },
                Err(error) => State::Missing(error),
            };
            vec![program("cargo", rust::CARGO.find(tools)), Finding { what: rust::TARGET.to_owned(), state: target }]
        }
        Language::Python => {
            let found = python::find(tools);
            let tool = found.as_ref().ok().map(python::componentize_py);
            [Some(program("python", found)), tool.map(|tool| installed(&tool, tools))].into_iter().flatten().collect()
        }
        Language::JavaScript => {
            let npm = javascript::NPM.find(tools);
            let tool = npm.as_ref().ok().map(|npm| javascript::pinned_tools(carried::files("guest-sdk/js/tools"), npm));
            let programs = [program("node", javascript::NODE.find(tools)), program("npm", npm)];
            programs.into_iter().chain(tool.map(|tool| installed(&tool, tools))).collect()
        }
        Language::Go => vec![program("go", go::GO.find(tools))],
    };
    Checkup { language, findings }
}

fn program(name: &str, found: Result<Found, ProjectError>) -> Finding {
    let state = match found {
        Ok(found) => State::There { version: Some(found.shown), place: Some(found.path) },
        Err(error) => State::Missing(error),
    };
    Finding { what: name.to_owned(), state }
}

fn installed(tool: &Installed, tools: &Toolbox) -> Finding {
    let state = match tools.place(tool) {
        Ok((place, true)) => State::There { version: None, place: Some(place) },
        Ok((_, false)) => State::Later,
        Err(error) => State::Missing(error),
    };
    Finding { what: tool.what.clone(), state }
}
