"""A quorum of one on a disk in memory, and a listener that remembers what it was told."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from ottla.protocol.messages.metadata_records import FeatureLevelRecord, TopicRecord
from ottla.replication.metadata_records import Versioned
from ottla.replication.quorum import Quorum, QuorumSettings
from ottla.replication.quorum_format import Identity, format_directories
from ottla.replication.quorum_log import MetadataLogSettings
from ottla.replication.voters import Listener
from ottla.storage.clock import Now
from ottla.storage.errors import DiskFailed
from ottla.storage.log_dirs import open_log_directories
from ottla.storage.long_work import work_on
from ottla.storage.memory_files import MemoryFiles
from ottla.storage.steps import to_the_end

T = TypeVar("T")

DIRECTORY = "data"
FOLDER = "data/__cluster_metadata-0"
BOOTSTRAP = [Versioned(FeatureLevelRecord(name="metadata.version", feature_level=30))]


def topic(name: str) -> Versioned:
    return Versioned(TopicRecord(name=name, topic_id=name.encode().rjust(16, b"\0")))


@dataclass
class Remembering:
    """The names of topics, in the order of the log; a snapshot begins with those that it holds."""

    names: list[str] = field(default_factory=list)
    commits: list[tuple[int, int, int, list[str]]] = field(default_factory=list)
    loads: list[tuple[int, int, list[str]]] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    is_broken: bool = False

    def load(self, records: Sequence[Versioned], *, offset: int, epoch: int) -> None:
        self.loads.append((offset, epoch, self._remember(records)))

    def commit(
        self,
        base_offset: int,
        last_offset: int,
        epoch: int,
        append_timestamp_ms: int,
        records: Sequence[Versioned],
    ) -> None:
        self.commits.append((base_offset, last_offset, epoch, self._remember(records)))
        self.timestamps.append(append_timestamp_ms)

    def _remember(self, records: Sequence[Versioned]) -> list[str]:
        if self.is_broken:
            raise RuntimeError("this listener is broken")
        names = [record.message.name for record in records]
        self.names += names
        return names

    def records(self) -> list[Versioned]:
        return [topic(name) for name in self.names]


class Clock:
    def __init__(self, wall_ms: int = 1_800_000_000_000) -> None:
        self.now = Now(1_000, wall_ms)

    def __call__(self) -> Now:
        return self.now

    def advance(self, ms: int) -> None:
        self.now = Now(self.now.monotonic_ms + ms, self.now.wall_ms + ms)


@dataclass
class Rig:
    """One node and its disk; each `life` is a process."""

    files: MemoryFiles = field(default_factory=MemoryFiles)
    clock: Clock = field(default_factory=Clock)
    settings: QuorumSettings = field(default_factory=QuorumSettings)
    configured_voters: Sequence[int] = ()
    listeners: Sequence[Listener] = ()
    node_id: int = 1
    failures: int = 0

    def format(self) -> Identity:
        directories = open_log_directories(self.files, [DIRECTORY])
        if DIRECTORY in directories.offline:
            raise DiskFailed(DIRECTORY, directories.offline[DIRECTORY])
        try:
            return format_directories(
                self.files,
                directories,
                metadata_path=DIRECTORY,
                node_id=self.node_id,
                random=Random(7),
                now=self.clock(),
                bootstrap=BOOTSTRAP,
                listeners=self.listeners,
            )
        finally:
            directories.release()

    def quorum(self, listener: Remembering) -> Quorum:
        """To be made while a loop runs."""
        return Quorum(
            self.files,
            DIRECTORY,
            node_id=self.node_id,
            directory_id=self.format().metadata_directory_id,
            random=Random(8),
            now=self.clock,
            loop=asyncio.get_running_loop(),
            listener=listener,
            on_failure=self._fail,
            settings=self.settings,
            configured_voters=self.configured_voters,
            listeners=self.listeners,
        )

    def _fail(self) -> None:
        self.failures += 1

    def life(
        self,
        live: Callable[[Quorum, Remembering], Coroutine[Any, Any, T]],
        *,
        is_clean: bool = True,
    ) -> T:
        """Opens, lives, and stops; or is killed, and the disk is another process's afterwards."""

        async def run() -> T:
            listener = Remembering()
            quorum = self.quorum(listener)
            to_the_end(quorum.opening())
            result = await live(quorum, listener)
            if is_clean:
                to_the_end(quorum.closing())
            return result

        try:
            return asyncio.run(run())
        finally:
            if is_clean:
                self.files.close()
            else:
                self.files = self.files.copy()

    def names(self) -> list[str]:
        return self.files.list(FOLDER)


async def commit(quorum: Quorum, *names: str) -> int:
    offset = quorum.append([topic(name) for name in names])
    await quorum.committed(offset)
    return offset


async def snapshot(quorum: Quorum, listener: Remembering) -> None:
    await work_on(quorum.writing_snapshot(iter(listener.records())), pause)


async def pause(_: int) -> None:
    await asyncio.sleep(0)


async def nothing(quorum: Quorum, listener: Remembering) -> Remembering:
    return listener


def small(**settings: Any) -> QuorumSettings:
    """Segments of a few batches, and a clean-up that does not wait."""
    log = MetadataLogSettings(segment_bytes=700, max_retention_bytes=0, file_delete_delay_ms=0)
    return QuorumSettings(log=log, **settings)
