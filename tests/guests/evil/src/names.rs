//! State variables with bad names, or too many of them.

use crate::bindings::tidemill::processor::state;
use crate::polite::{fault, plan};
use crate::{Attack, Failure, Plan};

const MIB: usize = 1 << 20;

pub(crate) const ATTACKS: &[Attack] = &[
    Attack { init: |_| named(""), ..Attack::polite("name-empty") },
    Attack { init: |_| named(&"n".repeat(301)), ..Attack::polite("name-long") },
    Attack { init: |_| named(&"n".repeat(10 * MIB)), ..Attack::polite("name-huge") },
    Attack { init: |_| named("$timers"), ..Attack::polite("name-reserved") },
    Attack { init: |_| named("default"), ..Attack::polite("name-default") },
    Attack { init: |_| named(" blank"), ..Attack::polite("name-blank") },
    Attack { init: |_| named("bell\u{7}"), ..Attack::polite("name-control") },
    Attack { init: |_| named("../../escape"), ..Attack::polite("name-path") },
    Attack { init: |_| duplicate(), ..Attack::polite("name-duplicate") },
    Attack { init: |_| declared_and_dropped(), ..Attack::polite("name-dropped") },
    Attack { init: |_| many(), ..Attack::polite("variables-many") },
    Attack { init: |_| drop_many(), ..Attack::polite("drops-many") },
    Attack { init: |_| ttl_longest(), ..Attack::polite("ttl-longest") },
];

fn named(name: &str) -> Result<Plan, Failure> {
    state::get_value_state(name, "value STRING", None).map_err(fault)?;
    Ok(plan())
}

/// Of two kinds.
fn duplicate() -> Result<Plan, Failure> {
    named("same")?;
    state::get_map_state("same", "key STRING", "value STRING", None).map_err(fault)?;
    Ok(plan())
}

fn declared_and_dropped() -> Result<Plan, Failure> {
    state::delete_if_exists("same").map_err(fault)?;
    named("same")
}

fn many() -> Result<Plan, Failure> {
    for n in 0..100_000 {
        named(&format!("variable-{n}"))?;
    }
    Ok(plan())
}

fn drop_many() -> Result<Plan, Failure> {
    for n in 0..1_000_000 {
        state::delete_if_exists(&format!("variable-{n}")).map_err(fault)?;
    }
    Ok(plan())
}

/// A time that no clock reaches; needs time mode processing-time.
fn ttl_longest() -> Result<Plan, Failure> {
    state::get_value_state("value", "value STRING", Some(u64::MAX)).map_err(fault)?;
    state::get_list_state("list", "value STRING", Some(u64::MAX)).map_err(fault)?;
    state::get_map_state("map", "key STRING", "value STRING", Some(u64::MAX)).map_err(fault)?;
    Ok(plan())
}
