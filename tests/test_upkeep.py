"""What a broker does in the background goes on, whatever a disk says, or ends the process."""

from asyncio import sleep
from collections.abc import Callable
from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.topics import CreatableTopicConfig, CreateTopicsRequest
from ottla.protocol.record_build import build_batch
from ottla.protocol.records import Record
from ottla.storage.errors import DiskFull, StorageError
from ottla.storage.memory_operations import Fault
from ottla.storage.producers import Origin
from tests.controller_rig import creatable
from tests.node_rig import Node, disk_with, tell

# Each task, by what it calls, and how often it does.
TASKS = [
    ("logs.checkpoint", "log.flush.offset.checkpoint.interval.ms"),
    ("logs.expire", None),
    ("logs.expiring_producers", "producer.id.expiration.check.interval.ms"),
    ("ottla.broker.upkeep.delete_old_segments", "log.retention.check.interval.ms"),
    ("ottla.storage.cleaner.Cleaner.dirtiest", "log.cleaner.backoff.ms"),
    ("quorum.upkeep", None),
]
SETTINGS = ["log.initial.task.delay.ms=1000"]
Replace = Callable[[Node, str, Callable[..., Any]], None]
REFUSALS = [KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "full"), DiskFull("data/x", "full")]


async def create(node: Node, name: str = "t", **configs: str) -> None:
    topic = creatable(name, 1, 1)
    topic.configs = [
        CreatableTopicConfig(name=each.replace("_", "."), value=value)
        for each, value in configs.items()
    ]
    await node.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)


@pytest.fixture
def replace(monkeypatch: pytest.MonkeyPatch) -> Replace:
    def replaced(node: Node, path: str, call: Callable[..., Any]) -> None:
        if path.startswith("ottla."):
            monkeypatch.setattr(path, call)
        else:
            _set(node.broker, path, call)

    return replaced


def _set(target: Any, path: str, call: Callable[..., Any]) -> None:
    *way, name = path.split(".")
    for each in way:
        target = getattr(target, each)
    setattr(target, name, call)


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(("path", "interval"), TASKS)
def test_what_a_disk_refuses_is_tried_again(
    path: str, interval: str | None, error: KafkaError | StorageError, replace: Replace
) -> None:
    calls = []

    def refuse(*_: object) -> None:
        calls.append(path)
        raise error

    async def story(node: Node) -> None:
        await create(node)
        replace(node, path, refuse)
        await sleep(30)
        assert len(calls) > 2

    every_second = [] if interval is None else [f"{interval}=1000"]
    tell(story, settings=[*SETTINGS, *every_second], stops=False)


@pytest.mark.parametrize(("path", "interval"), TASKS)
def test_what_nobody_expects_ends_the_process_and_not_only_its_task(
    path: str, interval: str | None, replace: Replace
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError(path)

    async def story(node: Node) -> None:
        await create(node)
        replace(node, path, fail)
        await sleep(30)

    every_second = [] if interval is None else [f"{interval}=1000"]
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        tell(story, settings=[*SETTINGS, *every_second], stops=False)


def test_a_stop_after_such_an_error_still_comes_to_its_end(replace: Replace) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    async def story(node: Node) -> None:
        replace(node, "logs.expire", fail)
        await sleep(5)
        await node.broker.upkeep.stop()

    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        tell(story, stops=False)


def test_segments_of_the_past_go_and_the_checkpoints_say_so() -> None:
    files = disk_with(["data"])

    async def story(node: Node) -> None:
        await create(node, retention_ms="1000")
        await sleep(61)
        text = files.read_whole("data/replication-offset-checkpoint")
        assert text == b"0\n1\nt 0 0\n"

    tell(story, files=files, settings=SETTINGS)


def test_a_full_disk_is_left_alone_until_there_is_room() -> None:
    files = disk_with(["data"])

    async def story(node: Node) -> None:
        await create(node)
        checkpoint = "data/replication-offset-checkpoint"
        files.fail(lambda each: each.path.startswith(checkpoint), Fault.ENOSPC, times=10)
        await sleep(3600)
        assert not node.broker.logs.offline
        assert files.read_whole(checkpoint) == b"0\n1\nt 0 0\n"

    tell(story, files=files)


def test_who_watches_a_log_is_told_when_its_beginning_goes() -> None:
    class Watcher:
        def __init__(self) -> None:
            self.marks = 0

        def mark(self) -> None:
            self.marks += 1

    async def story(node: Node) -> int:
        await create(node, retention_ms="1000", segment_ms="1000")
        partition = node.broker.node.partition("t", 0)
        watcher = Watcher()
        batch = build_batch([Record(0, 1_000_000_000_000, None, b"old")])
        partition.append(batch, acks=1, now=node.broker.world.now(), origin=Origin.COORDINATOR)
        partition.watchers[watcher] = None
        await sleep(400)
        assert partition.log.log_start_offset == 1
        return watcher.marks

    assert tell(story, settings=SETTINGS) == 1
