//! The cases of `tidemill test`, from `cargo test`.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Builds this crate into a component and runs cases against it, a folder of them or a single one, on the engine of
/// `tidemill run`: with TTL, watermarks, restarts and crashes. The command `tidemill` of the path does it, or the one that
/// the variable `TIDEMILL` names.
///
/// ```no_run
/// tidemill::testing::run_cases("cases");
/// ```
///
/// # Panics
/// A case fails, and the panic shows how; the crate does not build; the command is not there.
#[expect(clippy::panic, reason = "this is how a test fails")]
pub fn run_cases(cases: impl AsRef<Path>) {
    let command = std::env::var_os("TIDEMILL").unwrap_or_else(|| "tidemill".into());
    if let Err(report) = run(&command, cases.as_ref()) {
        panic!("{report}");
    }
}

/// Tests of one process may run at the same time.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Runs them; the error is what the command said.
fn run(command: &OsStr, cases: &Path) -> Result<(), String> {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let component = std::env::temp_dir().join(format!("tidemill-cases-{}-{number}.wasm", std::process::id()));
    let done = said(Command::new(command).arg("build").arg(".").arg("--out").arg(&component))
        .and_then(|()| said(Command::new(command).arg("test").arg(cases).arg("--component").arg(&component)));
    drop(std::fs::remove_file(&component));
    done
}

fn said(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| {
        format!("{command:?} cannot be run: {error}; put tidemill on the path, or set TIDEMILL to where it is")
    })?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    use super::*;

    /// A command that says what it was given, and ends with this code when it is to test.
    fn command(name: &str, code: u8) -> PathBuf {
        let path = std::env::temp_dir().join(format!("tidemill-{name}-{}", std::process::id()));
        let script = format!("#!/bin/sh\necho \"$1 $2 $3\"\n[ \"$1\" = build ] || exit {code}\n");
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn cases_that_pass_say_nothing() {
        let command = command("passes", 0);
        let done = run(command.as_os_str(), Path::new("cases"));
        std::fs::remove_file(command).unwrap();
        assert_eq!(done, Ok(()));
    }

    #[test]
    fn a_case_that_fails_is_shown_as_the_command_shows_it() {
        let command = command("fails", 3);
        let done = run(command.as_os_str(), Path::new("cases"));
        std::fs::remove_file(command).unwrap();
        assert_eq!(done, Err("test cases --component\n".to_owned()));
    }

    #[test]
    fn a_command_that_is_not_there_is_told_with_what_to_do() {
        let done = run(OsStr::new("/nowhere/tidemill"), Path::new("cases"));
        assert!(done.unwrap_err().contains("set TIDEMILL"));
    }
}
