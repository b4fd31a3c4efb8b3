//! Single values as text: what a CSV field or a JSON number means in a column's type, and how values are printed.

use std::fmt::{self, Write};

use arrow_array::types::{Decimal128Type, DecimalType};
use arrow_cast::base64::{BASE64_STANDARD, Engine};
use arrow_schema::DataType;

use super::column::Column;
use super::table::RowFault;
use crate::record::{parse_date, parse_timestamp};

/// Appends the value that `text` is in the type of the column, or a placeholder if it is none.
///
/// # Errors
/// `WRONG_TYPE` saying what was expected.
pub(crate) fn push_text(column: &mut Column, text: &str) -> Result<(), RowFault> {
    let taken = match column {
        Column::Boolean(values) => parse_boolean(text).map(|value| values.append_value(value)),
        Column::TinyInt(values) => parse_integer(text).map(|value| values.append_value(value)),
        Column::SmallInt(values) => parse_integer(text).map(|value| values.append_value(value)),
        Column::Int(values) => parse_integer(text).map(|value| values.append_value(value)),
        Column::BigInt(values) => parse_integer(text).map(|value| values.append_value(value)),
        Column::Float(values) => parse_float(text).map(|value| values.append_value(value)),
        Column::Double(values) => parse_float(text).map(|value| values.append_value(value)),
        Column::Decimal { values, precision, scale } => {
            parse_decimal(text, *precision, *scale).map(|value| values.append_value(value))
        }
        Column::String(values) => {
            values.append_value(text);
            Some(())
        }
        Column::Binary(values) => BASE64_STANDARD.decode(text).ok().map(|value| values.append_value(value)),
        Column::Date(values) => parse_date(text).map(|value| values.append_value(value)),
        Column::Timestamp(values) => parse_timestamp(text).map(|value| values.append_value(value)),
        Column::Array(_) | Column::Map(_) | Column::Struct(_) => None,
    };
    taken.ok_or_else(|| {
        let fault = RowFault::wrong_type(format!("expected {}, found `{}`", expected(column), excerpt(text)));
        column.push_placeholder();
        fault
    })
}

/// What a column takes, for a person.
pub(crate) fn expected(column: &Column) -> String {
    match column {
        Column::Boolean(_) => "a BOOLEAN (true or false)".to_owned(),
        Column::TinyInt(_) => "a TINYINT (-128 to 127)".to_owned(),
        Column::SmallInt(_) => "a SMALLINT (-32768 to 32767)".to_owned(),
        Column::Int(_) => "an INT (-2147483648 to 2147483647)".to_owned(),
        Column::BigInt(_) => "a BIGINT (a whole number of 64 bits)".to_owned(),
        Column::Float(_) => "a FLOAT".to_owned(),
        Column::Double(_) => "a DOUBLE".to_owned(),
        Column::Decimal { precision, scale, .. } => format!("a DECIMAL({precision},{scale})"),
        Column::String(_) => "a STRING".to_owned(),
        Column::Binary(_) => "BINARY in base64".to_owned(),
        Column::Date(_) => "a DATE (YYYY-MM-DD)".to_owned(),
        Column::Timestamp(_) => "a TIMESTAMP (RFC 3339, or YYYY-MM-DD HH:MM:SS in UTC)".to_owned(),
        Column::Array(_) => "an ARRAY".to_owned(),
        Column::Map(_) => "a MAP".to_owned(),
        Column::Struct(_) => "a STRUCT".to_owned(),
    }
}

