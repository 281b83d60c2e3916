"""`ottla serve`: from a command line to a process that serves, and its exit code.

Knows the process: its signals, its descriptors, its output. Whoever runs it from a script reads one
line on stdout; all words for people go to stderr.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from logging import getLogger

from ottla.broker.config_sources import ConfigError, load
from ottla.storage.errors import StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ottla.broker.config import BrokerConfig
    from ottla.broker.main import Running
    from ottla.broker.world import WatchedSelector

WRONG_CONFIG = 2
CANNOT_START = 1
BROKEN = 70


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
    _raise_descriptor_limit()
    from ottla.broker.world import WatchedSelector

    selector = WatchedSelector()
    process = _Process(config, selector)
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        return runner.run(process.run())


def _raise_descriptor_limit() -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):
            # macOS calls its limit unlimited, and does not take it.
            return


class _Process:
    def __init__(self, config: BrokerConfig, selector: WatchedSelector) -> None:
        self._config = config
        self._selector = selector
        self._exit_code = 0
        self._end: asyncio.Future[None]

    async def run(self) -> int:
        from ottla.broker.main import StartRefused, started
        from ottla.broker.world import real_world

        loop = asyncio.get_running_loop()
        self._end = loop.create_future()
        loop.set_exception_handler(self._broken)
        self._listen_to_signals(loop)
        try:
            running = await started(real_world(loop), self._config)
        except (StartRefused, StorageError) as error:
            return _refused(str(error), CANNOT_START)
        running.broker.on_fatal = self._fatal
        # What is loaded by now stays: the collector need not walk over it again and again.
        gc.freeze()
        gc.enable()
        self._announce(running)
        self._selector.reset()
        await self._end
        getLogger(__name__).info("loop.longest_hold ms=%.1f", self._selector.reset() * 1000)
        if self._exit_code != BROKEN:
            await running.stop()
        return self._exit_code

    def _announce(self, running: Running) -> None:
        data = ",".join(self._config.log_dirs)
        _say(f"Ottla listens on {', '.join(str(each) for each in running.addresses)}")
        _say(f"Its data is in {data}")
        _say(f"Try it: kafka-topics --bootstrap-server {running.bootstrap} --list")
        print(f"ready bootstrap={running.bootstrap} nodes=1 data={data}", flush=True)

    def _listen_to_signals(self, loop: asyncio.AbstractEventLoop) -> None:
        import signal

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)

    def _stop(self) -> None:
        if not self._end.done():
            self._end.set_result(None)

    def _fatal(self, exit_code: int, reason: str) -> None:
        self._exit_code = exit_code
        _say(f"ottla: {reason}")
        self._stop()

    def _broken(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """An error that nobody has caught: what is half done must not be served."""
        error = context.get("exception")
        getLogger(__name__).error("process.broken %s", context.get("message"), exc_info=error)
        self._fatal(BROKEN, f"stopped by an error of its own: {error!r}")


def _refused(reason: str, exit_code: int) -> int:
    _say(f"ottla: {reason}")
    return exit_code


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
