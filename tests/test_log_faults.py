"""Each operation of the disk fails once, in each way: what was acknowledged stays, what was refused
is not there, and a failed disk ends it."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace

import pytest

from ottla.protocol.errors import KafkaError
from ottla.protocol.records import ControlRecordType
from ottla.storage.errors import OutOfResources, StorageError
from ottla.storage.log import Log
from ottla.storage.memory_operations import Fault
from ottla.storage.producers import Origin
from ottla.storage.steps import at_once
from tests.log_rig import NOW, SMALL, Rig, batch, batches, marker

FULL = [Fault.ENOSPC, Fault.EDQUOT, Fault.SHORT_WRITE]
SHORT = [Fault.EMFILE, Fault.ENFILE, Fault.ENOMEM]
FAILED = [Fault.EIO, Fault.EROFS]
CONFIG = replace(SMALL, flush_messages=9)


class Model:
    """What the log was told, and what it said to it."""

    def __init__(self, rig: Rig, log: Log) -> None:
        self.rig = rig
        self.log = log
        self.acknowledged: list[bytes] = []
        # Where a truncation failed half-way: what it would have left.
        self.cut: int | None = None

    def append(self, data: bytearray, origin: Origin = Origin.CLIENT) -> None:
        before = self.log.log_end_offset
        try:
            result = self.log.append_as_leader(
                data, leader_epoch=before // 20, now=NOW, origin=origin
            )
        except KafkaError:
            if self.log.log_end_offset > before and self.rig.log_dir.failure is None:
                # It is there; only the flush that flush.messages wants could not be had.
                self.acknowledged.append(bytes(data))
            return
        assert result.base_offset == before and not result.is_duplicate
        self.acknowledged.append(bytes(data))

    def truncate(self, offset: int) -> None:
        kept = [data for data in self.acknowledged if int.from_bytes(data[:8]) < offset]
        try:
            self.log.truncate_to(offset, NOW)
        except KafkaError:
            self.cut = len(kept)
        else:
            self.acknowledged = kept

    def step(self, call: Callable[[], object]) -> None:
        with suppress(KafkaError):
            call()


def run(model: Model) -> Iterator[None]:
    log, rig = model.log, model.rig
    sequence = 0
    for number in range(14):
        model.append(batch(3, timestamp=NOW.wall_ms + number, text=f"{number}."))
        yield
        before = len(model.acknowledged)
        model.append(batch(2, producer=1, sequence=sequence, text=f"{number},"))
        sequence += 2 * (len(model.acknowledged) - before)
        yield
        if number % 3 == 0:
            model.append(batch(1, producer=2 + number, transactional=True))
            data = marker(2 + number, ControlRecordType.ABORT)
            model.append(data, Origin.COORDINATOR)
            yield
        if number == 6:
            model.step(lambda: log.roll(NOW))
            model.step(rig.log_dir.chores.flush_now)
            yield
        if number == 9:
            log.update_high_watermark(log.log_end_offset)
            model.truncate(int.from_bytes(model.acknowledged[-3][:8]))
            yield


def whole_run(fault: Fault | None, number: int) -> Model | None:
    """None where the log could not even be made."""
    rig = Rig(CONFIG)
    if fault is not None:
        rig.files.fail(number, fault)
    try:
        log = rig.create()
    except StorageError:
        return None
    model = Model(rig, log)
    for _ in run(model):
        if rig.log_dir.failure is not None or log.failure is not None:
            break
    return model


OPERATIONS = whole_run(None, 0).rig.files.operation_count  # type: ignore[union-attr]


@pytest.mark.parametrize("fault", [*FULL, *SHORT])
def test_a_disk_that_refuses_once_loses_nothing_and_goes_on(fault: Fault) -> None:
    expected = whole_run(None, 0)
    assert expected is not None
    count = len(expected.acknowledged)
    for number in range(0, OPERATIONS, 2):
        model = whole_run(fault, number)
        if model is None:
            continue
        failure = model.rig.log_dir.failure
        if failure is not None:
            # An fsync that was refused is an fsync that failed.
            assert "sync" in failure
            check_reopened(model)
            continue
        if model.log.failure is None:
            with suppress(KafkaError):
                assert [data for _, data in batches(model.log)] == model.acknowledged
            assert len(model.acknowledged) >= count - 4
        check_reopened(model)


@pytest.mark.parametrize("fault", FAILED)
def test_a_disk_that_fails_ends_the_log_and_loses_nothing(fault: Fault) -> None:
    for number in range(0, OPERATIONS, 2):
        model = whole_run(fault, number)
        if model is None:
            continue
        if model.rig.log_dir.failure is not None:
            end = len(model.acknowledged)
            model.append(batch())
            assert len(model.acknowledged) == end
        check_reopened(model)


def check_reopened(model: Model) -> None:
    """What another process finds: all that was acknowledged, and maybe one batch that failed after
    the disk had it."""
    again = model.rig.killed()
    try:
        opened = again.open()
    except OutOfResources:
        opened = again.killed().open()
    found = [data for _, data in batches(opened)]
    if model.cut is not None:
        assert model.cut <= len(found) <= len(model.acknowledged)
        assert found == model.acknowledged[: len(found)]
        return
    assert found[: len(model.acknowledged)] == model.acknowledged
    assert len(found) <= len(model.acknowledged) + (model.rig.log_dir.failure is not None)
    if model.rig.log_dir.failure is None:
        aborted = at_once(model.log.aborted_transactions(0, 1 << 60))
        assert at_once(opened.aborted_transactions(0, 1 << 60)) == aborted
        model.log.close()
        closed = model.rig.killed().open(clean=True)
        assert [data for _, data in batches(closed)] == model.acknowledged
        assert at_once(closed.aborted_transactions(0, 1 << 60)) == aborted
