//! What a well-behaved processor does: three variables, one output column, and all input drained.

use crate::bindings::exports::tidemill::processor::handler::{Failure, Plan, Query};
use crate::bindings::tidemill::processor::{effects, input, state};
use crate::wire::groups_of;

/// The variables of every attack, numbered in this order.
pub(crate) const VALUE: u32 = 0;
pub(crate) const LIST: u32 = 1;
pub(crate) const MAP: u32 = 2;

/// Column that is emitted.
pub(crate) const OUTPUT: &str = "result STRING";

pub(crate) fn init(_: &Query) -> Result<Plan, Failure> {
    variables("value STRING")
}

/// The three variables, the value with a schema of the attack's.
pub(crate) fn variables(value: &str) -> Result<Plan, Failure> {
    state::get_value_state("value", value, None).map_err(fault)?;
    state::get_list_state("list", "value STRING", None).map_err(fault)?;
    state::get_map_state("map", "key STRING", "value STRING", None).map_err(fault)?;
    Ok(plan())
}

pub(crate) fn plan() -> Plan {
    Plan { output: OUTPUT.to_owned(), columns: None, initial_state: None, key: None, prefetch: None }
}

pub(crate) fn drain() -> Result<(), Failure> {
    while input::next().is_some() {}
    Ok(())
}

/// Does something for every group, and drains the input.
pub(crate) fn each_group(mut misuse: impl FnMut(u32) -> Result<(), Failure>) -> Result<(), Failure> {
    while let Some(chunk) = input::next() {
        for group in groups_of(&chunk) {
            misuse(group)?;
        }
    }
    Ok(())
}

/// Applies ops for every group. A fault becomes the failure of the call, with its code.
pub(crate) fn each_group_applies(ops: impl Fn(u32) -> Vec<u8>) -> Result<(), Failure> {
    each_group(|group| effects::apply(&ops(group)).map_err(|fault| failure(&fault.code, &fault.message)))
}

pub(crate) fn fault(fault: state::Fault) -> Failure {
    failure(&fault.code, &fault.message)
}

pub(crate) fn failure(code: &str, message: &str) -> Failure {
    Failure { of: None, code: code.to_owned(), message: message.to_owned(), stack: String::new() }
}
