"""Milliseconds since the epoch, as timers count, from and to ``datetime``, exactly."""

from __future__ import annotations

import datetime

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MILLISECOND = datetime.timedelta(milliseconds=1)


def millis_of(instant: datetime.datetime) -> int:
    """Milliseconds since the epoch, rounded down. An instant without a time zone is taken as UTC."""
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=datetime.timezone.utc)
    return (instant - _EPOCH) // _MILLISECOND


def timestamp_of(millis: int) -> datetime.datetime:
    """The instant, in UTC, so many milliseconds after the epoch."""
    return _EPOCH + millis * _MILLISECOND
