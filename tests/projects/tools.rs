//! What an author is told of tools: missing ones, old ones, those that are installed and what may interrupt that.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use tempfile::TempDir;

use super::{Begun, LANGUAGES, programs};
use crate::support::{Said, fail_with, json_lines, run, succeed, tidemill};

/// What no machine has installed.
const OLD: [(&str, &str); 4] = [
    ("cargo", "echo cargo 1.60.0"),
    ("python3", "echo Python 3.8.1"),
    ("node", "echo v18.19.0"),
    ("go", "echo go version go1.20.1 linux/amd64"),
];

#[test]
fn a_missing_program_is_told_with_how_to_get_it() {
    let empty = TempDir::new().unwrap();
    for (language, _) in LANGUAGES {
        let project = Begun::new(language);
        let mut command = project.command(["build"]);
        let said = fail_with(command.env("PATH", empty.path()).env_remove("CARGO"), "TOOL_MISSING");
        assert!(said.err.contains("https://"), "{language}: {}", said.err);
        if language != "rust" {
            assert!(said.err.contains("apt install"), "{language}: {}", said.err);
        }
    }
}

#[test]
fn a_program_that_is_too_old_is_told_with_its_version() {
    let old = programs(&OLD);
    for ((language, _), version) in LANGUAGES.into_iter().zip(["1.60.0", "3.8.1", "18.19.0", "18.19.0", "1.20.1"]) {
        let project = Begun::new(language);
        let said = fail_with(project.command(["build"]).env("PATH", old.path()), "TOOL_OUTDATED");
        assert!(said.err.contains(version) && said.err.contains("or later"), "{language}: {}", said.err);
    }
}

#[test]
fn offline_a_tool_that_is_not_installed_is_told_with_the_command() {
    let (cache, fake) = (TempDir::new().unwrap(), programs(&NEW));
    for (language, tool) in [("python", "componentize-py==0.25.1"), ("js", "npm ci")] {
        let project = Begun::new(language);
        let mut command = project.command(["build", "--offline"]);
        let said = fail_with(command.env("PATH", fake.path()).env("TIDEMILL_CACHE", cache.path()), "TOOL_OFFLINE");
        assert!(said.err.contains("tidemill build, which runs") && said.err.contains(tool), "{}", said.err);
    }
}

/// Programs that are new enough, and whose package managers have no network.
const NEW: [(&str, &str); 5] = [
    ("cargo", "echo cargo 1.95.0"),
    ("python3", "[ \"$1\" != --version ] || echo Python 3.12.1"),
    ("node", "echo v22.1.0"),
    ("npm", "[ \"$1\" != --version ] || { echo 10.2.0; exit; }; echo 'npm error network' >&2; exit 1"),
    ("go", "echo go version go1.25.1 linux/amd64"),
];

#[test]
fn an_installation_that_fails_is_told_with_the_command_and_its_words() {
    let (cache, fake) = (TempDir::new().unwrap(), programs(&NEW));
    let project = Begun::new("js");
    let mut command = project.command(["build"]);
    let said = fail_with(command.env("PATH", fake.path()).env("TIDEMILL_CACHE", cache.path()), "TOOL_INSTALL_FAILED");
    assert!(said.err.contains("npm ci --ignore-scripts") && said.err.contains("npm error network"), "{}", said.err);
    assert_eq!(installed(cache.path()), Vec::<String>::new());
}

#[test]
fn an_interrupted_installation_leaves_no_process_and_no_half_tool() {
    let cache = TempDir::new().unwrap();
    let pid = cache.path().join("pid");
    let npm = format!(
        "[ \"$1\" != --version ] || {{ echo 10.2.0; exit; }}\nmkdir -p \"$7/node_modules\"\necho $$ >{0}.part\n\
         mv {0}.part {0}\nexec sleep 600",
        pid.display()
    );
    let mut scripts = NEW.to_vec();
    scripts.retain(|(name, _)| *name != "npm");
    scripts.push(("npm", &npm));
    let fake = programs(&scripts);
    let project = Begun::new("js");
    let path = format!("{}:/usr/bin:/bin", fake.path().display());
    let mut build = project
        .command(["build"])
        .env("PATH", path)
        .env("TIDEMILL_CACHE", cache.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !pid.exists() {
        std::thread::yield_now();
    }

    succeed(Command::new("kill").args(["-INT", &build.id().to_string()]));

    assert_eq!(build.wait().unwrap().code(), Some(130));
    let told: Vec<_> = BufReader::new(build.stderr.take().unwrap()).lines().map_while(Result::ok).collect();
    assert!(told.iter().any(|line| line == "Stopping; nothing will be built."), "{told:?}");
    let sleeping = fs::read_to_string(&pid).unwrap();
    assert_eq!(run(Command::new("kill").args(["-0", sleeping.trim()])).code, Some(1), "npm is still there");
    assert_eq!(installed(cache.path()), Vec::<String>::new());
}

/// What stands in the folder of tools, without locks.
fn installed(cache: &Path) -> Vec<String> {
    let names = fs::read_dir(cache.join("tools")).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| !name.ends_with(".lock")).collect()
}

