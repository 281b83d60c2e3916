"""What a log knows of its producers: which batch may follow, and what is told to whom."""

from dataclasses import dataclass, field

import pytest

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.records import (
    CONTROL_FLAG,
    INT32_MAX,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    ControlRecordType,
)
from ottla.protocol.wire import ProtocolError
from ottla.storage.producers import (
    CompletedTransaction,
    Duplicate,
    Marker,
    Origin,
    ProducerStates,
)

ABORT, COMMIT = ControlRecordType.ABORT, ControlRecordType.COMMIT
CLIENT, COORDINATOR, REPLICATION = Origin.CLIENT, Origin.COORDINATOR, Origin.REPLICATION
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
OLD_EPOCH = ErrorCode.INVALID_PRODUCER_EPOCH
BAD_STATE = ErrorCode.INVALID_TXN_STATE


def header(
    sequence: int,
    count: int = 1,
    *,
    producer: int = 1,
    epoch: int = 0,
    offset: int = 0,
    time: int = 1000,
    flags: int = 0,
) -> BatchHeader:
    return BatchHeader(
        offset, 99, 0, 2, 0, flags, count - 1, time, time, producer, epoch, sequence, count
    )


@dataclass
class Rig:
    """Producers, and the offset at which the next batch lands."""

    states: ProducerStates = field(default_factory=ProducerStates)
    end: int = 0

    def append(self, sequence: int, count: int = 1, **more: int) -> BatchHeader:
        sent = header(sequence, count, offset=self.end, **more)
        self.states.update(sent)
        self.end += count
        return sent

    def mark(self, type_: ControlRecordType, *, epoch: int = 0) -> CompletedTransaction | None:
        sent = header(-1, offset=self.end, epoch=epoch, flags=TRANSACTIONAL_FLAG | CONTROL_FLAG)
        self.end += 1
        return self.states.update(sent, Marker(type_, 0))


def code(states: ProducerStates, sent: BatchHeader, origin: Origin = CLIENT) -> ErrorCode | None:
    try:
        assert states.check(sent, origin=origin) is None
    except KafkaError as error:
        return error.code
    return None


# --- sequences ----------------------------------------------------------------------------

SEQUENCES = {  # sequences and counts sent, what comes next (sequence, epoch), the answer
    "of an unknown producer": ([], (17, 0), None),
    "the next one": ([(0, 3)], (3, 0), None),
    "one left out": ([(0, 3)], (4, 0), OUT_OF_ORDER),
    "one that overlaps": ([(0, 3)], (2, 0), OUT_OF_ORDER),
    "after the last there is": ([(INT32_MAX - 1, 2)], (0, 0), None),
    "within a batch that wraps": ([(INT32_MAX, 3)], (2, 0), None),
    "not at zero after the last": ([(INT32_MAX - 1, 2)], (1, 0), OUT_OF_ORDER),
    "a new epoch at zero": ([(0, 3)], (0, 1), None),
    "a new epoch elsewhere": ([(0, 3)], (3, 1), OUT_OF_ORDER),
    "an old epoch": ([(0, 3)], (3, -1), OLD_EPOCH),
}


@pytest.mark.parametrize(("sent", "following", "refused"), SEQUENCES.values(), ids=SEQUENCES)
def test_a_sequence_follows_the_last_one(
    sent: list[tuple[int, int]], following: tuple[int, int], refused: ErrorCode | None
) -> None:
    rig = Rig()
    for sequence, count in sent:
        rig.append(sequence, count)
    sequence, epoch = following
    assert code(rig.states, header(sequence, epoch=epoch)) is refused


def test_one_of_the_last_five_batches_is_a_duplicate_with_its_old_place() -> None:
    rig = Rig()
    for sequence in range(0, 14, 2):
        rig.append(sequence, 2, time=5000 + sequence)
    for sequence in range(4, 14, 2):
        assert rig.states.check(header(sequence, 2), origin=CLIENT) == Duplicate(
            sequence, sequence + 1, 5000 + sequence
        )
    assert code(rig.states, header(2, 2)) is OUT_OF_ORDER
    assert code(rig.states, header(12, 1)) is OUT_OF_ORDER, "half of a batch"
    assert code(rig.states, header(12, 2, epoch=1)) is OUT_OF_ORDER, "another epoch"


def test_what_a_coordinator_writes_has_no_sequences() -> None:
    rig = Rig()
    rig.append(0, epoch=3)
    assert code(rig.states, header(77, epoch=3), COORDINATOR) is None
    assert code(rig.states, header(0, epoch=2), COORDINATOR) is OLD_EPOCH


def test_what_a_leader_took_is_taken() -> None:
    rig = Rig()
    rig.append(0, epoch=3)
    assert code(rig.states, header(77, epoch=1), REPLICATION) is None


# --- transactions -------------------------------------------------------------------------


