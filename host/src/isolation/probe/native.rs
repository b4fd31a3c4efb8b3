//! Attacks that need bare system calls.

#![expect(unsafe_code, reason = "an attacker's code is not safe; each call says why it is sound here")]

use std::ffi::c_long;
use std::io;

use rustix::process::Pid;

use super::super::calls;

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

/// Flag of a new process in `clone`: tell the parent of its end.
const SIGCHLD: usize = 17;
const PTRACE_SEIZE: usize = 0x4206;
const F_GETFD: usize = 1;
const AT_FDCWD: usize = -100_isize as usize;
/// A character device, for everyone: the null device.
const S_IFCHR_666: usize = 0o020_666;
const NULL_DEVICE: usize = 0x103;

/// Makes a call with arguments of which none is valid, to see whether it is there.
pub(super) fn call_in_vain(name: &str) -> io::Result<()> {
    call(name, [usize::MAX; 6]).map(drop)
}

/// Traces a process without stopping it.
pub(super) fn trace(process: Pid) -> io::Result<()> {
    call("ptrace", [PTRACE_SEIZE, process.as_raw_nonzero().get() as usize, 0, 0, 0, 0]).map(drop)
}

/// Reads eight bytes of another process.
pub(super) fn read_memory(process: Pid, address: u64) -> io::Result<()> {
    let mut bytes = [0_u8; 8];
    // Two `struct iovec`: where to, and where from.
    let to = [bytes.as_mut_ptr() as usize, bytes.len()];
    let from = [address as usize, bytes.len()];
    let process = process.as_raw_nonzero().get() as usize;
    call("process_vm_readv", [process, to.as_ptr() as usize, 1, from.as_ptr() as usize, 1, 0])?;
    if bytes == super::ground::SECRET { Ok(()) } else { Err(io::Error::other("these are other bytes")) }
}

/// Makes a process, which ends at once.
pub(super) fn fork() -> io::Result<()> {
    match call("clone", [SIGCHLD, 0, 0, 0, 0, 0])? {
        0 => call("exit_group", [0; 6]).map(drop),
        _ => Ok(()),
    }
}

/// Makes a device file.
pub(super) fn make_device(path: &std::ffi::CStr) -> io::Result<()> {
    call("mknodat", [AT_FDCWD, path.as_ptr() as usize, S_IFCHR_666, NULL_DEVICE, 0, 0]).map(drop)
}

/// Whether a descriptor is open.
pub(super) fn is_open(descriptor: usize) -> bool {
    call("fcntl", [descriptor, F_GETFD, 0, 0, 0, 0]).is_ok()
}

fn call(name: &str, arguments: [usize; 6]) -> io::Result<c_long> {
    let number = calls::number_of(name).ok_or_else(|| io::Error::other(format!("{name} is not here")))?;
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: this process exists to make calls that must fail. Where one does what it is asked to, it writes only to the
    // eight bytes of `read_memory`, which live until it returns; the process that `fork` makes calls nothing but its end.
    let answer = unsafe { syscall(number, a, b, c, d, e, f) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
