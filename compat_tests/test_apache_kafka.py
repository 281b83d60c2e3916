"""The fixture itself: a real broker starts, serves a stock client, stops, dies and comes back."""

# mypy: disable-error-code="import-untyped,import-not-found"

import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer
from kafka.structs import TopicPartition

from compat_tests import apache_kafka
from compat_tests.apache_kafka import Kafka

ROOT = Path(__file__).parent.parent
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"


def produce(kafka: Kafka, topic: str, value: bytes) -> int:
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap)
    try:
        offset: int = producer.send(topic, value, partition=0).get(timeout=30).offset
    finally:
        producer.close()
    return offset


def consume(kafka: Kafka, topic: str, count: int) -> list[bytes]:
    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap, auto_offset_reset="earliest")
    try:
        consumer.assign([TopicPartition(topic, 0)])
        values: list[bytes] = []
        while len(values) < count:
            polled = consumer.poll(timeout_ms=20_000)
            assert polled, f"{len(values)} of {count} records came"
            values += [record.value for records in polled.values() for record in records]
    finally:
        consumer.close()
    return values


def test_a_record_goes_through_a_real_kafka(kafka: Kafka) -> None:
    assert produce(kafka, "one-record", b"a record") == 0
    assert consume(kafka, "one-record", 1) == [b"a record"]


def test_kafka_comes_back_after_a_clean_stop_and_after_kill_9(
    start_kafka: Callable[..., Kafka],
) -> None:
    # After kill -9 a broker may register again only when its old session has run out.
    kafka = start_kafka(properties={"broker.session.timeout.ms": "2000"})
    clean_shutdown = kafka.data_dir / ".kafka_cleanshutdown"
    produce(kafka, "comes-back", b"before the stop")

    kafka.stop()
    assert clean_shutdown.exists()
    assert not apache_kafka.serves(kafka.port)

    kafka.start()
    produce(kafka, "comes-back", b"before the kill")
    kafka.kill()
    assert not clean_shutdown.exists()

    kafka.start()
    assert consume(kafka, "comes-back", 2) == [b"before the stop", b"before the kill"]


def test_a_directory_that_is_handed_in_outlives_its_broker(
    start_kafka: Callable[..., Kafka], tmp_path: Path
) -> None:
    first = start_kafka(data_dir=tmp_path)
    produce(first, "outlives", b"kept")
    first.stop()
    second = start_kafka(data_dir=tmp_path)
    assert consume(second, "outlives", 1) == [b"kept"]
    second.close()
    assert (tmp_path / "meta.properties").exists()


def test_a_tool_of_kafka_reads_its_log(kafka: Kafka) -> None:
    produce(kafka, "dumped", b"dumped value")
    log = next((kafka.data_dir / "dumped-0").glob("*.log"))
    assert "dumped value" in kafka.tool(DUMP_LOG, "--print-data-log", "--files", str(log))


def test_a_tool_that_fails_is_an_error(kafka: Kafka) -> None:
    with pytest.raises(RuntimeError, match="DumpLogSegments ended with 1"):
        kafka.tool(DUMP_LOG, "--files", "/nowhere/0.log")


@pytest.mark.usefixtures("needs_kafka")
def test_nothing_is_left_when_a_test_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), Kafka() as kafka:
        raise ZeroDivisionError
    assert not kafka.directory.exists()
    assert not apache_kafka.serves(kafka.port)
    assert "Kafka Server started" in capsys.readouterr().err


@pytest.mark.usefixtures("needs_kafka")
def test_nothing_is_left_when_the_test_run_is_killed() -> None:
    if apache_kafka.chosen_engine() != "jvm":
        pytest.skip("testcontainers' own reaper ends a container")
    dies = (
        "import os; from compat_tests.apache_kafka import Kafka; broker = Kafka().__enter__();"
        "print(broker.port, broker.directory, flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", dies], cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=60
    )
    port, directory = done.stdout.split()
    pause = threading.Event()
    for _ in range(200):
        if not apache_kafka.serves(int(port)) and not Path(directory).exists():
            return
        pause.wait(0.05)
    pytest.fail("the broker or its directory outlived the test run")


def test_a_broker_that_cannot_start_says_why(start_kafka: Callable[..., Kafka]) -> None:
    with pytest.raises(RuntimeError, match=r"log\.segment\.bytes"):
        start_kafka(properties={"log.segment.bytes": "no number"})


def test_ports_that_were_taken_meanwhile_are_given_up(
    start_kafka: Callable[..., Kafka], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        offered = [taken.getsockname()[1], *apache_kafka.free_ports(3)]
        monkeypatch.setattr(
            apache_kafka, "free_ports", lambda n: [offered.pop(0) for _ in range(n)]
        )
        kafka = start_kafka()
        assert kafka.port != taken.getsockname()[1]


def test_another_version_runs_as_well(start_kafka: Callable[..., Kafka]) -> None:
    kafka = start_kafka(version="3.9.1")
    assert produce(kafka, "older", b"x") == 0


def test_without_java_there_is_one_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("OTTLA_KAFKA", "jvm")
    expected = "needs Java 17 or later and Maven; not found: java, javac, mvn"
    assert apache_kafka.why_no_kafka() == expected
