//! Rust: the author's cargo for `wasm32-unknown-unknown`, then the encoder.
//!
//! All that is special is which standard library cargo is given when the target is not installed: `scripts/setup.sh` notes
//! that in the cache folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Project;
use super::error::ProjectError;
use super::language::Language;
use super::manifest::{self, Manifest};
use super::programs::Program;
use super::toolbox::{Network, Toolbox};
use crate::runtime::componentize;

/// The target of Rust guests: no operating system, so that a component imports nothing but the host's interfaces.
pub(super) const TARGET: &str = "wasm32-unknown-unknown";
/// What `scripts/setup.sh` writes, within the cache folder: `NAME=value` lines.
const STD_SETTINGS: &str = "wasm-std.env";
/// The profile that components are built with.
pub const PROFILE_DEFAULT: &str = "release";

/// The author's cargo.
pub(super) const CARGO: Program = Program {
    language: Language::Rust,
    names: &["cargo"],
    version_argument: "--version",
    at_least: (1, 85),
    what: "Rust 1.85 or later",
    how: "Install it from https://rustup.rs, then run `rustup target add wasm32-unknown-unknown`.",
};

pub(super) fn manifest(text: &str) -> Result<Manifest, String> {
    let document: toml::Table = text.parse().map_err(|error| format!("{error}"))?;
    let package = manifest::table(&document, "package").ok_or("it has no [package]; give the folder of the crate")?;
    let sdk = manifest::table(&document, "dependencies.tidemill");
    Ok(Manifest {
        // `example-counter` may build a library `counter`, which is what the component is named after.
        name: manifest::text(manifest::table(&document, "lib"), "name")
            .map(|name| name.replace('_', "-"))
            .or_else(|| manifest::text(Some(package), "name"))
            .ok_or("[package] has no name")?,
        sdk: manifest::text(sdk, "path").map(PathBuf::from),
        sdk_version: manifest::text(sdk, "version"),
        ..Manifest::default()
    })
}

pub(super) fn build(project: &Project, profile: &str, tools: &Toolbox) -> Result<Vec<u8>, ProjectError> {
    let cargo = CARGO.find(tools)?;
    let settings = std_settings(tools)?;
    let manifest = project.root.join(Language::Rust.manifest());
    let mut command = Command::new(cargo.path);
    command
        .args(["build", "--quiet", "--lib", "--target", TARGET, "--message-format", "json-render-diagnostics"])
        .args(["--profile", profile, "--manifest-path"])
        .arg(&manifest)
        .envs(settings);
    if tools.network == Network::Offline {
        command.arg("--offline");
    }
    let done = tools.run(&mut command)?;
    if !done.status.success() {
        return Err(ProjectError::Compile { root: project.root.clone(), tool: "cargo", output: done.err });
    }
    // What is left of a build that went well are warnings.
    if !done.err.is_empty() {
        (tools.tell)(done.err.trim_end());
    }
    let module =
        built_module(&done.out, &manifest).ok_or_else(|| ProjectError::NoModule { root: project.root.clone() })?;
    let core = fs::read(&module).map_err(ProjectError::file(&module))?;
    componentize(&core).map_err(|source| ProjectError::Componentize { module, source })
}

/// The module that cargo reports for the crate itself; its dependencies build none.
fn built_module(messages: &str, manifest: &Path) -> Option<PathBuf> {
    #[derive(serde::Deserialize)]
    struct Artifact {
        manifest_path: PathBuf,
        filenames: Vec<PathBuf>,
    }
    let manifest = manifest.canonicalize().ok()?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Artifact>(line).ok())
        .filter(|artifact| artifact.manifest_path.canonicalize().is_ok_and(|path| path == manifest))
        .flat_map(|artifact| artifact.filenames)
        .find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
}

/// Settings for cargo that give it a standard library for the target: none if it is installed.
pub(super) fn std_settings(tools: &Toolbox) -> Result<Vec<(String, String)>, ProjectError> {
    let noted = tools.cache.as_ref().and_then(|cache| fs::read_to_string(cache.join(STD_SETTINGS)).ok());
    let settings: Vec<_> = noted.as_deref().map(parse_settings).unwrap_or_default();
    if settings.is_empty() && !target_is_installed(tools) {
        return Err(ProjectError::NoTarget { target: TARGET });
    }
    Ok(settings)
}

