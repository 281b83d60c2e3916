"""Record batches made field by field, so that a test can make each field lie."""

from ottla.protocol.record_build import build_batch
from ottla.protocol.records import HEADER, BatchHeader, Headers, Record, crc_of, read_header

SIZE_MAX = 1 << 24
NOW_MS = 1_700_000_000_000


def new_records(count: int = 3, *, timestamp: int = NOW_MS, headers: Headers = ()) -> list[Record]:
    return [
        Record(offset, timestamp + offset, b"key-%d" % offset, b"value", headers)
        for offset in range(count)
    ]


def raw_batch(records: bytes = b"", *, like: bytes | bytearray = b"", **fields: int) -> bytearray:
    """The header of `like`, with other records and fields; its CRC is right unless it is given."""
    header = read_header(like or build_batch(new_records()))
    header = header._replace(batch_length=49 + len(records))._replace(**fields)
    return assemble(header, records, crc_given="crc" in fields)


def changed(batch: bytes | bytearray, **fields: int) -> bytearray:
    """`batch` with other header fields and a CRC that is right again."""
    header = BatchHeader(*HEADER.unpack_from(batch))._replace(**fields)
    return assemble(header, batch[61:], crc_given="crc" in fields)


def assemble(
    header: BatchHeader, records: bytes | bytearray, *, crc_given: bool = False
) -> bytearray:
    built = bytearray(HEADER.pack(*header) + records)
    if not crc_given:
        built[17:21] = crc_of(built, 0, len(built)).to_bytes(4, "big")
    return built
