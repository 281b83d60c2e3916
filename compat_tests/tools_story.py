"""A story told with Kafka's own tools: what each prints, made comparable.

What must differ from one broker to the next (addresses, ids, directories, times, speeds, offsets of
the metadata log) gets a name instead; the rest is compared as people see it.
"""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from compat_tests.kafka_tools import KafkaTools, Ran
from compat_tests.wire_story.answers import SERVED
from ottla.protocol.apis import APIS

TOOLS = "org.apache.kafka.tools."
CLASSES = {
    "topics": TOOLS + "TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "console-producer": TOOLS + "ConsoleProducer",
    "console-consumer": TOOLS + "consumer.ConsoleConsumer",
    "get-offsets": TOOLS + "GetOffsetShell",
    "delete-records": TOOLS + "DeleteRecordsCommand",
    "log-dirs": TOOLS + "LogDirsCommand",
    "metadata-quorum": TOOLS + "MetadataQuorumCommand",
    "features": TOOLS + "FeatureCommand",
    "cluster": TOOLS + "ClusterTool",
    "broker-api-versions": TOOLS + "BrokerApiVersionsCommand",
    "producer-perf-test": TOOLS + "ProducerPerformance",
    "leader-election": TOOLS + "LeaderElectionCommand",
    "reassign-partitions": TOOLS + "reassign.ReassignPartitionsCommand",
}
# Tools whose subcommand comes after the address of the broker.
BROKER_FIRST = ("metadata-quorum", "features")

