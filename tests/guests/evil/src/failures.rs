//! Failures with too much to say, or about groups that do not exist; and the honest ones, to compare with.

use crate::bindings::tidemill::processor::input;
use crate::loops::register_due;
use crate::polite::{each_group, failure};
use crate::{Attack, Failure};

const MIB: usize = 1 << 20;

pub(crate) const ATTACKS: &[Attack] = &[
    Attack { input: || Err(huge()), ..Attack::polite("error-huge") },
    Attack { init: |_| Err(huge()), ..Attack::polite("error-huge-init") },
    Attack { input: unknown_group, ..Attack::polite("error-group-unknown") },
    Attack { input: strange_code, ..Attack::polite("error-code-strange") },
    Attack { init: |_| Err(honest("init")), ..Attack::polite("error-init") },
    Attack { initial_state: || Err(honest("handle-initial-state")), ..Attack::polite("error-initial-state") },
    Attack { input: of_group, ..Attack::polite("error-input") },
    Attack { input: register_due, timer: of_group, ..Attack::polite("error-timer") },
    Attack { close: || Err(honest("close")), ..Attack::polite("error-close") },
    Attack { input: || Ok(()), ..Attack::polite("undrained-all") },
    Attack { input: one_chunk, ..Attack::polite("undrained") },
];

/// Code, message and stack of 10 MiB each.
fn huge() -> Failure {
    let text = "x".repeat(10 * MIB);
    Failure { of: None, code: text.clone(), message: text.clone(), stack: text }
}

fn honest(place: &str) -> Failure {
    failure("USER_CODE", &format!("an error in {place}"))
}

fn of_group() -> Result<(), Failure> {
    each_group(|group| Err(Failure { of: Some(group), ..honest("a handler") }))
}

fn unknown_group() -> Result<(), Failure> {
    Err(Failure { of: Some(u32::MAX), ..honest("a group that does not exist") })
}

/// Escape sequences and line ends, for terminals and logs.
fn strange_code() -> Result<(), Failure> {
    Err(failure("\u{1b}[2J\nOK\u{0}", "\u{1b}]0;owned\u{7}\r\nbatch 7 committed"))
}

fn one_chunk() -> Result<(), Failure> {
    input::next();
    Ok(())
}
