//! The server's side: starts a child for each upload, waits for one answer, and sorts out how it ended.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::{Condvar, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::error::CompileError;
use super::limits::CompileLimits;
use super::messages::{Description, InitQuery, Order, Reply, Upload};
use crate::ipc::{self, IpcError, Receiver, Sealed, Sender};
use crate::isolation::{self, LastWords, Program, Report, Spawned, Walls};
use crate::runtime::{COMPONENT_BYTES_MAX, ComponentError, NATIVE_BYTES_MAX};

/// The subcommand of this program that is a compiler.
pub const SUBCOMMAND: &str = "compile";
/// How long a child may take to end once it has answered, or its socket is gone.
const LAST_MOMENT: Duration = Duration::from_secs(5);
/// Longest text of a child that is passed on.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// Descriptors of a child: three it was born with, the component, the native code, and what wasmtime opens in passing.
const OPEN_FILES: u64 = 32;

/// Has uploads compiled, so many at once.
#[derive(Debug)]
pub struct Compiler {
    executable: Option<PathBuf>,
    sandbox: isolation::Sandbox,
    free: Mutex<usize>,
    freed: Condvar,
    target: String,
    walls: Report,
}

/// A processor that can be loaded.
#[derive(Debug)]
pub struct Compiled {
    /// What was found out about it.
    pub description: Description,
    /// Its native code.
    pub native: Sealed,
}

impl Compiler {
    /// Starts a first child to see that this works here, and what it compiles for. At most `at_once` uploads are compiled at
    /// the same time, others wait. `executable` is this program itself, unless a test says otherwise.
    ///
    /// # Errors
    /// Why no child can be started.
    pub fn start(
        sandbox: isolation::Sandbox,
        at_once: usize,
        executable: Option<PathBuf>,
    ) -> Result<Self, CompileError> {
        let (free, freed) = (Mutex::new(at_once.max(1)), Condvar::new());
        let mut compiler = Self { executable, sandbox, free, freed, target: String::new(), walls: Report::default() };
        let limits = CompileLimits { wall: Duration::from_secs(30), cpu_seconds: 10, ..CompileLimits::default() };
        let task = Task { name: "no upload", limits: &limits };
        let (reply, _, walls) = compiler.ask(&task, &Order::Introduce, None)?;
        let Reply::Introduced { target } = reply else { return Err(task.unexpected("another answer than a greeting")) };
        (compiler.target, compiler.walls) = (target, walls);
        Ok(compiler)
    }

    /// What code is compiled for. Code of another target, from before an update for instance, has to be compiled anew.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Which walls a child has.
    pub fn walls(&self) -> &Report {
        &self.walls
    }

    /// Compiles a component and rehearses its `init`, with the settings of a query if one is known. It takes seconds, and waits
    /// while others are compiled. `name` is for errors, `digest` the SHA-256 of the component in hex.
    ///
    /// # Errors
    /// What is wrong with it, which limit it passed, how the child ended; see [`CompileError`].
    pub fn compile(
        &self,
        name: &str,
        digest: &str,
        component: &Sealed,
        query: Option<&InitQuery>,
        limits: &CompileLimits,
    ) -> Result<Compiled, CompileError> {
        let task = Task { name, limits };
        let bytes = component.length().map_err(|source| task.system(source))?;
        if bytes > COMPONENT_BYTES_MAX {
            let too_large = ComponentError::TooLarge { name: name.to_owned(), bytes, bytes_max: COMPONENT_BYTES_MAX };
            return Err(CompileError::Refused { code: too_large.code().to_owned(), message: too_large.to_string() });
        }
        let _turn = self.wait_for_turn();
        let order = Order::Compile(Box::new(Upload {
            name: name.to_owned(),
            bounds: limits.bounds.clone(),
            init_fuel: limits.init_fuel,
            init_memory_bytes: limits.init_memory_bytes,
            query: query.cloned(),
        }));
        let (reply, native, _) = self.ask(&task, &order, Some(component))?;
        match (reply, native) {
            (Reply::Compiled(description), Some(native))
                if description.digest == digest && description.target == self.target =>
            {
                Ok(Compiled { description: *description, native })
            }
            (Reply::Compiled(_), _) => Err(task.unexpected("no native code, or that of another component or target")),
            (Reply::Refused { code, message }, _) => {
                Err(CompileError::Refused { code: clean_code(&code), message: clean(&message) })
            }
            (Reply::OutOfMemory, _) => Err(task.memory()),
            (Reply::Introduced { .. }, _) => Err(task.unexpected("a greeting")),
        }
    }

