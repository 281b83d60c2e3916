"""How `ottla dump` prints: for people, or a JSON object a line.

Knows rows, not files. What it prints comes from files that anybody may have written, so nothing
reaches a terminal that could steer it: what is not printable is escaped.
"""

import base64
import json
from contextlib import suppress
from typing import Any, TextIO

from ottla.storage.format import Fields

SHOWN_SIZE_MAX = 1000  # people get this much of a key, a value or a header
# Rows that belong to the one above them.
INNER_KINDS = ("record", "control")


class Printer:
    """For people: a line that names the file, then its rows, indented."""

    def __init__(self, out: TextIO, complaints: TextIO) -> None:
        self._out = out
        self._complaints = complaints
        self.has_complained = False

    def file(self, path: str, fields: Fields, size: int) -> None:
        what = [str(fields.get("kind", "not a file of Kafka's"))]
        if "topic" in fields:
            what.append(f"of {fields['topic']}-{fields['partition']}")
        if fields.get("state"):
            what.append(f"({fields['state'].lstrip('.-')})")
        print(f"{escaped(path)}: {' '.join(what)}, {size} bytes", file=self._out)

    def row(self, path: str, row: Fields) -> None:
        kind = row["kind"]
        words = [
            f"{escaped(name)}: {_shown(value)}" for name, value in row.items() if name != "kind"
        ]
        if kind not in ("batch", "entry", "record"):
            words.insert(0, kind)
        print("    " if kind in INNER_KINDS else "  ", " ".join(words), sep="", file=self._out)

    def complain(self, path: str, position: int | None, reason: str) -> None:
        self.has_complained = True
        self._out.flush()
        place = "" if position is None else f"position {position}: "
        print(f"{escaped(path)}: {place}{escaped(reason)}", file=self._complaints)


class JsonPrinter:
    """For programs: every line is an object that names its file and its kind, errors too."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self.has_complained = False

    def file(self, path: str, fields: Fields, size: int) -> None:
        rest = {name: value for name, value in fields.items() if name != "kind"}
        holds = str(fields["kind"]) if fields else None
        self._print({"file": path, "kind": "file", "holds": holds, **rest, "bytes": size})

    def row(self, path: str, row: Fields) -> None:
        self._print({"file": path} | row | {"file": path})

    def complain(self, path: str, position: int | None, reason: str) -> None:
        self.has_complained = True
        self._print({"file": path, "kind": "error", "position": position, "reason": reason})

    def _print(self, row: Fields) -> None:
        print(json.dumps(_json_value(row)), file=self._out)


def escaped(text: str) -> str:
    """`text` with whatever is not printable, a new line too, as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _shown(value: Any) -> str:
    if isinstance(value, bytes):
        return _shown_bytes(value)
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, dict) and "message" in value:
        return f"{value['message']} v{value['version']} {_shown(value['json'])}"
    if isinstance(value, dict | list):
        return escaped(json.dumps(_json_value(_cut(value)), ensure_ascii=False))
    return json.dumps(value)


def _shown_bytes(content: bytes) -> str:
    head = content[:SHOWN_SIZE_MAX]
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        # The cut may have gone through a character.
        is_cut = len(head) < len(content) and error.start > SHOWN_SIZE_MAX - 4
        text = head[: error.start].decode() if is_cut else ""
    is_text = _is_text(text) and bool(text or not head)
    shown = json.dumps(text, ensure_ascii=False) if is_text else f"0x{head.hex()}"
    return shown if len(head) == len(content) else f"{shown}... ({len(content)} bytes)"


def _is_text(text: str) -> bool:
    return all(c.isprintable() or c in "\r\n\t" for c in text)


def _cut(value: Any) -> Any:
    """Headers as people get them; messages of Kafka hold no bytes, and are not cut."""
    if isinstance(value, bytes):
        return value[:SHOWN_SIZE_MAX]
    if isinstance(value, list):
        return [_cut(item) for item in value]
    return {name: _cut(item) for name, item in value.items()} if isinstance(value, dict) else value


def _json_value(value: Any) -> Any:
    """Bytes become a string where they are text, else {"base64": ...}."""
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            if _is_text(text := value.decode()):
                return text
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, list):
        return [_json_value(item) for item in value]
    if isinstance(value, dict):
        return {name: _json_value(item) for name, item in value.items()}
    return value
