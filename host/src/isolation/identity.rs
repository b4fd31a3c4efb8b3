//! Who the child is and what it sees around it: namespaces, root directory, user, capabilities. Each needs rights that a server
//! may lack, in a container for example; then it is missing, and the others still stand.

use std::io;
use std::path::Path;

use rustix::process::{Gid, Uid, chdir, chroot, geteuid};
use rustix::system::sethostname;
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, clear_ambient_capability_set, set_capabilities, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

use super::system;

/// Leaves the server's network, System V IPC and host name for empty ones. A server that is not root may do so in a user
/// namespace, where the system lets it.
///
/// # Errors
/// Why not.
pub(super) fn leave_namespaces() -> Result<(), String> {
    let mut flags = UnshareFlags::NEWNET | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    if !geteuid().is_root() {
        flags |= UnshareFlags::NEWUSER;
    }
    system::unshare(flags).map_err(|cause| format!("the system does not let the server make namespaces: {cause}"))?;
    sethostname(b"localhost").map_err(|cause| format!("the name of the host cannot be hidden: {cause}"))
}

/// Makes a folder the working directory, and the root directory.
///
/// # Errors
/// The folder cannot be entered; inside: why it is not the root directory.
pub(super) fn move_to(home: &Path) -> io::Result<Result<(), String>> {
    chdir(home)?;
    Ok(chroot(".").and_then(|()| chdir("/")).map_err(|cause| format!("only root may change it: {cause}")))
}

/// Becomes another user, in the group of the same number and no other.
///
/// # Errors
/// Why not.
pub(super) fn become_user(user: Option<u32>) -> Result<(), String> {
    let user = user.ok_or("the server may not start processes of other users, or knows none for them")?;
    let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(user));
    set_thread_groups(&[])
        .and_then(|()| set_thread_res_gid(gid, gid, gid))
        .and_then(|()| set_thread_res_uid(uid, uid, uid))
        .map_err(|cause| format!("the system does not let the server become user {user}: {cause}"))
}

/// Gives up every capability, also those that root has, and those in a namespace of its own.
pub(super) fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    clear_ambient_capability_set()?;
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}
