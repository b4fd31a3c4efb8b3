//! Dates and timestamps as text, in the proleptic Gregorian calendar and UTC; every 32-bit day and 64-bit microsecond has a text.
//!
//! Read are `2013-01-31`, and RFC 3339 or `2013-01-31 10:00:00[.fraction]`; a timestamp without an offset is UTC, digits
//! finer than a microsecond are cut. Years beyond 9999 or before 0 carry a sign: `+12013-01-31`, `-0044-03-15`.

use std::fmt::{self, Write};

/// Microseconds of a second, a minute and a day.
const SECOND_US: i64 = 1_000_000;
const MINUTE_US: i64 = 60 * SECOND_US;
const DAY_US: i64 = 24 * 60 * MINUTE_US;

/// Days of 400 years, after which the calendar repeats.
const CYCLE_DAYS: i64 = 146_097;

/// Days from 0000-03-01 to 1970-01-01. Years that begin in March have their leap day at the end.
const EPOCH_DAYS: i64 = 719_468;

/// Days since 1970-01-01 of a date such as `2013-01-31`.
pub(crate) fn parse_date(text: &str) -> Option<i32> {
    let mut rest = Digits(text.as_bytes());
    let days = rest.date()?;
    if rest.0.is_empty() { i32::try_from(days).ok() } else { None }
}

/// Microseconds since the epoch of a timestamp such as `2013-01-31T10:00:00.5+01:00`.
pub fn parse_timestamp(text: &str) -> Option<i64> {
    instant(text).map(|instant| instant.micros)
}

/// As [`parse_timestamp`], for what must not be guessed: the offset is there, and nothing is finer than a microsecond.
pub(super) fn parse_exact_timestamp(text: &str) -> Option<i64> {
    instant(text).filter(|instant| instant.is_exact).map(|instant| instant.micros)
}

/// Writes a date.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write_date(days: i32, out: &mut impl Write) -> fmt::Result {
    write_civil(i64::from(days), out)
}

/// Writes a timestamp: `2013-01-31T10:00:00Z`, with three or six digits of a fraction where there is one.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write_timestamp(micros: i64, out: &mut impl Write) -> fmt::Result {
    write_instant(micros, out)?;
    match micros.rem_euclid(SECOND_US) {
        0 => {}
        fraction if fraction % 1_000 == 0 => write!(out, ".{:03}", fraction / 1_000)?,
        fraction => write!(out, ".{fraction:06}")?,
    }
    out.write_char('Z')
}

/// A date as [`write_date`] writes it.
pub(super) fn date_text(days: i32) -> String {
    text(|out| write_date(days, out))
}

/// A timestamp as [`write_timestamp`] writes it.
#[must_use]
pub fn timestamp_text(micros: i64) -> String {
    text(|out| write_timestamp(micros, out))
}

/// A timestamp with all six digits: `2013-01-31T05:06:07.000008Z`.
pub(crate) fn full_timestamp_text(micros: i64) -> String {
    text(|out| {
        write_instant(micros, out)?;
        write!(out, ".{:06}Z", micros.rem_euclid(SECOND_US))
    })
}

/// What is written, which cannot fail.
fn text(write: impl FnOnce(&mut String) -> fmt::Result) -> String {
    let mut text = String::new();
    let _ = write(&mut text);
    text
}

/// Down to the second.
fn write_instant(micros: i64, out: &mut impl Write) -> fmt::Result {
    write_civil(micros.div_euclid(DAY_US), out)?;
    let second = micros.rem_euclid(DAY_US) / SECOND_US;
    write!(out, "T{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60)
}

struct Instant {
    micros: i64,
    is_exact: bool,
}

fn instant(text: &str) -> Option<Instant> {
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
    let (micros, is_whole) = rest.fraction_micros()?;
    let offset_minutes = rest.offset_minutes()?;
    if !rest.0.is_empty() {
        return None;
    }
    let time = (hour * 60 + minute - offset_minutes.unwrap_or(0)) * MINUTE_US + second * SECOND_US + micros;
    // The first days of the range are below it before their time of day is added.
    let micros = i64::try_from(i128::from(days) * i128::from(DAY_US) + i128::from(time)).ok()?;
    Some(Instant { micros, is_exact: is_whole && offset_minutes.is_some() })
}

fn write_civil(days: i64, out: &mut impl Write) -> fmt::Result {
    let (year, month, day) = civil_from_days(days);
    match year {
        0..=9_999 => write!(out, "{year:04}-{month:02}-{day:02}"),
        _ => write!(out, "{year:+05}-{month:02}-{day:02}"),
    }
}

/// Year, month and day of a day since 1970-01-01.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let (cycle, day_of_cycle) = (days.div_euclid(CYCLE_DAYS), days.rem_euclid(CYCLE_DAYS));
    let year_of_cycle =
        (day_of_cycle - day_of_cycle / 1_460 + day_of_cycle / 36_524 - day_of_cycle / (CYCLE_DAYS - 1)) / 365;
    let day_of_year = day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    // Months from March on: 153 days every five of them.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (cycle * 400 + year_of_cycle + i64::from(month <= 2), month, day)
}

/// The day since 1970-01-01 of a date that exists.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (cycle, year_of_cycle) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_cycle = 365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    cycle * CYCLE_DAYS + day_of_cycle - EPOCH_DAYS
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

    /// Microseconds, and whether nothing was cut.
    fn fraction_micros(&mut self) -> Option<(i64, bool)> {
        if self.one_of(b".").is_none() {
            return Some((0, true));
        }
        let digits = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (fraction, rest) = self.0.split_at(digits);
        self.0 = rest;
        let cut = fraction.get(..digits.min(6)).filter(|cut| !cut.is_empty())?;
        let value = cut.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        Some(((cut.len()..6).fold(value, |value, _| value * 10), digits <= 6))
    }

    /// `Z` or `+01:00`; None: there is nothing.
    fn offset_minutes(&mut self) -> Option<Option<i64>> {
        let sign = match self.one_of(b"Zz+-") {
            None => return Some(None),
            Some(b'+') => 1,
            Some(b'-') => -1,
            Some(_) => return Some(Some(0)),
        };
        let hours = self.number(2, 2)?;
        self.one_of(b":")?;
        let minutes = self.number(2, 2)?;
        (hours <= 23 && minutes <= 59).then_some(Some(sign * (hours * 60 + minutes)))
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
