"""`ottla serve`: from a command line to a process that serves, and its exit code.

Knows the process: its signals, its descriptors, its output. Whoever runs it from a script reads one
line on stdout; all words for people go to stderr.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
from logging import getLogger

from ottla.broker.config_sources import ConfigError, load
from ottla.storage.errors import StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ottla.broker.config import BrokerConfig
    from ottla.broker.main import Running
    from ottla.broker.world import WatchedSelector, World

WRONG_CONFIG = 2
CANNOT_START = 1
BROKEN = 70

# What macOS lets a process have where it calls the limit unlimited.
_OPEN_MAX = 10_240
_TOLD_AGAIN_MS = 10_000


def serve(
    file: str | None,
    *,
    listen: str | None,
    data: str | None,
    is_ephemeral: bool,
    nodes: int,
    settings: Sequence[str],
) -> int:
    """Serves until a signal comes, and returns the exit code."""
    if nodes != 1:
        return _refused("--nodes: only one node is supported yet", WRONG_CONFIG)
    if is_ephemeral and data is not None:
        return _refused("--ephemeral and --data exclude each other", WRONG_CONFIG)
    try:
        with _Place(data, is_ephemeral=is_ephemeral) as path:
            loaded = load(file=file, settings=settings, listen=listen, data=path, read=_read)
            for notice in loaded.notices:
                _say(f"ottla: {notice}")
            return _run(loaded.config)
    except ConfigError as error:
        return _refused(str(error), WRONG_CONFIG)


def _read(path: str) -> bytes:
    from ottla.storage.disk_files import DiskFiles

    files = DiskFiles()
    try:
        return files.read_whole(path)
    finally:
        files.close()


class _Place:
    """Where the data is; what is ephemeral is removed at the end."""

    def __init__(self, path: str | None, *, is_ephemeral: bool) -> None:
        self._path = path
        self._is_ephemeral = is_ephemeral

    def __enter__(self) -> str | None:
        if self._is_ephemeral:
            from tempfile import mkdtemp

            self._path = mkdtemp(prefix="ottla-")
        return self._path

    def __exit__(self, *_: object) -> None:
        if self._is_ephemeral and self._path is not None:
            from shutil import rmtree

            rmtree(self._path, ignore_errors=True)


def _run(config: BrokerConfig) -> int:
    from ottla.broker.log_lines import set_up

    # Of what a start makes hardly anything is garbage.
    gc.disable()
    set_up(config["ottla.log.level"])
    descriptors_max = raised_descriptor_limit()
    from ottla.broker.world import WatchedSelector, real_world

    selector = WatchedSelector()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        world = real_world(runner.get_loop())
        process = Process(config, world, selector, descriptors_max=descriptors_max)
        return runner.run(process.run())


def raised_descriptor_limit() -> int | None:
    """The soft limit, as near to the hard one as the system allows; None if there is none."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for limit in (hard, _OPEN_MAX):
        if soft == resource.RLIM_INFINITY:
            return None
        if limit != resource.RLIM_INFINITY and limit <= soft:
            break
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
        except (OSError, ValueError):
            continue
        soft = limit
    return soft


class Process:
    """From a configuration to an exit code."""

    def __init__(
        self,
        config: BrokerConfig,
        world: World,
        selector: WatchedSelector,
        *,
        descriptors_max: int | None = None,
        leave: Callable[[int], object] = os._exit,
    ) -> None:
        """`leave` ends the process at once."""
        self._config = config
        self._world = world
        self._selector = selector
        self._descriptors_max = descriptors_max
        self._leave = leave
        self._exit_code = 0
        self._told_at_ms = -_TOLD_AGAIN_MS
        self._end: asyncio.Future[None] = world.loop.create_future()

    async def run(self) -> int:
        loop = self._world.loop
        loop.set_exception_handler(self.broken)
        self._listen_to_signals()
        try:
            running = await self._started()
            if running is not None:
                await self._serve(running)
            return self._exit_code
        finally:
            # What is left is cancelled: nothing of that is a fault.
            loop.set_exception_handler(None)
            self._world.files.close()

    async def _started(self) -> Running | None:
        """None where it cannot start, or need not any more."""
        from ottla.broker.main import StartRefused, started

        start = self._world.loop.create_task(
            started(
                self._world,
                self._config,
                descriptors_max=self._descriptors_max,
                on_fatal=self._fatal,
            )
        )
        either: list[asyncio.Future[Any]] = [start, self._end]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not start.done():
            # As a kill would leave it: the next start finds its way from there.
            start.cancel()
            await asyncio.wait([start])
        if start.cancelled():
            return None
        error = start.exception()
        if error is None:
            return start.result()
        if isinstance(error, (StartRefused, StorageError)):
            self._exit_code = _refused(str(error), CANNOT_START)
        else:
            self.broken(self._world.loop, {"message": "the start failed", "exception": error})
        return None

    async def _serve(self, running: Running) -> None:
        # What is loaded by now stays: the collector need not walk over it again and again.
        gc.freeze()
        gc.enable()
        if not self._end.done():
            self._announce(running)
        self._selector.reset()
        await self._end
        getLogger(__name__).info("loop.longest_hold ms=%.1f", self._selector.reset() * 1000)
        await running.stop()

    def _announce(self, running: Running) -> None:
        data = ",".join(self._config.log_dirs)
        _say(f"Ottla listens on {', '.join(str(each) for each in running.addresses)}")
        _say(f"Its data is in {data}")
        _say(f"Try it: kafka-topics --bootstrap-server {running.bootstrap} --list")
        print(f"ready bootstrap={running.bootstrap} nodes=1 data={data}", flush=True)

    def _listen_to_signals(self) -> None:
        import signal

        for number in (signal.SIGTERM, signal.SIGINT):
            self._world.loop.add_signal_handler(number, self.stop)

    def stop(self) -> None:
        """Cleanly; in the midst of a start, without it."""
        if not self._end.done():
            self._end.set_result(None)

    def _fatal(self, exit_code: int, reason: str) -> None:
        """What is left can still be closed cleanly."""
        if exit_code == BROKEN:
            self._halt(reason)
            return
        self._exit_code = exit_code
        _say(f"ottla: {reason}")
        self.stop()

    def broken(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An error that nobody has caught: what is half done must not be served."""
        error, message = context.get("exception"), context.get("message")
        log = getLogger(__name__)
        if isinstance(error, OSError) and "socket" in context:
            # asyncio takes no connections for a moment, as there are no descriptors for them, and
            # says so of each that waits.
            now_ms = self._world.now().monotonic_ms
            if now_ms - self._told_at_ms >= _TOLD_AGAIN_MS:
                self._told_at_ms = now_ms
                log.warning("server.accepts_later reason=%s", error.strerror)
            return
        log.error("process.broken %s", message, exc_info=error)
        self._halt(f"stopped by an error of its own: {error!r}" if error else str(message))

    def _halt(self, reason: str) -> None:
        """Not one request more: a disk survives that as it survives a kill."""
        _say(f"ottla: {reason}")
        self._leave(BROKEN)


def _refused(reason: str, exit_code: int) -> int:
    _say(f"ottla: {reason}")
    return exit_code


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
