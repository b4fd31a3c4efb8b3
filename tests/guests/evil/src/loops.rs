//! Never returning, in each export.

use crate::polite::each_group_applies;
use crate::wire::{TIMER_REGISTER, op};
use crate::{Attack, Failure};

pub(crate) const ATTACKS: &[Attack] = &[
    Attack { init: |_| spin(), ..Attack::polite("loop-init") },
    Attack { initial_state: spin, ..Attack::polite("loop-initial-state") },
    Attack { input: spin, ..Attack::polite("loop-input") },
    Attack { input: register_due, timer: spin, ..Attack::polite("loop-timer") },
    Attack { close: spin, ..Attack::polite("loop-close") },
];

fn spin<T>() -> Result<T, Failure> {
    let mut turns = 0u64;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}

/// A timer that fires in the same batch.
pub(crate) fn register_due() -> Result<(), Failure> {
    each_group_applies(|group| op(TIMER_REGISTER, 0, group, &0i64.to_le_bytes()))
}
