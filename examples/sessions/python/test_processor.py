from processor import Sessions
from tidemill import timestamp_of
from tidemill.testing import TestQuery

MINUTE_MS = 60_000


def at(minute):
    return timestamp_of(minute * MINUTE_MS)


def events(*minutes):
    return [(at(minute),) for minute in minutes]


def session(first, last, count):
    return "ann", at(first), at(last), at(last + 30), count


def test_a_session_ends_when_the_watermark_is_half_an_hour_past_its_last_event():
    query = TestQuery(Sessions, time_mode="EventTime")
    assert query.input("ann", events(0, 10)).run_batch() == []
    assert query.set_watermark_ms(40 * MINUTE_MS - 1).run_batch() == []
    assert query.set_watermark_ms(40 * MINUTE_MS).run_batch() == [session(0, 10, 2)]
    assert query.timers_of("ann") == []


def test_an_event_between_two_sessions_joins_them():
    query = TestQuery(Sessions, time_mode="EventTime")
    query.input("ann", events(50, 0)).run_batch()
    assert query.timers_of("ann") == [30 * MINUTE_MS, 80 * MINUTE_MS]
    query.input("ann", events(25)).run_batch()
    assert query.set_watermark_ms(200 * MINUTE_MS).run_batch() == [session(0, 50, 3)]


def test_sessions_end_one_by_one():
    query = TestQuery(Sessions, time_mode="EventTime")
    query.input("ann", events(0, 30, 100)).run_batch()
    assert query.set_watermark_ms(100 * MINUTE_MS).run_batch() == [session(0, 0, 1), session(30, 30, 1)]
    assert query.timers_of("ann") == [130 * MINUTE_MS]
