"""Apache Kafka's own classes, asked over JSON lines: the Java program of `java/Oracle.java`.

One process answers in order. `ask_all` writes questions from a thread of its own, so that Java
works on the next ones while Python looks at an answer.
"""

import json
import subprocess
import threading
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self

from compat_tests.jars import compiled_java

JVM_OPTIONS = (
    "-Xmx1g",
    "-XX:+UseSerialGC",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
)

Question = dict[str, Any]
Answer = dict[str, Any]


class Oracle:
    """A running Java program; a context manager."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            ["java", *JVM_OPTIONS, "-cp", compiled_java(), "Oracle"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._process.kill()
        self._process.communicate()

    def ask(self, op: str, **question: Any) -> Answer:
        """One answer; what Kafka refuses is an answer with "error"."""
        return next(self.ask_all([{"op": op, **question}]))

    def ask_all(self, questions: Iterable[Question]) -> Iterator[Answer]:
        """The answers in the order of the questions."""
        listed = list(questions)
        writer = threading.Thread(target=self._write, args=(listed,), daemon=True)
        writer.start()
        unread = len(listed)
        try:
            for question in listed:
                unread -= 1
                yield json.loads(self._line(question))
        finally:
            # A reader that gave up must not leave its answers to the next one.
            for _ in range(unread):
                self._line("an abandoned question")
            writer.join()

    def made(self, questions: Iterable[Question]) -> Iterator[list[Answer]]:
        """The "values" that each question was answered with; anything else is our own mistake."""
        for answer in self.ask_all(questions):
            if "values" not in answer:
                raise RuntimeError(f"the Java program: {answer}")
            yield answer["values"]

    def _line(self, question: object) -> bytes:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the Java program ended at {question}")
        return line

    def _write(self, questions: list[Question]) -> None:
        assert self._process.stdin is not None
        try:
            for question in questions:
                self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return  # the reader finds no answer, and says so
