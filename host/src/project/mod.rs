//! Projects of processors: what language a folder is in, and how it becomes a component.
//!
//! A project is a folder with the manifest of its language, which names the folder of Tidemill's SDK. In a project of an
//! author that is `.tidemill/sdk/LANGUAGE`, with the world's text in `.tidemill/wit`: this program carries both in its
//! version and puts them there ([`sdk`]), since no SDK is in a registry. The examples of the repository name the folder
//! beside them, which has the same shape.
//!
//! Read in this order: [`language`], [`manifest`], [`sdk`], [`programs`], [`toolbox`] and [`command`] (other people's tools), then one
//! file per language: [`rust`], [`python`], [`javascript`], [`go`]. [`mod@scaffold`] begins a project, [`mod@checkup`] tells what is
//! there to build one.
//!
//! Invariants:
//! - What a tool prints reaches the author when it fails, and not before.
//! - A folder in the cache is either whole or not there: tools are installed beside their place and moved there.
//! - When the author interrupts, no process of a tool is left.
//!
//! Knows nothing of queries; whether a component is a processor is for `inspect` to say.

mod carried;
mod checkup;
mod command;
mod error;
mod go;
mod javascript;
mod language;
mod lock;
mod manifest;
mod programs;
mod python;
mod rust;
mod scaffold;
mod sdk;
mod toolbox;

use std::path::{Path, PathBuf};

pub use checkup::{Checkup, Finding, State, checkup};
pub use command::Stop;
pub use error::ProjectError;
pub use language::Language;
pub use manifest::Manifest;
pub use rust::PROFILE_DEFAULT;
pub use scaffold::{Template, scaffold};
pub use toolbox::{Network, Toolbox};

/// The folder in a project that holds what this program puts there.
const OWN_FOLDER: &str = ".tidemill";

/// A folder with a processor's source.
#[derive(Debug)]
pub struct Project {
    /// The folder, absolute.
    root: PathBuf,
    language: Language,
    manifest: Manifest,
}

impl Project {
    /// Finds out what stands in a folder. `language`: which of several manifests counts.
    ///
    /// # Errors
    /// No manifest of a known language, several of them, or one that cannot be read.
    pub fn open(folder: &Path, language: Option<Language>) -> Result<Self, ProjectError> {
        let root = folder.canonicalize().map_err(|_| ProjectError::NothingThere { path: folder.to_owned() })?;
        let language = match language {
            Some(language) => language,
            None => language::detect(folder, &root)?,
        };
        let manifest = Manifest::read(&root, language)?;
        Ok(Self { root, language, manifest })
    }

    /// The language.
    pub fn language(&self) -> Language {
        self.language
    }

    /// The folder, absolute.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the component goes if nobody says otherwise.
    pub fn component(&self) -> PathBuf {
        self.root.join("build").join(format!("{}.wasm", self.manifest.name))
    }

    /// Puts the SDK and the world of this version into a project that keeps them in `.tidemill`, if they are not there.
    ///
    /// # Errors
    /// The manifest names another version of the SDK, or an SDK that is not there; a file cannot be written.
    pub fn refresh_sdk(&self, tools: &Toolbox) -> Result<(), ProjectError> {
        sdk::refresh(self, tools)
    }

    /// Builds the component with the tools of its language.
    ///
    /// # Errors
    /// A tool is missing or too old and how to get it; the author's code does not build, with what the tool says.
    pub fn build(&self, profile: &str, tools: &Toolbox) -> Result<Vec<u8>, ProjectError> {
        self.refresh_sdk(tools)?;
        match self.language {
            Language::Rust => rust::build(self, profile, tools),
            Language::Python => python::build(self, tools),
            Language::JavaScript => javascript::build(self, tools),
            Language::Go => go::build(self, tools),
        }
    }

    /// The folder of the SDK. Every language but Rust cannot do without.
    fn sdk(&self) -> Result<&Path, ProjectError> {
        self.manifest.sdk.as_deref().ok_or_else(|| ProjectError::SdkMissing {
            manifest: self.root.join(self.language.manifest()),
            reason: "it names none".to_owned(),
            entry: self.language.sdk_entry(),
        })
    }

    /// The folder with the world's text. It has the same place beside every SDK.
    fn wit(&self) -> Result<PathBuf, ProjectError> {
        Ok(self.sdk()?.join("../../wit"))
    }
}
