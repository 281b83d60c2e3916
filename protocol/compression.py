"""The compression codecs of record batches."""

from enum import IntEnum


class Codec(IntEnum):
    """A record batch's codec; the value stands in the lowest three bits of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4
