//! Why a call of the guest, or a host function that it called, did not succeed; and the report of it.
//!
//! Inside a host function there are three ways out ([`Refusal`]): a fault goes back to the author's code, a breach of the
//! contract or of a limit traps, a failure of the host ends the batch. Outside, [`report`] turns what a call ended with
//! into an [`OperatorError`], and keeps those kinds apart.

use std::collections::BTreeMap;
use std::error::Error;
use std::{fmt, io};

use wasmtime::{Trap, WasmBacktrace};

use super::host::Host;
use super::limits::Limits;
use crate::engine::operator::{AtKey, OperatorError, Suspect};
use crate::engine::output::OutputError;
use crate::record::{EncodeError, RowFault, SchemaError};
use crate::state::StateError;

/// Why a host function does not do what it was asked.
#[derive(Debug)]
pub(super) enum Refusal {
    /// A misuse that the author's code may catch.
    Fault(Fault),
    /// A breach of the contract, or a limit: the instance is lost.
    Trap(Violation),
    /// The host failed; no fault of the guest.
    Host(Box<dyn Error + Send + Sync>),
}

/// What an author did wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Stable code.
    pub(super) code: &'static str,
    /// What happened and what to do.
    pub(super) message: String,
}

/// What traps.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Violation {
    /// Stable code.
    pub(super) code: &'static str,
    /// What happened.
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn fault(code: &'static str, message: impl Into<String>) -> Self {
        Self::Fault(Fault { code, message: message.into() })
    }

    /// A breach that only an SDK can commit.
    pub(super) fn violation(message: impl Into<String>) -> Self {
        Self::trap("CONTRACT_VIOLATION", message)
    }

    pub(super) fn trap(code: &'static str, message: impl Into<String>) -> Self {
        Self::Trap(Violation { code, message: message.into() })
    }

    /// A call in a phase where it has no meaning.
    pub(super) fn wrong_phase(operation: &str, phase: &str) -> Self {
        Self::fault(
            "STATEFUL_PROCESSOR_CANNOT_PERFORM_OPERATION_WITH_INVALID_HANDLE_STATE",
            format!("{operation} is not possible in {phase}"),
        )
    }

    /// The answer to the guest: the fault, or the error that makes wasmtime trap.
    pub(super) fn into_fault(self) -> Result<Fault, wasmtime::Error> {
        match self {
            Self::Fault(fault) => Ok(fault),
            Self::Trap(violation) => Err(wasmtime::Error::new(violation)),
            Self::Host(source) => Err(wasmtime::Error::new(HostFailure(source))),
        }
    }

    /// The error that makes wasmtime trap, for functions that have no way to answer a fault.
    pub(super) fn into_trap(self) -> wasmtime::Error {
        match self.into_fault() {
            Ok(Fault { code, message }) => wasmtime::Error::new(Violation { code, message }),
            Err(error) => error,
        }
    }
}

impl From<StateError> for Refusal {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Limit { .. } => Self::trap("STATE_LIMIT_EXCEEDED", error.to_string()),
            _ => Self::Host(Box::new(error)),
        }
    }
}

impl From<OutputError> for Refusal {
    fn from(error: OutputError) -> Self {
        match error {
            OutputError::Limit { .. } => Self::trap(error.code(), error.to_string()),
            OutputError::OlderThanWatermark { .. } => Self::fault(error.code(), error.to_string()),
            OutputError::Spill { .. } => Self::Host(Box::new(error)),
        }
    }
}

impl From<SchemaError> for Refusal {
    fn from(error: SchemaError) -> Self {
        Self::fault(error.code(), error.to_string())
    }
}

impl From<EncodeError> for Refusal {
    fn from(error: EncodeError) -> Self {
        Self::Host(Box::new(error))
    }
}

impl Refusal {
    /// A row from the guest that does not fit its schema.
    pub(super) fn bad_row(fault: &RowFault, of: &dyn fmt::Display) -> Self {
        Self::fault(fault.code(), format!("{of}: {fault}"))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Violation {}

/// A failure of the host on its way through the guest.
#[derive(Debug)]
struct HostFailure(Box<dyn Error + Send + Sync>);

impl fmt::Display for HostFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for HostFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.0.as_ref())
    }
}

/// Longest message of a guest that is passed on; a page of text.
const MESSAGE_BYTES_MAX: usize = 10 << 10;
/// Longest stack of a guest that is passed on; some hundred frames.
const STACK_BYTES_MAX: usize = 32 << 10;
/// Longest code of a guest that is passed on. Codes are short words.
const CODE_CHARACTERS_MAX: usize = 200;
/// Longest key in a report.
const KEY_BYTES_MAX: usize = 1 << 10;
/// Wasm frames in a report.
const FRAMES_MAX: usize = 30;
/// Longest name of a function in a report; generic ones grow long.
const FRAME_BYTES_MAX: usize = 300;
/// So often must a function be among the frames that wasmtime keeps (20) for a recursion to be the likely cause.
const RECURSIONS_MIN: usize = 8;

