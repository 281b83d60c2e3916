"""Kafka's command line tools in one long-running JVM (`java/Tools.java`): seconds instead of
minutes for a story of many."""

import json
import subprocess
from types import TracebackType
from typing import NamedTuple, Self

from compat_tests.jars import compiled_java

JVM_OPTIONS = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
)


class Ran(NamedTuple):
    """What a tool printed, and its exit code."""

    code: int
    out: str
    err: str


class KafkaTools:
    """A running JVM; a context manager."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["java", *JVM_OPTIONS, "-cp", compiled_java(), "Tools"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A tool may have left threads of clients behind; nobody waits for them.
        self._process.kill()
        self._process.communicate()

    def run(self, tool: str, *arguments: str, given: str = "") -> Ran:
        """Runs the `main` of a class, with `given` on its standard input."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        question = {"tool": tool, "arguments": arguments, "input": given}
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the JVM ended at {tool} {arguments}")
        return Ran(**json.loads(line))
