"""Cuts each user's events into sessions: one ends when 30 minutes have passed without an event, by the time of the
events.
"""

from datetime import timedelta

import tidemill
from tidemill import Row, StatefulProcessor, millis_of, timestamp_of

GAP = timedelta(minutes=30)

# A session that may still grow. Its timer is at `last` + 30 minutes.
Session = Row("first", "last", "events")


class Sessions(StatefulProcessor):
    def init(self, handle):
        self.handle = handle
        # Ordered by time. There is more than one when events are further apart than the gap, and the watermark is
        # behind them.
        self.open = handle.getListState("open", "first TIMESTAMP, last TIMESTAMP, events BIGINT")

    def handleInputRows(self, key, rows, timerValues):
        sessions = list(self.open.get())
        for session in sessions:
            self.handle.deleteTimer(millis_of(session.last + GAP))
        sessions.extend(Session(event.at, event.at, 1) for event in rows)
        sessions = merge(sessions)
        for session in sessions:
            self.handle.registerTimer(millis_of(session.last + GAP))
        self.open.put(sessions)

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        now = timestamp_of(expiredTimerInfo.getExpiryTimeInMs())
        still_open = []
        for session in self.open.get():
            if session.last + GAP <= now:
                yield key[0], session.first, session.last, session.last + GAP, session.events
            else:
                still_open.append(session)
        if still_open:
            self.open.put(still_open)
        else:
            self.open.clear()


def merge(sessions):
    """Joins what is less than the gap apart. Events may come in any order, so one can join two sessions."""
    merged = []
    for session in sorted(sessions, key=lambda session: session.first):
        before = merged[-1] if merged else None
        if before and session.first < before.last + GAP:
            merged[-1] = Session(before.first, max(before.last, session.last), before.events + session.events)
        else:
            merged.append(session)
    return merged


tidemill.export(
    Sessions,
    key="user STRING NOT NULL",
    input="at TIMESTAMP NOT NULL",
    output="user STRING NOT NULL, first TIMESTAMP NOT NULL, last TIMESTAMP NOT NULL, ended TIMESTAMP NOT NULL, events BIGINT NOT NULL",
)
