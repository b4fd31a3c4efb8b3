//! `tidemill build`: a project in any of the languages, or a core module, becomes a component.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::Format;
use super::inspect::{self, Inspected};
use super::interrupt;
use super::output::{self, Coded, note};
use super::query_args::QUERY_FILE;
use crate::config::Environment;
use crate::engine::trigger::Stop;
use crate::project::{Language, Network, PROFILE_DEFAULT, Project, ProjectError, Toolbox};
use crate::runtime::componentize;

/// Build a processor into a component
///
/// Finds out by its manifest in which language the project at PATH is (Cargo.toml, pyproject.toml, package.json, go.mod),
/// builds it with the language's own tools, and makes it a component, which `tidemill run` takes. What the build needs
/// beyond the language itself is installed into the cache the first time. A core module (.wasm) that was compiled elsewhere
/// is only encoded.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct BuildArgs {
    /// Folder of the project, or a core module.
    #[arg(default_value = ".")]
    path: PathBuf,

    /// Where the component goes [default: PATH/build/NAME.wasm].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    #[command(flatten)]
    tools: ToolArgs,

    /// Only put the SDK of this version into the project's folder .tidemill, for editors; `build` does so too.
    #[arg(long)]
    sdk_only: bool,
}

/// How a project is built, for all commands that build one.
#[derive(Debug, Default, Args)]
pub(super) struct ToolArgs {
    /// The language, for a folder with the manifests of several.
    #[arg(long, value_enum)]
    lang: Option<Lang>,

    /// Fetch nothing: fail where a tool would have to be installed.
    #[arg(long)]
    offline: bool,

    /// Cargo profile, for Rust [default: release].
    #[arg(long)]
    profile: Option<String>,
}

impl ToolArgs {
    /// The project of a folder.
    pub(super) fn open(&self, folder: &Path) -> Result<Project, ProjectError> {
        Project::open(folder, self.lang.map(Language::from))
    }

    /// The profile to build with.
    pub(super) fn profile(&self) -> &str {
        self.profile.as_deref().unwrap_or(PROFILE_DEFAULT)
    }
}

/// A language, as it is named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Lang {
    /// Cargo.toml
    Rust,
    /// pyproject.toml
    Python,
    /// package.json
    Js,
    /// package.json
    Ts,
    /// go.mod
    Go,
}

impl From<Lang> for Language {
    fn from(lang: Lang) -> Self {
        match lang {
            Lang::Rust => Self::Rust,
            Lang::Python => Self::Python,
            Lang::Js | Lang::Ts => Self::JavaScript,
            Lang::Go => Self::Go,
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  tidemill build
  tidemill build examples/counter/python --out counter.wasm
  tidemill build compiled.wasm --out counter.wasm

`tidemill doctor` tells what is installed for which language.";

/// Runs the command.
pub(super) fn run(args: &BuildArgs, format: Format, environment: &Environment) -> anyhow::Result<u8> {
    let stop = Stop::default();
    let _interrupts = interrupt::watch(stop.clone(), "Stopping; nothing will be built.")?;
    let tools = toolbox(&args.tools, stop, environment);
    let built = match component(args, &tools) {
        Ok(Some(built)) => built,
        Ok(None) => return Ok(0),
        Err(ProjectError::Interrupted) => return Ok(interrupt::INTERRUPTED),
        Err(error) => return Err(Coded::wrap(error.code(), error)),
    };
    let inspected = inspected(&built, environment)?;
    output::result(&match format {
        Format::Text => {
            let texts = inspected.into_iter().map(|one| inspect::text(&one.in_brief()));
            texts.collect::<anyhow::Result<Vec<_>>>()?.join("\n")
        }
        Format::Json => format!("{}\n", inspect::documents(&inspected)),
    })?;
    Ok(0)
}

/// What builds on this machine are given.
pub(super) fn toolbox(args: &ToolArgs, stop: Stop, environment: &Environment) -> Toolbox {
    Toolbox {
        path: environment.path.clone(),
        virtual_env: environment.virtual_env.clone(),
        cache: environment.cache_dir.clone(),
        network: if args.offline { Network::Offline } else { Network::Allowed },
        stop,
        tell: Box::new(note),
    }
}

/// Builds; None if there was only an SDK to put in place.
fn component(args: &BuildArgs, tools: &Toolbox) -> Result<Option<Built>, ProjectError> {
    if args.path.is_file() {
        let core = fs::read(&args.path).map_err(ProjectError::file(&args.path))?;
        let module = args.path.clone();
        let component = componentize(&core).map_err(|source| ProjectError::Componentize { module, source })?;
        let out = args.out.clone().unwrap_or_else(|| args.path.with_extension("component.wasm"));
        write(&out, &component)?;
        return Ok(Some(Built { component: out, query: None }));
    }
    let project = args.tools.open(&args.path)?;
    if args.sdk_only {
        return project.refresh_sdk(tools).map(|()| None);
    }
    build(&project, args.out.as_deref(), args.tools.profile(), tools).map(Some)
}

/// A component that was built just now.
pub(super) struct Built {
    pub(super) component: PathBuf,
    /// The query that the project is for, if it has one.
    pub(super) query: Option<PathBuf>,
}

/// Builds a project. `out`: where its component goes, if not to the usual place.
pub(super) fn build(
    project: &Project,
    out: Option<&Path>,
    profile: &str,
    tools: &Toolbox,
) -> Result<Built, ProjectError> {
    let bytes = project.build(profile, tools)?;
    let component = out.map_or_else(|| shorter(&project.component()), Path::to_owned);
    write(&component, &bytes)?;
    // Beside the project, or above it where one query has processors in several languages.
    let queries = [Some(project.root()), project.root().parent()].into_iter().flatten();
    let query = queries.map(|folder| folder.join(QUERY_FILE)).find(|file| file.is_file());
    Ok(Built { component, query })
}

/// Asks the component what it is, and what it would do in the query of its project.
pub(super) fn inspected(built: &Built, environment: &Environment) -> anyhow::Result<Vec<Inspected>> {
    let query = built.query.as_ref().and_then(|file| inspect::query_of(file, &built.component));
    match query {
        Some(query) => {
            let mut inspected = inspect::steps(&query, environment)?;
            inspected.iter_mut().for_each(|one| one.path.clone_from(&built.component));
            Ok(inspected)
        }
        None => Ok(vec![inspect::component(&built.component, environment)?]),
    }
}

/// Whoever reads the file meanwhile reads the old one to its end.
fn write(path: &Path, bytes: &[u8]) -> Result<(), ProjectError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = ProjectError::file(path);
    let write = || {
        fs::create_dir_all(folder)?;
        let mode = fs::Permissions::from_mode(0o644);
        let mut file = tempfile::Builder::new().permissions(mode).tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.persist(path).map_err(|error| error.error).map(drop)
    };
    write().map_err(failed)
}

/// The path from here, where it lies below.
fn shorter(path: &Path) -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_takes_the_place_of_the_last_one() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("build/visits.wasm");
        write(&out, b"one").unwrap();
        write(&out, b"two").unwrap();
        assert_eq!(fs::read(&out).unwrap(), b"two");
        assert_eq!(fs::read_dir(out.parent().unwrap()).unwrap().count(), 1, "nothing else is left");
    }
}
