"""Random record batches out of our own builder; Kafka says whether they are any good."""

import random

from ottla.protocol.compression import Codec
from ottla.protocol.record_build import build_batch
from ottla.protocol.records import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, Record

TIMES = (-1, 0, 1, 1_700_000_000_000, 2**63 - 1)


def random_batch(source: random.Random) -> bytes:
    """A batch of our own making: any codec, times, producer, gaps, nulls, headers."""
    base_offset = source.choice((0, source.randrange(1000), source.randrange(2**62)))
    records = []
    offset = base_offset
    for _ in range(300 if source.randrange(50) == 0 else source.randrange(1, 9)):
        headers = tuple(
            (source.choice(("", "k", "traceparent", "é日\U0001f680")), _some(source))
            for _ in range(source.choice((0, 0, 0, 1, 3)))
        )
        time = source.choice((*TIMES, 1_700_000_000_000 + source.randrange(10_000)))
        records.append(Record(offset, time, _some(source), _some(source), headers))
        offset += source.choice((1, 1, 1, 3))
    has_producer = source.randrange(2) == 0
    batch = build_batch(
        records,
        base_offset=base_offset,
        last_offset=source.choice((None, offset + 2)),
        codec=source.choice(list(Codec)),
        log_append_time_ms=source.choice((None, 1_700_000_000_123)),
        producer_id=source.randrange(2**63) if has_producer else NO_PRODUCER_ID,
        producer_epoch=source.randrange(2**15) if has_producer else NO_PRODUCER_EPOCH,
        base_sequence=_sequence(source) if has_producer else NO_SEQUENCE,
        leader_epoch=source.randrange(-1, 5),
        transactional=has_producer and source.randrange(2) == 0,
        delete_horizon_ms=source.choice((None, None, 1_600_000_000_000)),
    )
    return bytes(batch)


def _sequence(source: random.Random) -> int:
    return source.choice((0, source.randrange(2**31), 2**31 - 1 - source.randrange(3)))


def _some(source: random.Random) -> bytes | None:
    size = source.choice((None, 0, 3, 20, 100, 2000))
    if size is None:
        return None
    return source.randbytes(size) if source.randrange(2) else bytes(size)
