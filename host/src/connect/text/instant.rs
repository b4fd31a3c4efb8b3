//! Dates and timestamps as text, without a calendar library: the proleptic Gregorian calendar in UTC.
//!
//! Read are `2013-01-31`, and RFC 3339 or `2013-01-31 10:00:00[.fraction]`; a timestamp without an offset is UTC, digits
//! finer than a microsecond are cut. Years beyond 9999 or before 0 carry a sign: `+12013-01-31`. Written is one form only:
//! `2013-01-31T10:00:00Z` with a fraction of three or six digits where there is one.

use std::fmt::{self, Write};

use crate::record::{civil_from_days, days_from_civil};

const SECONDS_PER_DAY: i64 = 86_400;
const MICROS_PER_SECOND: i64 = 1_000_000;

/// Days since 1970-01-01 of a date such as `2013-01-31`.
pub(crate) fn parse_date(text: &str) -> Option<i32> {
    let mut rest = Digits(text.as_bytes());
    let days = rest.date()?;
    if rest.0.is_empty() { i32::try_from(days).ok() } else { None }
}

/// Microseconds since the epoch of a timestamp such as `2013-01-31T10:00:00.5+01:00`.
pub fn parse_timestamp(text: &str) -> Option<i64> {
    let mut rest = Digits(text.as_bytes());
    let days = rest.date()?;
    rest.one_of(b"Tt ")?;
    let hour = rest.number(2, 2)?;
    rest.one_of(b":")?;
    let minute = rest.number(2, 2)?;
    rest.one_of(b":")?;
    let second = rest.number(2, 2)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let micros = rest.fraction_micros()?;
    let offset_seconds = rest.offset_seconds()?;
    if !rest.0.is_empty() {
        return None;
    }
    let seconds = days
        .checked_mul(SECONDS_PER_DAY)?
        .checked_add(hour * 3_600 + minute * 60 + second)?
        .checked_sub(offset_seconds)?;
    seconds.checked_mul(MICROS_PER_SECOND)?.checked_add(micros)
}

/// Writes a date.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write_date(days: i32, out: &mut impl Write) -> fmt::Result {
    write_civil(i64::from(days), out)
}

/// An instant, in microseconds since the epoch, as text.
#[must_use]
pub fn timestamp_text(micros: i64) -> String {
    let mut text = String::new();
    match write_timestamp(micros, &mut text) {
        Ok(()) => text,
        Err(_) => micros.to_string(),
    }
}

/// Writes a timestamp.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write_timestamp(micros: i64, out: &mut impl Write) -> fmt::Result {
    let seconds = micros.div_euclid(MICROS_PER_SECOND);
    let fraction = micros.rem_euclid(MICROS_PER_SECOND);
    write_civil(seconds.div_euclid(SECONDS_PER_DAY), out)?;
    let second = seconds.rem_euclid(SECONDS_PER_DAY);
    write!(out, "T{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60)?;
    match fraction {
        0 => {}
        _ if fraction % 1_000 == 0 => write!(out, ".{:03}", fraction / 1_000)?,
        _ => write!(out, ".{fraction:06}")?,
    }
    out.write_char('Z')
}

fn write_civil(days: i64, out: &mut impl Write) -> fmt::Result {
    let (year, month, day) = civil_from_days(days);
    match year {
        0..=9_999 => write!(out, "{year:04}-{month:02}-{day:02}"),
        _ => write!(out, "{year:+05}-{month:02}-{day:02}"),
    }
}

/// What is left to read.
struct Digits<'t>(&'t [u8]);

impl Digits<'_> {
    /// `2013-01-31`, as days since the epoch.
    fn date(&mut self) -> Option<i64> {
        let year = match self.one_of(b"+-") {
            Some(b'-') => -self.number(4, 7)?,
            Some(_) => self.number(4, 7)?,
            None => self.number(4, 4)?,
        };
        self.one_of(b"-")?;
        let month = self.number(2, 2)?;
        self.one_of(b"-")?;
        let day = self.number(2, 2)?;
        let days = days_from_civil(year, month, day);
        // A day that is not in its month comes back as another one.
        (civil_from_days(days) == (year, month, day)).then_some(days)
    }

    fn fraction_micros(&mut self) -> Option<i64> {
        if self.one_of(b".").is_none() {
            return Some(0);
        }
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (fraction, rest) = self.0.split_at(digits);
        self.0 = rest;
        let cut = fraction.get(..digits.min(6)).filter(|cut| !cut.is_empty())?;
        let value = cut.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        Some((cut.len()..6).fold(value, |value, _| value * 10))
    }

    /// `Z`, `+01:00` or nothing.
    fn offset_seconds(&mut self) -> Option<i64> {
        let sign = match self.one_of(b"Zz+-") {
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => return Some(0),
        };
        let hours = self.number(2, 2)?;
        self.one_of(b":")?;
        let minutes = self.number(2, 2)?;
        (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3_600 + minutes * 60))
    }

    fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        bytes.contains(first).then(|| {
            self.0 = rest;
            *first
        })
    }

    /// A number of `least` to `most` digits.
    fn number(&mut self, least: usize, most: usize) -> Option<i64> {
        let digits = self.0.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        if digits < least {
            return None;
        }
        let (number, rest) = self.0.split_at(digits);
        self.0 = rest;
        Some(number.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn forms_that_are_read() {
        let ten_o_clock = 1_357_034_400_000_000;
        for text in [
            "2013-01-01T10:00:00Z",
            "2013-01-01 10:00:00",
            "2013-01-01T10:00:00",
            "2013-01-01t10:00:00.000z",
            "2013-01-01T12:00:00+02:00",
            "2013-01-01T08:30:00.0000009-01:30",
            "+2013-01-01T10:00:00Z",
        ] {
            assert_eq!(parse_timestamp(text), Some(ten_o_clock), "{text}");
        }
        assert_eq!(parse_timestamp("2013-01-01 10:00:00.5"), Some(ten_o_clock + 500_000));
        assert_eq!(parse_timestamp("1969-12-31T23:59:59.999999Z"), Some(-1));
        assert_eq!(parse_date("1970-01-02"), Some(1));
        assert_eq!(parse_date("2000-02-29"), Some(11_016));
    }

    #[test]
    fn what_is_no_date_or_timestamp() {
        for text in [
            "",
            "2013-1-1",
            "2013-02-29",
            "2013-13-01",
            "2013-00-10",
            "2013-01-01x",
            "13-01-01",
            "2013-01-01T10:00:00Z",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
        for text in [
            "2013-01-01",
            "2013-01-01T24:00:00Z",
            "2013-01-01T10:60:00Z",
            "2013-01-01T10:00:60Z",
            "2013-01-01T10:00Z",
            "2013-01-01T10:00:00.",
            "2013-01-01T10:00:00+0100",
            "2013-01-01T10:00:00Z ",
            "+9999999-01-01T00:00:00Z",
        ] {
            assert_eq!(parse_timestamp(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(micros in any::<i64>(), days in any::<i32>()) {
            let mut text = String::new();
            write_timestamp(micros, &mut text).unwrap();
            prop_assert_eq!(parse_timestamp(&text), Some(micros), "{}", text);
            text.clear();
            write_date(days, &mut text).unwrap();
            prop_assert_eq!(parse_date(&text), Some(days), "{}", text);
        }
    }
}