fn doctor(scripts: &[(&str, &str)], arguments: &[&str]) -> Said {
    let (cache, fake) = (TempDir::new().unwrap(), programs(scripts));
    // A standard library for the Rust target, as the set-up notes it.
    fs::write(cache.path().join("wasm-std.env"), "RUSTC=/usr/bin/rustc\n").unwrap();
    let mut command = tidemill();
    command.arg("doctor").args(arguments).env("PATH", fake.path()).env("TIDEMILL_CACHE", cache.path());
    let mut said = run(&mut command);
    said.out = said.out.replace(&fake.path().display().to_string(), "/bin");
    // What follows is about the machine; see `isolation.rs`.
    if let Some((languages, _)) = said.out.split_once("\nwalls around workers: ") {
        said.out.truncate(languages.len());
    }
    said
}

#[test]
fn the_doctor_tells_what_is_there() {
    let said = doctor(&NEW, &[]);

    assert_eq!(said.code, Some(0));
    assert_snapshot!(said.out, @r"
    Rust: can be used
      ok       cargo                   1.95.0  /bin/cargo
      ok       wasm32-unknown-unknown  installed

    Python: can be used
      ok       python                  3.12.1  /bin/python3
      later    componentize-py 0.25.1  the first `tidemill build` installs it

    JavaScript/TypeScript: can be used
      ok       node                                     22.1.0  /bin/node
      ok       npm                                      10.2.0  /bin/npm
      later    componentize-js, esbuild and typescript  the first `tidemill build` installs it

    Go: can be used
      ok       go  1.25.1  /bin/go
    ");
}

#[test]
fn the_doctor_tells_what_is_missing_and_how_to_get_it() {
    let said = doctor(&OLD[..2], &[]);

    assert_eq!(said.code, Some(1));
    assert_snapshot!(said.out, @r"
    Rust: cannot be used
      missing  cargo                   Rust projects need Rust 1.85 or later, and /bin/cargo is version 1.60.0. Install it from https://rustup.rs, then run `rustup target add wasm32-unknown-unknown`.
      ok       wasm32-unknown-unknown  installed

    Python: cannot be used
      missing  python  Python projects need Python 3.10 or later, and /bin/python3 is version 3.8.1. On Debian or Ubuntu: `sudo apt install python3 python3-venv`; elsewhere see https://www.python.org/downloads.

    JavaScript/TypeScript: cannot be used
      missing  node  JavaScript/TypeScript projects need Node.js 20 or later, and there is none on the path. See https://nodejs.org/en/download; on Debian or Ubuntu `sudo apt install nodejs npm` where that is new enough.
      missing  npm   JavaScript/TypeScript projects need npm 8 or later, and there is none on the path. See https://nodejs.org/en/download; on Debian or Ubuntu `sudo apt install nodejs npm` where that is new enough.

    Go: cannot be used
      missing  go  Go projects need Go 1.24 or later, and there is none on the path. See https://go.dev/doc/install; on Debian or Ubuntu `sudo apt install golang-go` where that is new enough.
    ");
}

#[test]
fn the_doctor_answers_for_one_language() {
    let go = doctor(&NEW, &["--lang", "go", "--output", "json"]);
    let python = doctor(&OLD, &["--lang", "python", "--output", "json"]);

    assert_eq!((go.code, python.code), (Some(0), Some(1)));
    let go = json_lines(&go.out).remove(0)["languages"][0].take();
    assert_eq!((&go["language"], &go["usable"]), (&"Go".into(), &true.into()));
    assert_eq!(go["needs"][0]["version"], "1.25.1");
    let python = json_lines(&python.out).remove(0)["languages"][0].take();
    assert_eq!((&python["usable"], &python["needs"][0]["code"]), (&false.into(), &"TOOL_OUTDATED".into()));
}
