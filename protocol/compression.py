"""The compression codecs of record batches, bounded against what a hostile peer may send.

Knows no batch. `decompress` yields at most `size_max` bytes, and takes memory for what was really
there, not for what the input claims. Everything that cannot be read is a ProtocolError.
The native library behind snappy, lz4 and zstd is imported on first use: that costs 15 ms.
"""

import zlib
from collections.abc import Callable
from enum import IntEnum

from ottla.protocol.wire import Buffer, ProtocolError, read_uvarint


class DecompressedTooLarge(ProtocolError):
    """The input yields more bytes than allowed."""

    def __init__(self) -> None:
        super().__init__("decompresses to more bytes than allowed")


class Codec(IntEnum):
    """A record batch's codec; the value stands in the lowest three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


# Members of a gzip, chunks of a snappy stream: far more than any client writes. Each costs us a
# call, however few bytes it takes.
_PIECES_MAX = 10_000
_GZIP_WBITS = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_STEP_BYTES = 4096

# What snappy-java puts before its chunks: a magic, its version, the oldest that can read it.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_CHUNK_BYTES = 32 * 1024
# Snappy's best is a copy of 64 bytes for 3.
_SNAPPY_RATIO_MAX = 22

# Version 1, independent blocks of 64 KiB, no checksums, no content size; a checksum of these.
# Kafka's reader knows no blocks that depend on one another.
_LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_BLOCK_BYTES = 64 * 1024
_LZ4_STORED_FLAG = 0x8000_0000
_LZ4_END = b"\x00\x00\x00\x00"
_LZ4_LEVEL_FAST = 9

_GUESS_RATIO = 8
_GUESS_BYTES_MIN = 64 * 1024
_GROWTH = 4
# Written at the end of the room that a native decompressor gets: gone when it ran out of room,
# still there when it found the input corrupt.
_CANARY = b"\xa7\x5e\x31\xc4\x0b\xf2\x98\x6d\x13\xda\x77\x8f\x42\xe9\x05\xbc"


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """`data` as Kafka's own writer would compress it; `level` None is Kafka's default."""
    return _COMPRESSORS[codec](data, level)


def decompress(codec: Codec, data: Buffer, *, size_max: int) -> bytes:
    """What was compressed.

    DecompressedTooLarge if that is more than `size_max` bytes, ProtocolError if it cannot be read.
    """
    return _DECOMPRESSORS[codec](data, size_max)


def _store(data: Buffer, level: int | None) -> bytes:
    return bytes(data)


def _gzip(data: Buffer, level: int | None) -> bytes:
    return zlib.compress(data, zlib.Z_DEFAULT_COMPRESSION if level is None else level, _GZIP_WBITS)


def _snappy(data: Buffer, level: int | None) -> bytes:
    from cramjam import snappy

    view = memoryview(data)
    out = bytearray(_XERIAL_HEADER)
    for start in range(0, len(view), _XERIAL_CHUNK_BYTES):
        chunk = bytes(snappy.compress_raw(view[start : start + _XERIAL_CHUNK_BYTES]))
        out += len(chunk).to_bytes(4, "big")
        out += chunk
    return bytes(out)


def _lz4(data: Buffer, level: int | None) -> bytes:
    from cramjam import lz4

    view = memoryview(data)
    if level is not None and level != _LZ4_LEVEL_FAST:
        # With block checksums, unlike Kafka's own frames: the library leaves no choice.
        stream = lz4.Compressor(level=level, content_checksum=False, block_linked=False)
        stream.compress(bytes(view))
        return bytes(stream.finish())
    out = bytearray(_LZ4_HEADER)
    for start in range(0, len(view), _LZ4_BLOCK_BYTES):
        block = view[start : start + _LZ4_BLOCK_BYTES]
        packed = bytes(lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            out += len(packed).to_bytes(4, "little")
            out += packed
        else:
            out += (len(block) | _LZ4_STORED_FLAG).to_bytes(4, "little")
            out += block
    out += _LZ4_END
    return bytes(out)


def _zstd(data: Buffer, level: int | None) -> bytes:
    from cramjam import zstd

    return bytes(zstd.compress(data, level))


def _unstore(data: Buffer, size_max: int) -> bytes:
    if len(data) > size_max:
        raise DecompressedTooLarge
    return bytes(data)


def _gunzip(data: Buffer, size_max: int) -> bytes:
    pieces: list[bytes] = []
    position = 0
    step_bytes = len(data)
    for _ in range(_PIECES_MAX):
        position, size_max = _gunzip_member(data, position, step_bytes, pieces, size_max)
        # As Java does, whatever follows and is no member is passed over.
        if data[position : position + 2] != _GZIP_MAGIC:
            return pieces[0] if len(pieces) == 1 else b"".join(pieces)
        # zlib copies what it was given too much: many members at full steps would cost a square.
        step_bytes = _GZIP_STEP_BYTES
    raise ProtocolError(f"gzip of more than {_PIECES_MAX} members")


def _gunzip_member(
    data: Buffer, position: int, step_bytes: int, pieces: list[bytes], size_max: int
) -> tuple[int, int]:
    """Append one member's bytes to `pieces`; the position behind it, what is left of size_max."""
    view = memoryview(data)
    stream = zlib.decompressobj(_GZIP_WBITS)
    while not stream.eof:
        if position >= len(view):
            raise ProtocolError("gzip is cut short")
        given = view[position : position + step_bytes]
        try:
            piece = stream.decompress(given, size_max + 1)
        except zlib.error as error:
            raise ProtocolError(f"gzip: {error}") from None
        size_max -= len(piece)
        if size_max < 0:
            raise DecompressedTooLarge
        pieces.append(piece)
        position += len(given)
        step_bytes *= 2
    return position - len(stream.unused_data), size_max


