"""What a leader refuses, as a running Kafka 4.3.1 refused it."""

from contextlib import suppress
from random import Random

import pytest

from ottla.protocol import record_validate
from ottla.protocol.compression import Codec, compress
from ottla.protocol.errors import ErrorCode
from ottla.protocol.record_build import build_batch
from ottla.protocol.record_validate import (
    InvalidBatch,
    Produced,
    ProduceRules,
    validate_header,
    validate_produced,
)
from ottla.protocol.records import (
    NO_TIMESTAMP,
    Record,
    TimestampType,
    check_crc,
    iterate_records,
    read_header,
    set_max_timestamp,
)
from tests.raw_batches import NOW_MS, SIZE_MAX, changed, new_records, raw_batch

HOUR_MS = 3_600_000
RULES = ProduceRules(message_size_max=SIZE_MAX, timestamp_after_max_ms=HOUR_MS)
UNWALKED = RULES._replace(walked_count_max=0)
LOG_APPEND_TIME = RULES._replace(timestamp_type=TimestampType.LOG_APPEND_TIME)
GOOD = bytes(build_batch(new_records(3)))
ONE = bytes(build_batch(new_records(1)))
RECORDS = GOOD[61:]


def judge(buf: bytes | bytearray, rules: ProduceRules = RULES) -> Produced:
    return validate_produced(buf, rules, now_ms=NOW_MS)


def refusal(buf: bytes | bytearray, rules: ProduceRules = RULES) -> InvalidBatch:
    with pytest.raises(InvalidBatch) as refused:
        judge(buf, rules)
    return refused.value


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("rules", [RULES, UNWALKED], ids=["walked", "unwalked"])
def test_a_good_batch_is_taken(codec: Codec, rules: ProduceRules) -> None:
    batch = build_batch(
        new_records(20, headers=(("h", b"x"), ("n", None))),
        codec=codec,
        producer_id=9,
        producer_epoch=0,
        base_sequence=0,
    )
    for buf in (bytes(batch), batch, memoryview(batch)):
        assert validate_produced(buf, rules, now_ms=NOW_MS) == Produced(
            header=read_header(batch), max_timestamp=NOW_MS + 19, must_rebuild=False
        )


INVALID_RECORD, CORRUPT = ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE
UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR

REFUSED = {
    "nothing": (b"", INVALID_RECORD),
    "a batch cut short": (GOOD[:-1], INVALID_RECORD),
    "a header cut short": (GOOD[:16], INVALID_RECORD),
    "two batches": (GOOD + GOOD, INVALID_RECORD),
    "magic 0": (changed(GOOD, magic=0), INVALID_RECORD),
    "magic 1": (changed(GOOD, magic=1), INVALID_RECORD),
    "magic 3": (changed(GOOD, magic=3), CORRUPT),
    "magic -1": (changed(GOOD, magic=-1), CORRUPT),
    "zeros": (bytes(100), CORRUPT),
    "zeros behind the batch": (GOOD + bytes(20), CORRUPT),
    "a batch of magic 3 behind the batch": (GOOD + changed(GOOD, magic=3), CORRUPT),
    "a negative length": (changed(GOOD, batch_length=-1), CORRUPT),
    "a length below every header": (changed(GOOD, batch_length=13), CORRUPT),
    "a length below the header": (changed(GOOD, batch_length=48), CORRUPT),
    "a length above what is there": (changed(GOOD, batch_length=2**31 - 1), INVALID_RECORD),
    "a wrong crc": (changed(GOOD, crc=1), CORRUPT),
    "another base offset": (changed(GOOD, base_offset=1), INVALID_RECORD),
    "no records": (changed(GOOD, record_count=0, last_offset_delta=-1), INVALID_RECORD),
    "a negative count": (changed(GOOD, record_count=-1, last_offset_delta=-2), INVALID_RECORD),
    "a count below the last offset": (changed(GOOD, record_count=2), INVALID_RECORD),
    "a last offset below the count": (changed(GOOD, last_offset_delta=1), INVALID_RECORD),
    "a count that cannot stand in the bytes": (
        changed(GOOD, record_count=99, last_offset_delta=98),
        INVALID_RECORD,
    ),
    "a control batch": (changed(GOOD, attributes=32), INVALID_RECORD),
    "an idempotent batch without sequence": (changed(GOOD, producer_id=0), INVALID_RECORD),
    "codec 5": (changed(GOOD, attributes=5), UNKNOWN),
    "codec 7": (changed(GOOD, attributes=7), UNKNOWN),
}


