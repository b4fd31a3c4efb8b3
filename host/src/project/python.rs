//! Python: componentize-py, which puts CPython and the author's modules into a component.
//!
//! It runs the author's module while it builds, so what is wrong at import is told here and not by the first batch.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Project;
use super::carried::Files;
use super::error::ProjectError;
use super::language::Language;
use super::manifest::{self, Manifest};
use super::programs::{Found, Program};
use super::toolbox::{Installed, Toolbox};
use crate::runtime::WORLD;

const COMPONENTIZE_PY: &str = "componentize-py";
const COMPONENTIZE_PY_VERSION: &str = "0.25.1";
/// Runs it from its folder, which may have been moved since it was made: the script that pip writes names the old place.
const RUN: &str = "import sys; from componentize_py import script; sys.exit(script())";
/// The module that componentize-py is given: importing the author's registers its processor.
const MAIN: &str = "tidemill_main";
/// Where componentize-py shows the first folder of its search path; the next is `/1`.
const MOUNTED: &str = "\"/";

/// The author's Python.
pub(super) const PYTHON: Program = Program {
    language: Language::Python,
    names: &["python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10", "python"],
    version_argument: "--version",
    at_least: (3, 10),
    what: "Python 3.10 or later",
    how: "On Debian or Ubuntu: `sudo apt install python3 python3-venv`; elsewhere see https://www.python.org/downloads.",
};

pub(super) fn manifest(text: &str) -> Result<Manifest, String> {
    let document: toml::Table = text.parse().map_err(|error| format!("{error}"))?;
    let ours = manifest::table(&document, "tool.tidemill");
    let packages = ours.and_then(|ours| ours.get("packages")?.as_array()).map(Vec::as_slice).unwrap_or_default();
    Ok(Manifest {
        name: manifest::text(manifest::table(&document, "project"), "name").ok_or("[project] has no name")?,
        sdk: Some(manifest::text(ours, "sdk").unwrap_or_else(|| ".tidemill/sdk/python".to_owned()).into()),
        sdk_version: manifest::text(ours, "version"),
        entry: manifest::text(ours, "module"),
        packages: packages.iter().filter_map(|folder| folder.as_str().map(PathBuf::from)).collect(),
    })
}

pub(super) fn build(project: &Project, tools: &Toolbox) -> Result<Vec<u8>, ProjectError> {
    let python = find(tools)?;
    let installed = tools.installed(&componentize_py(&python))?;
    let scratch = tempfile::tempdir().map_err(ProjectError::file(std::env::temp_dir()))?;
    let (main, out) = (scratch.path().join(format!("{MAIN}.py")), scratch.path().join("out.wasm"));
    let module = project.manifest.entry.as_deref().unwrap_or("processor");
    fs::write(&main, format!("import {module}\nfrom tidemill.component import Handler\n"))
        .map_err(ProjectError::file(&main))?;

    let active = tools.virtual_env.as_deref().and_then(site_packages);
    let mut folders = vec![scratch.path(), project.root()];
    folders.extend(project.manifest.packages.iter().chain(&active).map(PathBuf::as_path));
    folders.push(project.sdk()?);
    let mut command = Command::new(installed.join("bin/python"));
    command.args(["-c", RUN, "-d"]).arg(project.wit()?).args(["-w", WORLD, "componentize"]);
    for folder in &folders {
        command.arg("-p").arg(folder);
    }
    // The component is made of the folders above, not of what else is installed on this machine; and none of the author's
    // modules may get between the tool and its own.
    command
        .arg("-o")
        .arg(&out)
        .arg(MAIN)
        .current_dir(scratch.path())
        .env("RUST_BACKTRACE", "0")
        .env("VIRTUAL_ENV", &installed)
        .env_remove("PYTHONPATH");
    let done = tools.run(&mut command)?;
    if !done.status.success() {
        let output = authors_words(&done.said(), &folders);
        return Err(match native_library(&output, &folders) {
            Some((package, library)) => ProjectError::NativeCode { package, library, output },
            None => ProjectError::Compile { root: project.root.clone(), tool: COMPONENTIZE_PY, output },
        });
    }
    fs::read(&out).map_err(ProjectError::file(out))
}

/// Where a virtual environment has its packages.
fn site_packages(environment: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(environment.join("lib")).ok()?.flatten();
    versions.map(|version| version.path().join("site-packages")).find(|folder| folder.is_dir())
}

/// A Python that can make the folder that we install into.
pub(super) fn find(tools: &Toolbox) -> Result<Found, ProjectError> {
    let python = PYTHON.find(tools)?;
    let done = tools.run(Command::new(&python.path).args(["-c", "import ensurepip, venv"]))?;
    if done.status.success() {
        return Ok(python);
    }
    Err(ProjectError::ToolMissing {
        language: Language::Python,
        what: format!("the modules venv and ensurepip of {}", python.path.display()),
        how: "On Debian or Ubuntu: `sudo apt install python3-venv`.".to_owned(),
    })
}

