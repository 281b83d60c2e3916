"""Replicas on their way from one log directory to another, in a whole node."""

from asyncio import sleep
from random import Random

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.topics import DeleteTopicsRequest
from ottla.storage.memory_disk import Crash
from ottla.storage.memory_files import MemoryFiles
from tests.node_rig import Node, disk_with, tell
from tests.test_replicas import TWO, append, create, move, places

OTHER = {"one": "two", "two": "one"}
KEY = ("a", 0)


def directory_of(node: Node, key: tuple[str, int] = KEY) -> str:
    """Where the controller believes the replica to be."""
    registration = node.broker.image.partition(*key)
    assert registration is not None
    return node.broker.directory_ids[registration.directory(node.broker.node_id)]


def contents(node: Node, key: tuple[str, int] = KEY) -> tuple[bytes, int]:
    log = node.broker.logs.current[key]
    fetched = log.read(log.log_start_offset, 1 << 30)
    assert fetched is not None
    return bytes(fetched.data), log.high_watermark


async def settled(node: Node) -> None:
    for _ in range(1_000):
        if not node.broker.logs.future:
            await sleep(0.1)
            return
        await sleep(0.1)
    raise AssertionError("a move does not come to its end")


def test_new_replicas_are_told_to_the_controller() -> None:
    async def story(node: Node) -> None:
        await create(node, partitions=4)
        await sleep(1)
        found = await places(node)
        assert {path for path in found.values()} == {"one", "two"}
        assert {key[:2]: path for key, path in found.items()} == {
            ("a", index): directory_of(node, ("a", index)) for index in range(4)
        }

    tell(story, paths=TWO)


def test_a_replica_moves_with_all_that_it_holds() -> None:
    async def story(node: Node) -> None:
        await create(node)
        for _ in range(20):
            append(node)
        before, here = contents(node), (await places(node))["a", 0, False]
        assert await move(node, OTHER[here]) == ["NONE"]
        assert await places(node) == {("a", 0, False): here, ("a", 0, True): OTHER[here]}
        await settled(node)
        assert await places(node) == {("a", 0, False): OTHER[here]}
        assert contents(node) == before
        assert directory_of(node) == OTHER[here]
        append(node)
        assert contents(node)[1] == before[1] + 3
        assert node.broker.node.partition("a", 0).log.folder.log_dir.path == OTHER[here]

    tell(story, paths=TWO)


def slow_disk() -> MemoryFiles:
    """Bringing something to disk takes a while, in which much happens."""
    return disk_with(TWO, delay_s=lambda kind, path: 0.005)


@pytest.mark.parametrize("after_fsync", ["true", "false"])
def test_a_replica_that_is_in_use_moves_all_the_same(after_fsync: str) -> None:
    async def story(node: Node) -> None:
        await create(node)
        append(node, count=1)
        here = (await places(node))["a", 0, False]
        await move(node, OTHER[here])
        partition = node.broker.node.partition("a", 0)
        acknowledged: list[ErrorCode] = []
        for number in range(200):
            append(node, count=1)
            end = partition.log.log_end_offset
            if not partition.has_counted(end, 1):
                partition.when_counted(end, 1, acknowledged.append)
            if number % 7 == 0:
                await sleep(0.002)
        # There was never a moment in which all was on disk.
        assert await places(node) == {("a", 0, False): OTHER[here]}
        await settled(node)
        assert not any(acknowledged)
        assert len(acknowledged) == (200 if after_fsync == "true" else 0)
        assert contents(node)[1] == 201

    settings = [f"ottla.ack.after.fsync={after_fsync}"]
    tell(story, files=slow_disk(), paths=TWO, settings=settings)


