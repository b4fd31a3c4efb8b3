//! Guests that do the same in every language: what reaches the user of one must reach that of any.

mod determinism;
mod examples;
mod faults;

use std::path::PathBuf;

use super::support::component;

/// A language that processors are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Rust,
    Python,
    JavaScript,
    Go,
}

impl Language {
    pub const ALL: [Self; 4] = [Self::Rust, Self::Python, Self::JavaScript, Self::Go];

    /// Folders of projects in this language, beside each other in an example.
    fn folders(self) -> &'static [&'static str] {
        match self {
            Self::Rust => &["rust"],
            Self::Python => &["python"],
            Self::JavaScript => &["js", "ts"],
            Self::Go => &["go"],
        }
    }

    /// The component of a guest in this language, which `scripts/build-guests.sh` made.
    pub fn component(self, guest: &str) -> PathBuf {
        match self {
            Self::Rust => component(guest),
            Self::Python => component(&format!("{guest}-python")),
            Self::JavaScript => component(&format!("{guest}-js")),
            Self::Go => component(&format!("{guest}-go")),
        }
    }
}