const TOO_DEEP: &str = "its calls nest too deep; look for a recursion without end";

/// The report of an answer with which an export gave up.
pub(super) fn guest_failure(export: &'static str, code: &str, message: &str, stack: &str, at: AtKey) -> OperatorError {
    OperatorError::Guest {
        export,
        guest_code: clean_code(code),
        message: clean(message, MESSAGE_BYTES_MAX),
        stack: clean(stack, STACK_BYTES_MAX),
        at,
    }
}

/// At which key the guest failed: the one that it named, else one of those that it had in hand.
pub(super) fn at_key(named: Option<Suspect>, host: &Host) -> AtKey {
    let mut suspects = named.map_or_else(|| host.keys_in_hand(), |named| vec![named]);
    suspects.iter_mut().for_each(|suspect| suspect.shown = cut(&suspect.shown, KEY_BYTES_MAX));
    match suspects.as_slice() {
        [] => AtKey::NoKey,
        [only] => AtKey::Key(Box::new(only.clone())),
        _ => AtKey::OneOf(suspects.into()),
    }
}

/// The report of a call that did not return.
pub(super) fn report(error: wasmtime::Error, export: &'static str, host: &Host, limits: &Limits) -> OperatorError {
    let error = match error.downcast::<HostFailure>() {
        Ok(HostFailure(source)) => return OperatorError::Host(source),
        Err(error) => error,
    };
    if let Some(lacking) = host.limiter.machine_lacks() {
        return out_of_memory(lacking);
    }
    let (code, message) = classify(&error, host, limits);
    let backtrace = error.downcast_ref::<WasmBacktrace>().map(frames).unwrap_or_default();
    trap(export, code, message, backtrace, host)
}

/// The machine, or what it gives this process, has no memory for the guest: no fault of the guest's.
pub(super) fn out_of_memory(lacking: &str) -> OperatorError {
    OperatorError::Host(io::Error::new(io::ErrorKind::OutOfMemory, lacking).into())
}

/// A trap, with what the host knows of the guest: its last words and the keys it had in hand.
pub(super) fn trap(
    export: &'static str,
    code: &'static str,
    message: String,
    backtrace: String,
    host: &Host,
) -> OperatorError {
    let mut log_tail = host.log.tail();
    host.log.finish();
    let at = at_key(name_key(&mut log_tail, host), host);
    OperatorError::Trap { code, export, message, log_tail, backtrace: backtrace.into(), at }
}

/// How the last words of an SDK begin when the author's code panics; the number of the group follows.
const PANIC: &str = "panic in group ";

/// Puts the grouping key in place of the group's number in an SDK's last words, and answers it.
fn name_key(log_tail: &mut [String], host: &Host) -> Option<Suspect> {
    let line = log_tail.iter_mut().rev().find(|line| line.starts_with(PANIC))?;
    let after = line.strip_prefix(PANIC)?;
    let end = after.find(|character: char| !character.is_ascii_digit()).unwrap_or(after.len());
    let (group, rest) = after.split_at(end);
    let key = host.key_of(group.parse().ok()?)?;
    *line = format!("panic in the group of key {}{rest}", cut(&key.shown, KEY_BYTES_MAX));
    Some(key)
}

fn classify(error: &wasmtime::Error, host: &Host, limits: &Limits) -> (&'static str, String) {
    if let Some(violation) = error.downcast_ref::<Violation>() {
        return (violation.code, violation.message.clone());
    }
    if let Some(exit) = error.downcast_ref::<wasmtime_wasi::I32Exit>() {
        return ("GUEST_TRAP", format!("it ended itself with exit code {}", exit.0));
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => {
            let message = format!(
                "one chunk of rows took more than {} ms; look for a loop without end, or raise limits.sandbox.chunk_time_ms",
                limits.chunk_time_ms
            );
            return ("GUEST_DEADLINE", message);
        }
        Some(Trap::OutOfFuel) => {
            let message = format!(
                "one chunk of rows took more than {} instructions; look for a loop without end, or raise limits.sandbox.chunk_fuel",
                limits.chunk_fuel
            );
            return ("GUEST_FUEL", message);
        }
        // Languages keep part of the stack in linear memory; where that part ends, so does the memory.
        Some(Trap::MemoryOutOfBounds) if error.downcast_ref::<WasmBacktrace>().is_some_and(recurs) => {
            return ("GUEST_STACK_OVERFLOW", TOO_DEEP.to_owned());
        }
        Some(Trap::StackOverflow) => return ("GUEST_STACK_OVERFLOW", TOO_DEEP.to_owned()),
        _ => {}
    }
    if let Some(refused) = host.limiter.refused() {
        return ("GUEST_MEMORY", format!("out of memory: {refused}"));
    }
    let cause = error.root_cause().to_string();
    // wasmtime does not export the type of this error.
    if cause.contains("fuel allocated for hostcalls") {
        let message = format!(
            "it handed over more than {} bytes in one call; hand over less at once, or raise limits.sandbox.host_call_bytes",
            limits.host_call_bytes
        );
        return ("HOST_CALL_BYTES_EXCEEDED", message);
    }
    // Nor of these.
    for (what, setting) in RESOURCES {
        if cause.contains(what) {
            let message =
                format!("{cause}; leave out what the processor does not use, or raise limits.sandbox.{setting}");
            return ("GUEST_RESOURCES_EXCEEDED", message);
        }
    }
    ("GUEST_TRAP", cause)
}

