"""Runs a processor in a native test: the same handlers, the same bytes between them and the host, with state, timers
and TTL in memory and time that the test sets.

    query = TestQuery(Counter)
    query.input("a", [(1,), (2,)])
    assert query.run_batch() == [("a", 2)]

What is the host's is not here: late rows are not dropped, NULLs in columns that are NOT NULL are errors of the test,
and the watermark is what the test says. ``tidemill test`` tests with all of that.
"""

from .query import TestQuery

__all__ = ["TestQuery"]
