"""The short way of a fetch gives what the long way gives, or leaves it to it."""

from random import Random

import pytest

from ottla.protocol.errors import KafkaError
from ottla.protocol.records import ControlRecordType
from ottla.storage.config import LogConfig
from ottla.storage.log import Fetched, Isolation, Log
from ottla.storage.memory_operations import Fault
from ottla.storage.names import OFFSET_INDEX, offset_name
from ottla.storage.steps import from_memory
from tests.log_rig import NOW, Rig, batch, transaction

CONFIG = LogConfig(segment_bytes=20_000, index_interval_bytes=300, segment_index_bytes=4_800)


def filled(dice: Random) -> tuple[Rig, Log]:
    rig = Rig(CONFIG)
    log = rig.create()
    for number in range(120):
        data = batch(dice.randrange(1, 9), size=dice.choice((1, 20, 150)), text=f"{number}.")
        log.append_as_leader(data, leader_epoch=0, now=NOW)
    rig.log_dir.chores.flush_now()
    return rig, log


def the_long_way(log: Log, offset: int, max_bytes: int, to: Isolation, one: bool) -> Fetched | None:
    return from_memory(log._reading(offset, max_bytes, to, one))


@pytest.mark.parametrize("isolation", [Isolation.LOG_END, Isolation.HIGH_WATERMARK])
def test_both_ways_agree(isolation: Isolation) -> None:
    dice = Random(20261122)
    _, log = filled(dice)
    for segment in log.segments:
        list(segment.offset_index.load())
    short = 0
    for _ in range(3000):
        offset = dice.randrange(log.log_start_offset, log.log_end_offset + 1)
        if dice.random() < 0.1:
            offset = log.log_end_offset - dice.randrange(9)
        if dice.random() < 0.1:
            log.update_high_watermark(dice.randrange(log.log_end_offset + 1))
        max_bytes = dice.choice((0, 1, 70, 500, 3_000, 100_000))
        minimum_one = dice.random() < 0.5
        expected = the_long_way(log, offset, max_bytes, isolation, minimum_one)
        assert expected is not None
        found = log._plain(offset, max_bytes, isolation, minimum_one)
        if found is not None:
            short += 1
            assert bytes(found.data) == bytes(expected.data)
            assert found[1:] == expected[1:]
    assert short > 700


def test_what_is_out_of_range_is_told_on_the_long_way() -> None:
    _, log = filled(Random(1))
    for offset in (-1, log.log_end_offset + 1):
        assert log._plain(offset, 100, Isolation.LOG_END, True) is None
        with pytest.raises(KafkaError):
            log.read(offset, 100)


def test_a_committed_reader_takes_the_long_way_where_there_may_be_transactions() -> None:
    _, log = filled(Random(1))
    log.update_high_watermark(log.log_end_offset)
    last = log.segments.active.base_offset
    for offset in (0, last, log.log_end_offset - 1):
        expected = the_long_way(log, offset, 100, Isolation.TXN_COMMITTED, True)
        found = log._plain(offset, 100, Isolation.TXN_COMMITTED, True)
        assert found is None or found == expected
        assert (found is not None) is (offset >= last)
    transaction(log, 7, ControlRecordType.ABORT)
    log.update_high_watermark(log.log_end_offset)
    for offset in range(log.log_end_offset - 5, log.log_end_offset):
        assert log._plain(offset, 100, Isolation.TXN_COMMITTED, True) is None
    fetched = log.read(log.log_end_offset - 3, 100, isolation=Isolation.TXN_COMMITTED)
    assert fetched is not None and fetched.aborted is not None
    assert [each.producer_id for each in fetched.aborted] == [7]
    log.roll(NOW)
    log.append_as_leader(batch(2, producer=8, transactional=True), leader_epoch=0, now=NOW)
    log.update_high_watermark(log.log_end_offset)
    assert log._plain(log.log_end_offset - 1, 100, Isolation.TXN_COMMITTED, True) is None


def test_nothing_that_is_cold_is_read() -> None:
    rig, log = filled(Random(2))
    rig.files.fail(lambda operation: operation.kind == "read_cached", Fault.COLD, times=None)
    assert log._plain(log.log_end_offset - 1, 100, Isolation.LOG_END, True) is None
    assert log.read(log.log_end_offset // 2, 100) is None


def test_an_index_that_lies_leads_to_the_long_way_and_is_made_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rig, log = filled(Random(3))
    log.close()
    segment = log.segments.first
    path = rig.path(offset_name(segment.base_offset, OFFSET_INDEX))
    expected = [bytes(data) for data in _all(rig.killed().open(clean=True))]
    for entry in range(rig.files.size(path) // 8):
        again = rig.killed()
        file = again.files.open(path)
        position = int.from_bytes(file.read(entry * 8 + 4, 4))
        file.write(entry * 8 + 4, (position + 1).to_bytes(4))
        file.close()
        opened = again.open(clean=True)
        assert [bytes(data) for data in _all(opened)] == expected
    assert "index.rebuild" in caplog.text


def _all(log: Log) -> list[bytes]:
    return [_data(log.read(offset, 1)) for offset in range(log.log_end_offset)]


def _data(fetched: Fetched | None) -> bytes:
    assert fetched is not None
    return bytes(fetched.data)
