//! Traps, in each export, and with the message of a panic in the log.

use crate::bindings::tidemill::processor::logging;
use crate::loops::register_due;
use crate::polite::each_group;
use crate::{Attack, Failure};

pub(crate) const ATTACKS: &[Attack] = &[
    Attack { init: |_| trap(), ..Attack::polite("panic-init") },
    Attack { initial_state: trap, ..Attack::polite("panic-initial-state") },
    Attack { input: in_group, ..Attack::polite("panic-input") },
    Attack { input: register_due, timer: in_group, ..Attack::polite("panic-timer") },
    Attack { close: trap, ..Attack::polite("panic-close") },
    Attack { input: trap, ..Attack::polite("panic-silent") },
];

/// A trap without a word.
fn trap<T>() -> Result<T, Failure> {
    core::arch::wasm32::unreachable()
}

/// As an SDK does it: the log names the group before the trap.
fn in_group() -> Result<(), Failure> {
    each_group(|group| {
        logging::log(logging::Level::Error, &format!("panic in group {group} at evil.rs:1:1: it was me"));
        trap()
    })
}
