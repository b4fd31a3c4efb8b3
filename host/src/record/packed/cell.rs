//! What slots and parts mean, type by type, and that each value has one encoding only.

use super::super::error::RowFault;
use super::super::schema::DECIMAL_PRECISION_MAX;

/// The one NaN.
pub(in super::super) const NAN_BITS: u64 = 0x7ff8_0000_0000_0000;

/// Most digits of a decimal that stands in its slot.
pub(in super::super) const SLOT_DECIMAL_PRECISION_MAX: u8 = 18;

/// What becomes of -0.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Zero {
    /// In values: it stays.
    Signed,
    /// In keys, at every depth: it is 0.0, so that equal keys are equal bytes.
    Unsigned,
}

/// 10 to the power of 0 to 38.
pub(in super::super) const POWERS_OF_TEN: [i128; DECIMAL_PRECISION_MAX as usize + 1] = {
    let mut powers = [1; DECIMAL_PRECISION_MAX as usize + 1];
    let mut exponent = 1;
    #[expect(clippy::indexing_slicing, reason = "evaluated by the compiler")]
    while exponent < powers.len() {
        powers[exponent] = powers[exponent - 1] * 10;
        exponent += 1;
    }
    powers
};

/// Whether an unscaled decimal has at most `precision` digits.
pub(in super::super) fn fits_precision(unscaled: i128, precision: u8) -> bool {
    POWERS_OF_TEN.get(usize::from(precision)).is_some_and(|bound| unscaled.unsigned_abs() < bound.unsigned_abs())
}

/// The slot of a floating-point value.
pub(in super::super) fn double_slot(value: f64, zero: Zero) -> u64 {
    if value.is_nan() {
        NAN_BITS
    } else if value == 0.0 && zero == Zero::Unsigned {
        0
    } else {
        value.to_bits()
    }
}

pub(in super::super) fn read_boolean(slot: u64) -> Result<bool, RowFault> {
    match slot {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(RowFault::invalid("a boolean is neither 0 nor 1")),
    }
}

/// An integer of any width from a slot, where it is sign-extended.
pub(in super::super) fn read_integer<T: TryFrom<i64>>(slot: u64) -> Result<T, RowFault> {
    let value = slot.cast_signed();
    T::try_from(value).map_err(|_| RowFault::invalid(format!("{value} is out of range of the type")))
}

pub(in super::super) fn read_double(slot: u64, zero: Zero) -> Result<f64, RowFault> {
    let value = f64::from_bits(slot);
    if slot == double_slot(value, zero) {
        Ok(value)
    } else if value.is_nan() {
        Err(RowFault::invalid("a NaN other than 0x7ff8000000000000"))
    } else {
        Err(RowFault::invalid("-0.0 in a key, where it must be 0.0"))
    }
}

pub(in super::super) fn read_float(slot: u64, zero: Zero) -> Result<f32, RowFault> {
    let value = read_double(slot, zero)?;
    let float = value as f32;
    if f64::from(float).to_bits() == slot || value.is_nan() {
        Ok(float)
    } else {
        Err(RowFault::invalid(format!("{value:?} is not a 32-bit floating-point value")))
    }
}

/// An unscaled decimal of up to 18 digits from its slot.
pub(in super::super) fn read_slot_decimal(slot: u64, precision: u8) -> Result<i128, RowFault> {
    check_precision(i128::from(slot.cast_signed()), precision)
}

/// An unscaled decimal of more than 18 digits from its part: big-endian, of the least length.
pub(in super::super) fn read_part_decimal(part: &[u8], precision: u8) -> Result<i128, RowFault> {
    let mut bytes = [if part.first().is_some_and(|first| *first >= 0x80) { 0xff } else { 0 }; size_of::<i128>()];
    let begin = bytes.len().checked_sub(part.len());
    let Some(target) = begin.and_then(|begin| bytes.get_mut(begin..)) else {
        return Err(RowFault::invalid("a decimal of more than 16 bytes"));
    };
    target.copy_from_slice(part);
    let unscaled = i128::from_be_bytes(bytes);
    if part.len() != decimal_part_length(unscaled) {
        return Err(RowFault::invalid("a decimal that does not have the least number of bytes"));
    }
    check_precision(unscaled, precision)
}

/// Appends the part of a decimal of more than 18 digits.
pub(in super::super) fn push_decimal_part(unscaled: i128, out: &mut Vec<u8>) {
    let bytes = unscaled.to_be_bytes();
    out.extend(bytes.iter().skip(bytes.len() - decimal_part_length(unscaled)));
}

/// Bytes that hold the value and its sign.
fn decimal_part_length(unscaled: i128) -> usize {
    let magnitude = if unscaled < 0 { !unscaled } else { unscaled };
    let bits = i128::BITS - magnitude.leading_zeros() + 1;
    bits.div_ceil(8) as usize
}

fn check_precision(unscaled: i128, precision: u8) -> Result<i128, RowFault> {
    if fits_precision(unscaled, precision) {
        Ok(unscaled)
    } else {
        Err(RowFault::invalid(format!("a decimal of more than {precision} digits")))
    }
}

pub(in super::super) fn read_string(part: &[u8]) -> Result<&str, RowFault> {
    std::str::from_utf8(part)
        .map_err(|e| RowFault::invalid(format!("the string is not UTF-8 from byte {}", e.valid_up_to())))
}