fn parse_settings(text: &str) -> Vec<(String, String)> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn target_is_installed(tools: &Toolbox) -> bool {
    let Ok(rustc) = which::which_in("rustc", Some(&tools.path), "/") else { return false };
    let Ok(done) = tools.run(Command::new(rustc).args(["--print", "target-libdir", "--target", TARGET])) else {
        return false;
    };
    fs::read_dir(done.out.trim_end()).is_ok_and(|mut files| {
        files.any(|file| file.is_ok_and(|file| file.file_name().to_string_lossy().starts_with("libstd-")))
    })
}

/// The manifest of a crate of the repository as it stands without the repository: what it takes from the workspace is
/// written out, and what only its own tests and lints need is left out.
pub(super) fn standalone(text: &str) -> Result<String, String> {
    const WORKSPACE: &str = include_str!("../../../Cargo.toml");
    let parse = |text: &str| text.parse::<toml::Table>().map_err(|error| error.to_string());
    let (workspace, mut manifest) = (parse(WORKSPACE)?, parse(text)?);
    let inherited = manifest::table(&workspace, "workspace.package").ok_or("the workspace has no package settings")?;
    if let Some(package) = manifest.get_mut("package").and_then(toml::Value::as_table_mut) {
        for (name, value) in package.iter_mut() {
            if value.is_table() {
                *value = inherited.get(name).ok_or_else(|| format!("the workspace has no {name}"))?.clone();
            }
        }
    }
    for section in ["lints", "dev-dependencies"] {
        manifest.remove(section);
    }
    toml::to_string(&manifest).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_tells_name_and_sdk() {
        let text = "[package]\nname = \"example-heart\"\n[lib]\nname = \"heart_beat\"\n\
                    [dependencies]\ntidemill = { path = \".tidemill/sdk/rust\", version = \"0.1\" }\n";
        let manifest = manifest(text).unwrap();
        assert_eq!(manifest.name, "heart-beat");
        assert_eq!(manifest.sdk, Some(PathBuf::from(".tidemill/sdk/rust")));
        assert_eq!(manifest.sdk_version.as_deref(), Some("0.1"));
    }

    #[test]
    fn a_manifest_of_a_workspace_is_no_project() {
        assert!(manifest("[workspace]\nmembers = []\n").unwrap_err().contains("[package]"));
        assert!(manifest("[package\n").is_err());
    }

    #[test]
    fn settings_of_the_set_up_are_lines_of_name_and_value() {
        let text = "# written by setup\nRUSTC=/usr/bin/rustc\nCARGO_X_RUSTFLAGS=--sysroot=/a b\n";
        assert_eq!(
            parse_settings(text),
            [
                ("RUSTC".to_owned(), "/usr/bin/rustc".to_owned()),
                ("CARGO_X_RUSTFLAGS".to_owned(), "--sysroot=/a b".to_owned())
            ]
        );
    }

    #[test]
    fn the_module_is_found_among_cargo_messages() {
        let folder = tempfile::tempdir().unwrap();
        let manifest = folder.path().join("Cargo.toml");
        fs::write(&manifest, "").unwrap();
        let messages = format!(
            "{{\"reason\":\"compiler-artifact\",\"manifest_path\":\"/nowhere/Cargo.toml\",\"filenames\":[\"/t/other.wasm\"]}}\n\
             {{\"reason\":\"compiler-artifact\",\"manifest_path\":{manifest:?},\"filenames\":[\"/t/counter.wasm\"]}}\n\
             {{\"reason\":\"build-finished\",\"success\":true}}\n"
        );
        assert_eq!(built_module(&messages, &manifest), Some(PathBuf::from("/t/counter.wasm")));
    }

    #[test]
    fn the_sdk_stands_alone_when_its_manifest_leaves_the_workspace() {
        let alone = standalone(include_str!("../../../guest-sdk/rust/Cargo.toml")).unwrap();
        let table: toml::Table = alone.parse().unwrap();
        let package = manifest::table(&table, "package").unwrap();
        assert!(package.values().all(|value| !value.is_table()), "{alone}");
        assert_eq!(package["version"].as_str(), Some(super::super::sdk::VERSION));
        assert!(!table.contains_key("lints") && table.contains_key("dependencies"));
    }
}
