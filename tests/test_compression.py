import subprocess
import sys
import tracemalloc
import zlib
from contextlib import suppress
from random import Random

import cramjam
import pytest

from ottla.protocol.compression import Codec, DecompressedTooLarge, compress, decompress
from ottla.protocol.wire import ProtocolError

NATIVE = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
TEXT = b'{"name": "a", "count": 1}' * 8
XERIAL_HEADER = bytes.fromhex("82534e41505059000000000100000001")
LZ4_HEADER = bytes.fromhex("04224d18604082")

# TEXT as the streams of kafka-clients 4.3.1 wrote it.
WRITTEN_BY_KAFKA = [
    (
        Codec.GZIP,
        "1f8b08000000000000ffab56ca4bcc4d55b252504a54d251504ace2fcd2b01f20c6bab879604009d109e"
        "7ec8000000",
    ),
    (
        Codec.SNAPPY,
        "82534e4150505900000000010000000100000026c801647b226e616d65223a202261222c2022636f756e74"
        "223a20317d7bfe1900fe1900b61900",
    ),
    (
        Codec.LZ4,
        "04224d1860408224000000ff0a7b226e616d65223a202261222c2022636f756e74223a20317d1900975022"
        "3a20317d00000000",
    ),
    (
        Codec.ZSTD,
        "28b52ffd0058040100c87b226e616d65223a202261222c2022636f756e74223a20317d0100b1989a63010000",
    ),
]


def snappy_chunk(data: bytes) -> bytes:
    packed = bytes(cramjam.snappy.compress_raw(data))
    return len(packed).to_bytes(4, "big") + packed


def lz4_of_linked_blocks(data: bytes) -> bytes:
    stream = cramjam.lz4.Compressor(content_checksum=True, block_linked=True)
    stream.compress(data)
    return bytes(stream.finish())


def zstd_without_size(data: bytes) -> bytes:
    stream = cramjam.zstd.Compressor()
    stream.compress(data)
    return bytes(stream.finish())


# TEXT in other framings that clients send.
WRITTEN_BY_OTHERS = {
    "snappy without chunks": (Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))),
    "snappy in chunks": (
        Codec.SNAPPY,
        XERIAL_HEADER + snappy_chunk(TEXT[:50]) + snappy_chunk(TEXT[50:]),
    ),
    "two snappy streams": (
        Codec.SNAPPY,
        XERIAL_HEADER + snappy_chunk(TEXT[:50]) + XERIAL_HEADER + snappy_chunk(TEXT[50:]),
    ),
    "lz4 with linked blocks and checksums": (Codec.LZ4, lz4_of_linked_blocks(TEXT)),
    "lz4 with its content size": (
        Codec.LZ4,
        bytes.fromhex("04224d186840c800000000000000d4") + compress(Codec.LZ4, TEXT)[7:],
    ),
    "zstd without its content size": (Codec.ZSTD, zstd_without_size(TEXT)),
    "zstd in two frames": (
        Codec.ZSTD,
        compress(Codec.ZSTD, TEXT[:50]) + zstd_without_size(TEXT[50:]),
    ),
    "gzip in two members": (
        Codec.GZIP,
        compress(Codec.GZIP, TEXT[:50]) + compress(Codec.GZIP, TEXT[50:]),
    ),
    "gzip with bytes behind it": (Codec.GZIP, compress(Codec.GZIP, TEXT) + b"\0\0 and so on"),
}

dice = Random(1)
DATA = {
    "nothing": b"",
    "one byte": b"x",
    "text": TEXT,
    "noise": dice.randbytes(200_000),
    "zeros": bytes(1_000_000),
    "a block exactly": bytes(64 * 1024),
    "text of many blocks": b" ".join(
        dice.choices([dice.randbytes(4) for _ in range(99)], k=50_000)
    ),
}


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_what_was_compressed_comes_back(codec: Codec, data: bytes) -> None:
    for buffer in (data, bytearray(data), memoryview(b"_" + data)[1:]):
        packed = compress(codec, buffer)
        assert decompress(codec, memoryview(packed), size_max=len(data)) == data


@pytest.mark.parametrize("codec, packed", WRITTEN_BY_KAFKA)
def test_what_kafka_wrote_is_read(codec: Codec, packed: str) -> None:
    assert decompress(codec, bytes.fromhex(packed), size_max=len(TEXT)) == TEXT


