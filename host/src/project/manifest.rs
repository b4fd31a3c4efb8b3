//! What a project's manifest says to us: its name, where the SDK is, which version of it is wanted.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::ProjectError;
use super::language::Language;
use super::{go, javascript, python, rust};

/// What a manifest says.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The project's name, fit for a file.
    pub(super) name: String,
    /// Folder of the SDK, absolute. None: it names none.
    pub(super) sdk: Option<PathBuf>,
    /// Version of the SDK that it asks for, if it does.
    pub(super) sdk_version: Option<String>,
    /// The author's module or entry, where the language does not say.
    pub(super) entry: Option<String>,
    /// More folders to import from, absolute.
    pub(super) packages: Vec<PathBuf>,
}

impl Manifest {
    /// Reads the manifest of a folder.
    pub(super) fn read(root: &Path, language: Language) -> Result<Self, ProjectError> {
        let path = root.join(language.manifest());
        let text = fs::read_to_string(&path).map_err(ProjectError::file(&path))?;
        let said = match language {
            Language::Rust => rust::manifest(&text),
            Language::Python => python::manifest(&text),
            Language::JavaScript => javascript::manifest(&text),
            Language::Go => go::manifest(&text),
        };
        let mut manifest = said.map_err(|reason| ProjectError::Manifest { manifest: path.clone(), reason })?;
        if manifest.name.is_empty() || manifest.name.contains(['/', '\\', '\0']) || manifest.name.starts_with('.') {
            let reason = format!("the name {:?} cannot be that of a file", manifest.name);
            return Err(ProjectError::Manifest { manifest: path, reason });
        }
        manifest.sdk = manifest.sdk.map(|folder| root.join(folder));
        manifest.packages = manifest.packages.into_iter().map(|folder| root.join(folder)).collect();
        Ok(manifest)
    }
}

/// The TOML table at a dotted path.
pub(super) fn table<'t>(document: &'t toml::Table, path: &str) -> Option<&'t toml::Table> {
    path.split('.').try_fold(document, |table, name| table.get(name)?.as_table())
}

/// A text in a TOML table.
pub(super) fn text(table: Option<&toml::Table>, name: &str) -> Option<String> {
    table?.get(name)?.as_str().map(str::to_owned)
}

/// Whether the version that a manifest asks for is one that `ours` can stand in for: as cargo has it, equal up to the first
/// number that is not zero.
pub(super) fn is_compatible(asked: &str, ours: &str) -> bool {
    let asked = asked.trim_start_matches(['^', '=', 'v', '~', ' ']);
    // What Go writes for a module that has no version.
    if asked == "0.0.0" {
        return true;
    }
    let mut pairs = asked.split('.').zip(ours.split('.'));
    loop {
        match pairs.next() {
            Some((asked, ours)) if asked != ours => return false,
            Some(("0", _)) => {}
            Some(_) | None => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_may_differ_behind_the_first_number_that_is_not_zero() {
        for (asked, fits) in [
            ("0.1.0", true),
            ("^0.1", true),
            ("v0.1.9", true),
            ("v0.0.0", true),
            ("0.2.0", false),
            ("1.0", false),
            ("0", true),
            ("next", false),
        ] {
            assert_eq!(is_compatible(asked, "0.1.0"), fits, "{asked}");
        }
        assert!(is_compatible("1.2", "1.9.3") && !is_compatible("2", "1.9.3"));
    }

    #[test]
    fn a_name_that_leads_out_of_the_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["../up", "", ".hidden"] {
            fs::write(folder.path().join("pyproject.toml"), format!("[project]\nname = {name:?}\n")).unwrap();
            let error = Manifest::read(folder.path(), Language::Python).unwrap_err();
            assert_eq!(error.code(), "BUILD_MANIFEST_INVALID", "{name}");
        }
    }
}
