//! Column types that Rust has no type of its own for.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// Bytes: a BINARY column. (`Vec<T>` is an ARRAY.)
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Binary(pub Vec<u8>);

/// A calendar day: a DATE column. Days since 1970-01-01.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// Days since 1970-01-01, negative before.
    pub days: i32,
}

/// A point in time: a TIMESTAMP column. Microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Microseconds since the epoch, UTC, negative before.
    pub micros: i64,
}

impl Timestamp {
    /// The point in time so many milliseconds after the epoch, as timers and watermarks count.
    pub const fn from_millis(millis: i64) -> Self {
        Self { micros: millis.saturating_mul(1000) }
    }

    /// Milliseconds since the epoch, rounded down.
    pub const fn millis(self) -> i64 {
        self.micros.div_euclid(1000)
    }
}

/// A decimal number of `P` digits, `S` of them after the point: a `DECIMAL(P, S)` column. `1 <= P <= 38`, `S <= P`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal<const P: u8, const S: u8> {
    unscaled: i128,
}

impl<const P: u8, const S: u8> Decimal<P, S> {
    /// Refuses a precision or scale that there is no column for, when the type is first used.
    const CHECKED: () = assert!(1 <= P && P <= 38 && S <= P, "DECIMAL(P, S): 1 <= P <= 38 and S <= P");

    /// The number `unscaled / 10^S`; an error if it has more than `P` digits.
    pub fn from_unscaled(unscaled: i128) -> Result<Self> {
        const { Self::CHECKED };
        if unscaled.unsigned_abs() >= 10u128.pow(u32::from(P)) {
            return Err(Error::new(
                "NUMERIC_VALUE_OUT_OF_RANGE",
                format!("{unscaled} has more than {P} digits, too many for DECIMAL({P}, {S})"),
            ));
        }
        Ok(Self { unscaled })
    }

    /// The number times `10^S`.
    pub const fn unscaled(self) -> i128 {
        self.unscaled
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(i64::from(self.days));
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl fmt::Display for Timestamp {
    /// `2013-01-01T10:00:00Z`, with six digits of a second where it is not whole.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY_MICROS: i64 = 86_400_000_000;
        let (year, month, day) = civil(self.micros.div_euclid(DAY_MICROS));
        let of_day = self.micros.rem_euclid(DAY_MICROS);
        let (seconds, micros) = (of_day / 1_000_000, of_day % 1_000_000);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
        if micros != 0 {
            write!(f, ".{micros:06}")?;
        }
        f.write_str("Z")
    }
}

impl<const P: u8, const S: u8> fmt::Display for Decimal<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.unscaled < 0 { "-" } else { "" };
        let digits = self.unscaled.unsigned_abs();
        if S == 0 {
            return write!(f, "{sign}{digits}");
        }
        let one = 10u128.pow(u32::from(S));
        write!(f, "{sign}{}.{:0width$}", digits / one, digits % one, width = usize::from(S))
    }
}

impl<const P: u8, const S: u8> FromStr for Decimal<P, S> {
    type Err = ParseDecimalError;

    /// Reads `-12.50`: digits, at most `S` of them after the point.
    fn from_str(text: &str) -> std::result::Result<Self, ParseDecimalError> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + fraction.len() == 0
            || !all_digits(whole)
            || !all_digits(fraction)
            || fraction.len() > usize::from(S)
        {
            return Err(ParseDecimalError);
        }
        let padded = format!("{whole}{fraction:0<width$}", width = usize::from(S));
        let magnitude: i128 = padded.parse().map_err(|_| ParseDecimalError)?;
        Self::from_unscaled(if negative { -magnitude } else { magnitude }).map_err(|_| ParseDecimalError)
    }
}

/// The text is no number with the digits of the decimal type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseDecimalError;

impl fmt::Display for ParseDecimalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the text is no number with the digits of the decimal type")
    }
}

impl std::error::Error for ParseDecimalError {}

/// Year, month and day of a day since 1970-01-01, in the proleptic Gregorian calendar: counts eras of 400 years from
/// a 1st of March.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_and_dates_print_as_iso_8601() {
        assert_eq!(Timestamp { micros: 0 }.to_string(), "1970-01-01T00:00:00Z");
        assert_eq!(Timestamp { micros: -1 }.to_string(), "1969-12-31T23:59:59.999999Z");
        assert_eq!(Timestamp::from_millis(1_357_034_400_000).to_string(), "2013-01-01T10:00:00Z");
        assert_eq!(Date { days: 11_016 }.to_string(), "2000-02-29");
        assert_eq!(Date { days: -719_162 }.to_string(), "0001-01-01");
    }

    #[test]
    fn a_decimal_prints_what_it_parses() {
        for text in ["0.00", "-12.50", "99999999.99", "-0.01"] {
            assert_eq!(text.parse::<Decimal<10, 2>>().unwrap().to_string(), text);
        }
        assert_eq!("7".parse::<Decimal<10, 2>>().unwrap().unscaled(), 700);
        assert_eq!("1.234".parse::<Decimal<10, 2>>(), Err(ParseDecimalError));
        assert_eq!("100000000".parse::<Decimal<10, 2>>(), Err(ParseDecimalError));
        assert_eq!(Decimal::<3, 0>::from_unscaled(1000).unwrap_err().code(), "NUMERIC_VALUE_OUT_OF_RANGE");
    }
}
