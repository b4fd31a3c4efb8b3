//! Makes the table of the files that the program carries for projects: SDKs, world, templates.
//!
//! Tests, and what tools have left there, stay out.

#![allow(clippy::print_stdout, reason = "this is how a build script talks to cargo")]

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// What is carried, below the repository.
const CARRIED: [&str; 6] =
    ["guest-sdk/rust", "guest-sdk/python", "guest-sdk/js", "guest-sdk/go", "templates", "wit/world.wit"];

/// Folders that are not.
const LEFT_OUT: [&str; 8] = ["tests", "test", "target", "node_modules", "dist", "venv", "__pycache__", ".tidemill"];

fn main() -> Result<(), Box<dyn Error>> {
    let host = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").ok_or("no CARGO_MANIFEST_DIR")?);
    let repository = host.parent().ok_or("the host has no repository")?;
    let mut files = Vec::new();
    for place in CARRIED {
        let place = repository.join(place);
        println!("cargo::rerun-if-changed={}", place.display());
        collect(&place, &mut files)?;
    }
    files.sort();
    let mut table = String::from("&[\n");
    for file in &files {
        writeln!(table, "    ({:?}, include_bytes!({file:?})),", file.strip_prefix(repository)?)?;
    }
    table.push_str("]\n");
    let out = env::var_os("OUT_DIR").ok_or("no OUT_DIR")?;
    fs::write(Path::new(&out).join("carried.rs"), table)?;
    Ok(())
}

fn collect(place: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    if place.is_file() {
        if !place.to_string_lossy().ends_with("_test.go") {
            files.push(place.to_owned());
        }
    } else if place.is_dir() && !LEFT_OUT.iter().any(|name| place.ends_with(name)) && !is_cache(place) {
        for entry in fs::read_dir(place)? {
            collect(&entry?.path(), files)?;
        }
    }
    Ok(())
}

/// `.mypy_cache`, `.pytest_cache`, `.venv` and the like.
fn is_cache(folder: &Path) -> bool {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    (name.starts_with('.') && (name.ends_with("_cache") || name == ".venv")) || name.ends_with(".egg-info")
}
