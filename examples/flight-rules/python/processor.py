"""Rules over the departures of aircraft: what cannot be, and what goes wrong again and again.

Each rule is a function of a departure and of what is remembered of its aircraft, and gives the text of an alert or None.
"""

from datetime import timedelta

import tidemill
from tidemill import Row, StatefulProcessor, millis_of

# On the ground between landing and the next take-off.
TURNAROUND = timedelta(minutes=20)
# Flying back may take less than flying out: of the time out, with the wind behind.
FASTEST_WAY_BACK = 0.6

BURST_DEPARTURES = 3
BURST_DELAY_MINUTES = 45
BURST_WINDOW = timedelta(hours=24)

CANCELLATIONS = 2
CANCELLATION_WINDOW = timedelta(hours=48)

# An aircraft that is not seen for so long is forgotten.
REMEMBERED = timedelta(hours=60)

Departure = Row("flight", "origin", "dest", "off", "landed")


class FlightRules(StatefulProcessor):
    def init(self, handle):
        self.handle = handle
        # The last departure. `off` is when it took off; `landed` is NULL for one that was diverted.
        self.last = handle.getValueState(
            "last_departure", "flight STRING, origin STRING, dest STRING, off TIMESTAMP, landed TIMESTAMP"
        )
        # Take-offs of the window that were late, in order.
        self.late = handle.getListState("late_departures", "off TIMESTAMP, minutes INT")
        # The latest run of cancellations on the way to a destination.
        self.cancelled = handle.getMapState("cancellations", "dest STRING", "times INT, latest TIMESTAMP")

    def handleInputRows(self, key, rows, timerValues):
        (tailnum,) = key
        if tailnum is None:
            # Cancelled before an aircraft was assigned: flights of many aircraft, and so of none.
            return
        latest = None
        for flight in sorted(rows, key=scheduled):
            latest = scheduled(flight)
            if flight.dep_delay is None:
                found = [("cancelled again", self.cancelled_again(flight))]
            else:
                departure = departed(flight)
                last = self.last.get()
                found = [
                    ("in two places", in_two_places(departure, last)),
                    ("impossible turnaround", impossible_turnaround(departure, last)),
                    ("delay burst", self.delay_burst(departure, flight.dep_delay)),
                ]
                self.last.update(departure)
            for rule, alert in found:
                if alert:
                    yield tailnum, latest, rule, f"{flight.carrier} {flight.flight}", alert
        self.remember_until(latest + REMEMBERED)

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        self.last.clear()
        self.late.clear()
        self.cancelled.clear()

    def cancelled_again(self, flight):
        """The same aircraft was to fly to the same place before, and did not."""
        at = scheduled(flight)
        before = self.cancelled.getValue((flight.dest,))
        goes_on = before is not None and at - before.latest <= CANCELLATION_WINDOW
        times = before.times + 1 if goes_on else 1
        self.cancelled.updateValue((flight.dest,), (times, at))
        if times >= CANCELLATIONS:
            return f"{times} cancellations on the way to {flight.dest}, {in_words(at - before.latest)} apart"

    def delay_burst(self, departure, minutes):
        """The third late departure of the window; what comes after it belongs to the same burst."""
        if minutes < BURST_DELAY_MINUTES:
            return None
        window = [late for late in self.late.get() if departure.off - late.off <= BURST_WINDOW]
        window.append(Row(off=departure.off, minutes=minutes))
        self.late.put(window)
        if len(window) == BURST_DEPARTURES:
            total = sum(late.minutes for late in window)
            return f"{len(window)} late departures in {in_words(departure.off - window[0].off)}, {total} minutes in all"

    def remember_until(self, end):
        for expiry_ms in self.handle.listTimers():
            self.handle.deleteTimer(expiry_ms)
        self.handle.registerTimer(millis_of(end))


def in_two_places(departure, last):
    """Takes off while its flight before is in the air."""
    if last and last.landed and last.off <= departure.off < last.landed:
        return f"takes off at {departure.origin} {in_words(last.landed - departure.off)} before {last.flight} lands at {last.dest}"


def impossible_turnaround(departure, last):
    """Takes off too soon after it landed, given the way it had to fly between."""
    if not last or not last.landed or departure.off < last.landed:
        return None
    needed = TURNAROUND
    if departure.origin != last.dest:
        needed += TURNAROUND + FASTEST_WAY_BACK * (last.landed - last.off)
    between = departure.off - last.landed
    if between < needed:
        return f"takes off at {departure.origin} {in_words(between)} after {last.flight} landed at {last.dest}; that takes {in_words(needed)}"


def scheduled(flight):
    return flight.time_hour + timedelta(minutes=flight.minute)


def departed(flight):
    off = scheduled(flight) + timedelta(minutes=flight.dep_delay)
    landed = None if flight.air_time is None else off + timedelta(minutes=flight.air_time)
    return Departure(f"{flight.carrier} {flight.flight}", flight.origin, flight.dest, off, landed)


def in_words(duration):
    """A duration as people say it: 1 h 05."""
    hours, minutes = divmod(int(duration.total_seconds()) // 60, 60)
    return f"{hours} h {minutes:02}" if hours else f"{minutes} min"


tidemill.export(
    FlightRules,
    key="tailnum STRING",
    input="""
        time_hour TIMESTAMP NOT NULL, minute INT NOT NULL, carrier STRING NOT NULL, flight INT NOT NULL,
        origin STRING NOT NULL, dest STRING NOT NULL, dep_delay INT, air_time INT
    """,
    output="tailnum STRING NOT NULL, scheduled TIMESTAMP NOT NULL, rule STRING NOT NULL, flight STRING NOT NULL, alert STRING NOT NULL",
)
