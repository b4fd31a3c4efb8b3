//! Why a project was not built, and what its author can do about it.

use std::io;
use std::path::PathBuf;

use super::language::Language;
use crate::runtime::ComponentizeError;

/// Why a project was not built.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// There is neither a project nor a module at the path.
    #[error(
        "{} is no project: it has no Cargo.toml (Rust), pyproject.toml (Python), package.json (JavaScript, TypeScript) or go.mod (Go), and is no .wasm file; `tidemill new NAME --lang LANGUAGE` begins one", path.display()
    )]
    NothingThere {
        /// The path given.
        path: PathBuf,
    },
    /// A project cannot have this name.
    #[error(
        "{name:?} cannot be the name of a project: it is the component's, the package's and the folder's, so take lower-case letters, digits and hyphens, a letter first, and no word of a language"
    )]
    NameInvalid {
        /// The name given.
        name: String,
    },
    /// There is something where the project would go.
    #[error("{} is there already, and is not empty: take another name, or another folder", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// Manifests of several languages.
    #[error("{} has a {} and a {}: say which counts with --lang", path.display(), manifests[0], manifests[1])]
    Ambiguous {
        /// The folder.
        path: PathBuf,
        /// Two of its manifests.
        manifests: [&'static str; 2],
    },
    /// The manifest cannot be used.
    #[error("{}: {reason}", manifest.display())]
    Manifest {
        /// The manifest.
        manifest: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The SDK is not where the manifest says, or it says nothing.
    #[error("{}: {reason}, so the SDK of Tidemill is not found; it should say {entry}", manifest.display())]
    SdkMissing {
        /// The manifest.
        manifest: PathBuf,
        /// What is missing.
        reason: String,
        /// What it should say.
        entry: &'static str,
    },
    /// The manifest names a version of the SDK that this program does not carry.
    #[error(
        "{} asks for version {named} of the SDK, and this tidemill has {ours}: use a tidemill of version {named}, or change the manifest and try whether it still builds",
        manifest.display()
    )]
    SdkVersion {
        /// The manifest.
        manifest: PathBuf,
        /// The version it names.
        named: String,
        /// The version there is.
        ours: &'static str,
    },
    /// A program of the language is not on the path.
    #[error("{language} projects need {what}, and there is none on the path. {how}", language = language.name())]
    ToolMissing {
        /// The language.
        language: Language,
        /// The program, with its version.
        what: String,
        /// How to get it.
        how: String,
    },
    /// A program of the language is too old.
    #[error("{language} projects need {what}, and {} is version {found}. {how}", program.display(), language = language.name())]
    ToolOutdated {
        /// The language.
        language: Language,
        /// The program, with its version.
        what: String,
        /// Where the program is.
        program: PathBuf,
        /// Its version.
        found: String,
        /// How to get a newer one.
        how: String,
    },
    /// The wasm target's standard library is missing.
    #[error(
        "the Rust target {target} is not installed: run `rustup target add {target}`, or scripts/setup.sh of the repository"
    )]
    NoTarget {
        /// The target.
        target: &'static str,
    },
    /// A tool that this program installs is not there, and it may not use the network.
    #[error("{what} is not installed yet, and --offline forbids to fetch it. Run this once with a network: {command}")]
    ToolOffline {
        /// The tool, with its version.
        what: String,
        /// The command that installs it.
        command: String,
    },
    /// A tool could not be installed.
    #[error("{what} could not be installed; `tidemill doctor` tells what is missing. This failed: {command}\n{output}")]
    ToolInstall {
        /// The tool, with its version.
        what: String,
        /// The command.
        command: String,
        /// What it said.
        output: String,
    },
    /// There is no place to install tools.
    #[error("there is no cache folder for {what}: set TIDEMILL_CACHE, or HOME")]
    NoCache {
        /// The tool.
        what: String,
    },
    /// A program is there and cannot be run.
    #[error("cannot run {}: {source}", program.display())]
    ToolFailed {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The author's code does not build.
    #[error("{} does not build; {tool} says:\n{output}", root.display())]
    Compile {
        /// The project.
        root: PathBuf,
        /// What refused it.
        tool: &'static str,
        /// What it said.
        output: String,
    },
    /// A Python package with native code.
    #[error(
        "{package} has native code ({}), which was compiled for this machine and cannot run in a component. Only packages of pure Python can be used: look for one that does the same, or leave the package out\n{output}", library.display()
    )]
    NativeCode {
        /// The package.
        package: String,
        /// The library that tells.
        library: PathBuf,
        /// What the tool said.
        output: String,
    },
    /// The project builds, but to no module.
    #[error("{} builds no module: its Cargo.toml needs `[lib] crate-type = [\"cdylib\"]`", root.display())]
    NoModule {
        /// The project.
        root: PathBuf,
    },
    /// The module could not be made a component.
    #[error("{}: {source}", module.display())]
    Componentize {
        /// The module.
        module: PathBuf,
        /// Why.
        source: ComponentizeError,
    },
    /// Someone pressed Ctrl-C.
    #[error("interrupted; nothing was built")]
    Interrupted,
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl ProjectError {
    /// Stable code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NothingThere { .. } => "BUILD_NOTHING_THERE",
            Self::NameInvalid { .. } => "PROJECT_NAME_INVALID",
            Self::Exists { .. } => "PROJECT_EXISTS",
            Self::Ambiguous { .. } => "BUILD_LANGUAGE_AMBIGUOUS",
            Self::Manifest { .. } => "BUILD_MANIFEST_INVALID",
            Self::SdkMissing { .. } => "SDK_MISSING",
            Self::SdkVersion { .. } => "SDK_VERSION_MISMATCH",
            Self::ToolMissing { .. } => "TOOL_MISSING",
            Self::ToolOutdated { .. } => "TOOL_OUTDATED",
            Self::NoTarget { .. } => "BUILD_NO_TARGET",
            Self::ToolOffline { .. } => "TOOL_OFFLINE",
            Self::ToolInstall { .. } => "TOOL_INSTALL_FAILED",
            Self::NoCache { .. } => "TOOL_NO_CACHE",
            Self::ToolFailed { .. } => "TOOL_FAILED",
            Self::Compile { .. } => "BUILD_COMPILE",
            Self::NativeCode { .. } => "BUILD_NATIVE_CODE",
            Self::NoModule { .. } => "BUILD_NO_MODULE",
            Self::Componentize { source, .. } => source.code(),
            Self::Interrupted => "BUILD_INTERRUPTED",
            Self::File { .. } => "BUILD_FILE",
        }
    }

    /// Of a file.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
