"""The story: its chapters in the order of telling, and how it is told to a broker.

Chapters have topics of their own, so that each can be told alone. What changes a broker comes last.
"""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compat_tests.jars import KAFKA_VERSION
from compat_tests.wire_story import (
    cluster,
    configs,
    fetching,
    grouping,
    producing,
    topics,
    waiting,
)
from compat_tests.wire_story.teller import Teller

# What both brokers are started with, beside what `Kafka` and `Ottla` set themselves.
SETTINGS = {
    "num.partitions": "3",
    "log.retention.hours": "48",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
}
# Features whose code Ottla does not have yet; without them Kafka behaves as a broker without them.
FEATURES_OFF = {
    "eligible.leader.replicas.version": 0,
    "group.version": 0,
    "share.version": 0,
    "streams.version": 0,
    "transaction.version": 0,
}

RECORDING = (
    Path(__file__).parent.parent.parent
    / "tests"
    / "data"
    / f"kafka-{KAFKA_VERSION}-wire-story.jsonl.gz"
)

Chapter = Callable[[Teller], None]

CHAPTERS: dict[str, Chapter] = {
    "versions": cluster.versions,
    "frames": cluster.frames,
    "headers": cluster.headers,
    "producing": producing.producing,
    "produce refusals": producing.produce_refusals,
    "bad batches": producing.bad_batches,
    "topic rules": producing.topic_rules,
    "idempotence": producing.idempotence,
    "fetching": fetching.fetching,
    "fetch epochs": fetching.fetch_epochs,
    "sessions": fetching.sessions,
    "waiting": waiting.waiting,
    "coming again": waiting.coming_again,
    "starting later": waiting.starting_later,
    "listing offsets": fetching.listing_offsets,
    "deleting records": producing.deleting_records,
    "metadata": topics.metadata,
    "auto creation": topics.auto_creation,
    "topic partitions": topics.topic_partitions,
    "creating": topics.creating,
    "creating in vain": topics.creating_in_vain,
    "growing": topics.growing,
    "deleting": topics.deleting,
    **grouping.CHAPTERS,
    "describing configs": configs.describing,
    "altering configs": configs.altering,
    "replacing configs": configs.replacing,
    "describing the cluster": cluster.describing,
    "quorum": cluster.quorum,
    "log directories": cluster.log_directories,
    "electing": cluster.electing,
    "reassigning": cluster.reassigning,
    "features": cluster.features,
    "configs of brokers": configs.brokers,
}


def tell(chapter: str, bootstrap: str) -> dict[str, Any]:
    """Tells one chapter; the answers by the names of their cases."""
    with Teller(bootstrap) as teller:
        CHAPTERS[chapter](teller)
    return teller.answers


def write(answers: dict[str, dict[str, Any]]) -> None:
    """Keeps what Apache Kafka answered: a line for each case."""
    lines = [
        json.dumps({"chapter": chapter, "case": case, "answer": answer}) + "\n"
        for chapter, cases in answers.items()
        for case, answer in cases.items()
    ]
    # Without the time of writing, or every recording would differ.
    RECORDING.write_bytes(gzip.compress("".join(lines).encode(), compresslevel=9, mtime=0))


def read() -> dict[str, dict[str, Any]]:
    """What Apache Kafka answered, by chapter and case."""
    recorded: dict[str, dict[str, Any]] = {chapter: {} for chapter in CHAPTERS}
    for line in gzip.decompress(RECORDING.read_bytes()).decode().splitlines():
        said = json.loads(line)
        recorded[said["chapter"]][said["case"]] = said["answer"]
    return recorded
