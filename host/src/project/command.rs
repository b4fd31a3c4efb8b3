//! Runs other people's programs: quietly, and so that none outlives an interrupt.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::error::ProjectError;
pub use crate::engine::trigger::Stop;

/// How often a running program is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// How long a program that was asked to end may take before it is ended: npm and pip tidy up.
const GRACE_LOOKS: u32 = 150;
/// What is kept of a program's words: its last ones, which tell why it failed.
const SAID_BYTES_MAX: u64 = 256 << 10;

/// How a program ended.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) status: ExitStatus,
    pub(super) out: String,
    pub(super) err: String,
}

impl Done {
    /// All that it said, for people.
    pub(super) fn said(&self) -> String {
        [&self.err, &self.out]
            .map(|text| text.trim_end())
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// Runs a program to its end.
///
/// Its words go to files: they are read once it is gone, so nothing waits for a pipe that a grandchild holds open. It has a
/// process group of its own, so that a terminal's Ctrl-C reaches us alone and all of its children can be ended together.
///
/// # Errors
/// It cannot be run; someone asked to stop.
pub(super) fn run(command: &mut Command, stop: &Stop) -> Result<Done, ProjectError> {
    let program = Path::new(command.get_program()).to_owned();
    let failed = |source| ProjectError::ToolFailed { program: program.clone(), source };
    let (mut out, mut err) = (tempfile::tempfile().map_err(failed)?, tempfile::tempfile().map_err(failed)?);
    command
        .stdin(Stdio::null())
        .stdout(out.try_clone().map_err(failed)?)
        .stderr(err.try_clone().map_err(failed)?)
        .process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if stop.wait(LOOK_INTERVAL) {
            end(&mut child);
            return Err(ProjectError::Interrupted);
        }
    };
    Ok(Done { status, out: read(&mut out).map_err(failed)?, err: read(&mut err).map_err(failed)? })
}

/// Ends a program with all of its children: politely, then by force.
fn end(child: &mut Child) {
    let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else { return };
    let _gone = kill_process_group(group, Signal::TERM);
    for _ in 0..GRACE_LOOKS {
        if !matches!(child.try_wait(), Ok(None)) {
            break;
        }
        std::thread::sleep(LOOK_INTERVAL);
    }
    // Its children may live on without it.
    let _gone = kill_process_group(group, Signal::KILL);
    drop(child.wait());
}

fn read(file: &mut File) -> std::io::Result<String> {
    let length = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(length.saturating_sub(SAID_BYTES_MAX)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The command as an author would type it.
pub(super) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "-_./=:@+,%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_a_program_says_is_kept_apart_and_told_together() {
        let done = run(&mut shell("echo out; echo err >&2; exit 3"), &Stop::default()).unwrap();
        assert_eq!((done.status.code(), done.out.as_str(), done.err.as_str()), (Some(3), "out\n", "err\n"));
        assert_eq!(done.said(), "err\nout");
    }

    #[test]
    fn an_interrupt_ends_the_children_of_a_program_too() {
        let folder = tempfile::tempdir().unwrap();
        let pids = folder.path().join("pids");
        let stop = Stop::default();
        let asks = stop.clone();
        let (file, watched) = (pids.display().to_string(), pids.clone());
        let asking = std::thread::spawn(move || {
            while std::fs::read_to_string(&watched).map_or(0, |text| text.lines().count()) < 2 {
                std::thread::yield_now();
            }
            asks.request();
        });

        let error = run(
            &mut shell(&format!("trap '' TERM; sleep 600 & echo $! >> {file}; echo $$ >> {file}; wait; wait")),
            &stop,
        );

        asking.join().unwrap();
        assert_eq!(error.unwrap_err().code(), "BUILD_INTERRUPTED");
        for pid in std::fs::read_to_string(&pids).unwrap().lines() {
            assert!((0..1_000_000).any(|_| is_gone(pid)), "{pid} is still there");
        }
    }

    /// A process that was ended is one that its parent has not looked at yet, and then none.
    fn is_gone(pid: &str) -> bool {
        std::thread::yield_now();
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        status
            .rsplit(')')
            .next()
            .is_none_or(|rest| rest.trim_start().is_empty() || rest.trim_start().starts_with(['Z', 'X']))
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = run(&mut Command::new("/nowhere/tool"), &Stop::default()).unwrap_err();
        assert_eq!(error.code(), "TOOL_FAILED");
        assert!(error.to_string().contains("/nowhere/tool"));
    }

    #[test]
    fn a_command_is_shown_so_that_it_can_be_pasted() {
        let mut command = Command::new("npm");
        command.args(["ci", "--a=b", "it's", "a b"]);
        assert_eq!(shown(&command), r"npm ci --a=b 'it'\''s' 'a b'");
    }
}
