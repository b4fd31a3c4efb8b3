//! What an attacker tries who runs native code in a worker.

use std::fs::{self, File};
use std::io;
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getppid, set_dumpable_behavior, set_parent_process_death_signal, setrlimit,
    test_kill_process,
};
use rustix::thread::UnshareFlags;

use super::super::system;
use super::{Targets, native};

/// One attack.
#[derive(Debug, Clone, Copy)]
pub struct Attack {
    /// Its name, stable.
    pub name: &'static str,
    /// Answers with an error if it was refused.
    attempt: fn(&Targets) -> io::Result<()>,
}

/// All of them.
pub const ATTACKS: &[Attack] = &[
    attack("open-file-of-other-tenant", |targets| read(&targets.other_tenant)),
    attack("open-file-of-other-tenant-by-dots", |_| read(Path::new("../neighbour/secret"))),
    attack("open-file-of-other-tenant-by-link", |targets| read(&targets.link)),
    attack("open-passwords", |_| read(Path::new("/etc/passwd"))),
    attack("open-environment-of-server", |_| read(&of_server("environ")?)),
    attack("open-memory-of-server", |_| read(&of_server("mem")?)),
    attack("list-processes", |_| list("/proc")),
    attack("list-root", |_| list("/home/..")),
    attack("write-outside", |targets| fs::write(&targets.outside, "mine")),
    attack("make-link", |_| symlink("/etc/passwd", "made-link")),
    attack("make-device", |_| native::make_device(c"made-device")),
    attack("connect-tcp", |targets| TcpStream::connect(targets.tcp).map(drop)),
    attack("listen-tcp", |_| TcpListener::bind("127.0.0.1:0").map(drop)),
    attack("connect-unix", |targets| UnixStream::connect(&targets.unix).map(drop)),
    attack("connect-abstract-unix", |targets| {
        UnixStream::connect_addr(&SocketAddr::from_abstract_name(&targets.abstract_unix)?).map(drop)
    }),
    attack("signal-server", |_| Ok(test_kill_process(server()?)?)),
    attack("trace-server", |_| native::trace(server()?)),
    attack("read-memory-of-server", |targets| native::read_memory(server()?, targets.secret_address)),
    attack("execute", |_| Err(Command::new("/bin/true").exec())),
    attack("fork", |_| native::fork()),
    attack("become-root", |_| Ok(rustix::thread::set_thread_uid(rustix::process::Uid::ROOT)?)),
    attack("new-namespace", |_| system::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)),
    attack("raise-limits", |_| raise_limits()),
    attack("outlive-server", |_| Ok(set_parent_process_death_signal(None)?)),
    attack("allow-dumps", |_| Ok(set_dumpable_behavior(DumpableBehavior::Dumpable)?)),
    attack("mount", |_| reached(native::call_in_vain("mount"))),
    attack("bpf", |_| reached(native::call_in_vain("bpf"))),
    attack("io-uring", |_| reached(native::call_in_vain("io_uring_setup"))),
    attack("perf-events", |_| reached(native::call_in_vain("perf_event_open"))),
    attack("user-faults", |_| reached(native::call_in_vain("userfaultfd"))),
    attack("open-by-handle", |_| reached(native::call_in_vain("open_by_handle_at"))),
    attack("kernel-module", |_| reached(native::call_in_vain("init_module"))),
    attack("inherited-descriptor", |_| inherited_descriptor()),
    attack("environment", |_| if std::env::vars_os().next().is_some() { Ok(()) } else { refused("it is empty") }),
    attack("much-memory", |_| Vec::<u8>::new().try_reserve_exact(1 << 30).map_err(io::Error::other)),
    attack("large-file", |_| File::create("large")?.set_len(1 << 30)),
];

const fn attack(name: &'static str, attempt: fn(&Targets) -> io::Result<()>) -> Attack {
    Attack { name, attempt }
}

/// Makes the attack of this name, or the system call.
pub(super) fn attempt(name: &str, targets: &Targets) -> io::Result<()> {
    match ATTACKS.iter().find(|attack| attack.name == name) {
        Some(attack) => (attack.attempt)(targets),
        None => reached(native::call_in_vain(name)),
    }
}

fn refused<T>(why: &str) -> io::Result<T> {
    Err(io::Error::other(why))
}

fn read(path: &Path) -> io::Result<()> {
    File::open(path).map(drop)
}

fn list(path: &str) -> io::Result<()> {
    // The root directory of the child is its own folder, which is no damage.
    if fs::read_dir(path)?.count() > 5 { Ok(()) } else { refused("there is nothing") }
}

fn server() -> io::Result<rustix::process::Pid> {
    getppid().ok_or_else(|| io::Error::other("the server cannot be seen"))
}

fn of_server(file: &str) -> io::Result<std::path::PathBuf> {
    Ok(Path::new("/proc").join(server()?.to_string()).join(file))
}

fn raise_limits() -> io::Result<()> {
    Ok(setrlimit(Resource::Data, Rlimit { current: None, maximum: None })?)
}

/// Whether a call without sense was looked at by the kernel's code for it, which then is there for an attacker to work on.
fn reached(answer: io::Result<()>) -> io::Result<()> {
    let no = [Errno::NOSYS, Errno::PERM, Errno::ACCESS].map(Errno::raw_os_error);
    match answer {
        Err(error) if error.raw_os_error().is_none_or(|code| no.contains(&code)) => Err(error),
        _ => Ok(()),
    }
}

/// Descriptor 3 is the socket again, see `enter`.
fn inherited_descriptor() -> io::Result<()> {
    if (4..64).any(native::is_open) { Ok(()) } else { refused("there is none") }
}
