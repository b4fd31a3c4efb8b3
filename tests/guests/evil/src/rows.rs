//! Rows that are not what their schema says: each a fault, none a crash.

use crate::bindings::tidemill::processor::state;
use crate::polite::{MAP, VALUE, each_group, each_group_applies, fault, variables};
use crate::wire::{EMIT, VALUE_PUT, op, text_row, words64};
use crate::{Attack, Failure};

const NAN_WITH_A_PAYLOAD: u64 = 0x7ff8_0000_0000_0001;

pub(crate) const ATTACKS: &[Attack] = &[
    Attack { input: || put(&[]), ..Attack::polite("row-empty") },
    Attack { input: || put(&words64(&[0])), ..Attack::polite("row-short") },
    Attack { input: || put(&words64(&[0, text(16, 0), 0])), ..Attack::polite("row-long") },
    Attack { input: || put(&words64(&[0, text(4_000_000_000, 8), 0])), ..Attack::polite("row-offset") },
    Attack { input: || put(&words64(&[0, text(16, 4_000_000_000)])), ..Attack::polite("row-length") },
    Attack { input: || put(&words64(&[0, text(0, 8)])), ..Attack::polite("row-overlap") },
    Attack { input: || put(&words64(&[0, text(16, 1), 0xff61])), ..Attack::polite("row-padding") },
    Attack { input: || put(&words64(&[0, text(16, 8), u64::MAX])), ..Attack::polite("row-utf8") },
    Attack { input: || put(&words64(&[1, 42])), ..Attack::polite("row-null-slot") },
    Attack { input: || put(&words64(&[0b10, text(16, 0)])), ..Attack::polite("row-null-bits") },
    Attack { input: emit, ..Attack::polite("row-emit") },
    Attack { input: key, ..Attack::polite("row-map-key") },
    typed("row-not-null", |_| variables("value STRING NOT NULL"), || put(&words64(&[1, 0]))),
    typed("row-boolean", |_| variables("value BOOLEAN"), || put(&words64(&[0, 2]))),
    typed("row-tinyint", |_| variables("value TINYINT"), || put(&words64(&[0, 128]))),
    typed("row-nan", |_| variables("value DOUBLE"), || put(&words64(&[0, NAN_WITH_A_PAYLOAD]))),
    typed("row-float", |_| variables("value FLOAT"), || put(&words64(&[0, 0.1f64.to_bits()]))),
    typed("row-date", |_| variables("value DATE"), || put(&words64(&[0, u64::MAX / 2]))),
    typed("row-decimal", |_| variables("value DECIMAL(3, 0)"), || put(&words64(&[0, 1000]))),
    typed("row-decimal-long", |_| variables("value DECIMAL(38, 0)"), || put(&words64(&[0, text(16, 2), 0x0100]))),
    typed("row-array-count", |_| variables("value ARRAY<BIGINT>"), || put(&words64(&[0, text(16, 16), u64::MAX, 0]))),
    typed(
        "row-array-rows",
        |_| variables("value ARRAY<STRING>"),
        || put(&words64(&[0, text(16, 24), 1, 0, text(1 << 31, 8)])),
    ),
    typed("row-map-order", |_| variables("value MAP<BIGINT, BIGINT>"), || put(&map([2, 1]))),
    typed("row-map-twice", |_| variables("value MAP<BIGINT, BIGINT>"), || put(&map([1, 1]))),
];

const fn typed(
    name: &'static str,
    init: fn(&crate::Query) -> Result<crate::Plan, Failure>,
    input: fn() -> Result<(), Failure>,
) -> Attack {
    Attack { init, input, ..Attack::polite(name) }
}

/// The slot of a variable part.
const fn text(offset: u32, length: u32) -> u64 {
    offset as u64 | (length as u64) << 32
}

fn put(row: &[u8]) -> Result<(), Failure> {
    each_group_applies(|group| op(VALUE_PUT, VALUE, group, row))
}

fn emit() -> Result<(), Failure> {
    each_group_applies(|group| op(EMIT, 0, group, &words64(&[0, text(64, 64)])))
}

/// A key that is no row, in a read.
fn key() -> Result<(), Failure> {
    each_group(|group| state::get_map_value(MAP, group, &text_row(b"\xff")).map(|_| ()).map_err(fault))
}

/// A map of two entries with these keys, in this order: an outer row of one column; keys and values, each an array of
/// two.
fn map(keys: [u64; 2]) -> Vec<u8> {
    let array = |elements: [u64; 2]| words64(&[2, 0, elements[0], elements[1]]);
    let mut row = words64(&[0, text(16, 24 + 32 + 32), 0, text(24, 32), text(56, 32)]);
    row.extend(array(keys));
    row.extend(array([0, 0]));
    row
}
