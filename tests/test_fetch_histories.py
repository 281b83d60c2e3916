"""Random histories of a fetch session: whoever believes what it tells knows all that there is."""

from random import Random
from typing import Any

import pytest

from ottla.protocol.errors import ErrorCode
from ottla.protocol.messages.fetch import FetchResponse
from ottla.protocol.records import iterate_batches
from tests.data_rig import Broker
from tests.test_fetch import append, parts
from tests.test_fetch_sessions import Client


class Follower:
    """A client that believes what its session tells, and no more."""

    def __init__(self, broker: Broker, dice: Random) -> None:
        self.broker = broker
        self.dice = dice
        self.client = Client(broker, version=dice.choice((11, 13, 17)))
        self.offsets = {0: 0, 1: 0}
        self.told: dict[int, tuple[int, int]] = {}
        self.records: dict[int, list[int]] = {index: [] for index in range(6)}
        self.to_say: dict[int, int] = dict(self.offsets)

    def fetch(self, **fields: Any) -> None:
        wanted, self.to_say = list(self.to_say.items()), {}
        forget = fields.pop("forget", ())
        answer = self.client.ask(*wanted, forget=forget, **fields)
        if not isinstance(answer, FetchResponse):
            self.disturb()
            answer = self.broker.run(answer)
        self.client.session_id = answer.session_id
        for part in parts(answer):
            self.take(part)

    def take(self, part: Any) -> None:
        index = part.partition_index
        assert index in self.offsets, "nobody asked for that"
        if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            start = self.broker.partitions["t", index].log.log_start_offset
            self.offsets[index] = self.to_say[index] = start
            return
        assert part.error_code == 0
        self.told[index] = part.high_watermark, part.log_start_offset
        for _, header in iterate_batches(part.records or b""):
            first = max(header.base_offset, self.offsets[index])
            self.records[index] += range(first, header.next_offset)
            self.offsets[index] = self.to_say[index] = max(self.offsets[index], header.next_offset)

    def disturb(self) -> None:
        partition = self.broker.partitions["t", self.dice.randrange(6)]
        if self.dice.random() < 0.8:
            append(partition, self.dice.randrange(1, 4))
        elif partition.log.high_watermark > partition.log.log_start_offset:
            start = self.dice.randint(partition.log.log_start_offset, partition.log.high_watermark)
            partition.delete_records(start)

    def change_subscription(self) -> None:
        index = self.dice.randrange(6)
        if index not in self.offsets:
            known = self.records[index]
            self.offsets[index] = self.to_say[index] = known[-1] + 1 if known else 0
            self.fetch(max_bytes=self.dice.choice((1, 500)))
        elif len(self.offsets) > 1:
            del self.offsets[index]
            self.to_say.pop(index, None)
            self.told.pop(index, None)
            self.fetch(forget=(index,))


@pytest.mark.parametrize("seed", range(40))
def test_whoever_believes_a_session_knows_all(seed: int) -> None:
    dice = Random(seed)
    broker = Broker()
    partitions = broker.create("t", 6)
    follower = Follower(broker, dice)
    for _ in range(150):
        follower.disturb()
        if dice.random() < 0.5:
            follower.fetch(max_bytes=dice.choice((1, 300, 5000)), wait_ms=dice.choice((0, 50)))
        if dice.random() < 0.1:
            follower.change_subscription()
    for _ in range(12):
        follower.fetch()
    for index, offset in follower.offsets.items():
        log = partitions[index].log
        assert offset == log.log_end_offset
        assert follower.told[index] == (log.high_watermark, log.log_start_offset)
        assert follower.records[index] == sorted(set(follower.records[index]))
    broker.loop.close()
