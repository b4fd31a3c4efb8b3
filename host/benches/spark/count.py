"""Counts per key with Spark's transformWithState, row API of Python.

    count.py INPUT CHECKPOINT PROGRESS CORES

Reads one file per micro-batch until there are no more, emits the new count of each key to a sink that drops it, and
writes what Spark reports of each batch to PROGRESS, one JSON document per line.
"""

import sys
from collections.abc import Iterator

from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Count(StatefulProcessor):
    def init(self, handle: StatefulProcessorHandle) -> None:
        self.count = handle.getValueState("count", "value BIGINT")

    def handleInputRows(self, key, rows, timerValues) -> Iterator[Row]:
        before = self.count.get()
        count = (before[0] if before else 0) + sum(row.n for row in rows)
        self.count.update((count,))
        yield Row(key=key[0], count=count)

    def close(self) -> None:
        pass


def main(source: str, checkpoint: str, progress: str, cores: str) -> None:
    spark = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", cores)
        .config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    rows = spark.readStream.schema("key STRING, n BIGINT").option("maxFilesPerTrigger", "1").parquet(source)
    counts = rows.groupBy("key").transformWithState(Count(), "key STRING, count BIGINT", "Update", "None")
    query = (
        counts.writeStream.format("noop")
        .outputMode("update")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    with open(progress, "w") as out:
        out.writelines(batch.json.replace("\n", " ") + "\n" for batch in query.recentProgress)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:5])