@pytest.mark.parametrize("rules", [RULES, UNWALKED], ids=["walked", "unwalked"])
@pytest.mark.parametrize("buf, code", REFUSED.values(), ids=REFUSED)
def test_a_header_that_lies_is_refused(buf: bytes, code: ErrorCode, rules: ProduceRules) -> None:
    error = refusal(buf, rules)
    assert error.code is code
    assert error.record_errors == []
    with pytest.raises(InvalidBatch):
        validate_header(buf, rules)


STORED = {
    "junk behind the batch": GOOD + b"7 bytes",
    "a second batch cut short": GOOD + GOOD[:-1],
    "unknown attribute bits": changed(GOOD, attributes=128 + 512),
    "a delete horizon": changed(GOOD, attributes=64),
    "an epoch without producer id": changed(GOOD, producer_epoch=5),
    "a producer id without epoch": changed(GOOD, producer_id=5, base_sequence=0),
    "a leader epoch": changed(GOOD, partition_leader_epoch=99),
    "equal offset deltas": raw_batch(
        RECORDS.replace(b"\x02\x0akey-1", b"\x00\x0akey-1"), like=GOOD
    ),
}


@pytest.mark.parametrize("buf", STORED.values(), ids=STORED)
def test_what_kafka_stores_is_taken(buf: bytes) -> None:
    assert judge(buf).header == read_header(buf)
    assert judge(buf, UNWALKED).header == read_header(buf)


def test_a_batch_may_be_as_large_as_the_topic_allows() -> None:
    judge(GOOD, RULES._replace(message_size_max=len(GOOD)))
    error = refusal(GOOD, RULES._replace(message_size_max=len(GOOD) - 1))
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE


def test_zstd_may_be_too_new_for_the_request() -> None:
    rules = RULES._replace(zstd_allowed=False)
    judge(build_batch(new_records(1), codec=Codec.LZ4), rules)
    error = refusal(build_batch(new_records(1), codec=Codec.ZSTD), rules)
    assert error.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


LYING_RECORDS = {
    "one more than the count": RECORDS + ONE[61:],
    "one byte behind them": RECORDS + b"\0",
    "cut short": RECORDS[:-1],
    "wrong size": b"\x7e" + RECORDS[1:],
    "null header key": build_batch(new_records(3, headers=(("", b""),)))[61:].replace(
        b"\x02\x00\x00", b"\x02\x01\x00"
    ),
    "header count above what is left": RECORDS[:-1] + b"\x7e",
    "negative header count": RECORDS[:-1] + b"\x01",
}


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("records", LYING_RECORDS.values(), ids=LYING_RECORDS)
def test_records_that_lie_are_refused_where_they_are_walked(records: bytes, codec: Codec) -> None:
    batch = raw_batch(compress(codec, records), like=GOOD, attributes=codec)
    assert refusal(batch).code is INVALID_RECORD
    assert judge(batch, UNWALKED).header == read_header(batch)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_corrupt_compressed_data_gets_kafkas_answer(codec: Codec) -> None:
    packed = compress(codec, RECORDS)
    batch = raw_batch(packed[:-7], like=GOOD, attributes=codec)
    assert refusal(batch).code is UNKNOWN


