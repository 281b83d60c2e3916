"""`ottla serve` as a process: its one line, its exit codes, and what ends it."""

import errno
import gc
from asyncio import AbstractEventLoop, sleep
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ottla.broker.cli import BROKEN, CANNOT_START, Process, raised_descriptor_limit, serve
from ottla.broker.config_sources import load
from ottla.broker.world import World
from ottla.storage.clock import Now
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.memory_operations import LOOKS, Fault, Operation
from tests.node_rig import WALL_MS, disk_with
from tests.simulation.node.rig import Rig

ADDRESS = "127.0.0.1:9092"
CLEAN = "data/.kafka_cleanshutdown"
READY = f"ready bootstrap={ADDRESS} nodes=1 data=data\n"


class Left(BaseException):
    """The process has ended itself at once."""


class FakeSelector:
    def reset(self) -> float:
        return 0.0


class Life:
    """One process on a machine in memory. `then` is told of it while it runs."""

    def __init__(self, files: MemoryFiles, rig: Rig) -> None:
        self.loop = rig.loop
        self.left: list[int] = []
        world = World(self._now, Random(1), files, rig.loop)
        config = load(listen=ADDRESS, data="data").config
        selector: Any = FakeSelector()
        self.process = Process(config, world, selector, leave=self._leave)

    def _now(self) -> Now:
        return Now(int(self.loop.time() * 1000), WALL_MS)

    def _leave(self, exit_code: int) -> None:
        self.left.append(exit_code)
        self.process.stop()


def live(files: MemoryFiles, then: Callable[[Life], object] = lambda life: None) -> int:
    """From the start to the exit code; after `then` a signal comes, a second later."""
    rig = Rig()

    async def all_of_it() -> int:
        life = Life(files, rig)
        rig.loop.call_later(3, lambda: (then(life), rig.loop.call_later(1, life.process.stop)))
        exit_code = await life.process.run()
        return life.left[0] if life.left else exit_code

    exit_code: int = rig.run(all_of_it())
    return exit_code


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_a_broker_that_serves_says_so_in_one_line_and_stops_cleanly(
    capsys: pytest.CaptureFixture[str],
) -> None:
    files = disk_with(["data"])
    assert live(files) == 0
    printed = capsys.readouterr()
    assert printed.out == READY
    assert printed.err.splitlines() == [
        f"Ottla listens on {ADDRESS}",
        "Its data is in data",
        f"Try it: kafka-topics --bootstrap-server {ADDRESS} --list",
    ]
    assert files.exists(CLEAN)


def test_a_signal_in_the_midst_of_a_start_ends_it_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Wherever that is: the next start finds its way."""
    for turns in count(0, 2):
        files, rig = disk_with(["data"]), Rig()

        async def cut_short(turns: int = turns, files: MemoryFiles = files, rig: Rig = rig) -> int:
            life = Life(files, rig)
            running = rig.loop.create_task(life.process.run())
            for _ in range(turns):
                await sleep(0)
            life.process.stop()
            exit_code: int = await running
            return exit_code

        assert rig.run(cut_short()) == 0
        assert capsys.readouterr().out == ""
        if files.exists(CLEAN):
            # That start had come to its end.
            assert turns > 10
            return
        assert live(files) == 0
        assert capsys.readouterr().out == READY


def test_a_directory_that_is_in_use_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    files = disk_with(["data"])
    files.lock("data/.lock")
    before = files.contents()
    assert live(files) == CANNOT_START
    assert files.contents() == before
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("ottla: data/.lock: is locked")
    assert printed.err.count("\n") == 1


def test_an_address_that_is_taken_leaves_the_directory_as_it_was(
    capsys: pytest.CaptureFixture[str],
) -> None:
    files, rig = disk_with(["data"]), Rig()
    assert live(files) == 0
    before = files.contents()
    capsys.readouterr()

    async def start() -> int:
        await rig.loop.create_server(lambda: None, "127.0.0.1", 9092)
        exit_code: int = await Life(files, rig).process.run()
        return exit_code

    assert rig.run(start()) == CANNOT_START
    reason = f"cannot listen on PLAINTEXT://{ADDRESS}: Address already in use"
    assert capsys.readouterr().err == f"ottla: {reason}\n"
    assert files.contents() == before


@pytest.mark.parametrize("fault", [Fault.ENOSPC, Fault.EIO, Fault.EMFILE])
def test_a_disk_that_refuses_a_start_is_told_in_one_line(
    fault: Fault, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever of it is the first that the disk refuses."""
    operations = operations_of_a_start()
    capsys.readouterr()
    for first in range(0, operations, 5):
        files = disk_with(["data"])
        files.fail(refused_from(files.operation_count + first), fault, times=None)
        exit_code = live(files)
        printed = capsys.readouterr()
        assert exit_code == CANNOT_START
        assert "Traceback" not in printed.err
        assert [line for line in printed.err.splitlines() if line.startswith("ottla: ")]