/// componentize-py, for this Python.
pub(super) fn componentize_py(python: &Found) -> Installed {
    let (major, minor) = python.version;
    let program = python.path.clone();
    Installed {
        what: format!("{COMPONENTIZE_PY} {COMPONENTIZE_PY_VERSION}"),
        folder: format!("{COMPONENTIZE_PY}-{COMPONENTIZE_PY_VERSION}-python{major}.{minor}"),
        proof: "bin/python",
        files: Files::new(),
        install: Box::new(move |place| {
            let mut venv = Command::new(&program);
            venv.args(["-m", "venv"]).arg(place);
            let mut pip = Command::new(place.join("bin/python"));
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]);
            pip.arg(format!("{COMPONENTIZE_PY}=={COMPONENTIZE_PY_VERSION}"));
            vec![venv, pip]
        }),
    }
}

/// The traceback of the author's code out of what componentize-py says, with the author's paths: it shows the folders as
/// the component sees them.
fn authors_words(said: &str, folders: &[&Path]) -> String {
    let traceback = said.split_once("AssertionError: ").map_or(said, |(_, words)| words);
    let traceback = ["\n\nCaused by:", "\n\nStack backtrace:"]
        .iter()
        .fold(traceback, |text, end| text.split(end).next().unwrap_or(text));
    let mut text = traceback.trim_end().to_owned();
    for (number, folder) in folders.iter().enumerate() {
        text = text.replace(&format!("{MOUNTED}{number}/"), &format!("\"{}/", folder.display()));
    }
    text
}

/// The package whose import failed, if it has a library that was compiled for a machine.
fn native_library(output: &str, folders: &[&Path]) -> Option<(String, PathBuf)> {
    let failed = output.lines().any(|line| line.starts_with("ImportError") || line.starts_with("ModuleNotFoundError"));
    if !failed {
        return None;
    }
    // The modules of the traceback, from the failing one outwards.
    let files = output.lines().rev().filter_map(|line| line.trim().strip_prefix("File \"")?.split('"').next());
    for file in files.map(Path::new) {
        let Some(inside) =
            folders.iter().skip(1).find_map(|folder| file.strip_prefix(folder).ok().map(|inside| (folder, inside)))
        else {
            continue;
        };
        let (folder, first) = (inside.0, inside.1.components().next()?);
        let package = folder.join(first);
        if package.is_dir()
            && let Some(library) = library_in(&package)
        {
            return Some((first.as_os_str().to_string_lossy().into_owned(), library));
        }
    }
    None
}

fn library_in(folder: &Path) -> Option<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).ok()?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "so") {
                return Some(path);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_has_defaults_for_all_but_the_name() {
        let manifest = manifest("[project]\nname = \"visits\"\n").unwrap();
        assert_eq!(manifest.name, "visits");
        assert_eq!(manifest.sdk, Some(PathBuf::from(".tidemill/sdk/python")));
        assert_eq!((manifest.entry, manifest.sdk_version), (None, None));
        assert!(super::manifest("[tool.tidemill]\nmodule = \"m\"\n").unwrap_err().contains("name"));
    }

    const SAID: &str = "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n\
        AssertionError: Traceback (most recent call last):\n  File \"/0/tidemill_main.py\", line 1, in <module>\n    \
        import processor\n  File \"/1/processor.py\", line 2\n    def f(:\n          ^\nSyntaxError: invalid syntax\n\n\n\
        Caused by:\n    SyntaxError: invalid syntax (processor.py, line 2)\n\nStack backtrace:\n   0: <anyhow::Error>::msg\n";

    #[test]
    fn the_traceback_names_the_authors_file() {
        let words = authors_words(SAID, &[Path::new("/tmp/scratch"), Path::new("/home/me/visits")]);
        assert!(words.starts_with("Traceback"), "{words}");
        assert!(words.contains("File \"/home/me/visits/processor.py\", line 2"), "{words}");
        assert!(words.ends_with("SyntaxError: invalid syntax"), "{words}");
    }

    #[test]
    fn a_package_with_a_compiled_library_is_told_apart_from_a_missing_one() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("numpy");
        fs::create_dir_all(package.join("core")).unwrap();
        fs::write(package.join("core/_multiarray.cpython-312-x86_64-linux-gnu.so"), "ELF").unwrap();
        let output = format!(
            "Traceback (most recent call last):\n  File \"{0}/processor.py\", line 1, in <module>\n    import numpy\n  \
             File \"{0}/numpy/__init__.py\", line 3, in <module>\nImportError: no _multiarray",
            folder.path().display()
        );
        let folders = [Path::new("/tmp/scratch"), folder.path()];
        let (name, library) = native_library(&output, &folders).unwrap();
        assert_eq!(name, "numpy");
        assert!(library.ends_with("_multiarray.cpython-312-x86_64-linux-gnu.so"));
        assert!(native_library(&output.replace("ImportError", "KeyError"), &folders).is_none());
        let missing = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'x'";
        assert!(native_library(missing, &folders).is_none());
    }
}
