//! Reads that are opened and never read to their end.

use crate::bindings::tidemill::processor::{effects, state, timers};
use crate::polite::{LIST, each_group, failure, fault};
use crate::wire::{LIST_APPEND, TIMER_REGISTER, listed, op, text_row};
use crate::{Attack, Failure};

const MILLION: u32 = 1_000_000;

pub(crate) const ATTACKS: &[Attack] = &[
    Attack { input: open_lists, ..Attack::polite("cursors-list") },
    Attack { input: open_timers, ..Attack::polite("cursors-timers") },
    Attack { input: unknown, ..Attack::polite("cursor-unknown") },
    Attack { input: twice, ..Attack::polite("cursor-twice") },
];

/// A list of more than one page.
fn fill(group: u32) -> Result<(), Failure> {
    for _ in 0..8 {
        apply(&op(LIST_APPEND, LIST, group, &listed(&text_row(&[b'x'; 60_000]))))?;
    }
    Ok(())
}

fn open_lists() -> Result<(), Failure> {
    each_group(|group| {
        fill(group)?;
        for _ in 0..MILLION {
            state::get_list(LIST, group).map_err(fault)?;
        }
        Ok(())
    })
}

fn open_timers() -> Result<(), Failure> {
    each_group(|group| {
        let ops: Vec<u8> =
            (0..40_000i64).flat_map(|n| op(TIMER_REGISTER, 0, group, &(i64::MAX - n).to_le_bytes())).collect();
        apply(&ops)?;
        for _ in 0..MILLION {
            timers::list_timers(group).map_err(fault)?;
        }
        Ok(())
    })
}

fn unknown() -> Result<(), Failure> {
    each_group(|_| state::next_page(12_345).map(|_| ()).map_err(fault))
}

/// The last page of a cursor ends it; asking again is a fault.
fn twice() -> Result<(), Failure> {
    each_group(|group| {
        fill(group)?;
        let mut rest = state::get_list(LIST, group).map_err(fault)?.rest;
        let mut last = None;
        while let Some(cursor) = rest {
            last = Some(cursor);
            rest = state::next_page(cursor).map_err(fault)?.rest;
        }
        last.map_or(Ok(()), |cursor| state::next_page(cursor).map(|_| ()).map_err(fault))
    })
}

fn apply(ops: &[u8]) -> Result<(), Failure> {
    effects::apply(ops).map_err(|fault| failure(&fault.code, &fault.message))
}
