"""Chapters of Produce, InitProducerId and DescribeProducers."""

from compat_tests.wire_story.teller import TIME_MS, Teller, batch, fetch, produce
from ottla.protocol.compression import Codec
from ottla.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.transactions import (
    DescribeProducersRequest,
    InitProducerIdRequest,
    TopicRequest,
)
from ottla.protocol.record_build import build_batch
from ottla.protocol.records import Record
from tests.raw_batches import changed, raw_batch

NOT_A_TOPIC = bytes(15) + b"\x07"


def producing(teller: Teller) -> None:
    """What is produced well, in all versions."""
    topic_id = teller.topic("producing", partitions=2)
    teller.ask_in(range(3, 13), "produce", produce("producing", batch(b"a", b"b")))
    teller.ask("produce, v13", produce("", batch(b"a"), topic_id=topic_id), 13)
    teller.ask("produce, acks 1", produce("producing", batch(b"a"), acks=1), 9)
    teller.ask("produce to the second partition", produce("producing", batch(b"a"), partition=1), 9)
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        data = batch(b"one" * 50, b"two" * 50, codec=codec)
        teller.ask(f"produce {codec.name}", produce("producing", data), 9)
        teller.ask(f"produce {codec.name} in v3", produce("producing", data), 3)
    headers = ((b"h".decode(), b"1"), ("empty", b""), ("null", None))
    teller.ask("produce headers", produce("producing", batch(b"a", headers=headers)), 9)
    teller.ask("produce a tombstone", produce("producing", _tombstone()), 9)
    teller.ask("produce a big record", produce("producing", batch(bytes(900_000))), 9)
    teller.ask("fetch what was produced", fetch("producing", 30, partition_max_bytes=5000), 11)
    teller.ask_for_nothing("produce with acks 0", produce("producing", batch(b"a"), acks=0), 9)
    unknown = produce("no-such-topic", batch(b"a"), acks=0)
    teller.ask_for_nothing("produce with acks 0 to an unknown topic", unknown, 9)


def produce_refusals(teller: Teller) -> None:
    """What is wrong about a request or its topic."""
    topic_id = teller.topic("refusing")
    good = batch(b"a")
    teller.ask("produce to an unknown topic", produce("no-such-topic", good), 9)
    teller.ask("produce to an unknown topic, v12", produce("no-such-topic", good), 12)
    teller.ask("produce to an unknown id", produce("", good, topic_id=NOT_A_TOPIC), 13)
    teller.ask("produce to the id of zeros", produce("", good), 13)
    teller.ask("produce to an unknown partition", produce("refusing", good, partition=7), 9)
    teller.ask("produce to a negative partition", produce("refusing", good, partition=-1), 9)
    teller.ask(
        "produce by id to no partition", produce("", good, partition=9, topic_id=topic_id), 13
    )
    teller.ask("produce with acks 2", produce("refusing", good, acks=2), 9)
    teller.ask("produce with acks -2", produce("refusing", good, acks=-2), 3)
    teller.ask("produce to a name that is illegal", produce("a/b", good), 9)
    teller.ask("produce to an empty name", produce("", good), 9)
    nothing = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[])
    teller.ask("produce nothing", nothing, 9)
    teller.ask("produce no records", produce("refusing", b""), 9)
    twice = produce("refusing", good)
    twice.topic_data[0].partition_data.append(PartitionProduceData(index=5, records=good))
    teller.ask("produce to one partition that is there and one that is not", twice, 9)
    two_topics = produce("refusing", good)
    unknown = TopicProduceData(
        name="no-such-topic", partition_data=[PartitionProduceData(index=0, records=good)]
    )
    two_topics.topic_data.append(unknown)
    teller.ask("produce to one topic that is there and one that is not", two_topics, 9)