# Each line: a tool, its arguments as in a shell (FILE stands for what is in FILES), its input.
STORY: tuple[tuple[str, ...], ...] = (
    ("topics", "--list"),
    ("topics", "--create --topic first --partitions 3 --config retention.ms=-1"),
    ("topics", "--create --topic first --partitions 3"),
    ("topics", "--create --topic first --if-not-exists"),
    ("topics", "--create --topic dotted.name --replica-assignment 1,1"),
    ("topics", "--create --topic bad/name"),
    ("topics", "--create --topic too-many --replication-factor 3"),
    ("topics", "--create --topic odd --config no.such=1"),
    ("topics", "--create --topic odd --config segment.bytes=x"),
    ("topics", "--create --topic configured --config segment.bytes=2097152 --config flush.ms=9000"),
    ("topics", "--list"),
    ("topics", "--list --exclude-internal --topic dot.*"),
    ("topics", "--describe --topic first"),
    ("topics", "--describe"),
    ("topics", "--describe --topic no-such-topic"),
    ("topics", "--describe --topic configured --topics-with-overrides"),
    ("topics", "--describe --under-replicated-partitions"),
    ("topics", "--describe --unavailable-partitions"),
    ("topics", "--describe --at-min-isr-partitions"),
    ("topics", "--describe --under-min-isr-partitions"),
    ("topics", "--alter --topic first --partitions 5"),
    ("topics", "--alter --topic first --partitions 2"),
    ("topics", "--alter --topic no-such-topic --partitions 2"),
    ("topics", "--describe --topic first"),
    ("configs", "--entity-type topics --entity-name first --describe"),
    ("configs", "--entity-type topics --entity-name first --describe --all"),
    (
        "configs",
        "--entity-type topics --entity-name first --alter --add-config "
        "max.message.bytes=200000,cleanup.policy=[compact,delete]",
    ),
    ("configs", "--entity-type topics --entity-name first --describe"),
    (
        "configs",
        "--entity-type topics --entity-name first --alter --delete-config cleanup.policy",
    ),
    ("configs", "--entity-type topics --entity-name first --alter --delete-config not.set"),
    ("configs", "--entity-type topics --entity-name first --alter --add-config no.such=1"),
    ("configs", "--entity-type topics --entity-name first --alter --add-config segment.bytes=x"),
    ("configs", "--entity-type topics --entity-name no-such --alter --add-config flush.ms=1"),
    ("configs", "--entity-type topics --entity-name first --describe"),
    ("configs", "--entity-type brokers --entity-name 1 --describe"),
    (
        "configs",
        "--entity-type brokers --entity-name 1 --alter --add-config log.cleaner.threads=2",
    ),
    (
        "configs",
        "--entity-type brokers --entity-default --alter --add-config log.retention.ms=99999999",
    ),
    ("configs", "--entity-type brokers --entity-name 1 --describe"),
    ("configs", "--entity-type brokers --entity-default --describe"),
    ("configs", "--entity-type brokers --entity-name 1 --alter --add-config node.id=9"),
    ("configs", "--entity-type brokers --entity-name 9 --describe"),
    (
        "configs",
        "--entity-type brokers --entity-name 1 --alter --delete-config log.cleaner.threads",
    ),
    (
        "configs",
        "--entity-type brokers --entity-default --alter --delete-config log.retention.ms",
    ),
    ("configs", "--entity-type groups --entity-name g --describe"),
    (
        "configs",
        "--entity-type groups --entity-name g --alter --add-config "
        "consumer.session.timeout.ms=50000",
    ),
    ("configs", "--entity-type groups --entity-name g --describe"),
    (
        "configs",
        "--entity-type client-metrics --entity-name m --alter --add-config interval.ms=1000",
    ),
    ("configs", "--entity-type client-metrics --entity-name m --describe"),
    ("topics", "--create --topic talk --partitions 2 --config retention.ms=-1"),
    (
        "console-producer",
        "--topic talk --property parse.key=true --property parse.headers=true --sync",
        "h1:v1,h2:v2\tkey-1\tvalue one\nh1:v\tkey-2\tvalue two\nh:\tkey-3\tvalue three\n",
    ),
    (
        "console-producer",
        "--topic talk --compression-codec zstd --property parse.key=true",
        "4\tfour\n5\tfive\n6\tsix\n",
    ),
    (
        "console-producer",
        "--topic talk --request-required-acks 0 --property parse.key=true",
        "7\tseven\n",
    ),
    ("get-offsets", "--topic talk"),
    ("get-offsets", "--topic talk --time earliest"),
    ("get-offsets", "--topic talk --time max-timestamp"),
    ("get-offsets", "--topic talk --time latest-tiered"),
    ("get-offsets", "--topic talk --time 1"),
    ("get-offsets", "--topic-partitions talk:0-1,first:0"),
    ("get-offsets", "--topic no-such-topic"),
    ("get-offsets", ""),
    (
        "console-consumer",
        "--topic talk --partition 0 --offset earliest --timeout-ms 4000 --max-messages MESSAGES_0"
        " --property print.key=true --property print.headers=true --property print.offset=true"
        " --property print.partition=true",
    ),
    (
        "console-consumer",
        "--topic talk --partition 1 --offset 0 --timeout-ms 4000 --max-messages MESSAGES_1"
        " --property print.key=true --property print.epoch=true",
    ),
    (
        "producer-perf-test",
        "--topic first --num-records 3000 --record-size 100 --throughput -1 --producer-props "
        "bootstrap.servers=BOOTSTRAP acks=1 batch.size=1000",
    ),
    (
        "producer-perf-test",
        "--topic first --num-records 500 --record-size 1000 --throughput -1 --producer-props "
        "bootstrap.servers=BOOTSTRAP acks=all compression.type=lz4",
    ),
    ("delete-records", "--offset-json-file FILE:delete"),
    ("delete-records", "--offset-json-file FILE:delete-beyond"),
    ("get-offsets", "--topic talk --time earliest"),
    ("log-dirs", "--describe --topic-list talk"),
    ("log-dirs", "--describe --topic-list no-such-topic"),
    ("log-dirs", "--describe --broker-list 1,9 --topic-list talk"),
    ("metadata-quorum", "describe --status"),
    ("metadata-quorum", "describe --replication"),
    ("features", "describe"),
    ("features", "upgrade --feature no.such=1"),
    ("features", "upgrade --feature metadata.version=9999"),
    ("features", "downgrade --feature metadata.version=7 --dry-run"),
    ("cluster", "cluster-id"),
    ("cluster", "list-endpoints"),
    ("cluster", "unregister --id 77"),
    ("broker-api-versions", ""),
    ("leader-election", "--election-type preferred --topic talk --partition 0"),
    ("leader-election", "--election-type unclean --topic talk --partition 1"),
    ("leader-election", "--election-type preferred --all-topic-partitions"),
    ("leader-election", "--election-type preferred --topic no-such-topic --partition 0"),
    (
        "reassign-partitions",
        "--generate --topics-to-move-json-file FILE:to-move --broker-list 1",
    ),
    ("reassign-partitions", "--execute --reassignment-json-file FILE:reassignment"),
    ("reassign-partitions", "--verify --reassignment-json-file FILE:reassignment"),
    ("reassign-partitions", "--list"),
    ("reassign-partitions", "--cancel --reassignment-json-file FILE:reassignment"),
    ("reassign-partitions", "--execute --reassignment-json-file FILE:nowhere"),
    ("topics", "--delete --topic talk"),
    ("topics", "--delete --topic no-such-topic"),
    ("topics", "--delete --topic no-such-topic --if-exists"),
    ("topics", "--list"),
)

# Kafka answers these a moment before it shows what they have changed.
CHANGES = ("--create", "--alter", "--delete")
SETTLE_S = 0.2

# Lines whose output differs on purpose, with the reason.
INTENDED: dict[str, str] = {}

FILES = {
    "delete": {"partitions": [{"topic": "talk", "partition": 0, "offset": -1}], "version": 1},
    "delete-beyond": {
        "partitions": [{"topic": "talk", "partition": 0, "offset": 999}],
        "version": 1,
    },
    "to-move": {"topics": [{"topic": "talk"}], "version": 1},
    "reassignment": {
        "version": 1,
        "partitions": [
            {"topic": "talk", "partition": each, "replicas": [1], "log_dirs": ["any"]}
            for each in (0, 1)
        ],
    },
    "nowhere": {
        "version": 1,
        "partitions": [{"topic": "talk", "partition": 0, "replicas": [9]}],
    },
}