def test_records_that_decompress_to_too_much_are_too_large() -> None:
    batch = build_batch([Record(0, NOW_MS, None, bytes(10_000))], codec=Codec.ZSTD)
    judge(batch, RULES._replace(decompressed_max=10_100))
    error = refusal(batch, RULES._replace(decompressed_max=10_000))
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_wrong_offset_deltas_are_refused_in_a_compressed_batch_that_stays(codec: Codec) -> None:
    records = RECORDS.replace(b"\x02\x0akey-1", b"\x00\x0akey-1")
    batch = raw_batch(compress(codec, records), like=GOOD, attributes=codec)
    assert refusal(batch).code is UNKNOWN
    assert judge(batch, RULES._replace(codec=Codec.NONE)).must_rebuild


CODECS = [  # of the batch, of the topic, must be rebuilt
    (Codec.NONE, None, False),
    (Codec.ZSTD, None, False),
    (Codec.ZSTD, Codec.ZSTD, False),
    (Codec.ZSTD, Codec.NONE, True),
    (Codec.NONE, Codec.GZIP, True),
]


@pytest.mark.parametrize("sent, wanted, must_rebuild", CODECS)
def test_a_topic_with_a_codec_of_its_own(
    sent: Codec, wanted: Codec | None, must_rebuild: bool
) -> None:
    batch = build_batch(new_records(2), codec=sent)
    assert judge(batch, RULES._replace(codec=wanted)).must_rebuild is must_rebuild


MAX_TIMESTAMPS = {  # times of the records, max timestamp in the header, as it is mended
    "right": ([NOW_MS, NOW_MS + 5, NOW_MS + 2], NOW_MS + 5, NOW_MS + 5),
    "too low": ([NOW_MS, NOW_MS + 5, NOW_MS + 2], 0, NOW_MS + 5),
    "too high": ([NOW_MS, NOW_MS - 5], NOW_MS + 99, NOW_MS),
    "none": ([NO_TIMESTAMP, NO_TIMESTAMP], 77, NO_TIMESTAMP),
    "below none": ([-5, -9], -5, NO_TIMESTAMP),
}


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("times, given, mended", MAX_TIMESTAMPS.values(), ids=MAX_TIMESTAMPS)
def test_a_lying_max_timestamp_is_mended(
    times: list[int], given: int, mended: int, codec: Codec
) -> None:
    records = [Record(n, time, None, b"v") for n, time in enumerate(times)]
    batch = changed(build_batch(records, codec=codec), max_timestamp=given)
    produced = judge(batch)
    assert produced.max_timestamp == mended
    set_max_timestamp(
        batch,
        0,
        produced.header,
        timestamp_type=TimestampType.CREATE_TIME,
        max_timestamp=produced.max_timestamp,
    )
    check_crc(batch, 0, read_header(batch))
    assert read_header(batch).max_timestamp == mended
    assert list(iterate_records(batch, decompressed_max=SIZE_MAX)) == records


def test_a_max_timestamp_is_believed_where_records_are_not_walked() -> None:
    assert judge(changed(GOOD, max_timestamp=NOW_MS + 9), UNWALKED).max_timestamp == NOW_MS + 9
    # Unless the first record's is above it.
    assert judge(changed(GOOD, max_timestamp=5), UNWALKED).max_timestamp == NOW_MS


def test_a_header_with_impossible_times_gets_its_records_walked() -> None:
    batch = changed(GOOD, max_timestamp=NOW_MS + 2 * HOUR_MS)
    assert judge(batch, UNWALKED).max_timestamp == NOW_MS + 2
    lying = raw_batch(RECORDS + b"\0", like=batch, max_timestamp=NOW_MS + 2 * HOUR_MS)
    assert refusal(lying, UNWALKED).code is INVALID_RECORD


def test_log_append_time_is_the_brokers_whatever_the_records_say() -> None:
    for time in (0, NO_TIMESTAMP, NOW_MS + 9 * HOUR_MS):
        batch = build_batch(new_records(2, timestamp=time))
        assert judge(batch, LOG_APPEND_TIME).max_timestamp == NOW_MS


