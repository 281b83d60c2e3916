"""Log directories that a real Apache Kafka 4.3.1 wrote: one stopped cleanly, one killed.

They hold all codecs, transactions, compacted topics, deleted segments and Kafka's own topics.
"""

import tarfile
from functools import cache
from pathlib import Path

ARCHIVE = Path(__file__).parent / "data" / "kafka-4.3.1-log-directories.tar.xz"


@cache
def files() -> dict[str, bytes]:
    """The bytes of each file by its path: "clean/txn-1/partition.metadata" and so on."""
    found = {}
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            if content := archive.extractfile(member):
                found[member.name] = content.read()
    return found


def unpack(place: Path) -> Path:
    """Write them all below `place`."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(place, filter="data")
    return place
