"""An index is a hint: a lookup that it leads astray notices, and answers right all the same."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

import pytest

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.records import ControlRecordType
from ottla.storage.config import LogConfig
from ottla.storage.errors import CorruptFile
from ottla.storage.log import Log
from ottla.storage.lookup import Headers
from ottla.storage.names import LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX, offset_name
from ottla.storage.producers import Origin
from ottla.storage.recovery import reopen_log
from ottla.storage.steps import at_once, to_the_end
from tests.log_rig import NOW, SMALL, Rig, batch, marker

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT
CONFIG: LogConfig = replace(SMALL, segment_bytes=4_000, index_interval_bytes=100)


def closed_log() -> tuple[Rig, list[int]]:
    """Three segments with transactions in each, stopped cleanly; and their base offsets."""
    rig = Rig(CONFIG)
    log = rig.create()
    for number in range(40):
        producer = 1 + number % 3
        data = batch(
            2,
            timestamp=NOW.wall_ms + number * 10,
            producer=producer,
            sequence=number // 3 * 2,
            transactional=True,
            text=f"{number}.",
        )
        log.append_as_leader(data, leader_epoch=0, now=NOW)
        if number % 3 == 2:
            for producer in (1, 2, 3):
                data = marker(producer, ABORT if producer < 3 else COMMIT)
                log.append_as_leader(data, leader_epoch=0, now=NOW, origin=Origin.COORDINATOR)
    bases = [segment.base_offset for segment in log.segments]
    log.close()
    assert len(bases) > 2
    return rig, bases


def offsets(log: Log) -> list[object]:
    answers: list[object] = []
    for offset in range(log.log_end_offset):
        fetched = log.read(offset, 300)
        assert fetched is not None
        answers.append((bytes(fetched.data), fetched.start.offset))
    return answers


def times(log: Log) -> list[object]:
    latest = at_once(log.offset_of_max_timestamp())
    stamps = range(NOW.wall_ms - 5, NOW.wall_ms + 500, 5)
    return [latest, *(at_once(log.offset_for_timestamp(stamp)) for stamp in stamps)]


def aborted(log: Log) -> list[object]:
    """What consumers are told."""
    return [
        [
            (each.producer_id, each.first_offset)
            for each in at_once(log.aborted_transactions(offset, offset + 12))
        ]
        for offset in range(0, log.log_end_offset, 3)
    ]


LOOKUPS: dict[str, Callable[[Log], list[object]]] = {
    OFFSET_INDEX: offsets,
    TIME_INDEX: times,
    TRANSACTION_INDEX: aborted,
}


@pytest.mark.parametrize("suffix", LOOKUPS)
def test_a_wrong_bit_in_an_index_misleads_nobody(suffix: str) -> None:
    """Seen when the log is opened, or when the entry is used; and repaired."""
    rig, bases = closed_log()
    look_up = LOOKUPS[suffix]
    expected = look_up(rig.killed().open(clean=True))
    dice = Random(20261123)
    path = rig.path(offset_name(bases[1], suffix))
    size = rig.files.size(path)
    refused = 0
    for _ in range(90):
        again = rig.killed()
        file = again.files.open(path)
        position = dice.randrange(size)
        (byte,) = file.read(position, 1)
        file.write(position, bytes([byte ^ 1 << dice.randrange(8)]))
        file.close()
        log = again.open(clean=True)
        try:
            assert look_up(log) == expected
        except (KafkaError, CorruptFile):
            assert suffix == TRANSACTION_INDEX
            refused += 1
            with pytest.raises(KafkaError) as told:
                log.read(0, 1)
            assert told.value.code is ErrorCode.KAFKA_STORAGE_ERROR
            to_the_end(reopen_log(log, NOW))
            assert look_up(log) == expected
    assert refused > 5 or suffix != TRANSACTION_INDEX


def test_an_index_of_another_segment_misleads_nobody() -> None:
    rig, bases = closed_log()
    for suffix, look_up in LOOKUPS.items():
        expected = look_up(rig.killed().open(clean=True))
        again = rig.killed()
        other = again.files.read_whole(again.path(offset_name(bases[0], suffix)))
        again.files.write_atomically_now(again.path(offset_name(bases[1], suffix)), other)
        assert look_up(again.open(clean=True)) == expected


def test_an_empty_index_misleads_nobody() -> None:
    rig, bases = closed_log()
    for suffix in (OFFSET_INDEX, TIME_INDEX):
        expected = LOOKUPS[suffix](rig.killed().open(clean=True))
        again = rig.killed()
        again.files.write_atomically_now(again.path(offset_name(bases[1], suffix)), b"")
        assert LOOKUPS[suffix](again.open(clean=True)) == expected


def test_a_batch_that_lies_about_its_offset_by_far_is_not_served() -> None:
    """The CRC does not cover the offset."""
    rig, bases = closed_log()
    path = rig.path(offset_name(bases[1], LOG))
    file = rig.files.open(path)
    file.write(0, (bases[1] + (1 << 41)).to_bytes(8))
    file.close()
    log = rig.open(clean=True)
    with pytest.raises(KafkaError) as told:
        log.read(bases[1], 1000)
    assert told.value.code is ErrorCode.CORRUPT_MESSAGE
    assert str(told.value).count("\n") == 0 and "cannot be in this segment" in str(told.value)
    with pytest.raises(CorruptFile):
        at_once(Headers(log.segments[1], 0).next())
