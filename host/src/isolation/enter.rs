//! The child's side: closes the walls behind itself, in an order in which no step needs what one before took away.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use rustix::net::sockopt::socket_peercred;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, Signal, getppid, set_dumpable_behavior, set_parent_process_death_signal,
    setrlimit,
};
use rustix::thread::set_no_new_privs;

use super::calls;
use super::files;
use super::handshake::{self, Answer};
use super::identity;
use super::report::{Layer, Report};
use super::system;
use super::walls::{Limits, Sandbox, Walls};

/// Enters the walls that the server gives. To be called first in the child, while it has one thread and nothing open; answers
/// with its end of the socket, for what the two have to say from then on.
///
/// # Errors
/// The server is gone, or knows already why this child must not go on: the child ends.
pub fn enter() -> io::Result<UnixStream> {
    system::close_descriptors()?;
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let walls: Walls = handshake::hear(&socket)?;
    let answer = close(&walls, &socket);
    handshake::say(&socket, &answer)?;
    match answer {
        Answer::Entered(_) => Ok(socket),
        Answer::Failed { .. } | Answer::Unavailable { .. } => Err(io::Error::other("the walls do not stand")),
    }
}

fn close(walls: &Walls, socket: &UnixStream) -> Answer {
    let mut report = Report::default();
    if let Err(Failed { step, cause }) = steps(walls, socket, &mut report) {
        return Answer::Failed { step: step.to_owned(), cause: cause.to_string() };
    }
    let required = report.missing().find(|(layer, _)| walls.sandbox == Sandbox::Require && layer.is_required());
    if let Some((layer, reason)) = required {
        return Answer::Unavailable { layer, reason: reason.to_owned() };
    }
    Answer::Entered(report)
}

/// A step that works on every system that we support.
struct Failed {
    step: &'static str,
    cause: io::Error,
}

fn step<T, E: Into<io::Error>>(step: &'static str, outcome: Result<T, E>) -> Result<T, Failed> {
    outcome.map_err(|cause| Failed { step, cause: cause.into() })
}

fn steps(walls: &Walls, socket: &UnixStream, report: &mut Report) -> Result<(), Failed> {
    step("one thread", has_one_thread())?;
    report.add(Layer::NothingInherited, None);

    step("limits", limit(&walls.limits, walls.user.is_some()))?;
    report.add(Layer::ResourceLimits, None);

    report.add(Layer::Namespaces, identity::leave_namespaces().err());
    if let Some(home) = &walls.home {
        report.add(Layer::RootDirectory, step("home", identity::move_to(home))?.err());
    }
    report.add(Layer::User, identity::become_user(walls.user).err());
    step("capabilities", identity::drop_capabilities())?;
    report.add(Layer::NoCapabilities, None);

    // The kernel forgets both of these when a process becomes another user.
    step("death signal", set_parent_process_death_signal(Some(Signal::KILL)))?;
    step("server is there", server_is_parent(socket))?;
    report.add(Layer::DiesWithServer, None);
    step("no dumps", set_dumpable_behavior(DumpableBehavior::NotDumpable))?;
    report.add(Layer::NoDumps, None);

    step("no new privileges", set_no_new_privs(true))?;
    report.add(Layer::NoNewPrivileges, None);
    files::restrict(walls, report);
    report.add(Layer::Seccomp, calls::restrict(walls.profile).err());
    Ok(())
}

/// Landlock and seccomp hold for the thread that asks for them, and for those that it starts later.
fn has_one_thread() -> io::Result<()> {
    match fs::read_dir("/proc/self/task")?.count() {
        1 => Ok(()),
        threads => Err(io::Error::other(format!("the child has {threads} threads already"))),
    }
}

/// The signal comes only if the server ends after it was asked for: a server that is gone already is no parent any more.
fn server_is_parent(socket: &UnixStream) -> io::Result<()> {
    let server = socket_peercred(socket)?.pid;
    if getppid() == Some(server) { Ok(()) } else { Err(io::Error::other("the server is gone")) }
}

fn limit(limits: &Limits, own_user: bool) -> io::Result<()> {
    let asked = [
        (Resource::Core, Some(0)),
        (Resource::Data, limits.data_bytes),
        (Resource::Cpu, limits.cpu_seconds),
        (Resource::Nofile, limits.open_files),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nproc, limits.threads.filter(|_| own_user)),
    ];
    for (resource, limit) in asked {
        if limit.is_some() {
            // A second more of CPU time before the kernel kills: the signal before that says why.
            let maximum = limit.map(|limit| limit.saturating_add(u64::from(resource == Resource::Cpu)));
            setrlimit(resource, Rlimit { current: limit, maximum })?;
        }
    }
    Ok(())
}
