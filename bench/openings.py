"""Opening what is on disk, beside Apache Kafka doing the same, on the same files in one run.

Kafka makes the topics and stops; the folders are filled by our storage, whose files are Kafka's.
Then each opens them in turn. Kafka's time is what its own log says of loading, without the start of
its JVM and of the rest of the broker.
"""

import re
import shutil
import tempfile
from pathlib import Path
from random import Random
from time import perf_counter

from bench.storage import batches
from bench.tables import Cell, Goal, Table
from compat_tests.apache_kafka import Kafka, why_no_kafka
from ottla.protocol.records import patch
from ottla.storage.checkpoints import CLEAN_SHUTDOWN, RECOVERY_POINT_CHECKPOINT
from ottla.storage.clock import Now
from ottla.storage.config import LogConfig
from ottla.storage.disk_files import DiskFiles
from ottla.storage.log_dirs import open_log_directories
from ottla.storage.logs import Logs
from ottla.storage.steps import exhaust

GOAL = Goal(1.0)
PARTITIONS = 1000
BATCHES_EACH = 12
RECOVERED_BYTES = 1 << 30
NOW = Now(0, 1_800_000_000_000)
CONFIG = LogConfig()
PROPERTIES = {"broker.session.timeout.ms": "4000", "log.retention.ms": "-1"}
_LOADED = re.compile(r"Loaded (\d+) logs in (\d+)ms")


def run() -> list[Table]:
    if (reason := why_no_kafka()) is not None:
        print(f"skipped, nothing is beside us: it {reason}\n")
        return []
    place = Path(tempfile.mkdtemp(prefix=".bench-", dir=".")).resolve()
    try:
        with Kafka(properties=PROPERTIES, data_dir=place / "data") as kafka:
            return [_compared(kafka)]
    finally:
        shutil.rmtree(place)


def _compared(kafka: Kafka) -> Table:
    table = Table(
        "opening what is on disk, in seconds", ["", "Ottla", "Kafka 4.3.1", f"ratio ({GOAL})"]
    )
    for topic, partitions in (("large", 1), ("many", PARTITIONS)):
        kafka.tool(
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", kafka.bootstrap, "--create", "--topic", topic),
            *("--partitions", str(partitions), "--replication-factor", "1"),
        )
    kafka.stop()
    _fill(kafka.data_dir, "large", RECOVERED_BYTES >> 14)
    ours = _seconds_of_ours(_crashed(kafka.data_dir))
    _crashed(kafka.data_dir)
    _add(table, f"recover {RECOVERED_BYTES >> 30} GiB after a crash", ours, _seconds_of(kafka))
    _fill(kafka.data_dir, "many", BATCHES_EACH)
    ours = _seconds_of_ours(kafka.data_dir)
    _add(table, f"{PARTITIONS} clean partitions", ours, _seconds_of(kafka))
    return table


def _add(table: Table, name: str, ours: float, kafkas: float) -> None:
    table.add(name, Cell(ours), Cell(kafkas), Cell(ours / kafkas, GOAL))


def _crashed(directory: Path) -> Path:
    """As after a power cut behind which nothing is vouched for."""
    for name in (CLEAN_SHUTDOWN, RECOVERY_POINT_CHECKPOINT):
        (directory / name).unlink(missing_ok=True)
    for path in (directory / "large-0").glob("*.snapshot"):
        path.unlink()
    return directory


def _logs_in(directory: Path, files: DiskFiles) -> Logs:
    directories = open_log_directories(files, [str(directory)])
    return Logs(files, directories, random=Random(1), default_config=CONFIG)


def _fill(directory: Path, topic: str, batch_count: int) -> None:
    files = DiskFiles()
    logs = _logs_in(directory, files)
    exhaust(logs.opening(lambda topic: CONFIG, NOW))
    prepared = batches(min(batch_count, 500), records=160, value_size=90, idempotent=False)
    for (name, _), log in logs.current.items():
        if name != topic:
            continue
        for number in range(batch_count):
            batch = prepared[number % len(prepared)]
            patch(batch, 0, base_offset=0, leader_epoch=-1)
            log.append_as_leader(batch, leader_epoch=log.epochs.latest or 0, now=NOW)
    exhaust(logs.closing(broker_epoch=-1))
    files.close()


def _seconds_of_ours(directory: Path) -> float:
    files = DiskFiles()
    logs = _logs_in(directory, files)
    started = perf_counter()
    exhaust(logs.opening(lambda topic: CONFIG, NOW))
    elapsed = perf_counter() - started
    if logs.refused or len(logs.current) < PARTITIONS:
        raise RuntimeError(f"{len(logs.current)} logs, refused: {logs.refused}")
    exhaust(logs.closing(broker_epoch=-1))
    files.close()
    return elapsed


def _seconds_of(kafka: Kafka) -> float:
    before = kafka.log_file.stat().st_size
    kafka.start()
    kafka.stop()
    with kafka.log_file.open() as file:
        file.seek(before)
        loaded = _LOADED.findall(file.read())
    if not loaded or int(loaded[-1][0]) < PARTITIONS:
        raise RuntimeError(f"Kafka does not say that it loaded the logs: {loaded}")
    return int(loaded[-1][1]) / 1000
