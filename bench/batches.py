"""What a record batch costs on its way to the log beyond its checksum.

The header is read, and base offset and leader epoch are patched in place, in the middle of a buffer
as the server has it.
"""

from bench.measure import calls
from bench.tables import Cell, Goal, Table
from ottla.protocol.records import HEADER, crc_of, patch, read_header

RECORDS = bytes(1_000)
POSITION = 100
EXTRA_US = Goal(1.0, strictly=True)


def run() -> list[Table]:
    table = Table(
        "batches", ["record batch of 1 KB", "CRC us", "all us", f"beyond the CRC, us ({EXTRA_US})"]
    )
    for name, buffer in ("in a bytearray", _buffer()), ("in a memoryview", memoryview(_buffer())):
        size = HEADER.size + len(RECORDS)
        times = calls(
            {"crc": (crc_of, buffer, POSITION, size), "all": (_accept, buffer, POSITION)},
            rounds=101,
        )
        table.add(
            name,
            Cell(times.median("crc") * 1e6),
            Cell(times.median("all") * 1e6),
            Cell(times.difference("all", "crc") * 1e6, EXTRA_US),
        )
    return [table]


def _buffer() -> bytearray:
    length = HEADER.size - 12 + len(RECORDS)
    header = HEADER.pack(0, length, -1, 2, 0, 0, 9, 1, 2, -1, -1, -1, 10)
    return bytearray(bytes(POSITION) + header + RECORDS + bytes(POSITION))


def _accept(buffer: bytearray | memoryview, position: int) -> int:
    header = read_header(buffer, position)
    crc = crc_of(buffer, position, header.size)
    patch(buffer, position, base_offset=123_456, leader_epoch=7)
    return crc
