"""Python source under construction: what the compilers of readers and writers have in common.

Every line remembers which field it serves, so that an exception out of the compiled function can
be told as a path (`topics[3].name`): the loop variables are still in the frame.
"""

from __future__ import annotations

from contextlib import contextmanager
from struct import Struct

from ottla.protocol.schema import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FunctionType
    from typing import Any

# Kafka's types of fixed size, as struct knows them.
FORMATS = {
    "Bool": "?",
    "Int8": "b",
    "Int16": "h",
    "Int32": "i",
    "Int64": "q",
    "Uint16": "H",
    "Uint32": "I",
    "Float64": "d",
    "Uuid": "16s",
}
SIZES = {kind: Struct(">" + code).size for kind, code in FORMATS.items()}


class Source:
    """Lines of one function, the names they use, and the field that each line serves."""

    def __init__(self, name: str, arguments: str) -> None:
        self.name = name
        self.lines = [f"def {name}({arguments}):"]
        self.paths = ["", ""]  # by line number, which counts from 1
        self.names: dict[str, Any] = {}
        self.path: list[str] = []
        self._depth = 1
        self.variables: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)
        self.paths.append("".join(self.path).lstrip("."))

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    @contextmanager
    def at(self, step: str) -> Iterator[None]:
        """Name the field that the following lines serve: `.topics`, or `[{i3}]` for a loop."""
        self.path.append(step)
        yield
        self.path.pop()

    def variable(self, prefix: str) -> str:
        name = f"{prefix}{len(self.variables) + 1}"
        self.variables.append(name)
        return name

    def name_for(self, prefix: str, value: Any) -> str:
        """A name under which the function finds `value`; one value has one name."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.variable(prefix)
        self.names[name] = value
        return name

    def text(self) -> str:
        return "\n".join(self.lines)

    def function(self) -> FunctionType:
        code = compile(self.text(), f"<{self.name}>", "exec")
        exec(code, self.names)
        made: FunctionType = self.names[self.name]
        return made


def failed_at(source: Source, exception: BaseException) -> str:
    """The path of the field that the compiled function was at when the exception left it."""
    trace = exception.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == f"<{source.name}>":
            return source.paths[trace.tb_lineno].format_map(trace.tb_frame.f_locals)
        trace = trace.tb_next
    return ""