def _unsnappy(data: Buffer, size_max: int) -> bytes:
    if data[: len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
        return b"".join(_xerial_chunks(data, size_max))
    return _unsnappy_raw(data, size_max)


def _xerial_chunks(data: Buffer, size_max: int) -> list[bytes]:
    view = memoryview(data)
    if len(view) < len(_XERIAL_HEADER):
        raise ProtocolError("snappy header is cut short")
    version = int.from_bytes(view[8:12], "big", signed=True)
    if version < 1:
        raise ProtocolError(f"snappy stream of version {version}")
    chunks: list[bytes] = []
    position = len(_XERIAL_HEADER)
    for _ in range(_PIECES_MAX):
        if position >= len(view):
            return chunks
        if view[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            # Streams that were put one behind another are one stream.
            position += len(_XERIAL_HEADER)
            continue
        size = int.from_bytes(view[position : position + 4], "big")
        position += 4
        if size > len(view) - position:
            raise ProtocolError("snappy chunk is cut short")
        chunks.append(_unsnappy_raw(view[position : position + size], size_max))
        size_max -= len(chunks[-1])
        position += size
    raise ProtocolError(f"snappy stream of more than {_PIECES_MAX} chunks")


def _unsnappy_raw(data: Buffer, size_max: int) -> bytes:
    from cramjam import DecompressionError, snappy

    size, _ = read_uvarint(data, 0)
    if size > size_max:
        raise DecompressedTooLarge
    if size > len(data) * _SNAPPY_RATIO_MAX:
        raise ProtocolError(f"{len(data)} bytes of snappy cannot hold {size}")
    out = bytearray(size)
    try:
        snappy.decompress_raw_into(data, out)
    except DecompressionError as error:
        raise ProtocolError(str(error)) from None
    return bytes(out)


def _unlz4(data: Buffer, size_max: int) -> bytes:
    from cramjam import lz4

    return _unpack(lz4.decompress_into, data, size_max)


def _unzstd(data: Buffer, size_max: int) -> bytes:
    from cramjam import zstd

    return _unpack(zstd.decompress_into, data, size_max)


def _unpack(native: Callable[[Buffer, bytearray], int], data: Buffer, size_max: int) -> bytes:
    """Offer more and more room, as long as the last was really filled.

    Sizes that the input itself declares are not looked at: they may lie, and may be missing.
    """
    from cramjam import DecompressionError

    room = min(max(len(data) * _GUESS_RATIO, _GUESS_BYTES_MIN), size_max)
    while True:
        out = bytearray(room + len(_CANARY))
        out[room:] = _CANARY
        try:
            size = native(data, out)
        except DecompressionError as error:
            if out.endswith(_CANARY):
                raise ProtocolError(str(error)) from None
            size = len(out)
        if size <= room:
            return bytes(memoryview(out)[:size])
        if room == size_max:
            raise DecompressedTooLarge
        room = min(room * _GROWTH, size_max)


_COMPRESSORS: dict[Codec, Callable[[Buffer, int | None], bytes]] = {
    Codec.NONE: _store,
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
_DECOMPRESSORS: dict[Codec, Callable[[Buffer, int], bytes]] = {
    Codec.NONE: _unstore,
    Codec.GZIP: _gunzip,
    Codec.SNAPPY: _unsnappy,
    Codec.LZ4: _unlz4,
    Codec.ZSTD: _unzstd,
}
