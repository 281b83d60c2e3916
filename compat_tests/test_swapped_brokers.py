"""One data directory, served by Ottla and by Apache Kafka in turns: both see the same."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from compat_tests.apache_kafka import Kafka
from compat_tests.ottla_server import Ottla
from compat_tests.seen import append, fill, seen

# After kill -9 Kafka may register again only when its old session has run out.
PROPERTIES = {"broker.session.timeout.ms": "2000"}
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"
# What Kafka's log says where it must look into every segment.
NO_CLEAN_STOP = "no clean shutdown file was found"

End = Callable[[Kafka | Ottla], None]
ENDS: dict[str, End] = {"a clean stop": lambda b: b.stop(), "kill -9": lambda b: b.kill()}


@pytest.mark.usefixtures("needs_kafka")
@pytest.mark.parametrize("end", ENDS)
def test_kafka_serves_what_ottla_wrote(end: str, tmp_path: Path) -> None:
    with Ottla(data_dir=tmp_path) as ottla:
        fill(ottla.bootstrap)
        before = seen(ottla.bootstrap)
        ENDS[end](ottla)
    with Kafka(data_dir=tmp_path, properties=PROPERTIES) as kafka:
        assert seen(kafka.bootstrap) == before
        recovers = NO_CLEAN_STOP in kafka.log_file.read_text(errors="replace")
        assert recovers == (end == "kill -9")
        append(kafka.bootstrap, "round-0-plain", [b"by Kafka"])
        fill(kafka.bootstrap, round_number=1)
        after = seen(kafka.bootstrap)
        ENDS[end](kafka)
    with Ottla(data_dir=tmp_path) as ottla:
        assert seen(ottla.bootstrap) == after


@pytest.mark.parametrize("end", ENDS)
def test_ottla_serves_what_kafka_wrote(
    end: str, start_kafka: Callable[..., Kafka], tmp_path: Path
) -> None:
    kafka = start_kafka(data_dir=tmp_path, properties=PROPERTIES)
    fill(kafka.bootstrap)
    before = seen(kafka.bootstrap)
    ENDS[end](kafka)
    with Ottla(data_dir=tmp_path) as ottla:
        assert seen(ottla.bootstrap) == before
        append(ottla.bootstrap, "round-0-plain", [b"by Ottla"])
        fill(ottla.bootstrap, round_number=1)
        after = seen(ottla.bootstrap)
        ENDS[end](ottla)
    kafka.start()
    assert seen(kafka.bootstrap) == after


def test_kafkas_tool_reads_our_metadata_log_and_snapshots(
    start_kafka: Callable[..., Kafka], tmp_path: Path
) -> None:
    # Many snapshots, and only a little in the log after each of them.
    settings = {"metadata.log.max.record.bytes.between.snapshots": "2000"}
    with Ottla(data_dir=tmp_path / "data", settings=settings) as ottla:
        for number in range(4):
            fill(ottla.bootstrap, round_number=number)
        ottla.restart()
    metadata = tmp_path / "data" / "__cluster_metadata-0"
    logs, snapshots = sorted(metadata.glob("*.log")), sorted(metadata.glob("*.checkpoint"))
    assert logs
    assert snapshots
    kafka = start_kafka()
    for path in (*logs, *snapshots):
        done = kafka.run_tool(DUMP_LOG, "--cluster-metadata-decoder", "--files", str(path))
        assert done.returncode == 0, done
        assert "Could not" not in done.stdout + done.stderr, done
        assert "isvalid: false" not in done.stdout
        assert re.search(r'payload: \{"type":|LeaderChange|SnapshotHeader', done.stdout), done
