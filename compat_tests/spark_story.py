"""What Spark's own `kafka` source and sink do, told to one broker; what they read is returned.

Nothing is set but where the broker is. Records have times of long ago: so they can be compared.
"""

# mypy: disable-error-code="import-untyped,import-not-found"

import json
from pathlib import Path
from typing import Any

from compat_tests.jars import JAVA_SOURCES, cache_directory, filled_once, run
from compat_tests.wire_story.teller import TIME_MS, Teller, batch

CONNECTOR = "4.2.0"
Rows = list[tuple[Any, ...]]


def connector_jars() -> str:
    """The jars of Spark's connector, comma-separated, copied out of Maven's repository once."""

    def copy(to: Path) -> None:
        pom = JAVA_SOURCES / "spark-pom.xml"
        options = [f"-DoutputDirectory={to}", "-DincludeScope=runtime"]
        goal = "dependency:copy-dependencies"
        run("mvn", "--batch-mode", "--quiet", f"--file={pom}", *options, goal)

    folder = filled_once(cache_directory() / f"spark-connector-{CONNECTOR}", copy)
    return ",".join(str(jar) for jar in sorted(folder.glob("*.jar")))


def session(work: Path) -> Any:
    from pyspark.sql import SparkSession

    return (
        SparkSession.builder.master("local[2]")
        .appName("compat")
        .config("spark.jars", connector_jars())
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(work / "warehouse"))
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


class SparkStory:
    """One broker, one Spark; `work` holds checkpoints and what streams have written."""

    def __init__(self, spark: Any, bootstrap: str, work: Path) -> None:
        self._spark = spark
        self._bootstrap = bootstrap
        self._work = work

    def tell(self) -> dict[str, Any]:
        with Teller(self._bootstrap) as teller:
            for name in ("spark-read", "spark-written", "spark-streamed"):
                teller.topic(name, partitions=2)
            for at in range(10):
                data = batch(b"value %d" % at, timestamp=TIME_MS + 1000 * at, key=b"k%d" % at)
                teller.produced("spark-read", data, partition=at % 2)
        return {
            "by offsets": self._by_offsets(),
            "by time": self._by_time(),
            "earliest to latest": self._rows("spark-read"),
            "batch write": self._batch_write(),
            "streaming read": self._streaming_read(),
            "streaming write": self._streaming_write(),
        }

    def _reader(self, topic: str, **options: str) -> Any:
        reader = self._spark.read.format("kafka").option("includeHeaders", "true")
        return self._optioned(reader.option("subscribe", topic), options)

    def _optioned(self, reader: Any, options: dict[str, str]) -> Any:
        reader = reader.option("kafka.bootstrap.servers", self._bootstrap)
        for name, value in options.items():
            reader = reader.option(name, value)
        return reader

    def _rows(self, topic: str, **options: str) -> Rows:
        return rows(self._reader(topic, **options).load())

    def _by_offsets(self) -> Rows:
        start = json.dumps({"spark-read": {"0": 1, "1": -2}})
        end = json.dumps({"spark-read": {"0": 4, "1": -1}})
        return self._rows("spark-read", startingOffsets=start, endingOffsets=end)

    def _by_time(self) -> dict[str, Rows]:
        from_3 = json.dumps({"spark-read": {"0": TIME_MS + 3000, "1": TIME_MS + 3000}})
        return {
            "per partition": self._rows("spark-read", startingOffsetsByTimestamp=from_3),
            "all": self._rows(
                "spark-read",
                startingTimestamp=str(TIME_MS + 2500),
                endingTimestamp=str(TIME_MS + 6000),
            ),
        }

    def _frame(self, first: int, count: int) -> Any:
        """Records with headers, their partition named; as the sink wants them."""
        made = [
            (f"key {at}", f"value {at}", at % 2, [("h", bytearray(b"%d" % at)), ("h", None)])
            for at in range(first, first + count)
        ]
        schema = (
            "key string, value string, partition int,"
            " headers array<struct<key: string, value: binary>>"
        )
        return self._spark.createDataFrame(made, schema).coalesce(1)

    def _batch_write(self) -> Rows:
        writer = self._frame(0, 10).write.format("kafka").option("includeHeaders", "true")
        self._optioned(writer.option("topic", "spark-written"), {}).save()
        return untimed(self._rows("spark-written"))

    def _streaming_read(self) -> list[Rows]:
        """The rest after each restart, and exactly the rest."""
        return [
            self._next_of_stream(),
            self._after_more(2),
            self._after_more(0),
            self._after_more(3),
        ]

    def _after_more(self, count: int) -> Rows:
        with Teller(self._bootstrap) as teller:
            for at in range(count):
                teller.produced("spark-read", batch(b"more %d" % at, timestamp=TIME_MS + at))
        return self._next_of_stream()

    def _next_of_stream(self) -> Rows:
        """What a query reads that begins where the one before it has stopped."""
        out, checkpoint = self._work / "streamed", self._work / "read-checkpoint"
        before = self._streamed(out)
        reader = self._spark.readStream.format("kafka").option("subscribe", "spark-read")
        stream = self._optioned(reader, {"startingOffsets": "earliest", "includeHeaders": "true"})
        writer = stream.load().writeStream.format("parquet").option("path", str(out))
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        query.start().awaitTermination()
        return [row for row in self._streamed(out) if row not in before]

    def _streamed(self, out: Path) -> Rows:
        return rows(self._spark.read.parquet(str(out))) if out.exists() else []

    def _streaming_write(self) -> Rows:
        """A stream of files into a topic, in two runs with one checkpoint."""
        files, checkpoint = self._work / "files", self._work / "write-checkpoint"
        schema = self._frame(0, 1).schema
        for first in (0, 5):
            self._frame(first, 5).write.mode("append").parquet(str(files))
            stream = self._spark.readStream.schema(schema).parquet(str(files))
            writer = stream.writeStream.format("kafka").option("includeHeaders", "true")
            writer = self._optioned(writer.option("topic", "spark-streamed"), {})
            query = writer.option("checkpointLocation", str(checkpoint))
            query.trigger(availableNow=True).start().awaitTermination()
        return untimed(self._rows("spark-streamed"))


def rows(frame: Any) -> Rows:
    """Partition, offset, key, value, time and headers of each record, in their order."""
    found = [
        (
            row.partition,
            row.offset,
            row.key and bytes(row.key),
            bytes(row.value),
            row.timestamp.timestamp(),
            [(each.key, each.value and bytes(each.value)) for each in row.headers or ()],
        )
        for row in frame.collect()
    ]
    return sorted(found)


def untimed(found: Rows) -> Rows:
    """Without the times of now, and without the offsets' order among Spark's tasks."""
    return sorted((row[0], *row[2:4], row[5]) for row in found)
