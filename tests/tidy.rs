//! The shape of the code: which module may use which, how large a file may grow, what may not be left behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What each module of the host may use. A module that is not here may not exist.
const MAY_USE: &[(&str, &[&str])] = &[
    ("clock", &[]),
    ("record", &[]),
    ("disk", &[]),
    ("ipc", &[]),
    ("isolation", &[]),
    ("log", &["disk"]),
    ("state", &["record"]),
    ("engine", &["clock", "record", "disk", "log", "state"]),
    ("runtime", &["record", "state", "engine", "clock", "ipc"]),
    ("connect", &["clock", "record", "disk", "engine"]),
    ("results", &["record", "disk", "engine", "connect"]),
    ("config", &["record", "state", "engine", "runtime", "connect"]),
    ("ingest", &["clock", "record", "disk", "log", "engine", "connect"]),
    ("compiler", &["clock", "record", "disk", "engine", "runtime", "ipc", "isolation"]),
    ("worker", &["clock", "record", "disk", "config", "engine", "runtime", "ingest", "results", "ipc", "isolation"]),
    ("supervisor", &["clock", "disk", "config", "ingest", "ipc", "isolation", "record"]),
    ("fuzzing", &["record", "log", "engine", "runtime", "connect", "ingest", "config", "ipc", "results", "compiler"]),
    ("project", &["engine", "runtime"]),
    ("client", &[]),
    ("testkit", &["clock", "record", "disk", "state", "engine", "runtime", "connect", "config"]),
    (
        "server",
        &[
            "clock",
            "record",
            "disk",
            "config",
            "engine",
            "compiler",
            "ingest",
            "ipc",
            "isolation",
            "results",
            "supervisor",
        ],
    ),
    (
        "cli",
        &[
            "clock",
            "compiler",
            "record",
            "disk",
            "log",
            "state",
            "engine",
            "runtime",
            "connect",
            "config",
            "project",
            "testkit",
            "client",
            "server",
            "isolation",
            "worker",
        ],
    ),
];

/// Crates that only some modules may name.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("wasmtime", &["runtime"]),
    ("wasmparser", &["runtime"]),
    ("rocksdb", &["state/rocks.rs", "state/rocks"]),
    ("parquet", &["connect"]),
    ("clap", &["cli"]),
    ("anyhow", &["cli"]),
    ("tokio", &["cli", "server"]),
    ("axum", &["server"]),
    ("redb", &["server/meta"]),
    ("rustls", &["server/tls.rs", "server/listen.rs"]),
    ("notify", &["cli/dev.rs"]),
    ("ureq", &["client"]),
    ("landlock", &["isolation"]),
    ("seccompiler", &["isolation"]),
];

/// A file longer than this hides something.
const LINES_MAX: usize = 600;