    fn wait_for_turn(&self) -> Turn<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.freed.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Turn(self)
    }

    /// Starts a child, gives it an order, and waits for its reply; a child that gives none is told by how it ended.
    fn ask(
        &self,
        task: &Task<'_>,
        order: &Order,
        component: Option<&Sealed>,
    ) -> Result<(Reply, Option<Sealed>, Report), CompileError> {
        let limits = isolation::Limits {
            data_bytes: Some(task.limits.memory_bytes),
            cpu_seconds: Some(task.limits.cpu_seconds),
            open_files: Some(OPEN_FILES),
            // Native code is memory, but the kernel takes it for a file.
            file_bytes: Some(NATIVE_BYTES_MAX),
            threads: None,
        };
        let mut program = Program::new(SUBCOMMAND, format!("compiler of {}", task.name));
        if let Some(executable) = &self.executable {
            program.executable.clone_from(executable);
        }
        let Spawned { child, socket, report, last_words } =
            isolation::spawn(&program, &Walls::compiler(limits, self.sandbox))?;
        let mut process = Process(child);
        let (sender, receiver) = ipc::split(socket).map_err(|source| task.system(source))?;
        match task.exchange(&sender, receiver, order, component)? {
            Some((reply, native)) => Ok((reply, native, report)),
            None => Err(task.death(process.end().map_err(|source| task.system(source))?, last_words)),
        }
    }
}

/// The right to compile, given back when it is dropped.
struct Turn<'a>(&'a Compiler);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}

/// A child that does not outlive this value.
struct Process(Child);

impl Process {
    /// How it ended by itself, a moment after its socket has; one that does not is killed.
    fn end(&mut self) -> io::Result<ExitStatus> {
        let pid = Pid::from_child(&self.0);
        if let Ok(ended) = pidfd_open(pid, PidfdFlags::empty()) {
            let moment = Timespec::try_from(LAST_MOMENT).ok();
            // Interrupted or not: what follows waits for sure.
            let _ = poll(&mut [PollFd::new(&ended, PollFlags::IN)], moment.as_ref());
        }
        // It fails for one that has ended.
        drop(self.0.kill());
        self.0.wait()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// What is compiled, for errors.
struct Task<'a> {
    name: &'a str,
    limits: &'a CompileLimits,
}

impl Task<'_> {
    /// Sends the order and waits for the reply; None: the child ended, or closed its socket.
    fn exchange(
        &self,
        sender: &Sender,
        receiver: Receiver,
        order: &Order,
        component: Option<&Sealed>,
    ) -> Result<Option<(Reply, Option<Sealed>)>, CompileError> {
        let order = ipc::encode(order).map_err(|source| self.answer(source))?;
        let component: Vec<_> = component.into_iter().map(AsFd::as_fd).collect();
        let wall = self.limits.wall;
        thread::scope(|scope| {
            // When time is up the socket is shut, whatever the child does: one that trickles gains nothing.
            let (answered, over) = mpsc::channel::<()>();
            let guard = scope.spawn(move || {
                let in_time = over.recv_timeout(wall) != Err(mpsc::RecvTimeoutError::Timeout);
                if !in_time {
                    sender.close();
                }
                in_time
            });
            let outcome = sender.send(&order, &component).and_then(|()| self.reply(receiver));
            drop(answered);
            if !guard.join().unwrap_or(true) {
                return Err(CompileError::WallTime { name: self.name.to_owned(), wall });
            }
            match outcome {
                Ok(reply) => Ok(reply),
                // A child that has ended cannot be sent to, and its last frame may be cut.
                Err(IpcError::Io(_) | IpcError::Truncated) => Ok(None),
                Err(source) => Err(self.answer(source)),
            }
        })
    }

    fn reply(&self, mut receiver: Receiver) -> Result<Option<(Reply, Option<Sealed>)>, IpcError> {
        let Some(frame) = receiver.receive()? else { return Ok(None) };
        let native = frame.descriptors.into_iter().next();
        let native = native.map(|native| Sealed::received(native, NATIVE_BYTES_MAX)).transpose()?;
        Ok(Some((ipc::decode(&frame.bytes)?, native)))
    }

    /// Why there is no answer.
    fn death(&self, status: ExitStatus, last_words: LastWords) -> CompileError {
        const SIGABRT: i32 = 6;
        const SIGXCPU: i32 = 24;
        let last_words = clean(&last_words.wait());
        let name = self.name.to_owned();
        match status.signal() {
            Some(SIGXCPU) => CompileError::CpuTime { name, seconds: self.limits.cpu_seconds },
            // What Rust's standard library says before it gives up for want of memory.
            Some(SIGABRT) if last_words.contains("memory allocation of") => self.memory(),
            _ => CompileError::Crashed { name, how: status.to_string(), last_words },
        }
    }

