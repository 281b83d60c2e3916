"""One partition's log: how it changes.

Knows its folder, and no leader, follower or request. It is called synchronously; what may wait for
later goes to the `Chores` of its log directory. What the disk refuses is KAFKA_STORAGE_ERROR and
has changed nothing; a failed disk takes the log directory offline, and nothing is acknowledged.
"""

from __future__ import annotations

from typing import NamedTuple

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.records import CONTROL_FLAG, LOG_OVERHEAD, TRANSACTIONAL_FLAG, BatchHeader
from ottla.protocol.wire import Buffer
from ottla.storage.clock import Now
from ottla.storage.config import LogConfig
from ottla.storage.errors import StorageError
from ottla.storage.folder import Folder
from ottla.storage.incoming import (
    Incoming,
    Mutable,
    from_client,
    from_coordinator,
    from_leader,
    rules_of,
)
from ottla.storage.log_upkeep import LogUpkeep
from ottla.storage.log_view import Fetched, Isolation, LogOffset, LogParts
from ottla.storage.lookup import Located
from ottla.storage.producers import Duplicate, Marker, Origin
from ottla.storage.segment import Segment
from ottla.storage.transaction_index import AbortedTransaction
from ottla.storage.verification import VerificationGuard

__all__ = ["Appended", "Fetched", "Isolation", "Log", "LogOffset", "UnexpectedOffsets"]

_CLIENT = Origin.CLIENT
# What the classes themselves do, in a fifth of the time.
_new_tuple = tuple.__new__


_OF_TRANSACTIONS = TRANSACTIONAL_FLAG | CONTROL_FLAG


class Appended(NamedTuple):
    """What became of an append."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int
    """-1 for CreateTime; of a duplicate the time of the batch that is stored."""
    log_start_offset: int
    is_duplicate: bool = False


class UnexpectedOffsets(Exception):
    """A leader's batches do not go on where this log ends."""

    def __init__(self, reason: str, *, first_offset: int, last_offset: int) -> None:
        super().__init__(reason)
        self.first_offset = first_offset
        self.last_offset = last_offset


