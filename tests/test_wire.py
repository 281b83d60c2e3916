from collections.abc import Callable
from random import Random

import pytest

from ottla.protocol.wire import (
    Buffer,
    ProtocolError,
    finish_uvarint,
    finish_uvarlong,
    read_uvarint,
    read_uvarlong,
    read_varint,
    read_varlong,
    write_uvarint,
    write_varint,
    write_varlong,
)

Reader = Callable[[Buffer, int], tuple[int, int]]
Writer = Callable[[bytearray, int], None]

UNSIGNED = [  # value, bytes
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (2**14 - 1, "ff7f"),
    (2**14, "808001"),
    (2**31 - 1, "ffffffff07"),
    (2**32 - 1, "ffffffff0f"),
]
SIGNED = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (63, "7e"),
    (-64, "7f"),
    (64, "8001"),
    (-65, "8101"),
    (8191, "fe7f"),
    (8192, "808001"),
    (2**31 - 1, "feffffff0f"),
    (-(2**31), "ffffffff0f"),
]
SIGNED_LONG = [
    *SIGNED[:9],
    (2**31, "8080808010"),
    (2**63 - 1, "feffffffffffffffff01"),
    (-(2**63), "ffffffffffffffffff01"),
]
CASES = [
    *[(read_uvarint, write_uvarint, value, data) for value, data in UNSIGNED],
    *[(read_varint, write_varint, value, data) for value, data in SIGNED],
    *[(read_varlong, write_varlong, value, data) for value, data in SIGNED_LONG],
]


@pytest.mark.parametrize("read, write, value, data", CASES)
def test_a_varint_is_written_and_read(read: Reader, write: Writer, value: int, data: str) -> None:
    out = bytearray(b"_")
    write(out, value)
    assert out.hex() == "5f" + data
    for buffer in (bytes(out), out, memoryview(out)):
        assert read(buffer, 1) == (value, len(out))


PADDED = [(read_uvarint, "838000", 3), (read_varint, "848000", 2), (read_varlong, "8080808000", 0)]


@pytest.mark.parametrize("read, data, value", PADDED)
def test_a_padded_varint_is_read(read: Reader, data: str, value: int) -> None:
    assert read(bytes.fromhex(data), 0) == (value, len(data) // 2)


BITS_ABOVE = [  # bits that do not fit are dropped, as Kafka's arithmetic drops them
    (read_uvarint, "ffffffff7f", 2**32 - 1),
    (read_varint, "ffffffff7f", -(2**31)),
    (read_uvarlong, "ffffffffffffffffff7f", 2**64 - 1),
]


@pytest.mark.parametrize("read, data, value", BITS_ABOVE)
def test_bits_above_the_last_are_dropped(read: Reader, data: str, value: int) -> None:
    assert read(bytes.fromhex(data), 0) == (value, len(data) // 2)


REFUSED = [
    (read_uvarint, "8080808080", "longer than 5"),
    (read_varint, "ffffffffff01", "longer than 5"),
    (read_uvarlong, "80808080808080808080", "longer than 10"),
    (read_varlong, "ffffffffffffffffffff01", "longer than 10"),
    (read_uvarint, "", "cut short"),
    (read_varint, "80", "cut short"),
    (read_varlong, "ffffffffff", "cut short"),
]


@pytest.mark.parametrize("read, data, reason", REFUSED)
def test_a_varint_that_does_not_end_is_refused(read: Reader, data: str, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        read(bytes.fromhex(data), 0)


@pytest.mark.parametrize(
    "read, finish", [(read_uvarint, finish_uvarint), (read_uvarlong, finish_uvarlong)]
)
def test_finishing_a_varint_is_reading_it(read: Reader, finish: Reader) -> None:
    dice = Random(5)
    for bits in range(8, 32):
        out = bytearray(b"_")
        write_uvarint(out, dice.getrandbits(bits) | 1 << bits - 1)
        assert finish(bytes(out), 2) == read(bytes(out), 1)


def test_the_error_names_the_field() -> None:
    assert str(ProtocolError("is null", "topics[3].name")) == "topics[3].name: is null"
    assert str(ProtocolError("is null")) == "is null"
