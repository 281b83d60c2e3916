"""A filter over JSON lines between Kafka's bytes and Kafka's JSON, for people who debug clients."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter

from ottla.protocol import jsonform
from ottla.protocol.apis import message_class, message_names
from ottla.protocol.schema import TYPE_CHECKING, decode_prefix, encode, schema_of
from ottla.protocol.wire import ProtocolError

if TYPE_CHECKING:
    from typing import Any, TextIO

HELP = """\
Reads JSON lines from standard input and writes one answer a line, in order.

  {"message": "HeartbeatRequest", "version": 4, "json": {...}}   answers {"hex": "..."}
  {"message": "HeartbeatRequest", "version": 4, "hex": "..."}    answers {"json": {...}}

Anything wrong answers {"error": "..."}, and the filter goes on. "message" is a name in
Kafka's schemas: requests, responses, headers, and the records of its logs. "json" has the
shape that Kafka's own tools print: its field names, bytes and uuids in base64, tagged fields
with their default left out; records are their raw bytes in base64. Headers are messages of
their own (RequestHeader, ResponseHeader). Bytes after the end of a message are reported as
"trailing" beside "json".
"""


def main(arguments: list[str] | None = None) -> int:
    parser = ArgumentParser(
        prog="python -m ottla.protocol",
        description=HELP,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--list", action="store_true", help="list all messages with their versions")
    if parser.parse_args(arguments).list:
        list_messages(sys.stdout)
        return 0
    # Bytes that are no UTF-8 are an error of their line, not of the filter.
    sys.stdin.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    try:
        for line in iter(sys.stdin.readline, ""):
            sys.stdout.write(json.dumps(answer(line)) + "\n")
            sys.stdout.flush()
    except (BrokenPipeError, KeyboardInterrupt):
        return 1
    return 0


def list_messages(out: TextIO) -> None:
    for name in message_names():
        first, last = schema_of(message_class(name)).versions
        out.write(f"{name} {first}-{last}\n")


def answer(line: str) -> dict[str, Any]:
    """The answer to one line."""
    try:
        return _convert(_parse(line))
    except ProtocolError as exception:
        return {"error": str(exception)}


def _parse(line: str) -> Any:
    try:
        line.encode()  # what was no UTF-8 cannot be encoded again
        return json.loads(line)
    except ValueError as exception:  # a number of thousands of digits is one, too
        raise ProtocolError(f"not JSON: {exception}") from None
    except RecursionError:
        raise ProtocolError("not JSON: nested too deeply") from None


def _convert(query: Any) -> dict[str, Any]:
    if not isinstance(query, dict):
        raise ProtocolError("a line is an object with message, version, and json or hex")
    name, version = query.get("message"), query.get("version")
    if not isinstance(name, str):
        raise ProtocolError("message is missing, or no string")
    if not isinstance(version, int) or isinstance(version, bool):
        raise ProtocolError("version is missing, or no integer")
    if ("json" in query) == ("hex" in query):
        raise ProtocolError("exactly one of json and hex is expected")
    cls = message_class(name)
    if "json" in query:
        message = jsonform.from_json(cls, version, query["json"])
        return {"hex": encode(message, version).hex()}
    try:
        data = bytes.fromhex(query["hex"])
    except (TypeError, ValueError) as exception:
        raise ProtocolError(f"hex: {exception}") from None
    message, size = decode_prefix(cls, version, data)
    result: dict[str, Any] = {"json": jsonform.to_json(message, version)}
    if size < len(data):
        result["trailing"] = len(data) - size
    return result


if __name__ == "__main__":
    sys.exit(main())
