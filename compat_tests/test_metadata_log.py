"""Metadata logs: ours are formatted as Kafka's tool formats, and each leads on where the other did.

What topics and records become is for test_swapped_brokers.py.
"""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from compat_tests.apache_kafka import CLUSTER_ID, Kafka
from compat_tests.ottla_server import Ottla
from ottla.broker.world import real_now
from ottla.protocol.messages.metadata_records import NoOpRecord
from ottla.replication.metadata import Delta, Image
from ottla.replication.metadata_records import Versioned
from ottla.replication.quorum import Quorum, QuorumSettings
from ottla.replication.quorum_format import format_directories
from ottla.replication.quorum_log import MetadataLogSettings
from ottla.replication.quorum_snapshots import Snapshot
from ottla.replication.quorum_state import Election, parse_quorum_state
from ottla.replication.voters import Listener
from ottla.storage.clock import Now
from ottla.storage.disk_files import DiskFiles
from ottla.storage.log_dirs import open_log_directories, parse_meta_properties
from ottla.storage.long_work import work_now
from ottla.storage.steps import to_the_end

FOLDER = "__cluster_metadata-0"
FIRST = f"{FOLDER}/{0:020d}-{0:010d}.checkpoint"
DUMP_LOG = "org.apache.kafka.tools.DumpLogSegments"
METADATA_QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
PROPERTIES = {"broker.session.timeout.ms": "2000"}
_ANY = [  # what differs from one formatting to the next
    (re.compile(r"(CreateTime: |TimestampType|crc: |lastContainedLogTimestamp\":)\d+"), r"\1N"),
    (re.compile(r"\"voterDirectoryId\":\"[^\"]{22}\""), '"voterDirectoryId":"ID"'),
    (re.compile(r"\"port\":\d+"), '"port":N'),
    (re.compile(r"Dumping .*/"), "Dumping "),
]


class StaticKafka(Kafka):
    """One whose voters are configured, as before KIP-853."""

    def _defaults(self, listen_on: str) -> dict[str, str]:
        defaults = super()._defaults(listen_on)
        controller = defaults.pop("controller.quorum.bootstrap.servers")
        return {**defaults, "controller.quorum.voters": f"1@{controller}"}

    def _format(self) -> None:
        if not (self.data_dir / "meta.properties").exists():
            self.tool(
                "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self._config)
            )


def dumped(kafka: Kafka, *paths: Path) -> list[str]:
    said = kafka.run_tool(
        DUMP_LOG, "--cluster-metadata-decoder", "--files", ",".join(map(str, paths))
    )
    assert (said.returncode, said.stderr) == (0, "")
    text = said.stdout
    for pattern, replacement in _ANY:
        text = pattern.sub(replacement, text)
    return text.splitlines()


def format_here(path: Path, bootstrap: Path) -> None:
    """With the records that Kafka's tool took, as they are Kafka's choice."""
    files = DiskFiles()
    snapshot = Snapshot(files, str(bootstrap))
    format_directories(
        files,
        open_log_directories(files, [str(path)]),
        metadata_path=str(path),
        node_id=1,
        random=Random(1),
        now=Now(0, 1_800_000_000_000),
        bootstrap=[record for part in snapshot.records() for record in part],
        listeners=[Listener("CONTROLLER", "127.0.0.1", 9093)],
    )
    files.close()


@pytest.mark.usefixtures("needs_kafka")
def test_a_directory_is_formatted_as_kafkas_tool_does(tmp_path: Path) -> None:
    kafka = Kafka(data_dir=tmp_path / "kafka")
    kafka._format()
    theirs, ours = kafka.data_dir, tmp_path / "ours"
    format_here(ours, theirs / "bootstrap.checkpoint")
    names = [sorted(str(p.relative_to(d)) for p in d.rglob("*")) for d in (theirs, ours)]
    assert [name for name in names[1] if name != ".lock"] == names[0]
    for name in (FIRST, "bootstrap.checkpoint"):
        assert dumped(kafka, ours / name) == dumped(kafka, theirs / name)
    kafka.close()


def quorum_state(path: Path) -> Election:
    file = path / FOLDER / "quorum-state"
    return parse_quorum_state(str(file), file.read_bytes())[0]


