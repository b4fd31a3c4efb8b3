// Counts per key with Spark's transformWithState, Scala API. Arguments: INPUT CHECKPOINT PROGRESS CORES, as count.py.

import java.nio.file.{Files, Paths}
import scala.jdk.CollectionConverters._

import org.apache.spark.sql.{Encoders, SparkSession}
import org.apache.spark.sql.streaming._

case class Input(key: String, n: Long)
case class Counted(key: String, count: Long)

class CountProcessor extends StatefulProcessor[String, Input, Counted] {
  @transient private var count: ValueState[Long] = _

  override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
    count = getHandle.getValueState[Long]("count", Encoders.scalaLong, TTLConfig.NONE)

  override def handleInputRows(key: String, rows: Iterator[Input], timers: TimerValues): Iterator[Counted] = {
    val before = if (count.exists()) count.get() else 0L
    val after = before + rows.map(_.n).sum
    count.update(after)
    Iterator.single(Counted(key, after))
  }
}

object Count {
  def main(arguments: Array[String]): Unit = {
    val Array(source, checkpoint, progress, cores) = arguments
    val spark = SparkSession.builder()
      .master(s"local[$cores]")
      .config("spark.ui.enabled", "false")
      .config("spark.driver.bindAddress", "127.0.0.1")
      .config("spark.driver.host", "127.0.0.1")
      .config("spark.sql.shuffle.partitions", cores)
      .config("spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
      .config("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
      .getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    import spark.implicits._
    val rows = spark.readStream.schema("key STRING, n BIGINT").option("maxFilesPerTrigger", "1").parquet(source)
    val counts = rows.as[Input].groupByKey(_.key)
      .transformWithState(new CountProcessor, TimeMode.None(), OutputMode.Update())
    val query = counts.toDF().writeStream
      .format("noop")
      .outputMode("update")
      .option("checkpointLocation", checkpoint)
      .trigger(Trigger.AvailableNow())
      .start()
    query.awaitTermination()
    Files.write(Paths.get(progress), query.recentProgress.map(_.json).toSeq.asJava)
    spark.stop()
  }
}
