//! What a panic says: on `wasm32` a panic is a trap, which carries no words of its own.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::contract::Group;

const NO_GROUP: u64 = u64::MAX;

// A static, since the hook must reach it without the session. Relaxed: a component has one thread.
static GROUP: AtomicU64 = AtomicU64::new(NO_GROUP);

/// Notes the group whose handler runs.
#[inline]
pub(crate) fn set_group(group: Option<Group>) {
    GROUP.store(group.map_or(NO_GROUP, u64::from), Ordering::Relaxed);
}

/// Makes panics log their message, place and group, in the form that `wit/README.md` gives to traps.
#[cfg(target_arch = "wasm32")]
pub(crate) fn install_hook() {
    use crate::contract::Level;

    std::panic::set_hook(Box::new(|info| {
        let group = match GROUP.load(Ordering::Relaxed) {
            NO_GROUP => "no group".to_owned(),
            group => format!("group {group}"),
        };
        let place =
            info.location().map(|at| format!(" at {}:{}:{}", at.file(), at.line(), at.column())).unwrap_or_default();
        let message = info.payload_as_str().unwrap_or("a panic without a message");
        crate::component::log(Level::Error, &format!("panic in {group}{place}: {message}"));
    }));
}