@pytest.mark.usefixtures("needs_kafka")
def test_each_leads_a_new_epoch_in_the_others_directory(tmp_path: Path) -> None:
    with Ottla(data_dir=tmp_path) as ottla:
        ottla.kill()
    assert quorum_state(tmp_path) == Election(1, 1)
    meta = parse_meta_properties("", (tmp_path / "meta.properties").read_bytes())
    with Kafka(data_dir=tmp_path, properties=PROPERTIES) as kafka:
        said = kafka.tool(
            METADATA_QUORUM, "--bootstrap-server", kafka.bootstrap, "describe", "--status"
        )
        assert f"ClusterId:              {meta.cluster_id}" in said
        assert re.search(r"LeaderEpoch: +2\n", said)
        kafka.kill()
        with Ottla(data_dir=tmp_path) as ottla:
            assert quorum_state(tmp_path) == Election(3, 1)
            status = kafka.tool(
                METADATA_QUORUM, "--bootstrap-server", ottla.bootstrap, "describe", "--status"
            )
            assert re.search(r"LeaderEpoch: +3\n", status)
            ottla.stop()
        log = dumped(kafka, *sorted((tmp_path / FOLDER).glob("0*.log")))
    assert sum("LeaderChange" in line for line in log) == 3
    assert all("isvalid: true" in line for line in log if line.startswith("baseOffset"))


@pytest.mark.usefixtures("needs_kafka")
def test_voters_that_are_configured_are_kept_that_way(tmp_path: Path) -> None:
    with StaticKafka(data_dir=tmp_path, properties=PROPERTIES) as kafka:
        kafka.kill()
        before = quorum_state(tmp_path)
        with Ottla(data_dir=tmp_path) as ottla:
            said = kafka.tool(
                METADATA_QUORUM, "--bootstrap-server", ottla.bootstrap, "describe", "--replication"
            )
            assert re.search(r"^1\s+A{22}\s.*Leader", said, re.MULTILINE)
            ottla.stop()
        ours = (tmp_path / FOLDER / "quorum-state").read_text()
        assert '"currentVoters":[{"voterId":1}],"data_version":0}' in ours
        assert quorum_state(tmp_path) == Election(before.epoch + 1, 1)
        kafka.start()
        assert quorum_state(tmp_path) == Election(before.epoch + 2, 1)


class Following:
    """A listener with an image, as a broker has one."""

    def __init__(self) -> None:
        self.image = Image()

    def load(self, records: Sequence[Versioned], *, offset: int, epoch: int) -> None:
        delta = Delta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply(offset=offset, epoch=epoch)

    def commit(
        self,
        base_offset: int,
        last_offset: int,
        epoch: int,
        append_timestamp_ms: int,
        records: Sequence[Versioned],
    ) -> None:
        self.load(records, offset=last_offset, epoch=epoch)


async def lead_through_many_snapshots(path: Path) -> None:
    """Until the first segments of the log are gone."""
    files, listener = DiskFiles(), Following()
    meta = parse_meta_properties("", (path / "meta.properties").read_bytes())
    quorum = Quorum(
        files,
        str(path),
        node_id=1,
        directory_id=meta.directory_id or b"",
        random=Random(1),
        now=real_now,
        loop=asyncio.get_running_loop(),
        listener=listener,
        on_failure=lambda: None,
        settings=QuorumSettings(log=MetadataLogSettings(segment_bytes=4000, max_retention_bytes=0)),
    )
    to_the_end(quorum.opening())
    for _ in range(3):
        for _ in range(100):
            offset = quorum.append([Versioned(NoOpRecord())])
        await quorum.committed(offset)
        work_now(quorum.writing_snapshot(listener.image.records()))
    to_the_end(quorum.closing())
    files.close()


@pytest.mark.usefixtures("needs_kafka")
def test_kafka_leads_on_where_our_log_begins_later(tmp_path: Path) -> None:
    topics = "org.apache.kafka.tools.TopicCommand"
    with Kafka(data_dir=tmp_path) as kafka:
        kafka.tool(topics, "--bootstrap-server", kafka.bootstrap, "--create", "--topic", "kept")
        kafka.stop()
        asyncio.run(lead_through_many_snapshots(tmp_path))
        names = [path.name for path in (tmp_path / FOLDER).iterdir()]
        assert f"{0:020d}.log" not in names
        assert len([name for name in names if name.endswith(".checkpoint")]) == 1
        kafka.start()
        listed = kafka.tool(topics, "--bootstrap-server", kafka.bootstrap, "--list")
        assert listed.split() == ["kept"]
        kafka.stop()
        asyncio.run(lead_through_many_snapshots(tmp_path))
        kafka.start()
        assert kafka.tool(topics, "--bootstrap-server", kafka.bootstrap, "--list") == listed