def test_a_batch_outside_of_the_open_transaction_is_refused() -> None:
    rig = Rig()
    rig.append(0, flags=TRANSACTIONAL_FLAG)
    for origin in (CLIENT, COORDINATOR):
        assert code(rig.states, header(1), origin) is BAD_STATE
        assert code(rig.states, header(1, flags=TRANSACTIONAL_FLAG), origin) is None
    rig.mark(COMMIT)
    assert code(rig.states, header(1)) is None


def test_a_marker_completes_what_its_producer_began() -> None:
    rig = Rig()
    assert rig.mark(ABORT) is None
    rig.append(0, 2, flags=TRANSACTIONAL_FLAG)
    rig.append(0, 3, producer=2, flags=TRANSACTIONAL_FLAG)
    assert rig.states.first_unstable_offset == 1
    completed = rig.mark(ABORT)
    assert completed == CompletedTransaction(1, first_offset=1, last_offset=6, aborted=True)
    assert rig.states.last_stable_offset(completed) == 3
    rig.states.complete(completed)
    assert rig.states.first_unstable_offset == 1
    rig.states.on_high_watermark(7)
    assert rig.states.first_unstable_offset == 3


MARKERS = {  # epoch and coordinator's epoch known, of the marker, version, the answer
    "the same": ((5, 2), (5, 2), 0, None),
    "a newer one": ((5, 2), (6, 3), 1, None),
    "an older producer": ((5, 2), (4, 2), 1, OLD_EPOCH),
    "an older coordinator": ((5, 2), (5, 1), 1, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
    "version 2 of the same epoch": ((5, 2), (5, 2), 2, OLD_EPOCH),
    "version 2 of the next epoch": ((5, 2), (6, 2), 2, None),
}


@pytest.mark.parametrize(("known", "given", "version", "refused"), MARKERS.values(), ids=MARKERS)
def test_a_late_marker_is_refused(
    known: tuple[int, int], given: tuple[int, int], version: int, refused: ErrorCode | None
) -> None:
    states = ProducerStates()
    flags = TRANSACTIONAL_FLAG | CONTROL_FLAG
    states.update(header(-1, epoch=known[0], flags=flags), Marker(COMMIT, known[1]))
    sent, marker = header(-1, epoch=given[0], flags=flags), Marker(ABORT, given[1])
    try:
        states.check_marker(sent, marker, origin=COORDINATOR, transaction_version=version)
        assert refused is None
    except KafkaError as error:
        assert error.code is refused
    states.check_marker(sent, marker, origin=REPLICATION, transaction_version=version)


def test_a_marker_for_an_unknown_producer_is_written() -> None:
    sent = header(-1, epoch=3, flags=TRANSACTIONAL_FLAG | CONTROL_FLAG)
    ProducerStates().check_marker(sent, Marker(ABORT, 0), origin=COORDINATOR, transaction_version=2)


# --- verification -------------------------------------------------------------------------


def verified(states: ProducerStates, sent: BatchHeader, guard: object) -> ErrorCode | None:
    try:
        states.check(sent, origin=CLIENT, guard=guard, verifies=True)  # type: ignore[arg-type]
    except KafkaError as error:
        return error.code
    return None


def start(
    states: ProducerStates, *, epoch: int = 0, sequence: int = 0, bumps: bool = False
) -> object:
    return states.start_verification(
        producer_id=1,
        producer_epoch=epoch,
        sequence=sequence,
        supports_epoch_bump=bumps,
        wall_ms=1000,
    )


def test_a_transaction_begins_only_with_the_guard_that_was_given_out() -> None:
    rig = Rig()
    first = header(0, flags=TRANSACTIONAL_FLAG)
    assert verified(rig.states, first, None) is BAD_STATE
    guard = start(rig.states)
    assert guard is not None
    assert verified(rig.states, first, None) is BAD_STATE
    assert verified(rig.states, first, start(ProducerStates())) is BAD_STATE
    assert verified(rig.states, first, guard) is None
    rig.append(0, flags=TRANSACTIONAL_FLAG)
    assert start(rig.states) is None, "it is open here"
    assert verified(rig.states, header(1, flags=TRANSACTIONAL_FLAG), None) is None


def test_nobody_verifies_what_is_no_transaction() -> None:
    assert verified(ProducerStates(), header(0), None) is None


def test_a_guard_from_before_a_marker_is_worth_nothing() -> None:
    rig = Rig()
    guard = start(rig.states)
    rig.mark(ABORT)
    assert verified(rig.states, header(0, flags=TRANSACTIONAL_FLAG), guard) is BAD_STATE
    again = start(rig.states)
    assert again is not guard
    assert verified(rig.states, header(0, flags=TRANSACTIONAL_FLAG), again) is None


def test_a_transaction_of_an_older_epoch_has_ended_whatever_is_open() -> None:
    rig = Rig()
    rig.append(0, epoch=2, flags=TRANSACTIONAL_FLAG)
    assert start(rig.states, epoch=3) is not None
    assert verified(rig.states, header(0, epoch=3, flags=TRANSACTIONAL_FLAG), None) is BAD_STATE
    with pytest.raises(KafkaError) as refused:
        start(rig.states, epoch=1)
    assert refused.value.code is OLD_EPOCH
    assert verified(rig.states, header(0, epoch=1, flags=TRANSACTIONAL_FLAG), None) is OLD_EPOCH


def test_a_duplicate_needs_no_guard() -> None:
    rig = Rig()
    rig.append(0, flags=TRANSACTIONAL_FLAG)
    rig.mark(COMMIT)
    sent = header(0, flags=TRANSACTIONAL_FLAG)
    assert rig.states.check(sent, origin=CLIENT, verifies=True) is not None
    assert verified(rig.states, header(1, flags=TRANSACTIONAL_FLAG), None) is BAD_STATE


def test_a_coordinators_batches_are_verified_too() -> None:
    states = ProducerStates()
    sent = header(-1, flags=TRANSACTIONAL_FLAG)
    with pytest.raises(KafkaError):
        states.check(sent, origin=COORDINATOR, verifies=True)
    guard = states.start_verification(
        producer_id=1, producer_epoch=0, sequence=-1, supports_epoch_bump=False, wall_ms=0
    )
    states.check(sent, origin=COORDINATOR, guard=guard, verifies=True)


def test_a_lower_sequence_that_waits_for_its_verification_goes_first() -> None:
    states = ProducerStates()
    guard = start(states, sequence=5)
    assert start(states, sequence=3) is guard
    assert verified(states, header(5, flags=TRANSACTIONAL_FLAG), guard) is OUT_OF_ORDER
    assert verified(states, header(3, flags=TRANSACTIONAL_FLAG), guard) is None
    assert start(states, epoch=1, sequence=7) is guard, "a new epoch counts anew"
    assert verified(states, header(7, epoch=1, flags=TRANSACTIONAL_FLAG), guard) is None


def test_an_unknown_producer_of_version_2_begins_at_zero() -> None:
    states = ProducerStates()
    guard = start(states, sequence=3, bumps=True)
    assert verified(states, header(3, flags=TRANSACTIONAL_FLAG), guard) is OUT_OF_ORDER
    guard = start(states, sequence=0, bumps=True)
    assert verified(states, header(0, flags=TRANSACTIONAL_FLAG), guard) is None


def test_the_marker_of_version_2_leaves_the_guard_of_the_next_transaction() -> None:
    rig = Rig()
    rig.append(0, epoch=4, flags=TRANSACTIONAL_FLAG)
    guard = start(rig.states, epoch=5, bumps=True)
    rig.mark(COMMIT, epoch=5)
    assert verified(rig.states, header(0, epoch=5, flags=TRANSACTIONAL_FLAG), guard) is None
    rig.mark(COMMIT, epoch=6)
    assert verified(rig.states, header(0, epoch=6, flags=TRANSACTIONAL_FLAG), guard) is BAD_STATE


# --- expiry and snapshots -----------------------------------------------------------------


def test_idle_producers_are_forgotten_unless_a_transaction_is_open() -> None:
    rig = Rig(ProducerStates(expiration_ms=100))
    rig.append(0, time=1000)
    rig.append(0, time=1000, producer=2, flags=TRANSACTIONAL_FLAG)
    rig.append(0, time=1001, producer=3)
    rig.states.remove_expired(1099)
    assert sorted(rig.states.producers) == [1, 2, 3]
    rig.states.remove_expired(1100)
    assert sorted(rig.states.producers) == [2, 3]


def test_a_snapshot_keeps_the_last_batch_of_each_producer() -> None:
    rig = Rig()
    rig.append(0, 2, time=1500)
    rig.append(2, 3, time=1600)
    rig.append(INT32_MAX, 2, producer=2, epoch=7, flags=TRANSACTIONAL_FLAG)
    loaded = ProducerStates()
    loaded.load(rig.states.snapshot(), offset=rig.end, wall_ms=2000)
    assert loaded.snapshot() == rig.states.snapshot()
    assert loaded.check(header(2, 3), origin=CLIENT) == Duplicate(2, 4, 1600)
    assert code(loaded, header(0, 2)) is OUT_OF_ORDER
    assert loaded.producers[2].batches == rig.states.producers[2].batches
    assert (loaded.first_unstable_offset, loaded.map_end_offset) == (5, 7)


def test_a_snapshot_with_a_wrong_bit_is_refused() -> None:
    rig = Rig()
    rig.append(0)
    data = rig.states.snapshot()
    for at in range(len(data)):
        flipped = data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :]
        with pytest.raises(ProtocolError):
            ProducerStates().load(flipped, offset=1, wall_ms=0)
    for size in range(len(data)):
        with pytest.raises(ProtocolError):
            ProducerStates().load(data[:size], offset=1, wall_ms=0)
