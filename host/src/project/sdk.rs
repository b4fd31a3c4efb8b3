//! The SDKs and the world that this program carries, and the folder of a project that they go to.
//!
//! A project's copy is compared file by file at every build and replaced as a whole when it differs, so that an author who
//! has another version of this program, or has changed a file there, builds against what the version says.

use std::fs;
use std::path::Path;

use super::carried::Files;
use super::error::ProjectError;
use super::language::Language;
use super::lock::lock;
use super::manifest::is_compatible;
use super::toolbox::Toolbox;
use super::{OWN_FOLDER, Project, carried, rust};

/// Version of the SDKs that this program carries; all have the host's.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Puts the SDK and the world into the project, if it keeps them in its own folder and they are not there.
pub(super) fn refresh(project: &Project, tools: &Toolbox) -> Result<(), ProjectError> {
    let manifest = project.root.join(project.language.manifest());
    if let Some(named) = project.manifest.sdk_version.as_deref().filter(|named| !is_compatible(named, VERSION)) {
        return Err(ProjectError::SdkVersion { manifest, named: named.to_owned(), ours: VERSION });
    }
    let Some(sdk) = &project.manifest.sdk else { return Ok(()) };
    let own = project.root.join(OWN_FOLDER);
    if *sdk == own.join("sdk").join(project.language.sdk_folder()) {
        return write(&own, project.language, tools);
    }
    if sdk.is_dir() {
        return Ok(());
    }
    let reason = format!("it names {}, which is no folder", sdk.display());
    Err(ProjectError::SdkMissing { manifest, reason, entry: project.language.sdk_entry() })
}

/// Writes SDK and world into the folder `.tidemill` of a project, where they differ from ours.
pub(super) fn write(own: &Path, language: Language, tools: &Toolbox) -> Result<(), ProjectError> {
    let sdk = own.join("sdk").join(language.sdk_folder());
    let wit = own.join("wit");
    let (sdk_files, wit_files) = (sdk_files(language)?, carried::files("wit"));
    if is_as(&sdk, &sdk_files) && is_as(&wit, &wit_files) {
        return Ok(());
    }
    fs::create_dir_all(own).map_err(ProjectError::file(own))?;
    let _held = lock(&own.join("lock"), tools.stop())?;
    for (folder, files) in [(sdk, sdk_files), (wit, wit_files)] {
        if !is_as(&folder, &files) {
            replace(own, &folder, &files)?;
        }
    }
    Ok(())
}

/// Files of a language's SDK, as a project has them.
fn sdk_files(language: Language) -> Result<Files, ProjectError> {
    let mut files = carried::files(&format!("guest-sdk/{}", language.sdk_folder()));
    if language == Language::Rust {
        for manifest in ["Cargo.toml", "derive/Cargo.toml"] {
            if let Some(bytes) = files.get_mut(Path::new(manifest)) {
                *bytes = rust::standalone(&String::from_utf8_lossy(bytes))
                    .map_err(|reason| ProjectError::Manifest { manifest: manifest.into(), reason })?
                    .into_bytes();
            }
        }
    }
    Ok(files)
}

/// Folders that tools make inside an SDK, and that change nothing.
const OF_TOOLS: [&str; 4] = ["__pycache__", "node_modules", "target", ".mypy_cache"];

/// Whether a folder holds these files and no others.
fn is_as(folder: &Path, files: &Files) -> bool {
    let mut found = 0;
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = fs::read_dir(&next) else { return false };
        for entry in entries {
            let Ok(entry) = entry else { return false };
            let path = entry.path();
            if path.is_dir() {
                if !OF_TOOLS.iter().any(|name| entry.file_name() == *name) {
                    folders.push(path);
                }
                continue;
            }
            let ours = path.strip_prefix(folder).ok().and_then(|name| files.get(name));
            match (ours, fs::read(&path)) {
                (Some(ours), Ok(theirs)) if *ours == theirs => found += 1,
                _ => return false,
            }
        }
    }
    found == files.len()
}

/// Puts a folder in the place of another, so that there is never half of one.
fn replace(own: &Path, folder: &Path, files: &Files) -> Result<(), ProjectError> {
    let fresh = own.join("fresh");
    let old = own.join("old");
    for leftover in [&fresh, &old] {
        remove(leftover)?;
    }
    carried::write_files(&fresh, files)?;
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).map_err(ProjectError::file(parent))?;
    }
    if folder.exists() {
        fs::rename(folder, &old).map_err(ProjectError::file(folder))?;
    }
    fs::rename(&fresh, folder).map_err(ProjectError::file(folder))?;
    remove(&old)
}

fn remove(folder: &Path) -> Result<(), ProjectError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(ProjectError::file(folder)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_rust(own: &Path) {
        write(own, Language::Rust, &Toolbox::for_tests()).unwrap();
    }

    #[test]
    fn what_was_changed_in_the_copy_is_put_right() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join(OWN_FOLDER);
        write_rust(&own);
        let source = own.join("sdk/rust/src/lib.rs");
        let text = fs::read(&source).unwrap();

        fs::write(&source, "changed").unwrap();
        fs::write(own.join("sdk/rust/src/more.rs"), "added").unwrap();
        fs::remove_file(own.join("wit/world.wit")).unwrap();
        write_rust(&own);

        assert_eq!(fs::read(&source).unwrap(), text);
        assert!(!own.join("sdk/rust/src/more.rs").exists());
        assert!(own.join("wit/world.wit").exists());
        assert!(!own.join("fresh").exists() && !own.join("old").exists());
    }

    #[test]
    fn a_copy_that_is_right_is_left_alone_with_what_tools_made_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join(OWN_FOLDER);
        write_rust(&own);
        let made = own.join("sdk/rust/target/debug/x");
        fs::create_dir_all(made.parent().unwrap()).unwrap();
        fs::write(&made, "built").unwrap();

        write_rust(&own);

        assert!(made.exists());
    }
}
