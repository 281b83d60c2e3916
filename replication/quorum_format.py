"""Formatting: what makes an empty directory one of a node of a new cluster, as Kafka's tool does.

A directory is formatted once it has a meta.properties, which is written last: a formatting that a
crash cut short is done again. The first snapshot of the metadata log names the node as the only
voter (KIP-853), so that it may lead, and others may join later.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from ottla.protocol.messages.raft_records import KRaftVersionRecord
from ottla.replication.metadata_records import Versioned
from ottla.replication.quorum_log import FOLDER
from ottla.replication.quorum_snapshots import Snapshot, snapshot_batches, snapshot_name
from ottla.replication.raft_messages import Position
from ottla.replication.voters import KRAFT_VERSION_MAX, Listener, ReplicaKey, Voter, Voters
from ottla.storage.checkpoints import uuid_text
from ottla.storage.clock import Now
from ottla.storage.files import Files
from ottla.storage.log_dirs import (
    META_PROPERTIES,
    ForeignDirectory,
    LogDirectories,
    MetaProperties,
    meta_properties_text,
    new_directory_id,
)
from ottla.storage.names import LOG, parse_folder_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from random import Random

logger = logging.getLogger(__name__)

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
FORMATTED = Position(epoch=0, offset=0)


class Identity(NamedTuple):
    """Whose directories these are."""

    cluster_id: str
    node_id: int
    metadata_directory_id: bytes
    """Of the directory that holds the metadata log."""
    directory_ids: dict[bytes, str]
    """The paths of all that can be read, by id."""
    is_new: bool


def format_directories(
    files: Files,
    directories: LogDirectories,
    *,
    metadata_path: str,
    node_id: int,
    random: Random,
    now: Now,
    bootstrap: Sequence[Versioned],
    listeners: Sequence[Listener] = (),
    cluster_id: str | None = None,
) -> Identity:
    """Formats the directories that are new, the one of the metadata log first, and says whose all
    of them are. `bootstrap` is what the log of a new cluster begins with."""
    known = [each.meta.cluster_id for each in directories.online.values() if each.meta]
    cluster_id = next(filter(None, known), cluster_id) or uuid_text(new_directory_id(random))
    own = directories.online[metadata_path]
    is_new = own.meta is None
    if is_new and known:
        # What its topics are would be forgotten, and their logs in the others be strays.
        reason = f"has no {META_PROPERTIES}, but this node is not new: its metadata log is missing"
        raise ForeignDirectory(metadata_path, reason)
    for path in sorted(directories.online, key=lambda path: path != metadata_path):
        directory = directories.online[path]
        if directory.meta is not None and directory.meta.directory_id is not None:
            continue
        directory_id = new_directory_id(random)
        if directory.meta is None:
            _refuse_logs(files, path)
            if path == metadata_path:
                key = ReplicaKey(node_id, directory_id)
                _format_metadata(files, path, Voter(key, tuple(listeners)), bootstrap, now)
        text = meta_properties_text(
            cluster_id=cluster_id, node_id=node_id, directory_id=directory_id, wall_ms=now.wall_ms
        )
        files.write_atomically_now(f"{path}/{META_PROPERTIES}", text)
        directory.meta = MetaProperties(cluster_id, node_id, directory_id)
        logger.info("log_dir.formatted path=%s directory_id=%s", path, uuid_text(directory_id))
    ids = {
        each.meta.directory_id: path
        for path, each in directories.online.items()
        if each.meta is not None and each.meta.directory_id is not None
    }
    own_id = next(id for id, path in ids.items() if path == metadata_path)
    return Identity(cluster_id, node_id, own_id, ids, is_new)


def _refuse_logs(files: Files, path: str) -> None:
    """A directory with logs and without meta.properties has lost it: they are somebody's."""
    for name in files.list(path):
        folder = f"{path}/{name}"
        if parse_folder_name(name) is None or not files.is_directory(folder):
            continue
        if name != FOLDER or any(each.endswith(LOG) for each in files.list(folder)):
            reason = f"holds {name}, but no {META_PROPERTIES} says whose it is"
            raise ForeignDirectory(path, reason)


def _format_metadata(
    files: Files, path: str, voter: Voter, bootstrap: Sequence[Versioned], now: Now
) -> None:
    controls = [
        KRaftVersionRecord(version=0, k_raft_version=KRAFT_VERSION_MAX),
        Voters((voter,)).record(),
    ]
    folder = f"{path}/{FOLDER}"
    if not files.is_directory(folder):
        files.make_directory(folder)
        files.sync_directory_now(path)
    wall_ms = now.wall_ms
    first = snapshot_batches(
        [], controls, epoch=0, wall_ms=wall_ms, last_contained_log_timestamp=wall_ms
    )
    files.write_atomically_now(f"{folder}/{snapshot_name(FORMATTED)}", b"".join(first))
    records = snapshot_batches(
        bootstrap, [], epoch=0, wall_ms=wall_ms, last_contained_log_timestamp=0
    )
    files.write_atomically_now(f"{path}/{BOOTSTRAP_CHECKPOINT}", b"".join(records))


def bootstrap_records(files: Files, path: str) -> list[Versioned]:
    """What a directory was formatted with; nothing where the file is missing."""
    try:
        snapshot = Snapshot(files, f"{path}/{BOOTSTRAP_CHECKPOINT}")
    except FileNotFoundError:
        return []
    try:
        return [record for part in snapshot.records() for record in part]
    finally:
        snapshot.close()