def bad_batches(teller: Teller) -> None:
    """Batches that are wrong, and what they leave in the log: nothing."""
    teller.topic("bad-batches")
    good = batch(b"a", b"b")
    cases = {
        "a bad crc": changed(good, crc=1),
        "a base offset other than 0": changed(good, base_offset=5),
        "magic 1": changed(good, magic=1),
        "magic 3": changed(good, magic=3),
        "a control batch": changed(good, attributes=0x20),
        "too large a count": changed(good, record_count=3),
        "too small a count": changed(good, record_count=1),
        "a last offset delta that lies": changed(good, last_offset_delta=7),
        "a max timestamp that lies": changed(good, max_timestamp=TIME_MS + 12_345),
        "LogAppendTime set by a client": changed(good, attributes=0x08),
        "an unknown codec": changed(good, attributes=5),
        "two batches": good + batch(b"c"),
        "a batch that is cut short": good[:-3],
        "a batch of half a header": good[:30],
        "seven bytes after a batch": good + b"junk...",
        "zeros": bytearray(61),
        "gzip that is none": changed(good, attributes=1),
        "records that are garbage": raw_batch(b"\xff" * 20, like=good),
        "a negative sequence with a producer id": changed(
            good, producer_id=1, producer_epoch=0, base_sequence=-1
        ),
        "a transactional batch": changed(
            good, attributes=0x10, producer_id=1, producer_epoch=0, base_sequence=0
        ),
        "a time too far ahead": batch(b"a", timestamp=TIME_MS * 3),
        "a negative time": changed(good, base_timestamp=-5, max_timestamp=-5),
    }
    for name, data in cases.items():
        teller.ask(f"produce {name}", produce("bad-batches", data), 9)
    teller.ask("produce a bad crc, v7", produce("bad-batches", cases["a bad crc"]), 7)
    teller.ask("what bad batches left", fetch("bad-batches"), 11)


def topic_rules(teller: Teller) -> None:
    """Configs of a topic by which its leader judges and mends batches."""
    teller.topic("appends-time", configs={"message.timestamp.type": "LogAppendTime"})
    teller.ask("produce with LogAppendTime", produce("appends-time", batch(b"a", b"b")), 9)
    teller.ask("produce with LogAppendTime, v3", produce("appends-time", batch(b"a")), 3)
    teller.ask("fetch LogAppendTime, v4", fetch("appends-time"), 4)
    teller.topic("compacted", configs={"cleanup.policy": "compact"})
    teller.ask("a compacted topic takes a key", produce("compacted", batch(b"a", key=b"k")), 9)
    teller.ask("a compacted topic takes no record without", produce("compacted", batch(b"a")), 9)
    teller.ask("the same in v7", produce("compacted", batch(b"a")), 7)
    teller.topic("small", configs={"max.message.bytes": "200"})
    teller.ask("a batch larger than max.message.bytes", produce("small", batch(bytes(300))), 9)
    teller.topic("segments", configs={"segment.bytes": "1048576"})
    big = produce("segments", batch(bytes(1_048_000), bytes(400)))
    teller.ask("a batch larger than a segment", big, 9)
    times = {"message.timestamp.before.max.ms": "1000", "message.timestamp.after.max.ms": "1000"}
    teller.topic("times", configs=times)
    teller.ask("a record that is too old", produce("times", batch(b"a", b"b")), 9)
    teller.topic("recompressed", configs={"compression.type": "lz4"})
    teller.ask("a batch to recompress", produce("recompressed", batch(b"a" * 500)), 9)
    teller.topic("in-sync", configs={"min.insync.replicas": "2"})
    teller.ask("more in-sync replicas than there are", produce("in-sync", batch(b"a")), 9)


