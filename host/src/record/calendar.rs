//! Dates and instants as text, in the proleptic Gregorian calendar and UTC; every 32-bit day and 64-bit microsecond has a text.

/// Microseconds of a second, a minute and a day.
const SECOND_US: i64 = 1_000_000;
const MINUTE_US: i64 = 60 * SECOND_US;
const DAY_US: i64 = 24 * 60 * MINUTE_US;

/// Days of 400 years, after which the calendar repeats.
const CYCLE_DAYS: i64 = 146_097;

/// Days from 0000-03-01 to 1970-01-01. Years that begin in March have their leap day at the end.
const EPOCH_DAYS: i64 = 719_468;

/// `2013-01-31`; years past 9999 or before 0000 with a sign: `+12345-01-31`, `-0044-03-15`.
pub(super) fn format_date(days: i32) -> String {
    format_days(i64::from(days))
}

/// Reads what [`format_date`] writes.
pub(super) fn parse_date(text: &str) -> Option<i32> {
    let mut scan = Scan(text);
    let days = scan.date()?;
    scan.0.is_empty().then_some(())?;
    i32::try_from(days).ok()
}

/// `2013-01-31T05:06:07.000008Z`, always with six digits of microseconds.
pub(crate) fn format_timestamp(micros: i64) -> String {
    let (days, time) = (micros.div_euclid(DAY_US), micros.rem_euclid(DAY_US));
    let (minutes, micros) = (time / MINUTE_US, time % MINUTE_US);
    format!(
        "{}T{:02}:{:02}:{:02}.{:06}Z",
        format_days(days),
        minutes / 60,
        minutes % 60,
        micros / SECOND_US,
        micros % SECOND_US
    )
}

/// Reads RFC 3339 with up to six digits of microseconds, `Z` or an offset like `+02:00`, `T` or a blank before the time.
pub(super) fn parse_timestamp(text: &str) -> Option<i64> {
    let mut scan = Scan(text);
    let days = scan.date()?;
    scan.one_of(&['T', ' '])?;
    let hours = scan.number(2, 0..=23)?;
    scan.one_of(&[':'])?;
    let minutes = scan.number(2, 0..=59)?;
    scan.one_of(&[':'])?;
    let seconds = scan.number(2, 0..=59)?;
    let micros = if scan.one_of(&['.']).is_some() { scan.fraction()? } else { 0 };
    let offset_minutes = match scan.one_of(&['Z', '+', '-'])? {
        'Z' => 0,
        sign => {
            let hours = scan.number(2, 0..=23)?;
            scan.one_of(&[':'])?;
            let minutes = hours * 60 + scan.number(2, 0..=59)?;
            if sign == '-' { -minutes } else { minutes }
        }
    };
    scan.0.is_empty().then_some(())?;
    let time = (hours * 60 + minutes - offset_minutes) * MINUTE_US + seconds * SECOND_US + micros;
    // The first days of the range are below it before their time of day is added.
    i64::try_from(i128::from(days) * i128::from(DAY_US) + i128::from(time)).ok()
}

fn format_days(days: i64) -> String {
    let (year, month, day) = civil_from_days(days);
    match year {
        0..=9_999 => format!("{year:04}-{month:02}-{day:02}"),
        _ => format!("{year:+05}-{month:02}-{day:02}"),
    }
}

/// Year, month and day of a day since 1970-01-01.
pub(crate) fn civil_from_days(days: i64) -> (i64, i64, i64) {
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
pub(crate) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (cycle, year_of_cycle) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_cycle = 365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year;
    cycle * CYCLE_DAYS + day_of_cycle - EPOCH_DAYS
}

/// What is left of the text.
struct Scan<'t>(&'t str);

impl Scan<'_> {
    /// The day since 1970-01-01.
    fn date(&mut self) -> Option<i64> {
        let sign = self.one_of(&['+', '-']);
        let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
        // The largest year of a 32-bit day has seven digits.
        let plain = (4..=7).contains(&digits) && (sign.is_some() || digits == 4);
        let year = if plain {
            self.number(digits, 0..=9_999_999)?
        } else {
            return None;
        };
        let year = if sign == Some('-') { -year } else { year };
        self.one_of(&['-'])?;
        let month = self.number(2, 1..=12)?;
        self.one_of(&['-'])?;
        let day = self.number(2, 1..=31)?;
        let days = days_from_civil(year, month, day);
        (civil_from_days(days) == (year, month, day)).then_some(days)
    }

    /// One to six digits after the point, as microseconds.
    fn fraction(&mut self) -> Option<i64> {
        let digits = self.0.bytes().take_while(u8::is_ascii_digit).count();
        let fraction = if (1..=6).contains(&digits) {
            self.number(digits, 0..=999_999)?
        } else {
            return None;
        };
        Some(fraction * 10_i64.pow(6 - digits as u32))
    }

    fn number(&mut self, digits: usize, range: std::ops::RangeInclusive<i64>) -> Option<i64> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        number.bytes().all(|byte| byte.is_ascii_digit()).then_some(())?;
        self.0 = rest;
        number.parse().ok().filter(|number| range.contains(number))
    }

    fn one_of(&mut self, wanted: &[char]) -> Option<char> {
        let mut chars = self.0.chars();
        let first = chars.next().filter(|c| wanted.contains(c))?;
        self.0 = chars.as_str();
        Some(first)
    }
}