def test_what_was_safe_on_disk_is_safe_in_the_other_directory() -> None:
    files = slow_disk()

    async def story(node: Node) -> MemoryFiles:
        await create(node)
        for _ in range(20):
            append(node)
        log = node.broker.logs.current[KEY]
        await log.flush()
        await move(node, OTHER[(await places(node))["a", 0, False]])
        while node.broker.logs.current[KEY] is log:
            await sleep(0.001)
        return files.crash(Random(1), Crash.SYNCED)

    left = tell(story, files=files, paths=TWO)

    async def later(node: Node) -> None:
        assert node.broker.logs.current[KEY].log_end_offset == 60

    tell(later, files=left, paths=TWO)


def test_records_that_were_deleted_stay_deleted() -> None:
    async def story(node: Node) -> None:
        await create(node)
        for _ in range(4):
            append(node)
        partition = node.broker.node.partition("a", 0)
        partition.delete_records(5)
        await move(node, OTHER[(await places(node))["a", 0, False]])
        partition.delete_records(7)
        await sleep(0.003)
        partition.delete_records(9)
        assert node.broker.logs.future
        await settled(node)
        assert partition.log.log_start_offset == 9
        assert contents(node)[1] == 12

    tell(story, files=slow_disk(), paths=TWO)


def test_whoever_changes_his_mind_leaves_nothing_behind() -> None:
    async def story(node: Node) -> None:
        await create(node)
        append(node)
        here = (await places(node))["a", 0, False]
        await move(node, OTHER[here])
        await move(node, here)
        assert await places(node) == {("a", 0, False): here}
        await sleep(1)
        assert await places(node) == {("a", 0, False): here}
        await move(node, OTHER[here])
        await settled(node)
        assert await places(node) == {("a", 0, False): OTHER[here]}

    tell(story, paths=TWO)


def test_a_topic_that_goes_ends_its_moves() -> None:
    async def story(node: Node) -> None:
        await create(node)
        append(node)
        await move(node, OTHER[(await places(node))["a", 0, False]])
        request = DeleteTopicsRequest(topic_names=["a"], timeout_ms=30_000)
        assert (await node.ask(request, 5)).responses[0].error_code == 0
        await sleep(1)
        assert await places(node) == {}

    tell(story, paths=TWO)


# ---- from one process to the next


def cut_off_in_mid_move() -> tuple[MemoryFiles, str]:
    """The disk of a node that was killed when a move had just begun, and where it was to end."""
    files = disk_with(TWO)

    async def story(node: Node) -> tuple[MemoryFiles, str]:
        await create(node)
        for _ in range(5):
            append(node)
        target = OTHER[(await places(node))["a", 0, False]]
        await move(node, target)
        return files.copy(), target

    found: tuple[MemoryFiles, str] = tell(story, files=files, paths=TWO)
    return found


def test_a_move_goes_on_after_a_start() -> None:
    files, target = cut_off_in_mid_move()

    async def story(node: Node) -> None:
        await settled(node)
        assert await places(node) == {("a", 0, False): target}
        assert contents(node)[1] == 15
        assert directory_of(node) == target

    tell(story, files=files, paths=TWO)


def test_a_future_log_that_was_about_to_be_the_current_one_is_it_after_a_start() -> None:
    """The old log was set aside, and then the process was no more."""
    files = disk_with(TWO)

    async def story(node: Node) -> MemoryFiles:
        await create(node)
        for _ in range(5):
            append(node)
        logs = node.broker.logs
        await move(node, OTHER[(await places(node))["a", 0, False]])
        future = logs.future[KEY]
        cut: list[MemoryFiles] = []
        rename = type(future).rename

        def stop_here(log: object, name: str) -> None:
            if log is future and not cut:
                cut.append(files.copy())
            rename(log, name)  # type: ignore[arg-type]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(future), "rename", stop_here)
            await settled(node)
        return cut[0]

    left = tell(story, files=files, paths=TWO)

    async def later(node: Node) -> None:
        assert contents(node)[1] == 15
        assert list(await places(node)) == [("a", 0, False)]
        await sleep(1)
        assert directory_of(node) == (await places(node))["a", 0, False]

    tell(later, files=left, paths=TWO)
