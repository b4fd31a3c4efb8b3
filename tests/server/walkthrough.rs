//! What the README tells a new user to type, in an empty folder, word for word.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::support::{component, repository};

/// The lines of the page's block below this heading: what is typed, and what is shown.
fn block(heading: &str) -> String {
    let page = fs::read_to_string(repository().join("README.md")).unwrap();
    let section = page.split(&format!("## {heading}\n")).nth(1).unwrap().split("\n## ").next().unwrap();
    section.split("```console\n").nth(1).unwrap().split("```").next().unwrap().to_owned()
}

/// What a shell is given, and what it is to print.
fn typed_and_shown(block: &str) -> (String, String) {
    let (mut typed, mut shown) = (String::new(), String::new());
    for line in block.lines() {
        match line.strip_prefix("$ ").or_else(|| line.strip_prefix("> ")) {
            Some(line) => typed += &format!("{line}\n"),
            None => shown += &format!("{line}\n"),
        }
    }
    (typed, shown)
}

/// Ports that were free a moment ago: those of the page may be taken on the machine of a test.
fn free_ports() -> [String; 2] {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().to_string())
}

#[test]
fn the_page_on_hosting_shows_what_its_commands_print() {
    let place = TempDir::new().unwrap();
    fs::copy(component("counter"), place.path().join("counter.wasm")).unwrap();
    let [api, admin] = free_ports();
    let (typed, shown) = typed_and_shown(&block("Host it for others"));

    let printed = type_in_a_shell(place.path(), &typed, &api, &admin);

    assert_eq!(printed.replace(&api, "127.0.0.1:8080"), shown);
}

fn type_in_a_shell(place: &Path, typed: &str, api: &str, admin: &str) -> String {
    let bin = Path::new(env!("CARGO_BIN_EXE_tidemill")).parent().unwrap().display().to_string();
    let mut shell = Command::new("bash")
        // As a terminal has it: jobs can be named.
        .args(["-m"])
        .current_dir(place)
        .env("PATH", format!("{bin}:{}", std::env::var("PATH").unwrap()))
        .env("XDG_CONFIG_HOME", place.join("config"))
        .env("TIDEMILL_SERVE_LISTEN", api)
        .env("TIDEMILL_SERVE_ADMIN_LISTEN", admin)
        .env("TIDEMILL_SERVER", format!("http://{api}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The last one is ours: nothing may be left behind.
    let script = format!("trap 'kill -9 $(jobs -p) 2> /dev/null' EXIT\n{typed}");
    shell.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = shell.wait_with_output().unwrap();
    let log = fs::read_to_string(place.join("server.log")).unwrap_or_default();
    assert!(output.status.success(), "{}\n{log}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).unwrap()
}