@pytest.mark.parametrize("codec, packed", WRITTEN_BY_OTHERS.values(), ids=WRITTEN_BY_OTHERS)
def test_what_other_clients_write_is_read(codec: Codec, packed: bytes) -> None:
    assert decompress(codec, packed, size_max=len(TEXT)) == TEXT
    with pytest.raises(DecompressedTooLarge):
        decompress(codec, packed, size_max=len(TEXT) - 1)


LEVELS = [
    *[(Codec.GZIP, level) for level in (-1, 1, 9)],
    *[(Codec.LZ4, level) for level in (1, 8, 9, 12, 17)],
    *[(Codec.ZSTD, level) for level in (-131072, -1, 1, 3, 22)],
]


@pytest.mark.parametrize("codec, level", LEVELS)
def test_every_level_can_be_read_again(codec: Codec, level: int) -> None:
    data = DATA["text of many blocks"]
    assert decompress(codec, compress(codec, data, level), size_max=len(data)) == data


@pytest.mark.parametrize(
    "codec, low, high", [(Codec.GZIP, 1, 9), (Codec.LZ4, 1, 12), (Codec.ZSTD, 1, 19)]
)
def test_a_higher_level_packs_tighter(codec: Codec, low: int, high: int) -> None:
    data = b" ".join(Random(2).choices([b"%d" % (7**n) for n in range(40)], k=20_000))
    assert len(compress(codec, data, high)) < len(compress(codec, data, low))


def test_snappy_is_written_in_chunks_as_java_writes_it() -> None:
    packed = compress(Codec.SNAPPY, bytes(100_000))
    assert packed.startswith(XERIAL_HEADER)
    sizes = []
    position = len(XERIAL_HEADER)
    while position < len(packed):
        size = int.from_bytes(packed[position : position + 4], "big")
        chunk = packed[position + 4 : position + 4 + size]
        sizes.append(cramjam.snappy.decompress_raw_len(chunk))
        position += 4 + size
    assert sizes == [32768, 32768, 32768, 1696]


def test_lz4_is_written_in_blocks_as_kafka_writes_it() -> None:
    noise = DATA["noise"]
    packed = compress(Codec.LZ4, noise)
    assert packed.startswith(LZ4_HEADER)
    # What does not shrink is stored: its length with the top bit set, then its bytes.
    first = len(LZ4_HEADER)
    assert packed[first : first + 4] == (65536 | 1 << 31).to_bytes(4, "little")
    assert packed[first + 4 : first + 14] == noise[:10]
    assert packed.endswith(bytes(4))
    # A level other than the default takes another way, and must write what Kafka can read, too.
    assert compress(Codec.LZ4, noise, 12)[4] & 0b1110_1111 == 0b0110_0000


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("data", [DATA["text"], DATA["zeros"], DATA["noise"]], ids=len)
def test_no_codec_yields_more_than_allowed(codec: Codec, data: bytes) -> None:
    packed = compress(codec, data)
    for size_max in (0, 1, len(data) // 2, len(data) - 1):
        with pytest.raises(DecompressedTooLarge):
            decompress(codec, packed, size_max=size_max)


BAD = {
    "gzip of nothing": (Codec.GZIP, b""),
    "gzip cut short": (Codec.GZIP, compress(Codec.GZIP, TEXT)[:-1]),
    "gzip with a wrong checksum": (Codec.GZIP, compress(Codec.GZIP, TEXT)[:-8] + bytes(8)),
    "gzip with a bad second member": (Codec.GZIP, compress(Codec.GZIP, TEXT) + b"\x1f\x8bnothing"),
    "zlib instead of gzip": (Codec.GZIP, zlib.compress(TEXT)),
    "gzip of too many members": (Codec.GZIP, compress(Codec.GZIP, b"") * 10_001),
    "snappy of nothing": (Codec.SNAPPY, b""),
    "snappy that says it holds 4 GiB": (Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(9)),
    "snappy that says it holds too much for its size": (Codec.SNAPPY, b"\x80\x08\x00x"),
    "snappy without an end to its length": (Codec.SNAPPY, b"\xff" * 9),
    "snappy cut short": (Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))[:-1]),
    "snappy header cut short": (Codec.SNAPPY, XERIAL_HEADER[:-1]),
    "snappy of version 0": (Codec.SNAPPY, XERIAL_HEADER[:8] + bytes(8)),
    "snappy chunk cut short": (Codec.SNAPPY, XERIAL_HEADER + snappy_chunk(TEXT)[:-1]),
    "snappy chunk of negative size": (Codec.SNAPPY, XERIAL_HEADER + b"\xff\xff\xff\xffxx"),
    "snappy of too many chunks": (Codec.SNAPPY, XERIAL_HEADER + snappy_chunk(b"") * 10_001),
    "lz4 of nothing": (Codec.LZ4, b""),
    "lz4 cut short": (Codec.LZ4, compress(Codec.LZ4, TEXT)[:-5]),
    "lz4 with a wrong header checksum": (Codec.LZ4, LZ4_HEADER[:-1] + bytes(5)),
    "lz4 that says it holds 1 TiB": (
        Codec.LZ4,
        bytes.fromhex("04224d1868400000000000010000b7") + compress(Codec.LZ4, TEXT)[7:],
    ),
    "zstd of nothing": (Codec.ZSTD, b""),
    "zstd cut short": (Codec.ZSTD, compress(Codec.ZSTD, TEXT)[:-1]),
    "zstd with junk behind it": (Codec.ZSTD, compress(Codec.ZSTD, TEXT) + b"junk"),
}