/// What wasmtime says when there is too much of something, and the setting that bounds it.
const RESOURCES: [(&str, &str); 4] = [
    ("instance count", "instances"),
    ("memory count", "memories"),
    ("table count", "tables"),
    ("resource table has no free keys", "wasi_resources"),
];

/// The frames by name, innermost first. wasmtime spells names out only in its own report, a line each after the first:
/// `    0:   0x1f4 - module!function`.
fn frames(backtrace: &WasmBacktrace) -> String {
    let report = backtrace.to_string();
    let function = |line: &str| {
        let place = line.split_once(" - ").map_or(line, |(_, place)| place);
        let name = place.split_once('!').map_or(place, |(_, name)| name);
        format!("at {}", clean(name.trim(), FRAME_BYTES_MAX))
    };
    let frames: Vec<_> = report.lines().skip(1).take(FRAMES_MAX).map(function).collect();
    frames.join("\n")
}

/// What the contract's `USER_CODE` is called here: an error of the author's code that has no code of its own.
const USER_FUNCTION_ERROR: &str = "TRANSFORM_WITH_STATE_USER_FUNCTION_ERROR";

/// A code of a guest, of nothing but letters, digits, `_`, `.` and `-`: it stands where codes of the host do, and in logs.
fn clean_code(code: &str) -> String {
    let plain = |character: char| match character {
        _ if character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '-') => character,
        _ => '_',
    };
    let code: String = code.chars().take(CODE_CHARACTERS_MAX).map(plain).collect();
    if matches!(code.as_str(), "" | "USER_CODE") { USER_FUNCTION_ERROR.to_owned() } else { code }
}

/// Whether one function is on the stack again and again.
fn recurs(backtrace: &WasmBacktrace) -> bool {
    let mut calls = BTreeMap::new();
    backtrace.frames().iter().for_each(|frame| *calls.entry(frame.func_index()).or_insert(0) += 1);
    calls.values().any(|calls| *calls >= RECURSIONS_MIN)
}

/// Text of a guest, cut and without control characters other than line feeds and tabs.
fn clean(text: &str, bytes_max: usize) -> String {
    let text: String = cut(text, bytes_max)
        .chars()
        .map(|character| match character {
            '\n' | '\t' => character,
            _ if character.is_control() => '\u{fffd}',
            _ => character,
        })
        .collect();
    text.trim_end().to_owned()
}

fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes_max);
    format!("{}… ({} bytes more)", text.get(..end).unwrap_or_default(), text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_guest_are_cut_and_cleaned() {
        let error = guest_failure("init", "", "a\u{1b}[31m\nb", &"é".repeat(STACK_BYTES_MAX), AtKey::NoKey);
        let OperatorError::Guest { guest_code, message, stack, .. } = error else { panic!("not a guest failure") };
        assert_eq!(guest_code, USER_FUNCTION_ERROR);
        assert_eq!(message, "a\u{fffd}[31m\nb");
        assert!(stack.len() < STACK_BYTES_MAX + 40 && stack.ends_with("bytes more)"));
    }

    #[test]
    fn a_code_cannot_forge_lines_of_the_host() {
        assert_eq!(clean_code("\u{1b}[2J\nerror[X]"), "__2J_error_X_");
        assert_eq!(clean_code("ILLEGAL_STATE_STORE_VALUE.NULL_VALUE"), "ILLEGAL_STATE_STORE_VALUE.NULL_VALUE");
        assert_eq!(clean_code(&"x".repeat(1_000)).len(), CODE_CHARACTERS_MAX);
    }

    #[test]
    fn a_state_limit_is_the_guests_and_a_broken_disk_the_hosts() {
        let limit = StateError::Limit { name: "limits.x", what: "timers", limit: 1, variable: None, key: None };
        assert!(matches!(Refusal::from(limit), Refusal::Trap(Violation { code: "STATE_LIMIT_EXCEEDED", .. })));
        let broken = StateError::corrupt("x", "y");
        assert!(matches!(Refusal::from(broken), Refusal::Host(_)));
    }
}
