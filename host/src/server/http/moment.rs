//! Moments as clients see them: RFC 3339, UTC, with milliseconds.

use std::time::{Duration, UNIX_EPOCH};

/// The text of a moment in ms since the epoch. What is before the epoch is shown as the epoch.
pub fn moment(ms: i64) -> String {
    let since = Duration::from_millis(u64::try_from(ms).unwrap_or_default());
    humantime::format_rfc3339_millis(UNIX_EPOCH + since).to_string()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_moment_is_written_as_people_and_programs_read_it() {
        assert_eq!(super::moment(1_700_000_000_123), "2023-11-14T22:13:20.123Z");
        assert_eq!(super::moment(-1), "1970-01-01T00:00:00.000Z");
    }
}
