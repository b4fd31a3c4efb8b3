//! Go: the author's go for `wasip1`, then our own adapter instead of WASI, and the encoder.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::Project;
use super::error::ProjectError;
use super::language::Language;
use super::manifest::Manifest;
use super::programs::Program;
use super::toolbox::{Network, Toolbox};
use crate::runtime::componentize_with_adapter;

/// The SDK's module.
const SDK: &str = "github.com/tidemill/tidemill/guest-sdk/go";
/// What stands in for WASI, within the SDK.
const ADAPTER: &str = "adapter/adapter.wat";

/// The author's go.
pub(super) const GO: Program = Program {
    language: Language::Go,
    names: &["go"],
    version_argument: "version",
    at_least: (1, 24),
    what: "Go 1.24 or later",
    how: "See https://go.dev/doc/install; on Debian or Ubuntu `sudo apt install golang-go` where that is new enough.",
};

pub(super) fn manifest(text: &str) -> Result<Manifest, String> {
    let mut manifest = Manifest::default();
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        let words: Vec<_> = line.split_whitespace().filter(|word| !["require", "replace"].contains(word)).collect();
        match words.as_slice() {
            ["module", path] => {
                manifest.name = path.rsplit('/').next().unwrap_or_default().trim_matches('"').to_owned()
            }
            [SDK, "=>", folder] | [SDK, _, "=>", folder] => manifest.sdk = Some(PathBuf::from(folder)),
            [SDK, version] => manifest.sdk_version = Some((*version).to_owned()),
            _ => {}
        }
    }
    if manifest.name.is_empty() {
        return Err("it names no module".to_owned());
    }
    manifest.sdk = manifest.sdk.map(|folder| folder.strip_prefix("./").map(PathBuf::from).unwrap_or(folder));
    Ok(manifest)
}

pub(super) fn build(project: &Project, tools: &Toolbox) -> Result<Vec<u8>, ProjectError> {
    let go = GO.find(tools)?;
    let scratch = tempfile::tempdir().map_err(ProjectError::file(std::env::temp_dir()))?;
    let module = scratch.path().join("core.wasm");
    let mut command = Command::new(go.path);
    command
        .args(["build", "-trimpath", "-buildmode=c-shared", "-ldflags=-w", "-o"])
        .arg(&module)
        .arg(".")
        .current_dir(&project.root)
        .envs([("GOOS", "wasip1"), ("GOARCH", "wasm"), ("CGO_ENABLED", "0")])
        .envs([("GOFLAGS", "-mod=mod"), ("GOTOOLCHAIN", "local"), ("GOWORK", "off")]);
    if tools.network == Network::Offline {
        command.env("GOPROXY", "off");
    }
    let done = tools.run(&mut command)?;
    if !done.status.success() {
        return Err(ProjectError::Compile { root: project.root.clone(), tool: "go", output: done.said() });
    }
    let adapter = project.sdk()?.join(ADAPTER);
    let text = fs::read(&adapter).map_err(ProjectError::file(&adapter))?;
    let core = fs::read(&module).map_err(ProjectError::file(&module))?;
    componentize_with_adapter(&core, &project.wit()?, &text)
        .map_err(|source| ProjectError::Componentize { module: project.root.clone(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manifest_is_read_in_both_of_its_forms() {
        let lines = "module example.com/visits\n\ngo 1.24\n\n\
            require github.com/tidemill/tidemill/guest-sdk/go v0.1.0 // ours\n\
            replace github.com/tidemill/tidemill/guest-sdk/go => ./.tidemill/sdk/go\n";
        let blocks = "module visits\nrequire (\n\tgithub.com/tidemill/tidemill/guest-sdk/go v0.1.0\n)\n\
            replace (\n\tgithub.com/tidemill/tidemill/guest-sdk/go v0.1.0 => ./.tidemill/sdk/go\n)\n";
        for text in [lines, blocks] {
            let manifest = manifest(text).unwrap();
            assert_eq!(manifest.name, "visits");
            assert_eq!(manifest.sdk, Some(PathBuf::from(".tidemill/sdk/go")));
            assert_eq!(manifest.sdk_version.as_deref(), Some("v0.1.0"));
        }
        assert!(manifest("go 1.24\n").is_err());
    }
}
