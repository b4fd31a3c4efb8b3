from datetime import datetime, timedelta, timezone

import pytest
from processor import FlightRules
from tidemill import millis_of
from tidemill.testing import TestQuery

MONDAY = datetime(2013, 7, 8, tzinfo=timezone.utc)
HOUR_MS = 3_600_000


@pytest.fixture
def query():
    return TestQuery(FlightRules, time_mode="EventTime")


def flight(number, hour, dest, dep_delay=0, air_time=120, origin="JFK"):
    return {
        "time_hour": MONDAY + timedelta(hours=hour),
        "minute": 0,
        "carrier": "UA",
        "flight": number,
        "origin": origin,
        "dest": dest,
        "dep_delay": dep_delay,
        "air_time": air_time,
    }


def cancelled(number, hour, dest):
    return flight(number, hour, dest, dep_delay=None, air_time=None)


def alerts(query, *flights):
    return [(row.rule, row.flight, row.alert) for row in query.input("N1", flights).run_batch()]


def test_a_flight_out_and_one_back_are_no_alert(query):
    assert alerts(query, flight(1, 8, "ORD"), flight(2, 14, "ORD")) == []


def test_an_aircraft_that_takes_off_while_it_flies_is_in_two_places(query):
    assert alerts(query, flight(1, 8, "LAX", air_time=320), flight(2, 9, "SFO")) == [
        ("in two places", "UA 2", "takes off at JFK 4 h 20 before UA 1 lands at LAX")
    ]


def test_a_turnaround_needs_the_way_back(query):
    query.input("N1", [flight(1, 8, "ORD")]).run_batch()
    assert alerts(query, flight(2, 11, "BOS")) == [
        ("impossible turnaround", "UA 2", "takes off at JFK 1 h 00 after UA 1 landed at ORD; that takes 1 h 52")
    ]


def test_from_where_it_landed_it_needs_no_way_back(query):
    assert alerts(query, flight(1, 8, "EWR", air_time=20), flight(2, 9, "BOS", origin="EWR")) == []


def test_the_third_late_departure_of_a_day_is_a_burst_and_the_fourth_the_same_one(query):
    late = [flight(n, 6 * n, "ORD", dep_delay=50) for n in range(1, 5)]
    assert alerts(query, *late) == [("delay burst", "UA 3", "3 late departures in 12 h 00, 150 minutes in all")]


def test_late_departures_further_apart_than_a_day_are_none(query):
    assert alerts(query, *(flight(n, 13 * n, "ORD", dep_delay=50) for n in range(1, 5))) == []


def test_a_second_cancellation_to_the_same_place_is_an_alert(query):
    assert alerts(query, cancelled(1, 8, "ORD"), cancelled(2, 10, "BOS")) == []
    assert alerts(query, cancelled(3, 20, "ORD")) == [
        ("cancelled again", "UA 3", "2 cancellations on the way to ORD, 12 h 00 apart")
    ]


def test_an_aircraft_that_is_not_seen_for_sixty_hours_is_forgotten(query):
    query.input("N1", [flight(1, 8, "ORD", dep_delay=50), cancelled(2, 9, "BOS")]).run_batch()
    end = millis_of(MONDAY) + 69 * HOUR_MS
    assert query.timers_of("N1") == [end]
    query.set_watermark_ms(end).run_batch()
    assert query.value_of("last_departure", "N1") is None
    assert query.list_of("late_departures", "N1") == []
    assert query.map_of("cancellations", "N1") == {}


def test_flights_without_an_aircraft_are_no_history(query):
    assert query.input((None,), [cancelled(1, 8, "ORD"), cancelled(2, 9, "ORD")]).run_batch() == []
    assert query.timers_of((None,)) == []
