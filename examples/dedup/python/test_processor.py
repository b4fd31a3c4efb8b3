from processor import Dedup
from tidemill.testing import TestQuery

MINUTE_MS = 60_000


def test_an_event_passes_once_an_hour():
    query = TestQuery(Dedup, time_mode="ProcessingTime")
    query.input("e1", [("e1", "first"), ("e1", "again")])
    assert query.run_batch() == [("e1", "first")]
    query.set_time_ms(60 * MINUTE_MS - 1).input("e1", [("e1", "late")])
    assert query.run_batch() == []
    query.set_time_ms(60 * MINUTE_MS).input("e1", [("e1", "new")])
    assert query.run_batch() == [("e1", "new")]
