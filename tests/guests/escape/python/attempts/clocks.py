"""Attempts at a clock that is not the batch's, and at waiting."""

import datetime
import email.utils
import threading
import time
import uuid

AT_BUILD = time.time()


def elapsed(do):
    """How long something takes, by the clock of the sandbox."""
    start = time.monotonic_ns()
    do()
    return time.monotonic_ns() - start


def busy():
    for number in range(100_000):
        number * number


ATTEMPTS = {
    "time: now": lambda: time.time(),
    "time: now, in nanoseconds": lambda: time.time_ns(),
    "time: now, by the system's clock": lambda: time.clock_gettime(time.CLOCK_REALTIME),
    "time: now, as a datetime": lambda: datetime.datetime.now(),
    "time: now, in UTC": lambda: datetime.datetime.now(datetime.UTC),
    "time: today": lambda: datetime.date.today(),
    "time: local": lambda: time.strftime("%Y-%m-%d %H:%M:%S %Z", time.localtime()),
    "time: of a mail": lambda: email.utils.localtime(),
    "time: in a UUID": lambda: uuid.uuid1().time,
    "time: monotonic": lambda: time.monotonic_ns(),
    "time: performance counter": lambda: time.perf_counter_ns(),
    "time: of the process": lambda: time.process_time_ns(),
    "time: of the thread": lambda: time.thread_time_ns(),
    "time: of a busy loop": lambda: elapsed(busy),
    "time: of an hour's sleep": lambda: elapsed(lambda: time.sleep(3600)),
    "time: of an hour's wait for an event": lambda: elapsed(lambda: threading.Event().wait(3600)),
    "frozen: time of the build": lambda: AT_BUILD,
}
