//! Ops whose framing is broken.

use crate::polite::{LIST, MAP, VALUE, each_group_applies};
use crate::wire::{
    LIST_APPEND, LIST_PUT, MAP_PUT, TIMER_REGISTER, VALUE_PUT, listed, op, op_of_length, text_row, words32,
};
use crate::{Attack, Failure};

pub(crate) const ATTACKS: &[Attack] = &[
    Attack { input: head_cut, ..Attack::polite("frame-head") },
    Attack { input: code_unknown, ..Attack::polite("frame-code") },
    Attack { input: length_beyond, ..Attack::polite("frame-length") },
    Attack { input: length_overflow, ..Attack::polite("frame-length-overflow") },
    Attack { input: unaligned, ..Attack::polite("frame-unaligned") },
    Attack { input: list_cut, ..Attack::polite("frame-list") },
    Attack { input: list_length_overflow, ..Attack::polite("frame-list-overflow") },
    Attack { input: list_empty, ..Attack::polite("frame-list-empty") },
    Attack { input: key_beyond, ..Attack::polite("frame-map-key") },
    Attack { input: timer_short, ..Attack::polite("frame-timer") },
    Attack { input: clear_with_payload, ..Attack::polite("frame-clear") },
];

fn head_cut() -> Result<(), Failure> {
    each_group_applies(|group| words32(&[VALUE_PUT, VALUE, group]))
}

fn code_unknown() -> Result<(), Failure> {
    each_group_applies(|group| op(77, VALUE, group, &text_row(b"x")))
}

fn length_beyond() -> Result<(), Failure> {
    each_group_applies(|group| op_of_length(VALUE_PUT, VALUE, group, 4096, &text_row(b"x")))
}

fn length_overflow() -> Result<(), Failure> {
    each_group_applies(|group| op_of_length(VALUE_PUT, VALUE, group, u32::MAX - 7, &text_row(b"x")))
}

fn unaligned() -> Result<(), Failure> {
    each_group_applies(|group| op(VALUE_PUT, VALUE, group, &[0; 17]))
}

fn list_cut() -> Result<(), Failure> {
    each_group_applies(|group| op(LIST_APPEND, LIST, group, &words32(&[4096, 0])))
}

fn list_length_overflow() -> Result<(), Failure> {
    each_group_applies(|group| op(LIST_APPEND, LIST, group, &words32(&[u32::MAX - 7, 0, 0, 0])))
}

fn list_empty() -> Result<(), Failure> {
    each_group_applies(|group| op(LIST_PUT, LIST, group, &[]))
}

fn key_beyond() -> Result<(), Failure> {
    each_group_applies(|group| {
        let mut payload = words32(&[u32::MAX - 7, 0]);
        payload.extend(text_row(b"x"));
        op(MAP_PUT, MAP, group, &payload)
    })
}

fn timer_short() -> Result<(), Failure> {
    each_group_applies(|group| op(TIMER_REGISTER, 0, group, &[]))
}

fn clear_with_payload() -> Result<(), Failure> {
    each_group_applies(|group| op(crate::wire::CLEAR, LIST, group, &listed(&text_row(b"x"))))
}
