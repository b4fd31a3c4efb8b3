//! Calls at the wrong time.

use crate::bindings::tidemill::processor::{effects, input, state, timers};
use crate::loops::register_due;
use crate::polite::{VALUE, each_group, each_group_applies, failure, fault, init};
use crate::wire::{EMIT, TIMER_REGISTER, VALUE_PUT, op, text_row};
use crate::{Attack, Failure, Plan, Query};

pub(crate) const ATTACKS: &[Attack] = &[
    Attack { init: |query| in_init(query, apply), ..Attack::polite("ops-init") },
    Attack { init: |query| in_init(query, read), ..Attack::polite("read-init") },
    Attack { init: |query| in_init(query, list), ..Attack::polite("timers-init") },
    Attack { init: |query| in_init(query, next), ..Attack::polite("next-init") },
    Attack { close: apply, ..Attack::polite("ops-close") },
    Attack { close: read, ..Attack::polite("read-close") },
    Attack { close: next, ..Attack::polite("next-close") },
    Attack { input: declare, ..Attack::polite("declare-input") },
    Attack { input: register_due, timer: declare, ..Attack::polite("declare-timer") },
    Attack { close: declare_any, ..Attack::polite("declare-close") },
    Attack { input: drop_variable, ..Attack::polite("drop-input") },
    Attack { input: register_due, timer: drop_variable, ..Attack::polite("drop-timer") },
    Attack { close: || state::delete_if_exists("value").map_err(fault), ..Attack::polite("drop-close") },
    Attack { init: |query| in_init(query, register), ..Attack::polite("register-init") },
    Attack { close: register, ..Attack::polite("register-close") },
    Attack { initial_state: emit, ..Attack::polite("emit-initial-state") },
    // In a query without a time mode.
    Attack { input: register_due, ..Attack::polite("timer-mode-none") },
    Attack { input: beyond_the_end, ..Attack::polite("next-after-end") },
];

fn in_init(query: &Query, misuse: fn() -> Result<(), Failure>) -> Result<Plan, Failure> {
    let plan = init(query)?;
    misuse()?;
    Ok(plan)
}

fn apply() -> Result<(), Failure> {
    effects::apply(&op(VALUE_PUT, VALUE, 0, &text_row(b"x"))).map_err(|fault| failure(&fault.code, &fault.message))
}

fn read() -> Result<(), Failure> {
    state::get_value(VALUE, 0).map(|_| ()).map_err(fault)
}

fn list() -> Result<(), Failure> {
    timers::list_timers(0).map(|_| ()).map_err(fault)
}

fn next() -> Result<(), Failure> {
    input::next();
    Ok(())
}

fn declare() -> Result<(), Failure> {
    each_group(|_| declare_any())
}

/// Every kind; the fault is that of the last, and none may be made.
fn declare_any() -> Result<(), Failure> {
    let made = [
        state::get_value_state("late value", "value STRING", None),
        state::get_list_state("late list", "value STRING", None),
        state::get_map_state("late map", "key STRING", "value STRING", None),
    ];
    match made.iter().find(|made| made.is_ok()) {
        Some(_) => Err(failure("DECLARED", "a variable was made outside of init")),
        None => made.into_iter().try_for_each(|made| made.map(|_| ()).map_err(fault)),
    }
}

fn register() -> Result<(), Failure> {
    effects::apply(&op(TIMER_REGISTER, 0, 0, &0i64.to_le_bytes())).map_err(|fault| failure(&fault.code, &fault.message))
}

fn drop_variable() -> Result<(), Failure> {
    each_group(|_| state::delete_if_exists("value").map_err(fault))
}

fn emit() -> Result<(), Failure> {
    each_group_applies(|group| op(EMIT, 0, group, &text_row(b"x")))
}

/// Legal: the end stays the end.
fn beyond_the_end() -> Result<(), Failure> {
    each_group(|_| Ok(()))?;
    if (0..1000).any(|_| input::next().is_some()) {
        Err(failure("MORE_AFTER_END", "input went on after its end"))
    } else {
        Ok(())
    }
}