class Log(LogUpkeep):
    """A log that was opened by recovery.py."""

    __slots__ = ()

    def __init__(
        self,
        folder: Folder,
        parts: LogParts,
        *,
        topic: str,
        partition: int,
        topic_id: bytes | None,
        now: Now,
    ) -> None:
        super().__init__(
            folder, parts, topic=topic, partition=partition, topic_id=topic_id, now=now
        )
        self.config = folder.config

    @property
    def config(self) -> LogConfig:
        return self.folder.config

    @config.setter
    def config(self, config: LogConfig) -> None:
        self.folder.config = config
        walked_count_max = self.folder.log_dir.walked_count_max
        self._rules = rules_of(config, walked_count_max=walked_count_max)

    # appending

    def append_as_leader(
        self,
        data: Mutable,
        *,
        leader_epoch: int,
        now: Now,
        origin: Origin = _CLIENT,
        zstd_allowed: bool = True,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> Appended:
        """Gives batches their offsets and this epoch, in place, and appends them. A transaction's
        first batch needs the guard of `start_verification`, its marker the transaction's version.
        """
        if origin is _CLIENT:
            incoming = from_client(
                data,
                self._rules if zstd_allowed else self._rules._replace(zstd_allowed=False),
                self.folder.config,
                base_offset=self.log_end_offset,
                leader_epoch=leader_epoch,
                now=now,
            )
        else:
            incoming = from_coordinator(
                data,
                self.folder.config,
                base_offset=self.log_end_offset,
                leader_epoch=leader_epoch,
                now=now,
            )
        return self._append(incoming, origin, now, guard, transaction_version)

    def start_verification(
        self,
        *,
        producer_id: int,
        producer_epoch: int,
        sequence: int,
        supports_epoch_bump: bool,
        now: Now,
    ) -> VerificationGuard | None:
        """To be called before the coordinator is asked about a transaction, if this is not None:
        then the transaction is open here already."""
        return self.producers.start_verification(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            sequence=sequence,
            supports_epoch_bump=supports_epoch_bump,
            wall_ms=now.wall_ms,
        )

    def append_as_follower(self, data: Buffer, *, leader_epoch: int, now: Now) -> Appended:
        """Appends batches as the leader has them, offsets, epochs and all."""
        incoming = from_leader(data, leader_epoch=leader_epoch)
        last_offset = self.log_end_offset - 1
        for header in incoming.headers:
            if header.base_offset <= last_offset or header.last_offset_delta < 0:
                raise UnexpectedOffsets(
                    f"batch {header.base_offset} to {header.last_offset} cannot follow offset"
                    f" {last_offset} in {self.folder.path}",
                    first_offset=incoming.headers[0].base_offset,
                    last_offset=incoming.headers[-1].last_offset,
                )
            last_offset = header.last_offset
        return self._append(incoming, Origin.REPLICATION, now, None, 0)

    def _append(
        self,
        incoming: Incoming,
        origin: Origin,
        now: Now,
        guard: VerificationGuard | None,
        transaction_version: int,
    ) -> Appended:
        data, headers, markers, log_append_time_ms = incoming
        log_dir = self.folder.log_dir
        if log_dir.failure is not None or self.failure is not None:
            self.check()
        if not headers:
            end = self.log_end_offset
            return Appended(end, end - 1, log_append_time_ms, self.log_start_offset)
        config = self.folder.config
        size = len(data)
        if size > config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"The record batches take {size} bytes, a segment {config.segment_bytes}.",
            )
        last = headers[-1]
        have_producers = last[9] >= 0 or len(headers) > 1
        if have_producers:
            duplicate = self._check_producers(incoming, origin, guard, transaction_version)
            if duplicate is not None:
                return Appended(*duplicate, self.log_start_offset, is_duplicate=True)
        last_offset = last[0] + last[6]
        try:
            if not self.is_settled:
                self._settle()
            segment = self._place_for(size, headers, now)
            position = segment.write(data)
            segment.index(headers, position)
            located = (segment.size - last[1] - LOG_OVERHEAD, last)
            self._newest = _new_tuple(Located, located)
            self.log_end_offset = last_offset + 1
            self.producers.map_end_offset = last_offset + 1
            if have_producers:
                self._update_producers(headers, markers, segment)
        except StorageError as error:
            raise log_dir.refused(error) from error
        if last_offset - self.recovery_point >= config.flush_messages - 1:
            self.flush_now(last_offset + 1)
        appended = (headers[0][0], last_offset, log_append_time_ms, self.log_start_offset, False)
        return _new_tuple(Appended, appended)

    def _check_producers(
        self,
        incoming: Incoming,
        origin: Origin,
        guard: VerificationGuard | None,
        transaction_version: int,
    ) -> Duplicate | None:
        producers = self.producers
        verifies = self.folder.log_dir.verifies_transactions
        headers = incoming[1]
        if len(headers) == 1 and not incoming[2]:
            # Nearly every append is of one batch, and pays for no loop.
            return producers.check(headers[0], origin=origin, guard=guard, verifies=verifies)
        for number, header in enumerate(headers):
            if header[9] < 0:
                continue
            if not header[5] & CONTROL_FLAG:
                duplicate = producers.check(header, origin=origin, guard=guard, verifies=verifies)
                if duplicate is not None:
                    return duplicate
            elif (marker := incoming.markers[number]) is not None:
                producers.check_marker(
                    header, marker, origin=origin, transaction_version=transaction_version
                )
        return None

    def _place_for(self, size: int, headers: tuple[BatchHeader, ...], now: Now) -> Segment:
        """The segment for these batches, with their epochs on disk. What it changes is harmless
        should the append fail."""
        segment = self.segments.active
        if not segment.is_active:
            segment.become_active()
        last = headers[-1]
        max_timestamp = last[8] if len(headers) == 1 else max([each[8] for each in headers])
        if segment.should_roll(size, max_timestamp, last, now) and (
            segment.size or not segment.can_hold(last.last_offset)
        ):
            segment = self._roll(headers[0].base_offset, now, last_offset=last.last_offset)
        latest = self.epochs.latest
        if last[2] != latest or len(headers) > 1:
            for header in headers:
                if header[2] != self.epochs.latest:
                    self._assign_epoch(header[2], header[0])
        return segment

    def _update_producers(
        self,
        headers: tuple[BatchHeader, ...],
        markers: tuple[Marker | None, ...],
        segment: Segment,
    ) -> None:
        producers = self.producers
        if not markers and len(headers) == 1 and not headers[0][5] & _OF_TRANSACTIONS:
            producers.update(headers[0])
            return
        transactional = 0
        for number, header in enumerate(headers):
            if header[9] < 0:
                continue
            completed = producers.update(header, markers[number] if markers else None)
            transactional |= header[5] & TRANSACTIONAL_FLAG
            if completed is not None:
                if completed.aborted:
                    segment.transaction_index.append(
                        AbortedTransaction(
                            completed.producer_id,
                            completed.first_offset,
                            completed.last_offset,
                            producers.last_stable_offset(completed),
                        )
                    )
                producers.complete(completed)
        if transactional:
            self._update_first_unstable()
