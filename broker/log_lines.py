"""The log of a broker: one event a line, with its fields, on stderr.

Quiet by default: what a person has to know. A message is `event.name field=value ...`; a line of
more lines is one line here, so that nobody can forge another.
"""

from __future__ import annotations

import logging
import sys
from time import gmtime, strftime

LEVELS = {"debug": 10, "info": 20, "warn": 30, "error": 40}


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = strftime("%Y-%m-%dT%H:%M:%S", gmtime(record.created))
        text = record.getMessage()
        if record.exc_info:
            text += f" traceback={self.formatException(record.exc_info)!r}"
        if not text.isprintable():
            text = "".join(map(_shown, text))
        name = record.name.removeprefix("ottla.")
        return f"{when}.{int(record.msecs):03d}Z {record.levelname} {name} {text}"


def _shown(character: str) -> str:
    """A client chooses its id: it must not move a terminal's cursor either."""
    return character if character.isprintable() else ascii(character)[1:-1]


def set_up(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(LEVELS[level])
    # asyncio tells of slow callbacks and lost exceptions; what is lost ends the process anyway.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