def test_a_producer_may_not_set_log_append_time_for_a_topic_that_has_it() -> None:
    error = refusal(build_batch(new_records(2), log_append_time_ms=NOW_MS), LOG_APPEND_TIME)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [fault.batch_index for fault in error.record_errors] == [0, 1]


def test_log_append_time_that_a_producer_set_becomes_create_time() -> None:
    batch = build_batch(new_records(2), log_append_time_ms=NOW_MS + 7)
    for rules in (RULES, UNWALKED):
        assert judge(batch, rules).max_timestamp == NOW_MS + 7


def test_log_append_time_without_a_time_is_refused() -> None:
    batch = build_batch(new_records(2), log_append_time_ms=NO_TIMESTAMP)
    for rules in (RULES, UNWALKED):
        error = refusal(batch, rules)
        assert error.code is ErrorCode.INVALID_TIMESTAMP
        assert len(error.record_errors) == 2


LIMITS = [  # offset from now of three records, before, after, indexes of those that are refused
    ([0, -HOUR_MS, HOUR_MS], HOUR_MS, HOUR_MS, []),
    ([0, -HOUR_MS - 1, HOUR_MS], HOUR_MS, HOUR_MS, [1]),
    ([HOUR_MS + 1, 0, HOUR_MS + 2], HOUR_MS, HOUR_MS, [0, 2]),
    ([-HOUR_MS, HOUR_MS + 1, HOUR_MS], HOUR_MS, HOUR_MS, [1]),
    ([-NOW_MS - 1, 0, 0], HOUR_MS, HOUR_MS, []),  # a record without timestamp
    ([-NOW_MS - 1, -HOUR_MS - 1, 0], HOUR_MS, HOUR_MS, [1]),
    ([-NOW_MS, 0, 0], 2**63 - 1, HOUR_MS, []),  # 1970
    ([-NOW_MS - 2, 0, 0], HOUR_MS, HOUR_MS, [0]),
    ([0, 0, 2**62], HOUR_MS, 2**63 - 1, []),
]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize("times, before, after, refused", LIMITS)
def test_times_out_of_the_topics_limits_are_refused(
    times: list[int], before: int, after: int, refused: list[int], codec: Codec
) -> None:
    records = [Record(n, NOW_MS + time, b"k", b"v") for n, time in enumerate(times)]
    rules = RULES._replace(timestamp_before_max_ms=before, timestamp_after_max_ms=after)
    batch = build_batch(records, codec=codec)
    if not refused:
        judge(batch, rules)
        return
    error = refusal(batch, rules)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [fault.batch_index for fault in error.record_errors] == refused


HEADER_LIMITS = [  # offset from now of three records, indexes of those that the header gives away
    ([-HOUR_MS - 1, 0, 0], [0]),
    ([0, 0, HOUR_MS + 1], [2]),
    ([HOUR_MS + 1, 0, HOUR_MS + 2], [0, 2]),
    ([0, -HOUR_MS - 1, 0], []),
]


@pytest.mark.parametrize("times, refused", HEADER_LIMITS)
def test_unwalked_the_first_and_the_greatest_time_stand_for_all(
    times: list[int], refused: list[int]
) -> None:
    rules = UNWALKED._replace(timestamp_before_max_ms=HOUR_MS)
    batch = build_batch([Record(n, NOW_MS + time, b"k", b"v") for n, time in enumerate(times)])
    if not refused:
        judge(batch, rules)
        return
    assert [fault.batch_index for fault in refusal(batch, rules).record_errors] == refused


