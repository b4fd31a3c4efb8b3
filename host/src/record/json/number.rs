//! Numbers whose JSON is not simply a number.

use serde_json::{Number, Value};

use super::super::packed::cell::fits_precision;

/// A double as JSON: a number if it is finite.
pub(super) fn double_to_json(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => Value::from("NaN"),
        None if value > 0.0 => Value::from("Infinity"),
        None => Value::from("-Infinity"),
    }
}

/// A float as JSON, with the fewest digits that give it back: 0.1 rather than 0.10000000149011612.
pub(super) fn float_to_json(value: f32) -> Value {
    let short = value.to_string().parse().unwrap_or(f64::from(value));
    let faithful = (short as f32).to_bits() == value.to_bits();
    double_to_json(if faithful { short } else { f64::from(value) })
}

/// Reads what [`double_to_json`] writes, and any other number.
pub(super) fn double_from_json(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// Reads a float: the nearest, unless that is infinite and the number is not.
pub(super) fn float_from_json(value: &Value) -> Option<f32> {
    let double = double_from_json(value)?;
    let float = double as f32;
    (float.is_infinite() == double.is_infinite()).then_some(float)
}

/// A decimal as text with `scale` digits after the point.
pub(super) fn decimal_to_text(unscaled: i128, scale: u8) -> String {
    let scale = usize::from(scale);
    let sign = if unscaled < 0 { "-" } else { "" };
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = scale + 1);
    match digits.split_at_checked(digits.len() - scale) {
        Some((whole, fraction)) if scale > 0 => format!("{sign}{whole}.{fraction}"),
        _ => format!("{sign}{digits}"),
    }
}

/// The unscaled value of a decimal as text: a sign, digits, and at most `scale` digits after a point.
pub(super) fn decimal_from_text(text: &str, precision: u8, scale: u8) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let fraction = if digits.contains('.') { fraction } else { "" };
    let missing = usize::from(scale).checked_sub(fraction.len())?;
    let digits = whole.bytes().chain(fraction.bytes()).chain(std::iter::repeat_n(b'0', missing));
    let magnitude = digits
        .map(|digit| i128::from(digit - b'0'))
        .try_fold(0_i128, |value, digit| value.checked_mul(10)?.checked_add(digit))?;
    let unscaled = if negative { -magnitude } else { magnitude };
    fits_precision(unscaled, precision).then_some(unscaled)
}