class Told(NamedTuple):
    """One line of the story, and what was said to it."""

    line: str
    ran: Ran


def tell(tools: KafkaTools, bootstrap: str, data_dir: Path, work: Path) -> list[Told]:
    for name, content in FILES.items():
        (work / f"{name}.json").write_text(json.dumps(content))
    said: list[Told] = []
    for tool, line, *given in STORY:
        arguments = line.replace("BOOTSTRAP", bootstrap).split()
        arguments = [
            f"{work / each[5:]}.json" if each.startswith("FILE:") else each for each in arguments
        ]
        if tool == "console-consumer":
            arguments = [_counted(each, said) for each in arguments]
        if tool in BROKER_FIRST:
            arguments = ["--bootstrap-server", bootstrap, *arguments]
        elif tool != "producer-perf-test":
            arguments += ["--bootstrap-server", bootstrap]
        ran = tools.run(CLASSES[tool], *arguments, given="".join(given))
        if any(word in line for word in CHANGES):
            time.sleep(SETTLE_S)
        said.append(Told(f"{tool} {line}", _comparable(tool, ran, bootstrap, data_dir, work)))
    return said


def _counted(argument: str, said: list[Told]) -> str:
    """How many records get-offsets has found in a partition of the topic that was talked to."""
    if not argument.startswith("MESSAGES_"):
        return argument
    offsets = next(each.ran.out for each in said if each.line == "get-offsets --topic talk")
    found = re.search(rf"^talk:{argument[-1]}:(\d+)$", offsets, re.MULTILINE)
    return found[1] if found else "1"


NAMED: tuple[tuple[str, str], ...] = (
    (r"TopicId: [\w-]{22}", "TopicId: <id>"),
    (r"Cluster ID: \S+", "Cluster ID: <id>"),
    (r"ClusterId: +\S+", "ClusterId: <id>"),
    (r"(LeaderEpoch|HighWatermark|MaxFollowerLag|MaxFollowerLagTimeMs): +-?\d+", r"\1: <n>"),
    (r'"directoryId": "[\w-]{22}"', '"directoryId": "<id>"'),
    (r"(FinalizedVersionLevel: \S+\s+)Epoch: \d+", r"\1Epoch: <offset>"),
    (r'"endpoints": \[[^]]*\]', '"endpoints": [<endpoints>]'),
    (r"127\.0\.0\.1:\d+|localhost:\d+", "<address>"),
    (r"127\.0\.0\.1 +\d+ ", "<address> "),
    (r"\[20\d\d-\d\d-\d\d \d\d:\d\d:\d\d,\d+\]", "<time>"),
)


TRACE = re.compile(r"\tat |\t\.\.\. \d+ more")


def _comparable(tool: str, ran: Ran, bootstrap: str, data_dir: Path, work: Path) -> Ran:
    def named(text: str) -> str:
        text = text.replace(bootstrap, "<address>").replace(str(data_dir), "<data>")
        text = text.replace(str(work), "<work>")
        for pattern, name in NAMED:
            text = re.sub(pattern, name, text)
        text = "\n".join(line for line in text.splitlines() if not TRACE.match(line))
        return REDUCED[tool](text) if tool in REDUCED else text

    return Ran(ran.code, named(ran.out), named(ran.err))


def _served_apis(text: str) -> str:
    """The lines of the APIs that are served, without what the client makes of their versions."""
    names = {APIS[key].name for key in SERVED}
    lines = [re.sub(r" \[usable: \d+\],?", "", line).rstrip(",") for line in text.splitlines()]
    return "\n".join(each for each in lines if each.strip().partition("(")[0] in names)


def _without_speeds(text: str) -> str:
    """How many records were sent; how fast is of no interest here."""
    return "\n".join(
        re.sub(r" sent,.*", " sent", line) for line in text.splitlines() if "99.9th" in line
    )


def _replication(text: str) -> str:
    """The columns that stay the same: which node has which role."""
    if "NodeId" not in text:
        return text
    return "\n".join(f"{row.split()[0]} {row.split()[-1]}" for row in text.splitlines() if row)


def _metadata_features(text: str) -> str:
    """Features that are not served are not offered: only the others are compared."""
    return "\n".join(
        line
        for line in text.splitlines()
        if not line.startswith("Feature: ") or line.split()[1] in ("metadata.version",)
    )


def _directories(text: str) -> str:
    """Partitions in their order, and no sizes: compressed times are not always equally long."""
    lines = []
    for line in text.splitlines():
        if line.startswith("{"):
            said = json.loads(line)
            for directory in (each for broker in said["brokers"] for each in broker["logDirs"]):
                directory["partitions"].sort(key=lambda each: each["partition"])
                for each in directory["partitions"]:
                    each["size"] = bool(each["size"])
            line = json.dumps(said)
        lines.append(line)
    return "\n".join(lines)


REDUCED: dict[str, Callable[[str], str]] = {
    "broker-api-versions": _served_apis,
    "producer-perf-test": _without_speeds,
    "log-dirs": _directories,
    "metadata-quorum": _replication,
    "features": _metadata_features,
}
