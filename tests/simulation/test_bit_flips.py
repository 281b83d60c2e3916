"""One bit is wrong in one file: it is repaired, refused in one line, or seen by whoever reads."""

from collections.abc import Iterator
from contextlib import suppress
from random import Random

import pytest

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.records import BatchHeader, crc_of, iterate_batches
from ottla.protocol.wire import Buffer, ProtocolError
from ottla.storage.log import Log
from ottla.storage.log_dirs import ForeignDirectory, meta_properties_text
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.steps import exhaust
from tests.simulation.history import History
from tests.simulation.workload import Workload
from tests.simulation.world import DIRECTORY, log_in, opened

SEEDS = range(40, 44)
FLIPS = 60


def stopped(seed: int, *, is_clean: bool) -> tuple[Workload, MemoryFiles]:
    workload = Workload(seed)
    workload.run(120)
    text = meta_properties_text(cluster_id="C", node_id=1, directory_id=b"d" * 16, wall_ms=0)
    workload.files.write_atomically_now(f"{DIRECTORY}/meta.properties", text)
    if is_clean:
        exhaust(workload.logs.closing(broker_epoch=5))
    return workload, workload.files.copy()


def paths_of(files: MemoryFiles) -> list[str]:
    folder = f"{DIRECTORY}/t-0"
    names = [f"{DIRECTORY}/{name}" for name in files.list(DIRECTORY) if name != "t-0"]
    names += [f"{folder}/{name}" for name in files.list(folder)]
    return [name for name in names if files.size(name)]


def flipped(files: MemoryFiles, path: str, random: Random) -> MemoryFiles:
    """A copy with one wrong bit."""
    copy = files.copy()
    file = copy.open(path)
    position = random.randrange(file.size)
    (byte,) = file.read(position, 1)
    file.write(position, bytes([byte ^ 1 << random.randrange(8)]))
    file.close()
    return copy


def readable(data: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    with suppress(ProtocolError):
        yield from iterate_batches(data)


def read_all(log: Log, history: History) -> None:
    """Every batch that is served is one that was appended, or whoever reads sees that it is not: by
    its CRC, its magic, by offsets that fall, or because it is refused in one line."""
    # The CRC leaves out what is in front of it: offset, length, epoch, magic.
    covered = {version[21:] for all in history.versions.values() for version in all}
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        try:
            fetched = log.read(offset, 1 << 20)
        except KafkaError as error:
            assert error.code is ErrorCode.CORRUPT_MESSAGE
            assert "\n" not in str(error)
            return
        assert fetched is not None
        if not fetched.data:
            return
        for position, header in readable(fetched.data):
            if header.last_offset < offset:
                return
            data = bytes(fetched.data[position : position + header.size])
            is_whole = crc_of(data, 0, len(data)) == header.crc
            # What a cleaner has made of batches below the log start the model does not know.
            if is_whole and header.last_offset >= history.marks[-1].start:
                assert data[21:] in covered
            offset = header.next_offset


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_wrong_bit_is_repaired_refused_or_seen(seed: int, is_clean: bool) -> None:
    workload, files = stopped(seed, is_clean=is_clean)
    random = Random(seed)
    paths = paths_of(files)
    for number in range(FLIPS):
        path = paths[number % len(paths)]
        try:
            logs = opened(flipped(files, path, random), workload.config, workload.now)
        except ForeignDirectory as error:
            assert path.endswith("meta.properties")
            assert "\n" not in str(error)
            continue
        for reason in [*logs.refused.values(), *logs.offline.values()]:
            assert "\n" not in reason
        log = log_in(logs)
        if log is not None:
            read_all(log, workload.history)
