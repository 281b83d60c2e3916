"""Answers made comparable: what must differ from one broker to the next gets a name instead.

Ids, addresses, sizes of disks, times of now and offsets of the metadata log differ. Everything else
is compared as it is, and so is whether something is null.
"""

import hashlib
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any

from ottla.protocol.jsonform import to_json
from ottla.protocol.records import LOG_APPEND_TIME_FLAG, BatchHeader, crc_of, iterate_batches

HOUR_MS = 3_600_000
# Lists whose order says something; the elements of all others are compared in any order.
ORDERED_ANSWERS = ("FetchResponse", "DescribeTopicPartitionsResponse")
# The APIs that are served; ApiVersions is compared for them alone.
SERVED = (
    *(0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 32, 33, 34, 35, 37),
    *(42, 43, 44, 45, 46, 47, 55, 57, 60, 61, 64, 74, 75),
)
NAMES = {
    "clusterId": "<cluster>",
    "finalizedFeaturesEpoch": "<offset>",
    "logDir": "<log directory>",
    "replicaDirectoryId": "<directory>",
    "totalBytes": "<bytes>",
    "usableBytes": "<bytes>",
    "sessionId": "<session>",
    "producerId": "<producer>",
}
# What DescribeQuorum says of the metadata log differs with every start.
QUORUM_NAMES = {
    "highWatermark": "<offset>",
    "leaderEpoch": "<epoch>",
    "logEndOffset": "<offset>",
    "port": "<port>",
}
TIMES = (
    *("timestamp", "logAppendTimeMs", "lastTimestamp", "lastFetchTimestamp"),
    *("lastCaughtUpTimestamp",),
)
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
TIMES_ALLOWED = re.compile(r"within \[-?\d+, \d+\]")
ABSENT_VALUES = (None, -1, 0, "", "AAAAAAAAAAAAAAAAAAAAAA")


class Comparable:
    """What one broker answers, in names; `topic_ids` are those that the story has met."""

    def __init__(self, *, host: str, port: int, now_ms: int) -> None:
        self.topic_ids: dict[str, str] = {}
        self.member_ids: dict[str, str] = {}
        self._host = host
        self._port = port
        self._now_ms = now_ms

    def met(self, topic_id: bytes, name: str) -> None:
        text = b64encode(topic_id, altchars=b"-_").rstrip(b"=").decode()
        self.topic_ids[text] = f"<id of {name}>"

    def met_member(self, member_id: str, name: str) -> None:
        """An id that a broker has made up: a name, and a random part."""
        if UUID.search(member_id):
            self.member_ids.setdefault(member_id, f"{name} {len(self.member_ids)}")

    def answer(self, message: Any, version: int) -> Any:
        kind = type(message).__name__
        said = to_json(message, version)
        if kind == "ApiVersionsResponse":
            said["apiKeys"] = [each for each in said["apiKeys"] if each["apiKey"] in SERVED]
        names = {**NAMES, **QUORUM_NAMES} if kind == "DescribeQuorumResponse" else NAMES
        return self._named(said, names, ordered=kind in ORDERED_ANSWERS)

    def _named(self, said: Any, names: Mapping[str, str], *, ordered: bool) -> Any:
        if isinstance(said, dict):
            return {
                field: self._field(field, value, names, ordered=ordered)
                for field, value in said.items()
            }
        if isinstance(said, list):
            elements = [self._named(each, names, ordered=ordered) for each in said]
            return elements if ordered else sorted(elements, key=_sort_key)
        return said

    def _field(self, field: str, value: Any, names: Mapping[str, str], *, ordered: bool) -> Any:
        if field == "records":
            return None if value is None else self._batches(value)
        if field == "documentation":
            return "<text>" if value else value
        if isinstance(value, list | dict):
            return self._named(value, names, ordered=ordered or field == "synonyms")
        if field == "host" and value == self._host:
            return "<host>"
        if field == "port" and value == self._port:
            return "<port>"
        if field in ("topicId", "errorMessage", "batchIndexErrorMessage"):
            return self._with_topics_named(value)
        if field in ("memberId", "leader"):
            return self.member_ids.get(value, value)
        if field in TIMES:
            return self._time(value)
        return names[field] if field in names and value not in ABSENT_VALUES else value

    def _with_topics_named(self, value: str | None) -> str | None:
        for topic_id, name in self.topic_ids.items():
            value = value and value.replace(topic_id, name)
        return value and TIMES_ALLOWED.sub("within <times>", value)

    def _time(self, value: int) -> Any:
        return "<now>" if abs(value - self._now_ms) < HOUR_MS else value

    def _batches(self, data: str) -> list[dict[str, Any]]:
        raw = b64decode(data)
        return [
            self._batch(raw[at : at + header.size], header) for at, header in iterate_batches(raw)
        ]

    def _batch(self, batch: bytes, header: BatchHeader) -> dict[str, Any]:
        said: dict[str, Any] = header._asdict()
        said["crc"] = "right" if crc_of(batch, 0, len(batch)) == header.crc else "wrong"
        said["producer_id"] = "<producer>" if header.producer_id >= 0 else header.producer_id
        if header.attributes & LOG_APPEND_TIME_FLAG:
            said["max_timestamp"] = self._time(header.max_timestamp)
        return {**said, "records": hashlib.sha256(batch[61:]).hexdigest()[:16]}


def _sort_key(element: Any) -> str:
    return str(element)
