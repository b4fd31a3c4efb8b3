//! JavaScript and TypeScript: the type checker where the project has settings for one, then the SDK's own build, which
//! bundles the project and calls componentize-js.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::carried::Files;
use super::error::ProjectError;
use super::language::Language;
use super::manifest::Manifest;
use super::programs::{Found, Program};
use super::toolbox::{Installed, Toolbox};
use super::{OWN_FOLDER, Project};

/// What the pinned tools are, within the SDK: a package and its lock.
const TOOLS: [&str; 2] = ["package.json", "package-lock.json"];
/// Bundles a project with the SDK and makes a component of it, within the SDK.
const BUILD: &str = "build/build.mjs";

const HOW: &str =
    "See https://nodejs.org/en/download; on Debian or Ubuntu `sudo apt install nodejs npm` where that is new enough.";

/// The author's Node.js.
pub(super) const NODE: Program = Program {
    language: Language::JavaScript,
    names: &["node"],
    version_argument: "--version",
    at_least: (20, 0),
    what: "Node.js 20 or later",
    how: HOW,
};

/// The author's npm, which fetches the other tools.
pub(super) const NPM: Program = Program {
    language: Language::JavaScript,
    names: &["npm"],
    version_argument: "--version",
    at_least: (8, 0),
    what: "npm 8 or later",
    how: HOW,
};

pub(super) fn manifest(text: &str) -> Result<Manifest, String> {
    let document: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let name = text("/name").ok_or("it has no name")?;
    Ok(Manifest {
        // `@scope/visits`
        name: name.rsplit('/').next().unwrap_or_default().to_owned(),
        sdk: text("/dependencies/tidemill").and_then(|place| Some(PathBuf::from(place.strip_prefix("file:")?))),
        sdk_version: text("/tidemill/version"),
        entry: Some(
            text("/tidemill/entry")
                .ok_or("it does not say where the processor is: \"tidemill\": { \"entry\": \"src/processor.js\" }")?,
        ),
        ..Manifest::default()
    })
}

pub(super) fn build(project: &Project, tools: &Toolbox) -> Result<Vec<u8>, ProjectError> {
    let node = NODE.find(tools)?;
    let sdk = project.sdk()?;
    let installed = tools.installed(&pinned_tools(pinned_by(sdk)?, &NPM.find(tools)?))?;
    link_tools(project, sdk, &installed)?;
    if project.root.join("tsconfig.json").is_file() {
        let mut tsc = Command::new(installed.join("node_modules/.bin/tsc"));
        run(project, tools, "tsc", tsc.args(["--noEmit", "--pretty", "false", "-p", "."]).current_dir(&project.root))?;
    }
    let scratch = tempfile::tempdir().map_err(ProjectError::file(std::env::temp_dir()))?;
    let out = scratch.path().join("out.wasm");
    let mut componentize = Command::new(node.path);
    componentize.arg(sdk.join(BUILD)).arg(&project.root).arg("--wit").arg(project.wit()?).arg("--out").arg(&out);
    componentize.arg("--tools").arg(installed).current_dir(&project.root);
    run(project, tools, "componentize-js", &mut componentize)?;
    fs::read(&out).map_err(ProjectError::file(out))
}

/// Lets the SDK in the project find the tools by itself: its `build/test.mjs` runs the author's tests with them.
fn link_tools(project: &Project, sdk: &Path, installed: &Path) -> Result<(), ProjectError> {
    let (link, target) = (sdk.join("tools/node_modules"), installed.join("node_modules"));
    if !sdk.starts_with(project.root.join(OWN_FOLDER)) || fs::read_link(&link).is_ok_and(|place| place == target) {
        return Ok(());
    }
    drop(fs::remove_file(&link));
    match symlink(target, &link) {
        // Another build was faster, or the author has installed the tools there.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        linked => linked.map_err(ProjectError::file(link)),
    }
}

fn run(project: &Project, tools: &Toolbox, tool: &'static str, command: &mut Command) -> Result<(), ProjectError> {
    let done = tools.run(command)?;
    if done.status.success() {
        return Ok(());
    }
    Err(ProjectError::Compile { root: project.root.clone(), tool, output: done.said() })
}

/// The tools that a package and its lock pin. Their folder is named after what is pinned.
pub(super) fn pinned_tools(files: Files, npm: &Found) -> Installed {
    let digest = files.values().fold(Sha256::new(), |digest, bytes| digest.chain_update(bytes)).finalize();
    let digest = format!("{digest:x}");
    let npm = npm.path.clone();
    Installed {
        what: "componentize-js, esbuild and typescript".to_owned(),
        folder: format!("js-{}", digest.get(..12).unwrap_or(&digest)),
        proof: "node_modules/.bin/esbuild",
        files,
        install: Box::new(move |place| vec![install(&npm, place)]),
    }
}

fn pinned_by(sdk: &Path) -> Result<Files, ProjectError> {
    let pinned = TOOLS.map(|name| {
        let path = sdk.join("tools").join(name);
        let bytes = fs::read(&path).map_err(ProjectError::file(&path))?;
        Ok((PathBuf::from(name), bytes))
    });
    pinned.into_iter().collect()
}

/// Nothing that packages bring along is run, and nothing is told to a registry.
fn install(npm: &Path, place: &Path) -> Command {
    let mut command = Command::new(npm);
    command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--prefix"]).arg(place);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_tells_entry_and_sdk() {
        let text = r#"{"name":"@shop/visits","tidemill":{"entry":"src/processor.ts","version":"0.1.0"},
            "dependencies":{"tidemill":"file:.tidemill/sdk/js"}}"#;
        let manifest = manifest(text).unwrap();
        assert_eq!(manifest.name, "visits");
        assert_eq!(manifest.entry.as_deref(), Some("src/processor.ts"));
        assert_eq!(manifest.sdk, Some(PathBuf::from(".tidemill/sdk/js")));
        assert_eq!(manifest.sdk_version.as_deref(), Some("0.1.0"));
    }

    #[test]
    fn a_package_that_is_no_processor_is_told_what_is_missing() {
        assert!(manifest(r#"{"name":"shop"}"#).unwrap_err().contains("\"entry\""));
        assert!(manifest("{").is_err());
    }
}
