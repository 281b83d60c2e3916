import pytest

from ottla.protocol.compression import Codec
from ottla.protocol.records import (
    HEADER,
    HEADER_SIZE,
    BatchHeader,
    TruncatedBatch,
    UnknownMagic,
    check_crc,
    crc_of,
    increment_sequence,
    iterate_batches,
    patch,
    read_header,
    whole_batches_end,
)
from ottla.protocol.wire import ProtocolError

HEADER_FIELDS = BatchHeader(
    base_offset=7,
    batch_length=49 + 10,
    partition_leader_epoch=3,
    magic=2,
    crc=0,
    attributes=0,
    last_offset_delta=4,
    base_timestamp=1000,
    max_timestamp=1004,
    producer_id=11,
    producer_epoch=1,
    base_sequence=5,
    record_count=5,
)


def batch(records: bytes = b"0123456789", **fields: int) -> bytearray:
    """A batch whose records are bytes of no meaning; its CRC is right unless it is given."""
    header = HEADER_FIELDS._replace(batch_length=49 + len(records))._replace(**fields)
    built = bytearray(HEADER.pack(*header) + records)
    if "crc" not in fields:
        built[17:21] = crc_of(built, 0, len(built)).to_bytes(4, "big")
    return built


def test_a_header_is_read_field_by_field() -> None:
    header = read_header(b"xx" + batch(), 2)
    assert header._replace(crc=0) == HEADER_FIELDS
    assert (header.size, header.last_offset, header.next_offset) == (71, 11, 12)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_holds_a_header(kind: type) -> None:
    assert read_header(kind(batch()))._replace(crc=0) == HEADER_FIELDS


ATTRIBUTES = [  # attributes, codec, log append time, transactional, control, delete horizon
    (0, Codec.NONE, False, False, False, False),
    (1, Codec.GZIP, False, False, False, False),
    (4 | 8, Codec.ZSTD, True, False, False, False),
    (16 | 32, Codec.NONE, False, True, True, False),
    (64 | 3, Codec.LZ4, False, False, False, True),
    (-128, Codec.NONE, False, False, False, False),
]


@pytest.mark.parametrize(
    "attributes, codec, log_append, transactional, control, horizon", ATTRIBUTES
)
def test_the_bits_of_the_attributes(
    attributes: int,
    codec: Codec,
    log_append: bool,
    transactional: bool,
    control: bool,
    horizon: bool,
) -> None:
    header = read_header(batch(attributes=attributes))
    assert header.compression is codec
    assert header.is_log_append_time is log_append
    assert header.is_transactional is transactional
    assert header.is_control is control
    assert header.has_delete_horizon is horizon
    assert header.delete_horizon_ms == (1000 if horizon else None)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_nobody_knows_is_refused_when_asked_for(codec: int) -> None:
    header = read_header(batch(attributes=codec))
    with pytest.raises(ProtocolError, match="unknown compression codec"):
        _ = header.compression


SEQUENCES = [  # base, delta, last
    (0, 0, 0),
    (5, 4, 9),
    (2**31 - 1, 0, 2**31 - 1),
    (2**31 - 1, 1, 0),
    (2**31 - 3, 9, 6),
]


@pytest.mark.parametrize("base, delta, last", SEQUENCES)
def test_sequences_wrap_to_zero(base: int, delta: int, last: int) -> None:
    assert increment_sequence(base, delta) == last
    assert read_header(batch(base_sequence=base, last_offset_delta=delta)).last_sequence == last


def test_a_batch_without_sequence_has_no_last_one() -> None:
    assert read_header(batch(base_sequence=-1)).last_sequence == -1


def test_a_header_cut_short_is_told_from_one_of_another_format() -> None:
    with pytest.raises(TruncatedBatch):
        read_header(batch()[: HEADER_SIZE - 1])
    with pytest.raises(UnknownMagic):
        read_header(batch(magic=1))


@pytest.mark.parametrize("length", [48, 0, -1, -(2**31)])
def test_a_length_below_the_headers_own_is_refused(length: int) -> None:
    broken = batch(batch_length=length)
    with pytest.raises(ProtocolError, match="below the header"):
        read_header(broken)
    with pytest.raises(ProtocolError, match="below the header"):
        list(iterate_batches(broken))
    with pytest.raises(ProtocolError, match="below the header"):
        whole_batches_end(broken)


def test_a_batch_with_a_wrong_crc_is_refused() -> None:
    good = batch()
    check_crc(good, 0, read_header(good))
    for position in range(21, len(good)):
        broken = bytearray(good)
        broken[position] ^= 1
        with pytest.raises(ProtocolError, match="crc"):
            check_crc(broken, 0, read_header(good))


def test_a_batch_cut_short_has_no_crc() -> None:
    with pytest.raises(TruncatedBatch):
        check_crc(batch()[:-1], 0, read_header(batch()))


def test_a_patched_batch_keeps_its_crc() -> None:
    buf = bytearray(b"xx") + batch()
    patch(buf, 2, base_offset=2**62, leader_epoch=9)
    header = read_header(buf, 2)
    check_crc(buf, 2, header)
    assert header._replace(crc=0) == HEADER_FIELDS._replace(
        base_offset=2**62, partition_leader_epoch=9
    )


def test_batches_follow_one_another_up_to_one_cut_short() -> None:
    first, second, third = batch(b"a" * 5), batch(b""), batch(b"b" * 9)
    whole = bytes(first + second)
    for end in range(len(third)):
        buf = whole + third[:end]
        assert [position for position, _ in iterate_batches(buf)] == [0, 66]
        assert whole_batches_end(buf) == len(whole)
    assert [header.size for _, header in iterate_batches(whole + third)] == [66, 61, 70]
    assert whole_batches_end(whole + third) == len(whole) + 70


def test_a_batch_of_another_format_ends_the_iteration() -> None:
    iterator = iterate_batches(batch() + batch(magic=0))
    next(iterator)
    with pytest.raises(UnknownMagic):
        next(iterator)
