"""Ottla as users run it: `ottla serve` in a process of its own, on a data directory.

    with Ottla(settings={"log.segment.bytes": "16384"}) as ottla:
        ottla.bootstrap, ottla.data_dir
        ottla.stop() or ottla.kill(), then ottla.start(); or ottla.restart()

It shares its names with `compat_tests.apache_kafka.Kafka`, so that a story can be told to both.
The node is number 1, as that one is. The port stays the same from start to start.
"""

import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 30
LOG_LINES_SHOWN = 80
READY = "ready bootstrap="
# Ends the broker and removes its directory, should the test run die without a word.
GUARD = 'read -r _; kill -s KILL "$0"; rm -rf -- "$1"'


class Ottla:
    """One broker of ours."""

    def __init__(
        self,
        *,
        settings: Mapping[str, str] | None = None,
        data_dir: Path | None = None,
        host: str = "127.0.0.1",
        arguments: Sequence[str] = (),
    ) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="ottla-serves-"))
        self.data_dir = data_dir or self.directory / "data"
        self.log_file = self.directory / "broker.log"
        self.bootstrap = ""
        self.port = 0
        self._host = host
        self._settings = {"node.id": "1", **(settings or {})}
        self._arguments = tuple(arguments)
        self._broker: subprocess.Popen[str] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            sys.stderr.write(f"--- log of Ottla\n{self.log_tail()}\n")
        self.close()

    @property
    def pid(self) -> int:
        if self._broker is None:
            raise RuntimeError("the broker does not run")
        return self._broker.pid

    def command(self) -> list[str]:
        listen = f"{self._host}:{self.port}"
        # SIGABRT to a broker that hangs shows where, in its log.
        command = [sys.executable, "-X", "faulthandler", "-m", "ottla", "serve", "--listen", listen]
        command += ["--data", str(self.data_dir)]
        for name, value in self._settings.items():
            command += ["--set", f"{name}={value}"]
        return [*command, *self._arguments]

    def start(self) -> None:
        """Starts the broker; returns when it says that it serves."""
        with self.log_file.open("ab") as log:
            self._broker = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, str(self._broker.pid), str(self.directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._read_ready_line()

    def stop(self) -> None:
        """A clean stop, as SIGTERM starts it; it must end by itself, with 0."""
        if self._broker is None:
            return
        self._broker.send_signal(signal.SIGTERM)
        try:
            code = self._broker.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._broker.send_signal(signal.SIGABRT)
            self._broker.wait()
            raise RuntimeError(f"Ottla did not stop:\n{self.log_tail()}") from None
        self._forget()
        if code != 0:
            raise RuntimeError(f"Ottla ended with {code}:\n{self.log_tail()}")

    def kill(self) -> None:
        """The end without notice: SIGKILL."""
        if self._broker is not None:
            self._broker.kill()
            self._broker.wait()
        self._forget()

    def restart(self) -> None:
        self.stop()
        self.start()

    def is_running(self) -> bool:
        return self._broker is not None and self._broker.poll() is None

    def close(self) -> None:
        """Ends the broker, if it runs, and removes its directory (a `data_dir` handed in stays)."""
        self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def log_tail(self, lines: int = LOG_LINES_SHOWN) -> str:
        if not self.log_file.exists():
            return "(no log)"
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])

    def _read_ready_line(self) -> None:
        if self._broker is None or self._broker.stdout is None:
            raise RuntimeError("the broker was not started")
        readable, _, _ = select.select([self._broker.stdout], [], [], START_TIMEOUT_S)
        line = self._broker.stdout.readline() if readable else ""
        if not line.startswith(READY):
            self.kill()
            raise RuntimeError(f"Ottla does not serve; it said {line!r}:\n{self.log_tail()}")
        self.bootstrap = line.removeprefix(READY).split(" ", 1)[0]
        self.port = int(self.bootstrap.rpartition(":")[2])

    def _forget(self) -> None:
        if self._guard is not None:
            self._guard.kill()
            self._guard.wait()
            if self._guard.stdin is not None:
                self._guard.stdin.close()
        if self._broker is not None and self._broker.stdout is not None:
            self._broker.stdout.close()
        self._broker = self._guard = None