    fn memory(&self) -> CompileError {
        CompileError::Memory { name: self.name.to_owned(), bytes: self.limits.memory_bytes }
    }

    fn system(&self, source: io::Error) -> CompileError {
        CompileError::System { name: self.name.to_owned(), source }
    }

    fn answer(&self, source: IpcError) -> CompileError {
        CompileError::Answer { name: self.name.to_owned(), source }
    }

    fn unexpected(&self, what: &str) -> CompileError {
        self.answer(IpcError::Malformed(what.to_owned()))
    }
}

/// A code as codes are: the child may have been taken over by what it compiled.
fn clean_code(code: &str) -> String {
    let plain = |character: &char| character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-');
    code.chars().filter(plain).take(200).collect()
}

/// Text of a child, cut, without control characters but line feeds and tabs.
fn clean(text: &str) -> String {
    let text = text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or_default();
    let plain = |character: char| match character {
        '\n' | '\t' => character,
        _ if character.is_control() => '\u{fffd}',
        _ => character,
    };
    text.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::net::UnixStream;

    use super::*;

    /// What comes of a child that does this with its socket once it has its order.
    fn exchange(wall: Duration, child: impl FnOnce(UnixStream) + Send) -> Result<Option<Reply>, CompileError> {
        let limits = CompileLimits { wall, ..CompileLimits::default() };
        let task = Task { name: "upload", limits: &limits };
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (sender, receiver) = ipc::split(ours).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                let (_, mut orders) = ipc::split(theirs.try_clone().unwrap()).unwrap();
                assert!(orders.receive().unwrap().is_some());
                child(theirs);
            });
            let answered = task.exchange(&sender, receiver, &Order::Introduce, None);
            answered.map(|answered| answered.map(|(reply, _)| reply))
        })
    }

    const LONG: Duration = Duration::from_secs(60);

    fn say(socket: &UnixStream, bytes: &[u8], descriptor: Option<OwnedFd>) {
        let (sender, _) = ipc::split(socket.try_clone().unwrap()).unwrap();
        let descriptors: Vec<_> = descriptor.iter().map(AsFd::as_fd).collect();
        sender.send(bytes, &descriptors).unwrap();
    }

    #[test]
    fn a_child_that_trickles_is_stopped_when_its_time_is_up() {
        let answered = exchange(Duration::from_millis(50), |mut socket| {
            // One byte at a time of a frame that never ends, until nobody takes them any more.
            let head = [1_000_000_u32.to_le_bytes(), [0; 4]].concat();
            while head.iter().all(|byte| socket.write_all(&[*byte]).is_ok()) {
                let _ = socket.write_all(&[0]);
            }
        });
        assert_eq!(answered.unwrap_err().code(), "COMPILE_WALL_TIME");
    }

    #[test]
    fn a_child_that_ends_without_an_answer_is_told_by_how_it_ended() {
        assert!(exchange(LONG, drop).unwrap().is_none());
        assert!(exchange(LONG, |mut socket| socket.write_all(&[1, 2, 3]).unwrap()).unwrap().is_none());
    }

    #[test]
    fn an_answer_that_is_none_is_a_breach() {
        let answered = exchange(LONG, |socket| say(&socket, b"\xff\xff", None));
        assert_eq!(answered.unwrap_err().code(), "IPC_PROTOCOL_VIOLATED");
    }

    #[test]
    fn native_code_that_the_child_could_still_change_is_a_breach() {
        let open = OwnedFd::from(tempfile::tempfile().unwrap());
        let reply = ipc::encode(&Reply::OutOfMemory).unwrap();
        let answered = exchange(LONG, |socket| say(&socket, &reply, Some(open)));
        assert_eq!(answered.unwrap_err().code(), "IPC_PROTOCOL_VIOLATED");
    }

    #[test]
    fn what_a_child_says_cannot_pass_for_something_else() {
        assert_eq!(clean_code("GUEST\n_TRAP \u{1b}[2J"), "GUEST_TRAP2J");
        assert_eq!(clean("a\u{1b}[31m\nb"), "a\u{fffd}[31m\nb");
        assert!(clean(&"é".repeat(TEXT_BYTES_MAX)).len() <= TEXT_BYTES_MAX);
    }
}
