"""Records what the controller of an Apache Kafka writes in the course of a broker's life.

    .venv/bin/python -m compat_tests.record_controller

writes tests/data/kafka-4.3.1-controller.jsonl.gz for `tests/test_controller_as_kafka.py`: a line
for each batch of the metadata log, in order, without the records that say nothing. Needs Java and
Maven.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compat_tests.apache_kafka import Kafka
from compat_tests.record import write
from compat_tests.wire_story.teller import Teller
from ottla.protocol.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    DeleteTopicsRequest,
)

PAYLOAD = "| payload: "
SAYS_NOTHING = "NO_OP_RECORD"


def main() -> None:
    with Kafka() as kafka:
        teller = Teller(kafka.bootstrap)
        teller.topic("first", partitions=2)
        teller.topic("second", configs={"min.insync.replicas": "2"})
        grow = CreatePartitionsTopic(name="second", count=3, assignments=None)
        grown = CreatePartitionsRequest(topics=[grow], timeout_ms=30_000, validate_only=False)
        teller.wire.ask(grown, 3)
        teller.wire.ask(DeleteTopicsRequest(topic_names=["second"], timeout_ms=30_000), 5)
        teller.wire.close()
        kafka.stop()
        kafka.start()
        kafka.kill()
        kafka.start()
        kafka.stop()
        write("controller", batches(kafka))


def batches(kafka: Kafka) -> Iterator[dict[str, Any]]:
    segments = sorted((Path(kafka.data_dir) / "__cluster_metadata-0").glob("*.log"))
    arguments = ["--cluster-metadata-decoder", "--skip-record-metadata", "--files"]
    for segment in segments:
        name = "org.apache.kafka.tools.DumpLogSegments"
        offset, records = -1, list[dict[str, Any]]()
        for line in [*kafka.tool(name, *arguments, str(segment)).splitlines(), "baseOffset: -1 "]:
            if line.startswith("baseOffset: "):
                if records:
                    yield {"offset": offset, "records": records}
                offset, records = int(line.split()[1]), []
            elif line.startswith(PAYLOAD):
                record = json.loads(line.removeprefix(PAYLOAD))
                if record["type"] != SAYS_NOTHING:
                    records.append(record)


if __name__ == "__main__":
    main()