/// Enough of a value to recognise it.
pub(crate) fn excerpt(text: &str) -> String {
    const CHARS_MAX: usize = 64;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn parse_boolean(text: &str) -> Option<bool> {
    if text.eq_ignore_ascii_case("true") {
        Some(true)
    } else if text.eq_ignore_ascii_case("false") {
        Some(false)
    } else {
        None
    }
}

fn parse_integer<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

/// A number in decimal notation, or `NaN`, `Infinity` and `-Infinity` exactly so. A number too large is none.
fn parse_float<T: std::str::FromStr + Into<f64> + Copy>(text: &str) -> Option<T> {
    match text {
        "NaN" | "Infinity" | "-Infinity" => text.parse().ok(),
        _ if text.bytes().any(|byte| byte.is_ascii_digit()) => {
            text.parse().ok().filter(|value: &T| (*value).into().is_finite())
        }
        _ => None,
    }
}

/// The unscaled value. A number with more digits than the type has, before or behind the point, is none: nothing is
/// rounded.
fn parse_decimal(text: &str, precision: u8, scale: i8) -> Option<i128> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (negative, digits) = match mantissa.as_bytes().split_first()? {
        (b'-', _) => (true, mantissa.get(1..)?),
        (b'+', _) => (false, mantissa.get(1..)?),
        _ => (false, mantissa),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0_i128;
    for digit in whole.bytes().chain(fraction.bytes()) {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    let mut shift = i32::from(scale).checked_add(exponent)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    while shift > 0 && value != 0 {
        value = value.checked_mul(10)?;
        shift -= 1;
    }
    while shift < 0 && value != 0 {
        if value % 10 != 0 {
            return None;
        }
        value /= 10;
        shift += 1;
    }
    let value = if negative { -value } else { value };
    Decimal128Type::is_valid_decimal_precision(value, precision).then_some(value)
}

/// Prints a decimal with all digits of its scale.
pub(crate) fn write_decimal(unscaled: i128, scale: u8, out: &mut String) -> fmt::Result {
    let digits = format!("{:0width$}", unscaled.unsigned_abs(), width = usize::from(scale) + 1);
    let (whole, fraction) = digits.split_at(digits.len() - usize::from(scale));
    if unscaled < 0 {
        out.push('-');
    }
    out.push_str(whole);
    if !fraction.is_empty() {
        write!(out, ".{fraction}")?;
    }
    Ok(())
}

/// Prints a float so that it reads back as the same one: the shortest digits, an exponent when very large or small, and
/// a point so that it is seen to be no integer.
pub(crate) fn write_float(value: f64, shortest: &dyn fmt::Debug, out: &mut String) -> fmt::Result {
    if value.is_nan() {
        out.push_str("NaN");
        Ok(())
    } else if value.is_infinite() {
        out.push_str(if value > 0.0 { "Infinity" } else { "-Infinity" });
        Ok(())
    } else {
        write!(out, "{shortest:?}")
    }
}

/// Whether values of the type are single values, so that a CSV field can hold them.
pub(crate) fn is_scalar(data_type: &DataType) -> bool {
    !matches!(data_type, DataType::List(_) | DataType::Map(..) | DataType::Struct(_))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimals_are_exact_or_refused() {
        assert_eq!(parse_decimal("12345678901234567890.12", 38, 2), Some(1_234_567_890_123_456_789_012));
        assert_eq!(parse_decimal("-0.50", 3, 1), Some(-5));
        assert_eq!(parse_decimal("1e2", 5, 2), Some(10_000));
        assert_eq!(parse_decimal("+.5", 5, 2), Some(50));
        assert_eq!(parse_decimal("0e-999999999", 5, 2), Some(0));
        for text in ["", ".", "-", "1.005", "1000", "1e9999999999", "1e999999999", "1,5", " 1", "0x1", "NaN"] {
            assert_eq!(parse_decimal(text, 5, 2), None, "{text}");
        }
    }

    #[test]
    fn floats_are_numbers_in_range() {
        assert_eq!(parse_float::<f64>("1e308"), Some(1e308));
        assert_eq!(parse_float::<f32>("1e39"), None);
        assert_eq!(parse_float::<f64>("-Infinity"), Some(f64::NEG_INFINITY));
        for text in ["", "inf", "nan", "1e999", "1 ", "e", "infinity"] {
            assert_eq!(parse_float::<f64>(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_decimal_that_is_written_is_read(value in -10_i128.pow(37)..10_i128.pow(37), scale in 0_u8..38) {
            let mut text = String::new();
            write_decimal(value, scale, &mut text).unwrap();
            prop_assert_eq!(parse_decimal(&text, 38, scale.cast_signed()), Some(value), "{}", text);
        }
    }
}
