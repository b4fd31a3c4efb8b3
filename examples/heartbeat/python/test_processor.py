from processor import Heartbeat
from tidemill import timestamp_of
from tidemill.testing import TestQuery

MINUTE_MS = 60_000


def test_a_sensor_is_reported_once_when_five_minutes_have_passed():
    query = TestQuery(Heartbeat, time_mode="ProcessingTime")
    assert query.input("s1", [(20.0,)]).run_batch() == []
    assert query.set_time_ms(5 * MINUTE_MS - 1).run_batch() == []
    assert query.set_time_ms(5 * MINUTE_MS).run_batch() == [("s1", timestamp_of(0), 20.0)]
    assert query.set_time_ms(60 * MINUTE_MS).run_batch() == []


def test_every_reading_moves_the_timer():
    query = TestQuery(Heartbeat, time_mode="ProcessingTime")
    for minute in (0, 4, 8):
        query.set_time_ms(minute * MINUTE_MS).input("s1", [(float(minute),)])
        assert query.run_batch() == []
    assert query.timers_of("s1") == [13 * MINUTE_MS]
