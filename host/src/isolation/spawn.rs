//! The server's side: starts this program again as a child within walls.

use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use super::error::IsolationError;
use super::handshake::{self, Answer};
use super::report::Report;
use super::walls::Walls;

/// Longest text in bytes that is kept of a child's standard error.
const LAST_WORDS_MAX: u64 = 8 * 1024;

/// What to start.
#[derive(Debug, Clone)]
pub struct Program {
    /// The subcommand of `tidemill`, which calls [`enter`](super::enter()) first.
    pub subcommand: &'static str,
    /// What the child is called in messages, for example `worker of tenant 4f2a`.
    pub label: String,
    /// The executable; this program itself, unless a test says otherwise.
    pub executable: PathBuf,
}

impl Program {
    /// This program itself.
    #[must_use]
    pub fn new(subcommand: &'static str, label: impl Into<String>) -> Self {
        Self { subcommand, label: label.into(), executable: PathBuf::from("/proc/self/exe") }
    }
}

/// A child whose walls stand. Who drops it without waiting for `child` leaves a zombie until the server ends.
#[derive(Debug)]
pub struct Spawned {
    /// The process, in a process group of its own.
    pub child: Child,
    /// Our end of the only connection that it has, blocking. To be treated as an enemy's from now on.
    pub socket: UnixStream,
    /// Which walls it has.
    pub report: Report,
    /// What it writes on standard error.
    pub last_words: LastWords,
}

/// Starts a child and waits until its walls stand.
///
/// # Errors
/// `CHILD_NOT_STARTED`, `CHILD_DIED_EARLY`, `SANDBOX_FAILED`, `SANDBOX_UNAVAILABLE`.
pub fn spawn(program: &Program, walls: &Walls) -> Result<Spawned, IsolationError> {
    let not_started = |cause| IsolationError::Start { label: program.label.clone(), cause };
    let (socket, theirs) = UnixStream::pair().map_err(not_started)?;
    let mut child = start(program, theirs.into()).map_err(not_started)?;
    let last_words = match LastWords::of(child.stderr.take()) {
        Ok(last_words) => last_words,
        Err(cause) => {
            end(&mut child);
            return Err(not_started(cause));
        }
    };
    let label = program.label.clone();
    let error = match handshake::offer(&socket, walls) {
        Ok(Answer::Entered(report)) => return Ok(Spawned { child, socket, report, last_words }),
        Ok(Answer::Failed { step, cause }) => IsolationError::Step { label, step, cause },
        Ok(Answer::Unavailable { layer, reason }) => IsolationError::Unavailable { label, layer: layer.name(), reason },
        Err(cause) => {
            end(&mut child);
            return Err(IsolationError::Died { label, cause, last_words: last_words.wait() });
        }
    };
    end(&mut child);
    Err(error)
}

/// Kills and reaps a child. It may have ended by itself, so the answer of the kill says nothing.
fn end(child: &mut Child) {
    drop(child.kill());
    drop(child.wait());
}

/// Starts the process on a thread that lives as long as the server does: a child's death signal comes when the *thread* that
/// started it ends, and threads that serve requests come and go.
fn start(program: &Program, stdin: OwnedFd) -> io::Result<Child> {
    static STARTER: OnceLock<Sender<Start>> = OnceLock::new();
    let starter = match STARTER.get() {
        Some(starter) => starter,
        None => {
            let (sender, starts) = channel::<Start>();
            thread::Builder::new().name("child-starter".to_owned()).spawn(move || {
                for Start { mut command, answer } in starts {
                    drop(answer.send(command.spawn()));
                }
            })?;
            STARTER.get_or_init(|| sender)
        }
    };
    let mut command = Command::new(&program.executable);
    command
        .arg(program.subcommand)
        .env_clear()
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let (answer, child) = sync_channel(1);
    let gone = || io::Error::other("the thread that starts children is gone");
    starter.send(Start { command, answer }).map_err(|_| gone())?;
    child.recv().map_err(|_| gone())?
}

struct Start {
    command: Command,
    answer: SyncSender<io::Result<Child>>,
}

/// What a child writes on standard error, mostly the message of a panic: the beginning is kept, the rest is thrown away.
#[derive(Debug)]
pub struct LastWords(JoinHandle<String>);

impl LastWords {
    fn of(stderr: Option<ChildStderr>) -> io::Result<Self> {
        let listen = move || {
            let Some(mut stderr) = stderr else { return String::new() };
            let mut kept = Vec::new();
            drop(stderr.by_ref().take(LAST_WORDS_MAX).read_to_end(&mut kept));
            drop(io::copy(&mut stderr, &mut io::sink()));
            String::from_utf8_lossy(&kept).trim().to_owned()
        };
        thread::Builder::new().name("last-words".to_owned()).spawn(listen).map(Self)
    }

    /// The text, once the child has ended. To be shown to operators only, escaped: the child may have been taken over.
    #[must_use]
    pub fn wait(self) -> String {
        self.0.join().unwrap_or_default()
    }
}
