//! A new project: the files of a template under the project's name, with the SDK in place.

use std::fs;
use std::path::{Path, PathBuf};

use super::carried::{self, Files};
use super::error::ProjectError;
use super::language::Language;
use super::toolbox::Toolbox;
use super::{OWN_FOLDER, sdk};

/// What stands in the templates where the project's name goes.
const NAME: &str = "my-processor";
/// The longest name: a component's file has it, with an ending.
const NAME_BYTES_MAX: usize = 64;
/// Names that a package of one of the languages cannot have.
const RESERVED: [&str; 14] = [
    "alloc",
    "async",
    "const",
    "core",
    "crate",
    "impl",
    "match",
    "proc-macro",
    "self",
    "std",
    "super",
    "test",
    "tidemill",
    "trait",
];

/// What a project can begin as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Template {
    /// Rust
    Rust,
    /// Python
    Python,
    /// JavaScript
    JavaScript,
    /// TypeScript
    TypeScript,
    /// Go
    Go,
}

impl Template {
    fn folder(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::JavaScript => "js",
            Self::TypeScript => "ts",
            Self::Go => "go",
        }
    }

    fn language(self) -> Language {
        match self {
            Self::Rust => Language::Rust,
            Self::Python => Language::Python,
            Self::JavaScript | Self::TypeScript => Language::JavaScript,
            Self::Go => Language::Go,
        }
    }
}

/// Writes a project, whole or not at all. Its name is the last part of `folder`. Answers with its files, sorted, without
/// the SDK's.
///
/// # Errors
/// A name that a project cannot have, a folder that is there and not empty, a file that cannot be written.
pub fn scaffold(folder: &Path, template: Template, tools: &Toolbox) -> Result<Vec<PathBuf>, ProjectError> {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if !is_a_name(&name) {
        return Err(ProjectError::NameInvalid { name });
    }
    let is_free = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    };
    if !is_free {
        return Err(ProjectError::Exists { path: folder.to_owned() });
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(ProjectError::file(parent))?;
    let files = files(template, &name);
    let fresh = tempfile::tempdir_in(parent).map_err(ProjectError::file(parent))?;
    // What others may do in a new folder is theirs to say; a temporary one is private.
    let project = fresh.path().join(&name);
    carried::write_files(&project, &files)?;
    sdk::write(&project.join(OWN_FOLDER), template.language(), tools)?;
    fs::rename(&project, folder).map_err(ProjectError::file(folder))?;
    Ok(files.into_keys().collect())
}

fn files(template: Template, name: &str) -> Files {
    let folders = ["common", template.folder()].map(|folder| carried::files(&format!("templates/{folder}")));
    let named = |(path, bytes): (PathBuf, Vec<u8>)| {
        let text = String::from_utf8_lossy(&bytes).replace(NAME, name);
        (path, text.into_bytes())
    };
    folders.into_iter().flatten().map(named).collect()
}

fn is_a_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(allowed)
        && name.len() <= NAME_BYTES_MAX
        && !RESERVED.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_some_language_cannot_have_are_refused() {
        for name in ["visits", "my-visits-2", "a"] {
            assert!(is_a_name(name), "{name}");
        }
        let long = "a".repeat(NAME_BYTES_MAX + 1);
        for name in
            ["", "2visits", "Visits", "my_visits", "a b", "visits-", "-a", "..", "tidemill", "match", "zoë", &long]
        {
            assert!(!is_a_name(name), "{name}");
        }
    }

    #[test]
    fn every_template_is_a_whole_project_under_its_name() {
        let all = [Template::Rust, Template::Python, Template::JavaScript, Template::TypeScript, Template::Go];
        for template in all {
            let place = tempfile::tempdir().unwrap();
            let folder = place.path().join("my-visits");
            scaffold(&folder, template, &Toolbox::for_tests()).unwrap();

            let project = super::super::Project::open(&folder, None).unwrap();
            assert_eq!(project.language(), template.language());
            assert!(project.component().ends_with("build/my-visits.wasm"), "{template:?}");
            assert!(project.sdk().unwrap().is_dir(), "{template:?}");
            for file in
                ["README.md", "query.toml", ".gitignore", "cases/a_quiet_user_has_left.toml", ".tidemill/wit/world.wit"]
            {
                let text = fs::read_to_string(folder.join(file)).unwrap();
                assert!(!text.contains(NAME), "{template:?} {file}");
            }
            let written: Vec<_> = fs::read_dir(place.path()).unwrap().collect();
            assert_eq!(written.len(), 1, "nothing else is left: {written:?}");
        }
    }

    #[test]
    fn a_folder_with_something_in_it_is_left_alone() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("visits");
        fs::create_dir(&folder).unwrap();
        scaffold(&folder, Template::Go, &Toolbox::for_tests()).unwrap();

        let error = scaffold(&folder, Template::Rust, &Toolbox::for_tests()).unwrap_err();

        assert_eq!(error.code(), "PROJECT_EXISTS");
        assert!(!folder.join("Cargo.toml").exists());
    }
}
