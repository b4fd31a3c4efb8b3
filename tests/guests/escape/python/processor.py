"""A processor that tries to get out of its sandbox, or to be different from run to run. ../README.md says what it emits."""

import tidemill
from attempts import clocks, order, outside, randomness
from tidemill import Row, StatefulProcessor

ATTEMPTS = clocks.ATTEMPTS | randomness.ATTEMPTS | order.ATTEMPTS | outside.ATTEMPTS

#: Batches that this memory has seen.
batches = set()


class Escape(StatefulProcessor):
    def init(self, handle):
        self.batch = handle.getQueryInfo().getBatchId()

    def handleInputRows(self, key, rows, timerValues):
        batches.add(self.batch)
        for _ in rows:
            for what, attempt in ATTEMPTS.items():
                yield Row(key=key[0], what=what, result=result_of(attempt))
            yield Row(key=key[0], what="time: of the handler", result=str(timerValues.getCurrentProcessingTimeInMs()))
            yield Row(key=key[0], what="order: kept from an earlier batch", result=str(len(batches) - 1))


def result_of(attempt):
    try:
        answer = attempt()
    except BaseException as error:
        return f"refused: {type(error).__name__}: {error}".encode("utf-8", "replace").decode()
    return f"got {answer}"[:200].encode("utf-8", "replace").decode()


tidemill.export(
    Escape,
    key="key STRING NOT NULL",
    input="n BIGINT NOT NULL",
    output="key STRING NOT NULL, what STRING NOT NULL, result STRING NOT NULL",
)
