from random import Random

import pytest

from ottla.protocol.messages.metadata_records import FeatureLevelRecord, NoOpRecord
from ottla.protocol.wire import ProtocolError
from ottla.replication.metadata_records import (
    CLASSES,
    Versioned,
    decode_record,
    encode_record,
)
from tests.metadata_history import History

REFUSED = {
    "nothing": b"",
    "another frame": bytes((0, 20, 0, 0)),
    "an unknown key": bytes((1, 6, 0, 0)),
    "an unknown version": bytes((1, 20, 1, 0)),
    "a message cut short": bytes((1, 12, 0, 5)),
}


def test_a_record_is_framed_as_kafka_frames_it() -> None:
    record = Versioned(FeatureLevelRecord(name="metadata.version", feature_level=30))
    assert encode_record(record) == b"\x01\x0c\x00\x11metadata.version\x00\x1e\x00"


def test_every_record_comes_back_as_it_was() -> None:
    seen = set()
    for record in History(Random(1)).records(2_000):
        seen.add(type(record.message))
        assert decode_record(encode_record(record)) == record
    transactions = {CLASSES[key] for key in (23, 24, 25)}
    assert seen == set(CLASSES.values()) - transactions


def test_a_record_is_read_from_any_buffer() -> None:
    value = encode_record(Versioned(NoOpRecord()))
    for buffer in (bytes, bytearray, memoryview):
        assert decode_record(buffer(value)) == Versioned(NoOpRecord())


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED)
def test_what_is_no_record_is_refused(value: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_record(value)