@pytest.mark.parametrize("codec, packed", BAD.values(), ids=BAD)
def test_what_cannot_be_read_is_a_protocol_error(codec: Codec, packed: bytes) -> None:
    with pytest.raises(ProtocolError):
        decompress(codec, packed, size_max=1 << 20)


def test_a_size_that_cannot_be_is_refused_before_it_is_taken() -> None:
    claims_1_gib = b"\x80\x80\x80\x80\x04x"
    tracemalloc.start()
    with pytest.raises(ProtocolError, match="cannot hold"):
        decompress(Codec.SNAPPY, claims_1_gib, size_max=1 << 31)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 100_000


def test_mutated_input_is_read_or_refused() -> None:
    dice = Random(20261118)
    seeds = [(codec, compress(codec, data)) for codec in NATIVE for data in (TEXT, bytes(70_000))]
    seeds += WRITTEN_BY_OTHERS.values()
    for _ in range(4000):
        codec, packed = dice.choice(seeds)
        mutated = bytearray(packed)
        for _ in range(dice.choice((1, 1, 2, 5))):
            at = dice.randrange(min(len(mutated), dice.choice((20, 1 << 20))) or 1)
            match dice.randrange(4):
                case 0:
                    mutated[at : at + 1] = dice.randbytes(1)
                case 1:
                    del mutated[at : at + dice.randrange(8)]
                case 2:
                    mutated[at:at] = dice.randbytes(dice.randrange(8))
                case 3:
                    mutated[at : at + 4] = b"\xff\xff\xff\x7f"
        with suppress(ProtocolError):
            assert len(decompress(codec, bytes(mutated), size_max=100_000)) <= 100_000


BOMB = """
import resource, sys
from ottla.protocol.compression import Codec, DecompressedTooLarge, compress, decompress

def peak_kib():
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    # Linux reports a parent's peak as its child's, except here.
    status = open("/proc/self/status").read()
    return int(status.split("VmHWM:")[1].split()[0])

codec = Codec(int(sys.argv[1]))
packed = sys.stdin.buffer.read()
decompress(codec, compress(codec, b"x"), size_max=1)
before = peak_kib()
try:
    decompress(codec, packed, size_max=4_000_000)
except DecompressedTooLarge:
    print(peak_kib() - before)
"""


@pytest.mark.parametrize("codec", NATIVE)
def test_a_bomb_takes_no_more_memory_than_its_bound(codec: Codec) -> None:
    packed = compress(codec, bytes(100_000_000))
    command = [sys.executable, "-c", BOMB, str(int(codec))]
    result = subprocess.run(command, input=packed, stdout=subprocess.PIPE, check=True)
    assert int(result.stdout) < 16_000


def test_the_native_library_is_loaded_when_it_is_needed() -> None:
    program = (
        "import sys\n"
        "from ottla.protocol.compression import Codec, compress, decompress\n"
        "decompress(Codec.GZIP, compress(Codec.GZIP, b'x'), size_max=1)\n"
        "assert 'cramjam' not in sys.modules\n"
        "compress(Codec.ZSTD, b'x')\n"
        "assert 'cramjam' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
