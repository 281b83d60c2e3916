"""The text files: checkpoints, partition.metadata, meta.properties, clean shutdown, quorum-state.

Part of the specification that format.py begins. All are UTF-8 and small. Kafka changes none in
place: it writes NAME.tmp, syncs it and renames it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ottla.storage.format import Fields, FormatError

# --- Checkpoints ----------------------------------------------------------------------------------
# A line with the version (0), a line with the number of entries, then a line for each entry, its
# words parted by a space. A checkpoint that was never written is an empty file: None below.


def parse_leader_epoch_checkpoint(data: bytes) -> list[Fields] | None:
    """leader-epoch-checkpoint of a partition: at which offset each leader began to append.

    Entries are {"epoch", "start_offset"}; both rise.
    """
    if not data:
        return None
    entries: list[Fields] = []
    for position, words in _checkpoint_entries(data, 2):
        epoch, start_offset = (_number(position, word) for word in words)
        if entries and not (
            epoch > entries[-1]["epoch"] and start_offset > entries[-1]["start_offset"]
        ):
            raise FormatError(position, "epochs and start offsets do not rise")
        entries.append({"epoch": epoch, "start_offset": start_offset})
    return entries


def build_leader_epoch_checkpoint(entries: Sequence[Mapping[str, int]] | None) -> bytes:
    return _build_checkpoint(entries, ("epoch", "start_offset"))


def parse_offset_checkpoint(data: bytes) -> list[Fields] | None:
    """An offset checkpoint of a log directory: {"topic", "partition", "offset"} of its partitions.

    recovery-point-offset-checkpoint: all before the offset is safe on disk.
    replication-offset-checkpoint: the high watermark.
    log-start-offset-checkpoint: the log's start, if DeleteRecords put it into a segment's midst.
    cleaner-offset-checkpoint: how far compaction has come.
    """
    if not data:
        return None
    return [
        {
            "topic": topic,
            "partition": _number(position, partition),
            "offset": _number(position, offset),
        }
        for position, (topic, partition, offset) in _checkpoint_entries(data, 3)
    ]


def build_offset_checkpoint(entries: Sequence[Mapping[str, Any]] | None) -> bytes:
    return _build_checkpoint(entries, ("topic", "partition", "offset"))


def _checkpoint_entries(data: bytes, word_count: int) -> Iterator[tuple[int, list[str]]]:
    lines = list(_lines(data))
    if len(lines) < 2:
        raise FormatError(len(data), "a checkpoint begins with its version and its entry count")
    (version_at, version), (count_at, count) = lines[:2]
    if _number(version_at, version) != 0:
        raise FormatError(version_at, f"version {version} is unknown")
    for position, line in lines[2:]:
        words = line.split()
        if len(words) != word_count:
            raise FormatError(position, f"{len(words)} words instead of {word_count}")
        yield position, words
    if _number(count_at, count) != len(lines) - 2:
        raise FormatError(count_at, f"{len(lines) - 2} entries instead of {count}")


def _build_checkpoint(entries: Sequence[Mapping[str, Any]] | None, names: Iterable[str]) -> bytes:
    if entries is None:
        return b""
    lines = [" ".join(str(entry[name]) for name in names) for entry in entries]
    return "".join(f"{line}\n" for line in ("0", str(len(lines)), *lines)).encode()


# --- partition.metadata ---------------------------------------------------------------------------


def parse_partition_metadata(data: bytes) -> Fields:
    """partition.metadata: the id of the partition's topic, by which a re-created topic is told."""
    found = re.fullmatch(r"version: ([0-9]+)\ntopic_id: ([A-Za-z0-9_-]{22})\n?", _text(data))
    if found is None:
        raise FormatError(0, "not the two lines `version: N` and `topic_id: ID`")
    return {"version": int(found[1]), "topic_id": found[2]}


def build_partition_metadata(metadata: Mapping[str, Any]) -> bytes:
    return f"version: {metadata['version']}\ntopic_id: {metadata['topic_id']}".encode()


# --- meta.properties ------------------------------------------------------------------------------


def parse_meta_properties(data: bytes) -> Fields:
    """meta.properties of a log directory: whose it is.

    {"comments", "properties"}; properties are node.id, cluster.id, directory.id and version (1).
    Java writes it: comments first (one tells the time), then the properties in no certain order.
    """
    comments, properties = [], {}
    for position, line in _lines(data):
        if line.startswith("#"):
            comments.append(line[1:])
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise FormatError(position, f"no `=` in {line[:40]!r}")
        properties[_unescape(name)] = _unescape(value)
    return {"comments": comments, "properties": properties}


def build_meta_properties(meta: Mapping[str, Any]) -> bytes:
    comments = [f"#{comment}\n" for comment in meta["comments"]]
    properties = [
        f"{_escape(name)}={_escape(value)}\n" for name, value in meta["properties"].items()
    ]
    return "".join(comments + properties).encode()


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _escape(text: str) -> str:
    return re.sub(r"([\\=:#!])", r"\\\1", text)


# --- JSON -----------------------------------------------------------------------------------------


def parse_clean_shutdown(data: bytes) -> Fields:
    """.kafka_cleanshutdown: the broker stopped cleanly, so that no log needs recovery.

    {"version": 0, "brokerEpoch": N}; the epoch proves to the controller that nothing was lost. It
    is deleted at the start. Kafka before 3.7 wrote it empty.
    """
    return _json_object(data) if data else {}


def parse_quorum_state(data: bytes) -> Fields:
    """quorum-state, in the metadata log: the epoch and the vote, which must survive a restart.

    data_version 0 stands for kraft.version 0, 1 adds the directory ids of KIP-853.
    """
    state = _json_object(data)
    if state.get("data_version") not in (0, 1):
        raise FormatError(0, "data_version is neither 0 nor 1")
    return state


def build_json(fields: Mapping[str, Any]) -> bytes:
    """The inverse of both."""
    return json.dumps(fields, separators=(",", ":")).encode() if fields else b""


# A quorum of hundreds of voters has fewer.
_BRACKETS_MAX = 800


def _json_object(data: bytes) -> Fields:
    text = _text(data)
    # Python's own limit of nesting differs between its versions, and its printer has another one.
    if text.count("[") + text.count("{") > _BRACKETS_MAX:
        raise FormatError(0, "nested too deeply")
    try:
        fields = json.loads(text)
    except ValueError as error:
        position = getattr(error, "pos", 0)
        raise FormatError(position, f"not JSON: {getattr(error, 'msg', error)}") from None
    if not isinstance(fields, dict):
        raise FormatError(0, "JSON, but not an object")
    return fields


# --- Text -----------------------------------------------------------------------------------------


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FormatError(error.start, "not UTF-8") from None


def _lines(data: bytes) -> Iterator[tuple[int, str]]:
    _text(data)
    position = 0
    for line in data.splitlines(keepends=True):
        yield position, line.decode().rstrip("\r\n")
        position += len(line)


def _number(position: int, text: str) -> int:
    if re.fullmatch(r"-?[0-9]{1,19}", text) is None:
        raise FormatError(position, f"{text[:40]!r} is not a number")
    return int(text)
