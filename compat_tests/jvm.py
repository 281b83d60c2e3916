"""A broker as a JVM of this machine, out of the jars of `compat_tests.jars`.

The JVM leads a process group of its own, and a small shell watches over it: should the test run
die without a word, the shell's input closes, and it kills the group and removes the directory.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from compat_tests.jars import class_path

STOP_TIMEOUT_S = 60
TOOL_TIMEOUT_S = 120
TOOL_JVM_OPTIONS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)
LOG_OPTIONS = (
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
    "-Dorg.slf4j.simpleLogger.log.org.apache.kafka.common.config=warn",
)
GUARD = 'read -r _; kill -s KILL -- "-$0"; rm -rf -- "$1"'


class JvmProcess:
    """Starts, stops and kills one broker; knows no configuration but the file's path."""

    def __init__(self, *, version: str, config: Path, log: Path, options: Sequence[str]) -> None:
        self.version = version
        self._config = config
        self._log = log
        self._options = options
        self._broker: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        if self._broker is None:
            raise RuntimeError("the broker does not run")
        return self._broker.pid

    def start(self) -> None:
        command = ["java", *self._options, *LOG_OPTIONS, "-cp", class_path(self.version)]
        with self._log.open("ab") as log:
            self._broker = subprocess.Popen(
                [*command, "kafka.Kafka", str(self._config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, str(self._broker.pid), str(self._log.parent)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def ended_within(self, seconds: float) -> bool:
        """Waits for the end of the broker, at most so long; True where it has ended."""
        if self._broker is None:
            return True
        try:
            self._broker.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        """A controlled shutdown; a broker that will not end is killed, and that is an error."""
        self._signal(signal.SIGTERM)
        if not self.ended_within(STOP_TIMEOUT_S):
            self.kill()
            raise RuntimeError(f"the broker did not stop within {STOP_TIMEOUT_S} s")
        self._forget()

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        if self._broker is not None:
            self._broker.wait()
        self._forget()

    def tool(self, name: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        command = ["java", *TOOL_JVM_OPTIONS, "-cp", class_path(self.version), name, *arguments]
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TOOL_TIMEOUT_S,
        )

    def _signal(self, number: signal.Signals) -> None:
        if self._broker is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._broker.pid, number)

    def _forget(self) -> None:
        if self._guard is not None:
            self._guard.kill()
            self._guard.wait()
            if self._guard.stdin is not None:
                self._guard.stdin.close()
        self._broker = self._guard = None
