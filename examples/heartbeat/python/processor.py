"""Reports sensors that have been silent for five minutes."""

import tidemill
from tidemill import StatefulProcessor, millis_of, timestamp_of

SILENCE_MS = 5 * 60 * 1000


class Heartbeat(StatefulProcessor):
    def init(self, handle):
        self.handle = handle
        # What is known of a sensor that is alive. Its timer is at `last_seen` + five minutes.
        self.sensor = handle.getValueState("sensor", "last_seen TIMESTAMP, celsius DOUBLE")

    def handleInputRows(self, key, rows, timerValues):
        before = self.sensor.get()
        if before:
            self.handle.deleteTimer(millis_of(before.last_seen) + SILENCE_MS)
        now = timerValues.getCurrentProcessingTimeInMs()
        for reading in rows:
            self.sensor.update((timestamp_of(now), reading.celsius))
        self.handle.registerTimer(now + SILENCE_MS)

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        silent = self.sensor.get()
        if silent:
            self.sensor.clear()
            yield key[0], silent.last_seen, silent.celsius


tidemill.export(
    Heartbeat,
    key="sensor STRING NOT NULL",
    input="celsius DOUBLE NOT NULL",
    output="sensor STRING NOT NULL, last_seen TIMESTAMP NOT NULL, celsius DOUBLE NOT NULL",
)
