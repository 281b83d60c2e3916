"""What is on its way to being committed: everybody hears of it once, in order, and not too soon."""

import asyncio
from collections.abc import Iterator

import pytest

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.replication.quorum_batches import Batch, metadata_batch, read_batches
from ottla.replication.quorum_commits import Appended, Commits
from ottla.replication.raft_messages import Position
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.steps import to_the_end
from tests.quorum_rig import Remembering, topic


def appended(base_offset: int, *names: str, epoch: int = 1) -> Appended:
    last_offset = base_offset + len(names) - 1
    return Appended(base_offset, last_offset, epoch, 7, 100, [topic(name) for name in names])


def advance(commits: Commits, high_watermark: int) -> int:
    """In how many slices."""
    return sum(1 for _ in commits.advancing(high_watermark))


def test_the_listener_hears_of_whole_batches_below_the_high_watermark() -> None:
    listener = Remembering()
    commits = Commits(listener)
    commits.append(appended(0, "a", "b"))
    commits.append(appended(2, "c"))
    advance(commits, 1)
    assert listener.names == []
    advance(commits, 2)
    assert listener.names == ["a", "b"]
    assert (commits.applied, commits.applied_ms) == (Position(1, 2), 7)
    advance(commits, 3)
    assert listener.names == ["a", "b", "c"]
    assert commits.applied_bytes == 200
    assert not commits.has_uncommitted


def test_whoever_waits_goes_on_after_the_listener_has_heard() -> None:
    async def run() -> None:
        listener = Remembering()
        commits = Commits(listener)
        commits.append(appended(0, "a"))
        commits.append(appended(1, "b"))
        loop = asyncio.get_running_loop()
        first, second, gone = (loop.create_future() for _ in range(3))
        for offset, waiter in ((1, second), (0, first), (0, gone)):
            commits.wait(offset, waiter)
        gone.cancel()
        advance(commits, 1)
        assert first.done() and not second.done()
        commits.fail(KafkaError(ErrorCode.NOT_CONTROLLER))
        with pytest.raises(KafkaError):
            await second

    asyncio.run(run())


def test_small_batches_are_told_together_and_none_is_cut() -> None:
    listener = Remembering()
    commits = Commits(listener)
    sizes = [100, 100, 100, 600, 1, 1]
    for number, size in enumerate(sizes):
        commits.append(appended(sum(sizes[:number]), *["t"] * size))
    assert advance(commits, sum(sizes)) == 4
    assert [len(names) for *_, names in listener.commits] == [200, 100, 600, 2]
    assert listener.commits[-1][:2] == (900, 901)


def test_batches_of_two_epochs_are_told_one_by_one() -> None:
    listener = Remembering()
    commits = Commits(listener)
    commits.append(appended(0, "a"))
    commits.append(appended(1, "b", epoch=2))
    advance(commits, 2)
    assert listener.commits == [(0, 0, 1, ["a"]), (1, 1, 2, ["b"])]


def test_a_large_batch_is_loaded_in_parts() -> None:
    listener = Remembering()
    slices = sum(1 for _ in Commits(listener).loading_log(read(data(7, *["t"] * 600))))
    assert slices == 2
    assert [commit[:2] for commit in listener.commits] == [(7, 256), (257, 506), (507, 606)]


def read(*batches: bytes | None) -> Iterator[Batch | None]:
    """None stands for a pause."""
    files = MemoryFiles()
    for number, data in enumerate(batches):
        if data is None:
            yield None
            continue
        file = files.create(str(number))
        file.append(data)
        yield from read_batches(file, file.size)


def data(base_offset: int, *names: str, epoch: int = 1) -> bytes:
    records = [topic(name) for name in names]
    return bytes(metadata_batch(records, base_offset=base_offset, epoch=epoch, timestamp_ms=7))


def test_small_batches_of_an_epoch_are_handed_on_together() -> None:
    listener = Remembering()
    commits = Commits(listener)
    log = read(data(0, "a"), data(1, "b", "c"), data(3, "d", epoch=2), None, data(4, "e", epoch=2))
    to_the_end(commits.loading_log(log))
    assert listener.commits == [
        (0, 2, 1, ["a", "b", "c"]),
        (3, 4, 2, ["d", "e"]),
    ]
    assert commits.applied == Position(2, 5)


def test_loading_pauses_after_some_records() -> None:
    listener = Remembering()
    log = read(*[data(number * 100, *["t"] * 100) for number in range(10)])
    slices = sum(1 for _ in Commits(listener).loading_log(log))
    assert slices == 3
    assert [len(names) for *_, names in listener.commits] == [300, 300, 300, 100]


def test_a_snapshot_is_handed_on_as_what_is_below_its_end() -> None:
    listener = Remembering()
    commits = Commits(listener)
    parts = iter([[topic("a")], [topic("b")]])
    to_the_end(commits.loading_snapshot(parts, Position(3, 50), 9))
    assert listener.loads == [(49, 3, ["a"]), (49, 3, ["b"])]
    assert (commits.applied, commits.applied_ms) == (Position(3, 50), 9)
