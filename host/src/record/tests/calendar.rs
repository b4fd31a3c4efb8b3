//! Days and microseconds, as people write them.

use proptest::prelude::*;

use super::super::calendar::{
    date_text, full_timestamp_text, parse_date, parse_exact_timestamp, parse_timestamp, timestamp_text,
};

proptest! {
    #[test]
    fn every_day_has_a_text(days in any::<i32>()) {
        prop_assert_eq!(parse_date(&date_text(days)), Some(days));
    }

    #[test]
    fn every_microsecond_has_a_text(
        micros in prop_oneof![any::<i64>(), i64::MIN..i64::MIN + 90_000_000_000, i64::MAX - 90_000_000_000..=i64::MAX],
    ) {
        prop_assert_eq!(parse_timestamp(&timestamp_text(micros)), Some(micros));
        prop_assert_eq!(parse_exact_timestamp(&timestamp_text(micros)), Some(micros));
        prop_assert_eq!(parse_exact_timestamp(&full_timestamp_text(micros)), Some(micros));
    }

    #[test]
    fn arbitrary_times_never_panic(text in "[0-9TZ:. +-]{0,30}") {
        let _ = (parse_date(&text), parse_timestamp(&text));
    }
}

#[test]
fn calendar_days_are_those_of_the_gregorian_calendar() {
    let cases = [
        (0, "1970-01-01"),
        (-1, "1969-12-31"),
        (11_016, "2000-02-29"),
        (19_782, "2024-02-29"),
        (-719_162, "0001-01-01"),
        (-719_528, "0000-01-01"),
        (-719_529, "-0001-12-31"),
        (2_932_897, "+10000-01-01"),
        (i32::MAX, "+5881580-07-11"),
        (i32::MIN, "-5877641-06-23"),
    ];
    for (days, text) in cases {
        assert_eq!(date_text(days), text);
        assert_eq!(parse_date(text), Some(days));
    }
    for wrong in [
        "",
        "1970",
        "1970-1-1",
        "2023-02-29",
        "1900-02-29",
        "1970-13-01",
        "1970-00-10",
        "1970-01-32",
        "1970-01-01 ",
        "12345-01-01",
        "٢٠٢٤-01-01",
    ] {
        assert_eq!(parse_date(wrong), None, "{wrong}");
    }
}

#[test]
fn an_exact_timestamp_has_an_offset_and_nothing_finer_than_a_microsecond() {
    let noon = parse_exact_timestamp("2013-01-31T12:00:00Z").unwrap();
    for same in ["2013-01-31 12:00:00.0Z", "2013-01-31T14:30:00+02:30", "2013-01-30T23:59:00.000000-12:01"] {
        assert_eq!(parse_exact_timestamp(same), Some(noon), "{same}");
    }
    assert_eq!(parse_exact_timestamp("2013-01-31T12:00:00.01Z"), Some(noon + 10_000));
    for wrong in [
        "2013-01-31",
        "2013-01-31T12:00:00",
        "2013-01-31T24:00:00Z",
        "2013-01-31T12:00:60Z",
        "2013-01-31T12:00:00.Z",
        "2013-01-31T12:00:00.1234567Z",
        "+300000-01-01T00:00:00Z",
    ] {
        assert_eq!(parse_exact_timestamp(wrong), None, "{wrong}");
    }
}

#[test]
fn dates_and_timestamps_are_read_in_many_forms() {
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
    for text in
        ["", "2013-1-1", "2013-02-29", "2013-13-01", "2013-00-10", "2013-01-01x", "13-01-01", "2013-01-01T10:00:00Z"]
    {
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
