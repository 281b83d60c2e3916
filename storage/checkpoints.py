"""The small text files of a log directory and of a partition's folder, as Kafka writes them.

Pure: bytes in and out. Kafka replaces each of them whole (`Files.write_atomically`). A parser takes
only what Kafka could have written, and else raises one line that names the file, the line and the
reason. An offset checkpoint that nobody has written yet is an empty file.
"""

from __future__ import annotations

import re
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Iterator, Mapping

from ottla.storage.errors import CorruptFile
from ottla.storage.names import is_topic_name

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
REPLICATION_OFFSET_CHECKPOINT = "replication-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"

UNKNOWN_BROKER_EPOCH = -1

_VERSION = 0
_INT32_MAX = 0x7FFF_FFFF
_INT64_MAX = 0x7FFF_FFFF_FFFF_FFFF
_SPACES = re.compile(r"[ \t\v\f]+")
_NUMBER = re.compile(r"[0-9]{1,19}")
_UUID = re.compile(r"[A-Za-z0-9_-]{22}")


# --- offset checkpoints -------------------------------------------------------------------


def parse_offsets(path: str, data: bytes) -> dict[tuple[str, int], int]:
    """Offsets by topic and partition."""
    offsets: dict[tuple[str, int], int] = {}
    for where, (topic, partition_text, offset_text) in _entries(path, data, width=3):
        if not is_topic_name(topic):
            raise CorruptFile(path, where=where, reason=f"{topic[:40]!r} is no name of a topic")
        partition = _number(path, where, partition_text, _INT32_MAX)
        if (topic, partition) in offsets:
            # Kafka never writes one twice, so one of the two was another's.
            raise CorruptFile(path, where=where, reason=f"{topic}-{partition} is there twice")
        offsets[topic, partition] = _number(path, where, offset_text, _INT64_MAX)
    return offsets


def offsets_text(offsets: Mapping[tuple[str, int], int]) -> bytes:
    return _text(f"{topic} {partition} {at}\n" for (topic, partition), at in offsets.items())


# --- leader-epoch-checkpoint --------------------------------------------------------------


def parse_epochs(path: str, data: bytes) -> list[tuple[int, int]]:
    """Leader epochs with the offsets where they began, both rising."""
    epochs: list[tuple[int, int]] = []
    for where, (epoch_text, start_text) in _entries(path, data, width=2):
        epoch = _number(path, where, epoch_text, _INT32_MAX)
        start_offset = _number(path, where, start_text, _INT64_MAX)
        if epochs and (epoch <= epochs[-1][0] or start_offset <= epochs[-1][1]):
            reason = f"epoch {epoch} from offset {start_offset} does not come after the one before"
            raise CorruptFile(path, where=where, reason=reason)
        epochs.append((epoch, start_offset))
    return epochs


def epochs_text(epochs: Iterable[tuple[int, int]]) -> bytes:
    return _text(f"{epoch} {start_offset}\n" for epoch, start_offset in epochs)


def _entries(path: str, data: bytes, *, width: int) -> Iterator[tuple[str, list[str]]]:
    lines = _lines(path, data)
    if not lines:
        return
    version = _number(path, "line 1", lines[0], _INT32_MAX)
    if version != _VERSION:
        raise CorruptFile(path, where="line 1", reason=f"version {version} is unknown")
    if len(lines) == 1:
        raise CorruptFile(path, where="line 2", reason="the count of entries is missing")
    count = _number(path, "line 2", lines[1], _INT32_MAX)
    if count != len(lines) - 2:
        reason = f"{count} entries are announced, and {len(lines) - 2} are there"
        raise CorruptFile(path, where="line 2", reason=reason)
    for number, line in enumerate(lines[2:], 3):
        fields = _SPACES.split(line)
        if len(fields) != width:
            reason = f"{line[:40]!r} has {len(fields)} fields instead of {width}"
            raise CorruptFile(path, where=f"line {number}", reason=reason)
        yield f"line {number}", fields


def _text(entries: Iterable[str]) -> bytes:
    lines = list(entries)
    return f"{_VERSION}\n{len(lines)}\n{''.join(lines)}".encode("ascii")


# --- partition.metadata -------------------------------------------------------------------


def parse_partition_metadata(path: str, data: bytes) -> bytes:
    """The topic's id."""
    fields: dict[str, str] = {}
    for number, line in enumerate(_lines(path, data), 1):
        name, separator, value = line.partition(": ")
        if not separator or name not in ("version", "topic_id") or name in fields:
            reason = f"{line[:40]!r} is neither `version: 0` nor `topic_id: ID`"
            raise CorruptFile(path, where=f"line {number}", reason=reason)
        fields[name] = value
    if len(fields) != 2:
        raise CorruptFile(path, where="", reason="version or topic_id is missing")
    if fields["version"] != str(_VERSION):
        reason = f"version {fields['version'][:40]!r} is unknown"
        raise CorruptFile(path, where="", reason=reason)
    topic_id = parse_uuid(fields["topic_id"])
    if topic_id is None or not any(topic_id):
        reason = f"{fields['topic_id'][:40]!r} is no id of a topic"
        raise CorruptFile(path, where="", reason=reason)
    return topic_id


def partition_metadata_text(topic_id: bytes) -> bytes:
    # Kafka ends this file without a newline.
    return f"version: {_VERSION}\ntopic_id: {uuid_text(topic_id)}".encode()


# --- .kafka_cleanshutdown -----------------------------------------------------------------


def parse_clean_shutdown(data: bytes) -> int:
    """The broker's epoch when it stopped. That the file is there says that the stop was clean,
    whatever it holds: Kafka before 3.7 left it empty."""
    import json

    try:
        epoch = json.loads(data)["brokerEpoch"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return UNKNOWN_BROKER_EPOCH
    if type(epoch) is not int or not 0 <= epoch <= _INT64_MAX:
        return UNKNOWN_BROKER_EPOCH
    return epoch


def clean_shutdown_text(broker_epoch: int) -> bytes:
    return b'{"version":%d,"brokerEpoch":%d}' % (_VERSION, broker_epoch)


# --- words --------------------------------------------------------------------------------


def parse_uuid(text: str) -> bytes | None:
    """The 16 bytes of Kafka's 22 characters of URL-safe base64."""
    if _UUID.fullmatch(text) is None:
        return None
    try:
        uuid = a2b_base64(text.replace("-", "+").replace("_", "/") + "==")
    except Base64Error:
        return None
    # The last character has four bits more than there is to say.
    return uuid if uuid_text(uuid) == text else None


def uuid_text(uuid: bytes) -> str:
    text = b2a_base64(uuid, newline=False).decode("ascii")
    return text.rstrip("=").replace("+", "-").replace("/", "_")


def _lines(path: str, data: bytes) -> list[str]:
    try:
        data.decode("ascii")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        reason = f"byte 0x{data[error.start]:02x} is no text"
        raise CorruptFile(path, where=f"line {line}", reason=reason) from None
    return [line.decode("ascii") for line in data.splitlines()]


def _number(path: str, where: str, text: str, largest: int) -> int:
    if _NUMBER.fullmatch(text) is None or (number := int(text)) > largest:
        raise CorruptFile(path, where=where, reason=f"{text[:40]!r} is no number up to {largest}")
    return number
