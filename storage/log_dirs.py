"""The directories that hold a node's logs: their locks, and whose they are.

Knows no partition. Every directory is locked before anything in it is read. One that cannot be read
is offline, and the others go on without it; one that belongs to another node or cluster stops all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ottla.storage.checkpoints import parse_uuid, uuid_text
from ottla.storage.errors import CorruptFile, DiskFailed, DiskFull, LockTaken, StorageError
from ottla.storage.files import Files, Lock
from ottla.storage.properties import parse_properties, properties_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random

LOCK = ".lock"
META_PROPERTIES = "meta.properties"

# Kafka keeps the first hundred ids for itself: for no directory, an unknown one, a lost one.
_RESERVED_DIRECTORY_IDS = 100
_NODE_ID_MAX = 0x7FFF_FFFF


@dataclass(slots=True, frozen=True)
class MetaProperties:
    """Whose directory it is. What Kafka before KRaft wrote lacks some of it."""

    cluster_id: str | None
    node_id: int | None
    directory_id: bytes | None


class ForeignDirectory(StorageError):
    """A log directory of another node, of another cluster, or a copy of one that is here too."""


# --- meta.properties ----------------------------------------------------------------------


def parse_meta_properties(path: str, data: bytes) -> MetaProperties:
    properties = parse_properties(path, data)
    version = properties.get("version", "0").strip()
    if version not in ("0", "1"):
        raise CorruptFile(path, where="version", reason=f"{version[:40]!r} is unknown")
    node_id_name = "node.id" if version == "1" else "broker.id"
    for name in ("cluster.id", node_id_name) if version == "1" else ():
        if name not in properties:
            raise CorruptFile(path, where=name, reason="is missing")
    return MetaProperties(
        cluster_id=properties.get("cluster.id"),
        node_id=_node_id(path, node_id_name, properties.get(node_id_name)),
        directory_id=_directory_id(path, properties.get("directory.id")),
    )


def _node_id(path: str, name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and int(text) <= _NODE_ID_MAX):
        raise CorruptFile(path, where=name, reason=f"{text[:40]!r} is no id of a node")
    return int(text)


def _directory_id(path: str, text: str | None) -> bytes | None:
    if text is None:
        return None
    directory_id = parse_uuid(text)
    if directory_id is None or _is_reserved(directory_id):
        reason = f"{text[:40]!r} is no id of a directory"
        raise CorruptFile(path, where="directory.id", reason=reason)
    return directory_id


def meta_properties_text(
    *, cluster_id: str, node_id: int, directory_id: bytes, wall_ms: int
) -> bytes:
    """Version 1, in the order in which Java writes these names."""
    properties = {
        "node.id": str(node_id),
        "directory.id": uuid_text(directory_id),
        "version": "1",
        "cluster.id": cluster_id,
    }
    from time import gmtime, strftime

    written = strftime("%a %b %d %H:%M:%S UTC %Y", gmtime(wall_ms // 1000))
    return f"#\n#{written}\n".encode() + properties_text(properties)


def new_directory_id(random: Random) -> bytes:
    while True:
        directory_id = random.getrandbits(128).to_bytes(16, "big")
        # An id that begins with a dash would look like an option of Kafka's tools.
        if not _is_reserved(directory_id) and not uuid_text(directory_id).startswith("-"):
            return directory_id


def _is_reserved(directory_id: bytes) -> bool:
    return int.from_bytes(directory_id, "big") < _RESERVED_DIRECTORY_IDS


# --- the directories of a node ------------------------------------------------------------


@dataclass(slots=True)
class LogDirectory:
    path: str
    lock: Lock
    # None in a directory that is new.
    meta: MetaProperties | None = None


@dataclass(slots=True)
class LogDirectories:
    """`online` by path; of those that are `offline`, the reason."""

    online: dict[str, LogDirectory] = field(default_factory=dict)
    offline: dict[str, str] = field(default_factory=dict)

    def take_offline(self, path: str, reason: str) -> None:
        self.offline[path] = reason
        directory = self.online.pop(path, None)
        if directory is not None:
            directory.lock.release()

    def release(self) -> None:
        for directory in self.online.values():
            directory.lock.release()
        self.online.clear()


def open_log_directories(
    files: Files,
    paths: Sequence[str],
    *,
    cluster_id: str | None = None,
    node_id: int | None = None,
) -> LogDirectories:
    """Makes what is missing, locks all, reads whose they are and refuses those of others.

    `LockTaken` when one is in use: then nothing was made, and no lock is kept.
    """
    directories = LogDirectories()
    try:
        # Those that exist come first: if one of them is taken, no new one has been made.
        for path in sorted(paths, key=lambda path: _is_missing(files, path)):
            _open(files, directories, path)
        _refuse_foreign(directories.online.values(), cluster_id=cluster_id, node_id=node_id)
    except StorageError:
        directories.release()
        raise
    return directories


def _is_missing(files: Files, path: str) -> bool:
    try:
        return not files.exists(path)
    except DiskFailed:
        return False


def _open(files: Files, directories: LogDirectories, path: str) -> None:
    try:
        _make_directory(files, path)
        lock = files.lock(f"{path}/{LOCK}")
        directories.online[path] = directory = LogDirectory(path, lock)
        meta_path = f"{path}/{META_PROPERTIES}"
        if files.exists(meta_path):
            directory.meta = parse_meta_properties(meta_path, files.read_whole(meta_path))
    except LockTaken:
        raise
    except (DiskFailed, DiskFull, CorruptFile, NotADirectoryError) as error:
        directories.take_offline(path, str(error))


def _make_directory(files: Files, path: str) -> None:
    if files.is_directory(path):
        return
    parent = path.rpartition("/")[0] or ("/" if path.startswith("/") else "")
    if parent.strip("/"):
        _make_directory(files, parent)
    if files.exists(path):
        raise NotADirectoryError(f"{path}: is not a directory")
    files.make_directory(path)
    files.sync_directory_now(parent)


def _refuse_foreign(
    directories: Iterable[LogDirectory], *, cluster_id: str | None, node_id: int | None
) -> None:
    seen: dict[bytes, str] = {}
    for directory in directories:
        meta, path = directory.meta, f"{directory.path}/{META_PROPERTIES}"
        if meta is None:
            continue
        if cluster_id is None:
            cluster_id = meta.cluster_id
        if meta.cluster_id not in (None, cluster_id):
            reason = f"is of cluster {meta.cluster_id}, and this is cluster {cluster_id}"
            raise ForeignDirectory(path, reason)
        if node_id is None:
            node_id = meta.node_id
        if meta.node_id not in (None, node_id):
            raise ForeignDirectory(path, f"is of node {meta.node_id}, and this is node {node_id}")
        if meta.directory_id is None:
            continue
        if meta.directory_id in seen:
            other = seen[meta.directory_id]
            raise ForeignDirectory(path, f"has the directory.id of {other}")
        seen[meta.directory_id] = path
