//! Numbers that name nothing, or something else.

use std::cell::Cell;

use crate::bindings::tidemill::processor::{effects, input, state, timers};
use crate::polite::{LIST, MAP, VALUE, each_group, each_group_applies, failure, fault};
use crate::wire::{CLEAR, MAP_PUT, TIMER_REGISTER, VALUE_PUT, entry, groups_of, op, text_row};
use crate::{Attack, Failure};

pub(crate) const ATTACKS: &[Attack] = &[
    Attack { input: group_unknown, ..Attack::polite("group-unknown") },
    Attack { input: group_unknown_read, ..Attack::polite("group-unknown-read") },
    Attack { input: group_unknown_timer, ..Attack::polite("group-unknown-timer") },
    Attack { input: group_stale, ..Attack::polite("group-stale") },
    Attack { input: variable_unknown, ..Attack::polite("variable-unknown") },
    Attack { input: variable_unknown_read, ..Attack::polite("variable-unknown-read") },
    Attack { input: variable_kind, ..Attack::polite("variable-kind") },
    Attack { input: variable_kind_read, ..Attack::polite("variable-kind-read") },
    Attack { input: timer_with_variable, ..Attack::polite("timer-with-variable") },
];

const NOBODY: u32 = 4_000_000_000;

fn group_unknown() -> Result<(), Failure> {
    each_group_applies(|_| op(VALUE_PUT, VALUE, NOBODY, &text_row(b"x")))
}

fn group_unknown_read() -> Result<(), Failure> {
    each_group(|_| state::get_value(VALUE, NOBODY).map(|_| ()).map_err(fault))
}

fn group_unknown_timer() -> Result<(), Failure> {
    each_group(|_| timers::list_timers(NOBODY).map(|_| ()).map_err(fault))
}

/// A group of a chunk that has ended: needs input of more than one chunk (129 keys).
fn group_stale() -> Result<(), Failure> {
    thread_local!(static FIRST: Cell<Option<u32>> = const { Cell::new(None) });
    while let Some(chunk) = input::next() {
        match FIRST.get() {
            None => FIRST.set(groups_of(&chunk).first().copied()),
            Some(ended) => {
                let ops = op(VALUE_PUT, VALUE, ended, &text_row(b"x"));
                effects::apply(&ops).map_err(|fault| failure(&fault.code, &fault.message))?;
            }
        }
    }
    Ok(())
}

fn variable_unknown() -> Result<(), Failure> {
    each_group_applies(|group| op(CLEAR, NOBODY, group, &[]))
}

fn variable_unknown_read() -> Result<(), Failure> {
    each_group(|group| state::exists(NOBODY, group).map(|_| ()).map_err(fault))
}

fn variable_kind() -> Result<(), Failure> {
    each_group_applies(|group| op(MAP_PUT, LIST, group, &entry(&text_row(b"k"), &text_row(b"v"))))
}

fn variable_kind_read() -> Result<(), Failure> {
    each_group(|group| state::get_value(MAP, group).map(|_| ()).map_err(fault))
}

fn timer_with_variable() -> Result<(), Failure> {
    each_group_applies(|group| op(TIMER_REGISTER, NOBODY, group, &i64::MAX.to_le_bytes()))
}
