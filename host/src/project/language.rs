//! The languages that a project can be in, and how a folder tells.

use std::path::Path;

use super::error::ProjectError;

/// A language with an SDK. TypeScript is JavaScript here: the entry's name tells them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// `Cargo.toml`
    Rust,
    /// `pyproject.toml`
    Python,
    /// `package.json`
    JavaScript,
    /// `go.mod`
    Go,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Rust, Self::Python, Self::JavaScript, Self::Go];

    /// As people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::Python => "Python",
            Self::JavaScript => "JavaScript/TypeScript",
            Self::Go => "Go",
        }
    }

    /// The file that makes a folder a project of the language.
    pub fn manifest(self) -> &'static str {
        match self {
            Self::Rust => "Cargo.toml",
            Self::Python => "pyproject.toml",
            Self::JavaScript => "package.json",
            Self::Go => "go.mod",
        }
    }

    /// Name of the SDK's folder.
    pub(super) fn sdk_folder(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "js",
            Self::Go => "go",
        }
    }

    /// What the manifest says to name the SDK that this program puts into the project.
    pub(super) fn sdk_entry(self) -> &'static str {
        match self {
            Self::Rust => "[dependencies] tidemill = { path = \".tidemill/sdk/rust\" }",
            Self::Python => "[tool.tidemill] sdk = \".tidemill/sdk/python\"",
            Self::JavaScript => "\"dependencies\": { \"tidemill\": \"file:.tidemill/sdk/js\" }",
            Self::Go => "replace github.com/tidemill/tidemill/guest-sdk/go => ./.tidemill/sdk/go",
        }
    }
}

/// The language of the one manifest in a folder. `shown` is the folder as the author named it.
pub(super) fn detect(shown: &Path, folder: &Path) -> Result<Language, ProjectError> {
    let mut found = Language::ALL.into_iter().filter(|language| folder.join(language.manifest()).is_file());
    match (found.next(), found.next()) {
        (Some(language), None) => Ok(language),
        (None, _) => Err(ProjectError::NothingThere { path: shown.to_owned() }),
        (Some(one), Some(other)) => {
            Err(ProjectError::Ambiguous { path: shown.to_owned(), manifests: [one.manifest(), other.manifest()] })
        }
    }
}
