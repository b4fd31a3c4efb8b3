//! The commands of the documentation do what it says: each block of a console is run, and must print what it shows.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::support::{component, repository, write_at, write_program};

#[test]
fn the_page_on_state_shows_what_its_commands_print() {
    let place = TempDir::new().unwrap();
    fs::copy(component("counter"), place.path().join("counter.wasm")).unwrap();
    for (file, rows) in [
        "{\"key\":\"a\",\"n\":1}\n{\"key\":\"b\",\"n\":7}\n",
        "{\"key\":\"a\",\"n\":2}\n",
        "{\"key\":\"a\",\"n\":1}\n{\"key\":\"c\",\"n\":3}\n",
    ]
    .iter()
    .enumerate()
    {
        write_at(&place.path().join(format!("input/{}.jsonl", file + 1)), rows, 1_000 + file as u64);
    }

    let page = fs::read_to_string(repository().join("docs/state.md")).unwrap();
    let commands = commands(&page);

    assert!(commands.len() > 15);
    for (command, shown) in commands {
        assert_eq!(printed(&command, place.path()), shown, "$ {command}");
    }
}

#[test]
fn the_processor_in_c_on_the_page_for_authors_of_sdks_is_built_and_counts() {
    let place = TempDir::new().unwrap();
    let page = fs::read_to_string(repository().join("docs/sdk-authors.md")).unwrap();
    let program = page.split("```c\n").nth(1).unwrap().split("```").next().unwrap();
    fs::write(place.path().join("counter.c"), program).unwrap();
    provide_wasm_linker(place.path());

    let commands = commands(&page);

    assert!(commands.len() > 4);
    for (command, shown) in commands {
        assert_eq!(printed(&command, place.path()), shown, "$ {command}");
    }
}

/// Puts a `wasm-ld` into the place's own `bin`: the linker inside the Rust toolchain, where there is one.
fn provide_wasm_linker(place: &Path) {
    let said = |args: &[&str]| String::from_utf8(Command::new("rustc").args(args).output().unwrap().stdout).unwrap();
    let versions = said(&["-vV"]);
    let host = versions.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let linker = format!("{}/lib/rustlib/{host}/bin/rust-lld", said(&["--print", "sysroot"]).trim());
    if Path::new(&linker).exists() {
        fs::create_dir(place.join("bin")).unwrap();
        write_program(&place.join("bin/wasm-ld"), &format!("exec '{linker}' -flavor wasm \"$@\""));
    }
}

/// The commands of the blocks of a console, with what is shown below each.
fn commands(page: &str) -> Vec<(String, String)> {
    let mut commands: Vec<(String, String)> = Vec::new();
    for block in page.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            match (line.strip_prefix("$ "), commands.last_mut()) {
                (Some(command), _) => commands.push((command.to_owned(), String::new())),
                (None, Some((_, shown))) => *shown += &format!("{line}\n"),
                (None, None) => panic!("{line} stands before any command"),
            }
        }
    }
    commands
}

/// Standard output, without what differs from place to place and query to query.
fn printed(command: &str, place: &Path) -> String {
    let bin = Path::new(env!("CARGO_BIN_EXE_tidemill")).parent().unwrap().display().to_string();
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("sh")
        .args(["-c", command])
        .current_dir(place)
        .env("PATH", format!("{}:{bin}:{path}", place.join("bin").display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "$ {command}\n{}", String::from_utf8_lossy(&output.stderr));
    let place = fs::canonicalize(place).unwrap().display().to_string();
    let text = String::from_utf8(output.stdout).unwrap().replace(&place, "/data");
    let words = text.split_inclusive([' ', '\n']).map(|word| match word.trim_end_matches([' ', ',', '\n']) {
        id if id.len() == 36 && id.matches('-').count() == 4 => word.replace(id, "<id>"),
        _ => word.to_owned(),
    });
    words.collect()
}
