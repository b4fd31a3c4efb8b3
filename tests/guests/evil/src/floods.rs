//! Too much of what is allowed.

use crate::bindings::tidemill::processor::{effects, logging, state};
use crate::polite::{LIST, MAP, VALUE, drain, each_group, each_group_applies, failure};
use crate::wire::{EMIT, LIST_APPEND, MAP_PUT, TIMER_REGISTER, VALUE_PUT, entry, listed, op, text_row};
use crate::{Attack, Failure};

const MILLION: u32 = 1_000_000;
const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// Ops in one call of `apply`.
const OPS: u32 = 1000;

pub(crate) const ATTACKS: &[Attack] = &[
    Attack { input: || flood(MILLION, timer), ..Attack::polite("timers-million") },
    Attack { input: || flood(MILLION, append), ..Attack::polite("list-million") },
    Attack { input: || flood(MILLION, put), ..Attack::polite("map-million") },
    Attack { input: || flood(u32::MAX, emit), ..Attack::polite("emit-flood") },
    Attack { input: row_huge, ..Attack::polite("row-huge") },
    Attack { input: ops_huge, ..Attack::polite("ops-huge") },
    Attack { input: log, ..Attack::polite("log-flood") },
    Attack { input: log_huge, ..Attack::polite("log-huge") },
    Attack { input: print, ..Attack::polite("stdout-flood") },
    Attack { input: call, ..Attack::polite("calls-flood") },
    Attack { init: |_| log().map(|()| crate::polite::plan()), ..Attack::polite("log-init") },
];

/// The same op over and over for each group, a thousand to a call.
fn flood(count: u32, make: fn(u32, u32) -> Vec<u8>) -> Result<(), Failure> {
    each_group(|group| {
        let mut done = 0;
        while done < count {
            let ops: Vec<u8> = (done..done.saturating_add(OPS)).flat_map(|n| make(group, n)).collect();
            effects::apply(&ops).map_err(|fault| failure(&fault.code, &fault.message))?;
            done = done.saturating_add(OPS);
        }
        Ok(())
    })
}

/// Far in the future, so that none fires.
fn timer(group: u32, n: u32) -> Vec<u8> {
    op(TIMER_REGISTER, 0, group, &(i64::MAX - i64::from(n)).to_le_bytes())
}

fn append(group: u32, _: u32) -> Vec<u8> {
    op(LIST_APPEND, LIST, group, &listed(&text_row(b"x")))
}

fn put(group: u32, n: u32) -> Vec<u8> {
    op(MAP_PUT, MAP, group, &entry(&text_row(&n.to_le_bytes().map(|byte| b'a' + byte % 16)), &text_row(b"x")))
}

fn emit(group: u32, _: u32) -> Vec<u8> {
    op(EMIT, 0, group, &text_row(&[b'x'; KIB]))
}

/// A value of 32 MiB.
fn row_huge() -> Result<(), Failure> {
    each_group_applies(|group| op(VALUE_PUT, VALUE, group, &text_row(&vec![b'x'; 32 * MIB])))
}

/// 48 MiB of small ops in one call.
fn ops_huge() -> Result<(), Failure> {
    each_group(|group| {
        let one = append(group, 0);
        let ops = one.repeat(48 * MIB / one.len());
        effects::apply(&ops).map_err(|fault| failure(&fault.code, &fault.message))
    })
}

fn log() -> Result<(), Failure> {
    let line = "x".repeat(KIB);
    for _ in 0..MILLION {
        logging::log(logging::Level::Error, &line);
    }
    Ok(())
}

fn log_huge() -> Result<(), Failure> {
    logging::log(logging::Level::Error, &"x".repeat(32 * MIB));
    drain()
}

/// Without a line's end.
fn print() -> Result<(), Failure> {
    let piece = [0xffu8; KIB];
    for _ in 0..MILLION {
        logging::write(logging::Stdio::Stdout, &piece);
    }
    drain()
}

fn call() -> Result<(), Failure> {
    each_group(|group| {
        loop {
            state::exists(VALUE, group).map_err(crate::polite::fault)?;
        }
    })
}
