"""``pyspark.sql.streaming``: processors and their handle."""

from tidemill import StatefulProcessor, StatefulProcessorHandle
from tidemill.timers import ExpiredTimerInfo, TimerValues

__all__ = ["ExpiredTimerInfo", "StatefulProcessor", "StatefulProcessorHandle", "TimerValues"]
