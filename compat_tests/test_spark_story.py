"""Spark's own source and sink work at Ottla as at Apache Kafka, with nothing changed."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from compat_tests.apache_kafka import Kafka
from compat_tests.ottla_server import Ottla


@pytest.mark.skipif(find_spec("pyspark") is None, reason="needs PySpark: pip install pyspark")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_spark_reads_and_writes_the_same(kafka: Kafka, tmp_path: Path) -> None:
    from compat_tests.spark_story import SparkStory, session

    spark = session(tmp_path)
    try:
        kafkas = SparkStory(spark, kafka.bootstrap, tmp_path / "kafka").tell()
        with Ottla() as ottla:
            ours = SparkStory(spark, ottla.bootstrap, tmp_path / "ottla").tell()
    finally:
        spark.stop()
    assert ours == kafkas
    assert [len(rest) for rest in kafkas["streaming read"]] == [10, 2, 0, 3]
    assert len(kafkas["batch write"]) == len(kafkas["streaming write"]) == 10
    assert kafkas["streaming write"][0][3] == [("h", b"0"), ("h", None)]
    assert len(kafkas["by offsets"]) == 3 + 5
    assert [len(found) for found in kafkas["by time"].values()] == [7, 3]
