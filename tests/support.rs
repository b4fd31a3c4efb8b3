//! What the tests share: the built command, the built components, the examples, folders to run in.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use flate2::read::GzDecoder;
use tempfile::TempDir;

/// The repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A component that `scripts/build-guests.sh` made.
pub fn component(name: &str) -> PathBuf {
    let folder =
        std::env::var_os("TIDEMILL_COMPONENTS").map_or_else(|| repository().join("target/components"), PathBuf::from);
    let path = folder.join(format!("{name}.wasm"));
    assert!(path.exists(), "{} is missing: run scripts/build-guests.sh first", path.display());
    path
}

/// The command, with nothing of the caller's environment that it reads but the cache: compiled components and tools there
/// go by what they were made from, and are costly.
pub fn tidemill() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemill"));
    for variable in ["TIDEMILL_LOG", "TIDEMILL_CRASH_AT", "NO_COLOR"] {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null());
    command
}

/// What a command said.
pub struct Said {
    /// Exit code; None: killed by a signal.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> Said {
    let Output { status, stdout, stderr } = command.output().unwrap();
    Said {
        code: status.code(),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8_lossy(&stderr).into_owned(),
    }
}

/// Runs a command that must succeed.
pub fn succeed(command: &mut Command) -> Said {
    let said = run(command);
    assert_eq!(said.code, Some(0), "{command:?}\n{}{}", said.out, said.err);
    said
}

/// Runs a command that must fail with this error code.
pub fn fail_with(command: &mut Command, code: &str) -> Said {
    let said = run(command);
    assert_eq!(said.code, Some(1), "{command:?} should have failed with {code}\n{}{}", said.out, said.err);
    assert!(said.err.contains(&format!("error[{code}]")), "{command:?} should have failed with {code}\n{}", said.err);
    said
}

/// An example, copied to where files have known times. Its components are those of [`component`].
pub struct Example {
    pub name: String,
    folder: TempDir,
}

/// The examples that every recovery test runs.
pub const EXAMPLES: [&str; 7] =
    ["counter", "counter-initial-state", "heartbeat", "sessions", "sessions-per-day", "dedup", "flights"];

impl Example {
    pub fn new(name: &str) -> Self {
        let components = component(name).parent().unwrap().to_str().unwrap().to_owned();
        Self::changed(name, |settings| settings.replace("../../target/components", &components))
    }

    /// An example of one step that runs this component.
    pub fn running(name: &str, component: &Path) -> Self {
        Self::changed(name, |settings| {
            let named = settings.lines().find(|line| line.starts_with("component = ")).unwrap();
            settings.replace(named, &format!("component = {component:?}"))
        })
    }

    fn changed(name: &str, change: impl FnOnce(String) -> String) -> Self {
        let folder = TempDir::new().unwrap();
        copy_with_times(&repository().join("examples").join(name), folder.path());
        let config = folder.path().join("query.toml");
        let settings = fs::read_to_string(&config).unwrap();
        fs::write(&config, change(settings)).unwrap();
        Self { name: name.to_owned(), folder }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The command that runs it, with checkpoint and output in `place`.
    pub fn command<'a>(&self, place: &Path, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = tidemill();
        command
            .arg("run")
            .arg("--config")
            .arg(self.path().join("query.toml"))
            .arg("--checkpoint")
            .arg(place.join("checkpoint"))
            .arg("--sink")
            .arg(place.join("rows"))
            .args(arguments);
        command
    }

    /// The rows that it must give, one JSON document per line; gzipped where they are many.
    pub fn expected(&self) -> String {
        let plain = self.path().join("expected/rows.jsonl");
        if plain.exists() { fs::read_to_string(plain).unwrap() } else { gunzip(&plain.with_extension("jsonl.gz")) }
    }
}

/// The text of a gzipped file.
pub fn gunzip(path: &Path) -> String {
    let mut text = String::new();
    GzDecoder::new(fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    text
}

/// Copies a folder and gives its files times in order of their paths, so that they are read in that order.
pub fn copy_with_times(from: &Path, to: &Path) {
    let mut files = Vec::new();
    copy(from, to, &mut files);
    files.sort();
    for (number, file) in files.iter().enumerate() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + number as u64);
        fs::File::options().write(true).open(file).unwrap().set_modified(at).unwrap();
    }
}

fn copy(from: &Path, to: &Path, files: &mut Vec<PathBuf>) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target, files);
        } else {
            fs::copy(&path, &target).unwrap();
            files.push(target);
        }
    }
}

/// The files of an output folder that consumers see, hidden ones left out. Empty if it does not exist.
pub fn published(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeMap::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let visible = paths.filter(|path| !name(path).starts_with('.'));
    visible.map(|path| (name(&path), fs::read(&path).unwrap())).collect()
}

/// All published rows, in order of the batches.
pub fn rows(folder: &Path) -> String {
    published(folder).into_values().map(|bytes| String::from_utf8(bytes).unwrap()).collect()
}

/// A JSON document per line.
pub fn json_lines(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Writes a program that is a script of a shell.
pub fn write_program(path: &Path, script: &str) {
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Writes a file with a known time.
pub fn write_at(path: &Path, text: impl AsRef<[u8]>, seconds: u64) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    fs::File::options().write(true).open(path).unwrap().set_modified(at).unwrap();
}

fn name(path: &Path) -> String {
    path.file_name().map(OsStr::to_string_lossy).unwrap().into_owned()
}