@pytest.mark.parametrize("rules", [RULES, UNWALKED], ids=["walked", "unwalked"])
@pytest.mark.parametrize("codec", Codec)
def test_a_compacted_topic_wants_keys(codec: Codec, rules: ProduceRules) -> None:
    rules = rules._replace(compacted=True)
    keys = [b"k", None, b"", None]
    records = [Record(n, NOW_MS, key, b"v") for n, key in enumerate(keys)]
    error = refusal(build_batch(records, codec=codec), rules)
    assert error.code is INVALID_RECORD
    assert [fault.batch_index for fault in error.record_errors] == [1, 3]
    judge(build_batch([Record(0, NOW_MS, b"", b"v")], codec=codec), rules)
    error = refusal(build_batch([Record(n, NOW_MS, None, b"v") for n in range(3)]), rules)
    assert [fault.batch_index for fault in error.record_errors] == [0, 1, 2]


def test_a_wrong_time_among_missing_keys_gives_its_code_to_all() -> None:
    records = [Record(0, NOW_MS, None, b"v"), Record(1, NOW_MS + 2 * HOUR_MS, b"k", b"v")]
    error = refusal(build_batch(records), RULES._replace(compacted=True))
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [fault.batch_index for fault in error.record_errors] == [0, 1]


def test_the_answer_to_many_wrong_records_is_bounded() -> None:
    records = [Record(n, NOW_MS, None, b"v") for n in range(3000)]
    records.append(Record(3000, NOW_MS + 2 * HOUR_MS, b"k", b"v"))
    error = refusal(build_batch(records), RULES._replace(compacted=True))
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert len(error.record_errors) == 1000


def test_mutated_batches_are_taken_or_refused() -> None:
    dice = Random(20261119)
    seeds = [build_batch(new_records(5), codec=codec) for codec in Codec]
    for _ in range(4000):
        mutated = bytearray(dice.choice(seeds))
        for _ in range(dice.choice((0, 1, 2))):
            mutated[dice.randrange(len(mutated))] = dice.choice((0, 1, 0x7F, 0x80, 0xFF))
        mutated = changed(mutated) if dice.random() < 0.9 and mutated[16] == 2 else mutated
        rules = dice.choice((RULES, UNWALKED, LOG_APPEND_TIME))
        with suppress(InvalidBatch):
            judge(mutated, rules._replace(compacted=dice.random() < 0.2))


def test_what_is_waved_through_would_have_been_taken_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The short way and the long one, on batches that are right, odd and wrong."""
    dice = Random(20261120)
    seeds = [
        build_batch(
            new_records(count, headers=headers),
            codec=codec,
            transactional=True,
            producer_id=producer_id,
            producer_epoch=1,
            base_sequence=9,
        )
        for count in (1, 5, 16, 30)
        for codec in (Codec.NONE, Codec.LZ4)
        for headers in ((), (("h", b"x"),))
        for producer_id in (-1, 4)
    ]
    waved_through = 0
    for _ in range(6000):
        batch = bytearray(dice.choice(seeds))
        if dice.random() < 0.5:
            at = dice.randrange(dice.choice((61, len(batch))))
            batch[at] = dice.choice((0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)))
        if dice.random() < 0.7 and batch[16] == 2:
            batch = changed(batch)
        rules = dice.choice((RULES, UNWALKED, RULES._replace(codec=Codec.LZ4), LOG_APPEND_TIME))
        rules = rules._replace(
            compacted=dice.random() < 0.2,
            zstd_allowed=dice.random() < 0.5,
            walked_count_max=dice.choice((0, 16, 1000)),
            timestamp_before_max_ms=dice.choice((1, HOUR_MS, 2**63 - 1)),
        )
        short = _outcome(batch, rules)
        waved_through += isinstance(short, Produced)
        with monkeypatch.context() as patched:
            patched.setattr(record_validate, "_plain_header", lambda buf, rules, now_ms: None)
            assert _outcome(batch, rules) == short
    assert 1000 < waved_through < 5000


def _outcome(batch: bytearray, rules: ProduceRules) -> object:
    try:
        return judge(batch, rules)
    except InvalidBatch as error:
        return error.code, str(error), error.record_errors