#[test]
fn modules_use_only_what_lies_below_them() {
    let allowed: BTreeMap<_, _> = MAY_USE.iter().copied().collect();
    let mut broken = Vec::new();
    for (path, text) in sources() {
        let Some(module) = module_of(&path) else { continue };
        let Some(may_use) = allowed.get(module.as_str()) else {
            broken.push(format!("{}: module {module} is not in the table", path.display()));
            continue;
        };
        for used in used_modules(&text) {
            if used != module && !may_use.contains(&used.as_str()) {
                broken.push(format!("{}: {module} may not use {used}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn dangerous_crates_are_named_in_one_place_each() {
    let mut broken = Vec::new();
    for (path, text) in sources() {
        let name = path.strip_prefix(source_root()).unwrap().to_string_lossy().into_owned();
        for (krate, places) in ONLY_IN {
            let named = code_lines(&text)
                .any(|line| line.contains(&format!("{krate}::")) || line.contains(&format!("use {krate}")));
            if named && name != "main.rs" && !places.iter().any(|place| name.starts_with(place)) {
                broken.push(format!("{name}: names {krate}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn no_file_hides_a_second_subject() {
    let everywhere = ["host", "tests", "guest-sdk", "examples"].map(|folder| rust_files(&repository().join(folder)));
    let long = everywhere.into_iter().flatten().filter(|(_, text)| text.lines().count() > LINES_MAX);
    let long: Vec<_> = long.map(|(path, text)| format!("{}: {} lines", path.display(), text.lines().count())).collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn every_module_says_what_it_is_for() {
    let silent = sources().into_iter().filter(|(_, text)| !text.starts_with("//!"));
    let silent: Vec<_> = silent.map(|(path, _)| path.display().to_string()).collect();
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

#[test]
fn nothing_is_left_half_done() {
    let marks = ["todo!(", "unimplemented!(", "dbg!(", "TODO", "FIXME"];
    let mut found = Vec::new();
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            if marks.iter().any(|mark| line.contains(mark)) {
                found.push(format!("{}:{}: {}", path.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// How texts begin that look like codes and are none: environment variables and types.
const NO_CODES: [&str; 9] =
    ["CARGO_", "CGO_", "NO_COLOR", "OUT_DIR", "RUST_", "TIDEMILL_", "TIMESTAMP_", "VIRTUAL_ENV", "XDG_"];

#[test]
fn every_error_code_is_documented_and_every_documented_one_exists() {
    let documented: BTreeSet<_> = {
        let text = fs::read_to_string(repository().join("docs/errors.md")).unwrap();
        text.split('`').filter(|text| is_code(text)).map(str::to_owned).collect()
    };
    let mut made = BTreeSet::new();
    for (_, text) in sources() {
        let code = code_lines(&text).collect::<Vec<_>>().join("\n");
        made.extend(code.split('"').filter(|text| is_code(text)).map(str::to_owned));
    }
    let undocumented: Vec<_> = made.difference(&documented).collect();
    let unknown: Vec<_> = documented.difference(&made).collect();
    assert!(undocumented.is_empty() && unknown.is_empty(), "undocumented: {undocumented:?}, unknown: {unknown:?}");
}

fn is_code(text: &str) -> bool {
    let shouted = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_' || c == '.';
    text.contains('_')
        && text.starts_with(|c: char| c.is_ascii_uppercase())
        && !text.ends_with(['_', '.'])
        && text.chars().all(shouted)
        && !NO_CODES.iter().any(|start| text.starts_with(start))
}

#[test]
fn every_example_has_what_an_example_needs() {
    let examples = repository().join("examples");
    for entry in fs::read_dir(&examples).unwrap() {
        let example = entry.unwrap().path();
        if !example.is_dir() {
            continue;
        }
        for part in ["README.md", "query.toml", "input", "expected", "cases"] {
            assert!(example.join(part).exists(), "{} lacks {part}", example.display());
        }
        let projects = ["rust/Cargo.toml", "python/pyproject.toml", "js/package.json", "ts/package.json", "go/go.mod"];
        let has_processor = projects.iter().any(|project| example.join(project).exists());
        assert!(has_processor, "{} has no processor in any language", example.display());
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn source_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every Rust file of the host, with its text.
fn sources() -> Vec<(PathBuf, String)> {
    rust_files(&source_root())
}

fn rust_files(folder: &Path) -> Vec<(PathBuf, String)> {
    let (mut folders, mut files) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                files.push((path, text));
            }
        }
    }
    files.sort();
    files
}

/// The module that a file belongs to; None for `main.rs` and `lib.rs`.
fn module_of(path: &Path) -> Option<String> {
    let first = path.strip_prefix(source_root()).unwrap().components().next()?;
    let name = Path::new(first.as_os_str()).file_stem()?.to_string_lossy().into_owned();
    (name != "main" && name != "lib").then_some(name)
}

/// Modules named as `crate::NAME`, alone or in a group, outside of comments and tests.
fn used_modules(text: &str) -> Vec<String> {
    let code: Vec<_> = code_lines(text).collect();
    let code = code.join("\n");
    let mut used = Vec::new();
    for after in code.split("crate::").skip(1) {
        let group = after.strip_prefix('{').and_then(|group| group.split('}').next());
        let names = match group {
            Some(group) => group.split(',').map(str::trim).collect(),
            None => vec![after],
        };
        for name in names {
            let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            if !name.is_empty() {
                used.push(name);
            }
        }
    }
    used
}

fn code_lines(text: &str) -> impl Iterator<Item = &str> {
    let tests = text.find("#[cfg(test)]").unwrap_or(text.len());
    text[..tests].lines().filter(|line| !line.trim_start().starts_with("//"))
}
