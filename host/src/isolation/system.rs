//! System calls that no safe crate of ours offers.

#![expect(unsafe_code, reason = "each call says why it is sound")]

use std::ffi::{c_long, c_uint};
use std::io;

use rustix::thread::{UnshareFlags, unshare_unsafe};

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
}

/// Has the same number on every architecture.
const SYS_CLOSE_RANGE: c_long = 436;

/// Closes every descriptor but standard input, output and error.
///
/// To be called first in a process, before anything in it has opened one.
pub(super) fn close_descriptors() -> io::Result<()> {
    let (first, last, flags): (c_uint, c_uint, c_uint) = (3, c_uint::MAX, 0);
    // SAFETY: the call takes three integers by value and touches no memory of ours. Nothing in this process owns a
    // descriptor above 2 yet, as the caller promises; one that was inherited has no owner here.
    result(unsafe { syscall(SYS_CLOSE_RANGE, first, last, flags) })
}

/// Leaves namespaces of the server for new and empty ones.
pub(super) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: unsafe is only `UnshareFlags::FILES` beside other threads; this process has one thread, see `enter`.
    unsafe { unshare_unsafe(flags) }.map_err(io::Error::from)
}

fn result(answer: c_long) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
