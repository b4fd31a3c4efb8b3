//! Makes the table of the files that the program carries for projects: SDKs, world, templates.
//!
//! The SDKs' own tests, and what tools have left in any of these folders, stay out.

#![allow(clippy::print_stdout, reason = "this is how a build script talks to cargo")]

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// What is carried, below the repository.
const CARRIED: [&str; 6] =
    ["guest-sdk/rust", "guest-sdk/python", "guest-sdk/js", "guest-sdk/go", "templates", "wit/world.wit"];

/// Folders that are not.
const LEFT_OUT: [&str; 5] = ["target", "node_modules", "dist", "__pycache__", ".tidemill"];

/// Folders with tests of an SDK.
const TESTS: [&str; 2] = ["tests", "test"];

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
    if is_left_out(place) {
        return Ok(());
    }
    if place.is_file() {
        files.push(place.to_owned());
    } else if place.is_dir() {
        for entry in fs::read_dir(place)? {
            collect(&entry?.path(), files)?;
        }
    }
    Ok(())
}

fn is_left_out(place: &Path) -> bool {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let of_an_sdk = place.components().any(|part| part.as_os_str() == "guest-sdk");
    // `.mypy_cache`, `.venv` and the like
    let of_tools =
        (name.starts_with('.') && (name.ends_with("_cache") || name == ".venv")) || name.ends_with(".egg-info");
    of_tools || LEFT_OUT.contains(&&*name) || (of_an_sdk && (TESTS.contains(&&*name) || name.ends_with("_test.go")))
}