def operations_of_a_start() -> int:
    files, counts = disk_with(["data"]), []
    first = files.operation_count
    live(files, lambda life: counts.append(files.operation_count))
    return int(counts[0] - first)


def refused_from(number: int) -> Callable[[Operation], bool]:
    return lambda operation: operation.number >= number and operation.kind not in LOOKS


def test_a_disk_of_the_metadata_log_that_fails_ends_the_process(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """At the latest when this node takes its leave."""
    files = disk_with(["data"])

    def fail(life: Life) -> None:
        files.fail(refused_from(0), Fault.EIO, times=None)

    assert live(files, fail) == CANNOT_START
    assert not files.exists(CLEAN)
    printed = capsys.readouterr()
    assert printed.out == READY
    assert "ottla: the disk of the metadata log has failed" in printed.err


def test_an_error_that_nobody_catches_ends_the_process_at_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken() -> None:
        raise ZeroDivisionError("in a callback")

    assert live(disk_with(["data"]), lambda life: life.loop.call_soon(broken)) == BROKEN
    line = "ottla: stopped by an error of its own: ZeroDivisionError('in a callback')"
    assert line in capsys.readouterr().err


def test_a_start_that_breaks_ends_with_one_line_and_70(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("ottla.broker.main.started", broken)
    assert live(disk_with(["data"])) == BROKEN
    assert "ottla: stopped by an error of its own" in capsys.readouterr().err


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
def test_connections_that_cannot_be_taken_for_now_end_nothing(
    number: int, caplog: pytest.LogCaptureFixture
) -> None:
    """What asyncio says when accept fails, of each that waits; it tries again after a second."""

    def short(life: Life) -> None:
        context = {
            "message": "socket.accept() out of system resource",
            "exception": OSError(number, "Too many open files"),
            "socket": object(),
        }
        loop: AbstractEventLoop = life.loop
        for _ in range(50):
            loop.call_exception_handler(context)

    assert live(disk_with(["data"]), short) == 0
    assert caplog.text.count("server.accepts_later") == 1


# --- the command line ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"nodes": 2}, "--nodes: only one node is supported yet"),
        ({"is_ephemeral": True}, "--ephemeral and --data exclude each other"),
        ({"settings": ["no.such.name=1"]}, "no.such.name"),
        ({"settings": ["num.partitions=many"]}, "num.partitions"),
        ({"settings": ["num.partitions"]}, "num.partitions"),
        ({"listen": "nowhere"}, "nowhere"),
        ({"listen": "127.0.0.1:70000"}, "70000"),
        ({"file": "no-such-file.yaml"}, "no-such-file.yaml"),
        ({"file": "."}, "."),
        ({"settings": ["listeners=SSL://:9093"]}, "SSL"),
    ],
)
def test_what_is_wrong_is_told_in_one_line_and_nothing_is_touched(
    arguments: dict[str, Any],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {
        "file": None,
        "listen": None,
        "data": "d",
        "is_ephemeral": False,
        "nodes": 1,
        "settings": [],
    }
    assert serve(**given | arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    (only,) = printed.err.splitlines()
    assert only.startswith("ottla: ")
    assert line in only
    assert list(tmp_path.iterdir()) == []


# --- descriptors --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("soft", "hard", "largest", "expected"),
    [
        (1024, 4096, 4096, 4096),
        (4096, 4096, 4096, 4096),
        (256, -1, 10_240, 10_240),  # macOS
        (256, -1, -1, None),
        (-1, -1, -1, None),
        (256, 4096, 256, 256),
    ],
)
def test_the_limit_of_descriptors_is_raised_as_far_as_it_goes(
    soft: int, hard: int, largest: int, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`largest` is what the system takes; -1 stands for no limit."""
    limits = [soft, hard]

    def set_limit(which: int, given: tuple[int, int]) -> None:
        if largest != -1 and (given[0] == -1 or given[0] > largest):
            raise ValueError("not allowed to raise maximum limit")
        limits[:] = given

    monkeypatch.setattr("resource.getrlimit", lambda which: tuple(limits))
    monkeypatch.setattr("resource.setrlimit", set_limit)
    monkeypatch.setattr("resource.RLIM_INFINITY", -1)
    assert raised_descriptor_limit() == expected
    assert limits[0] == (-1 if expected is None else expected)