def idempotence(teller: Teller) -> None:
    """Producer ids, duplicates, sequences and epochs; all in order on one partition."""
    topic_id = teller.topic("idempotent")
    ask = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    producer_id = teller.until(ask, 5, lambda said: said.error_code == 0).producer_id
    teller.ask_in(range(6), "init a producer id", ask)
    teller.ask("an init in a version that is not served", ask, 6)
    odd = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1)
    teller.ask("init without a timeout", odd, 4)
    known = InitProducerIdRequest(
        transactional_id=None,
        transaction_timeout_ms=60_000,
        producer_id=producer_id,
        producer_epoch=0,
    )
    teller.ask("init with a producer id, v3", known, 3)
    empty = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=60_000)
    teller.ask("init with an empty transactional id", empty, 4)

    def sent(case: str, sequence: int, *values: bytes, epoch: int = 0, version: int = 9) -> None:
        data = batch(*values, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        request = produce("idempotent", data, topic_id=topic_id)
        teller.ask(case, request, version)

    sent("the first batch of a producer", 0, b"0", b"1")
    sent("its second batch", 2, b"2", b"3", version=13)
    sent("its first batch again", 0, b"0", b"1")
    sent("its first batch again, v5", 0, b"0", b"1", version=5)
    sent("a gap in the sequence", 9, b"9")
    sent("a sequence below the last, no duplicate", 1, b"x", b"y")
    sent("a new epoch that does not begin at 0", 4, b"4", epoch=1)
    sent("a new epoch", 0, b"4", epoch=1)
    sent("an old epoch", 4, b"5", epoch=0)
    for sequence in range(1, 7):
        sent(f"batch {sequence} of the new epoch", sequence, b"6", epoch=1)
    sent("the fifth batch before", 2, b"6", epoch=1)
    sent("the sixth batch before", 1, b"6", epoch=1)
    unknown = batch(b"z", producer_id=987_654, producer_epoch=3, base_sequence=44)
    teller.ask("an unknown producer in mid-sequence", produce("idempotent", unknown), 9)
    wraps = batch(b"1", b"2", producer_id=987_655, producer_epoch=0, base_sequence=2**31 - 1)
    teller.ask("a sequence that wraps", produce("idempotent", wraps), 9)
    after = batch(b"3", producer_id=987_655, producer_epoch=0, base_sequence=1)
    teller.ask("the sequence after the wrap", produce("idempotent", after), 9)
    teller.ask("fetch idempotent batches", fetch("idempotent"), 11)
    _describe_producers(teller)


def _describe_producers(teller: Teller) -> None:
    def asked(name: str, *partitions: int) -> DescribeProducersRequest:
        topics = [TopicRequest(name=name, partition_indexes=list(partitions))]
        return DescribeProducersRequest(topics=topics)

    teller.ask("describe producers", asked("idempotent", 0), 0)
    teller.ask("describe producers of an unknown topic", asked("no-such-topic", 0), 0)
    teller.ask("describe producers of an unknown partition", asked("idempotent", 0, 3), 0)
    teller.ask("describe producers of an illegal name", asked("a/b", 0), 0)
    teller.ask("describe producers of nothing", DescribeProducersRequest(topics=[]), 0)


def deleting_records(teller: Teller) -> None:
    """DeleteRecords, and what is read of a log whose start has moved."""
    teller.topic("deleting", partitions=2)
    for _ in range(3):
        teller.produced("deleting", batch(b"a", b"b", b"c"))

    def deletes(name: str, *asked: tuple[int, int]) -> DeleteRecordsRequest:
        partitions = [
            DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in asked
        ]
        topics = [DeleteRecordsTopic(name=name, partitions=partitions)]
        return DeleteRecordsRequest(topics=topics, timeout_ms=10_000)

    teller.ask("delete no records", deletes("deleting", (0, 0)), 2)
    teller.ask("delete records inside a batch", deletes("deleting", (0, 4)), 2)
    teller.ask("delete records that are gone", deletes("deleting", (0, 2)), 1)
    teller.ask("delete records beyond the end", deletes("deleting", (0, 10)), 0)
    teller.ask("delete records at a negative offset", deletes("deleting", (0, -2)), 2)
    teller.ask("delete records of an unknown topic", deletes("no-such-topic", (0, 0)), 2)
    teller.ask("delete records of an unknown partition", deletes("deleting", (0, 4), (5, 0)), 2)
    teller.ask("fetch below the log start", fetch("deleting", 3), 11)
    teller.ask("fetch inside the first batch", fetch("deleting", 4), 11)
    teller.ask("delete all records", deletes("deleting", (0, -1), (1, -1)), 2)
    teller.ask("fetch of an emptied log", fetch("deleting", 9), 11)
    teller.ask("produce after all was deleted", produce("deleting", batch(b"d")), 9)
    teller.topic("compacts", configs={"cleanup.policy": "compact"})
    teller.produced("compacts", batch(b"a", key=b"k"))
    teller.ask("delete records of a compacted topic", deletes("compacts", (0, 1)), 2)
    teller.ask("delete records of nothing", DeleteRecordsRequest(topics=[], timeout_ms=1000), 2)


def _tombstone() -> bytearray:
    return build_batch([Record(0, TIME_MS, b"key", None, ())])
