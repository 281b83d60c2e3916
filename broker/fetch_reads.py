"""What one fetch reads from the partitions that its session has marked.

Knows no wait and no answer's order. Reading is synchronous where memory holds the data; what it
does not hold is awaited, and so is much of anything, so that others have their turn meanwhile.
"""

from __future__ import annotations

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from ottla.storage.log import Isolation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.broker.context import Context
    from ottla.broker.fetch_sessions import FetchSession, Watched
    from ottla.protocol.messages.fetch import FetchRequest
    from ottla.replication.partition import Partition
    from ottla.storage.log import Fetched
    from ottla.storage.transaction_index import AbortedTransaction as Aborted

# What says that the partition is not there, and ends nobody's wait.
UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)

_LEADER_VERSION = 16
_RACK_VERSION = 11
_STORAGE_ERROR_VERSION = 6
# So many partitions, and so much of them, are read without a pause.
_AT_ONCE_MAX = 128
_AT_ONCE_BYTES = 8 << 20
_EMPTY = b""
_LOG_END, _HIGH_WATERMARK, _TXN_COMMITTED = Isolation


class FetchReads:
    """`answers` holds what was read last of each partition; those with records stay marked."""

    __slots__ = (
        "_broker",
        "_context",
        "_filled",
        "_is_cold",
        "_left_bytes",
        "_minimum_one",
        "_replica",
        "_room",
        "_session",
        "answers",
        "endpoints",
        "has_news",
        "has_unknown",
        "isolation",
        "leader_only",
        "max_bytes",
    )

    def __init__(
        self,
        broker: Broker,
        context: Context,
        request: FetchRequest,
        session: FetchSession,
        replica: int,
    ) -> None:
        self._broker = broker
        self._context = context
        self._session = session
        self._replica = replica
        self.isolation = _HIGH_WATERMARK
        if replica >= 0:
            self.isolation = _LOG_END
        elif request.isolation_level == 1:
            self.isolation = _TXN_COMMITTED
        self.leader_only = replica >= 0 or context.version < _RACK_VERSION
        self.max_bytes: int = min(request.max_bytes, broker.config["fetch.max.bytes"])
        self.answers: dict[Watched, PartitionData] = {}
        self.endpoints: dict[int, NodeEndpoint] | None = None
        self.has_news = False
        """What the client has to hear at once, records or not."""
        self.has_unknown = False
        self._is_cold = False
        # Those whose records go into the answer, and count.
        self._filled: dict[Watched, None] = {}

    @property
    def size_bytes(self) -> int:
        return self._room - self._left_bytes

    # in their order

    def now(self) -> bool:
        """Reads what is marked; False if not all could be read at once: the rest is marked still,
        and for `aside`."""
        # While memory is short, because others do not read their answers, there is less to get.
        room = self._broker.server.answer_bytes_left
        self._left_bytes = self._room = min(self.max_bytes, room)
        self._minimum_one = room > 0
        if self._filled:
            self._filled = {}
        marked = self._session.take_marked()
        count = self._read(marked, 0)
        for watched in marked[count:]:
            watched.mark()
        return count == len(marked)

    async def aside(self) -> None:
        """Goes on with many partitions, much data, and what memory does not hold."""
        session = self._session
        marked = [each for each in session.take_marked() if each not in self._filled]
        for watched in self._filled:
            session.marked[watched] = None
        done = 0
        try:
            while done < len(marked):
                done = self._read(marked, done)
                if self._is_cold:
                    await self._read_cold(marked[done])
                    done += 1
                elif done < len(marked):
                    await self._broker.pause()
        finally:
            for watched in marked[done:]:
                watched.mark()

    def _read(self, marked: list[Watched], start: int) -> int:
        """Returns the number of the first that was not read: it is cold, or the others were much
        to read already."""
        isolation = self.isolation
        self._is_cold = False
        stop_at_bytes = self._left_bytes - _AT_ONCE_BYTES
        end = min(len(marked), start + _AT_ONCE_MAX)
        for number in range(start, end):
            if self._left_bytes < stop_at_bytes:
                return number
            watched = marked[number]
            partition = self._partition(watched)
            if partition is None:
                continue
            max_bytes = min(watched.max_bytes, self._left_bytes)
            try:
                fetched = partition.log.read(
                    watched.fetch_offset,
                    max_bytes,
                    isolation=isolation,
                    minimum_one=self._minimum_one,
                )
                if fetched is None:
                    self._is_cold = True
                    return number
                self._take(watched, partition, fetched, max_bytes)
            except KafkaError as error:
                self._refuse(watched, error.code)
        return end

    async def _read_cold(self, watched: Watched) -> None:
        partition = self._partition(watched)
        if partition is None:
            return
        max_bytes = min(watched.max_bytes, self._left_bytes)
        try:
            fetched = await partition.log.read_cold(
                watched.fetch_offset,
                max_bytes,
                isolation=self.isolation,
                minimum_one=self._minimum_one,
            )
            self._take(watched, partition, fetched, max_bytes)
        except KafkaError as error:
            self._refuse(watched, error.code)

    # one partition

    def _partition(self, watched: Watched) -> Partition | None:
        """The partition to read from; None where the answer says already why not."""
        try:
            partition = watched.partition
            if partition is None or not partition.is_in_service:
                partition = self._found(watched)
            diverging = partition.check_reader(
                watched.fetch_offset,
                current_leader_epoch=watched.current_leader_epoch,
                last_fetched_epoch=watched.last_fetched_epoch,
                leader_only=self.leader_only,
            )
        except KafkaError as error:
            self._refuse(watched, error.code)
            return None
        if diverging is None:
            return partition
        data = self.answers[watched] = self._data(watched, partition, _EMPTY, None)
        data.diverging_epoch = EpochEndOffset(
            epoch=diverging.epoch, end_offset=diverging.end_offset
        )
        self.has_news = True
        self._session.marked[watched] = None
        return None

    def _found(self, watched: Watched) -> Partition:
        watched.watch(None)
        if watched.topic is None:
            topic = self._broker.image.topics.by_id.get(watched.topic_id)
            if topic is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
            watched.topic = topic.name
        partition = self._broker.node.partition(watched.topic, watched.index)
        if self._session.uses_topic_ids and partition.topic_id != watched.topic_id:
            raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
        watched.watch(partition)
        return partition

    def _take(
        self, watched: Watched, partition: Partition, fetched: Fetched, max_bytes: int
    ) -> None:
        if self._replica >= 0:
            partition.replica_fetched(
                self._replica,
                offset=watched.fetch_offset,
                log_start_offset=watched.follower_log_start_offset,
                now=self._broker.world.now(),
            )
        data, watched.start, is_first_incomplete, aborted = fetched
        size = len(data)
        if size and not is_first_incomplete:
            self._minimum_one = False
            self._left_bytes -= size
            self._filled[watched] = None
            self._session.marked[watched] = None
        else:
            data = _EMPTY
            if is_first_incomplete:
                aborted = None
            if is_first_incomplete or max_bytes <= 0:
                # There may be something that there was no room for.
                self._session.marked[watched] = None
        self.answers[watched] = self._data(watched, partition, data, _aborted(aborted))

    def _data(
        self,
        watched: Watched,
        partition: Partition,
        records: bytes | bytearray | memoryview,
        aborted: list[AbortedTransaction] | None,
    ) -> PartitionData:
        log = partition.log
        return PartitionData(
            partition_index=watched.index,
            error_code=0,
            high_watermark=log.high_watermark,
            last_stable_offset=-1 if self._replica >= 0 else log.last_stable_offset,
            log_start_offset=log.log_start_offset,
            aborted_transactions=aborted,
            records=records,
        )

    def _refuse(self, watched: Watched, code: ErrorCode) -> None:
        """What is wrong is told each time, until it is right."""
        self._session.marked[watched] = None
        version = self._context.version
        aborted: list[AbortedTransaction] | None = None
        if code in UNKNOWN:
            self.has_unknown = True
            aborted = []
        else:
            self.has_news = True
        if code is ErrorCode.KAFKA_STORAGE_ERROR and version < _STORAGE_ERROR_VERSION:
            # Clients of that time know no such error.
            code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        data = PartitionData(
            partition_index=watched.index,
            error_code=code,
            high_watermark=-1,
            aborted_transactions=aborted,
            records=_EMPTY,
        )
        if version >= _LEADER_VERSION and code in (
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.FENCED_LEADER_EPOCH,
        ):
            data.current_leader = self._leader(watched)
        self.answers[watched] = data

    def _leader(self, watched: Watched) -> LeaderIdAndEpoch:
        """Whom the client should ask; where that one is goes into the answer, too."""
        topic = self._broker.image.topics.by_name.get(watched.topic or "")
        registration = None if topic is None else topic.partitions.get(watched.index)
        if registration is None:
            return LeaderIdAndEpoch()
        found = self._broker.node_address(registration.leader, self._context)
        if found is not None:
            self.endpoints = self.endpoints or {}
            node_id, host, port, rack, _ = found
            self.endpoints[node_id] = NodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
        return LeaderIdAndEpoch(
            leader_id=registration.leader, leader_epoch=registration.leader_epoch
        )


def _aborted(found: list[Aborted] | None) -> list[AbortedTransaction] | None:
    """None for readers who want all records."""
    if found is None:
        return None
    return [
        AbortedTransaction(producer_id=each.producer_id, first_offset=each.first_offset)
        for each in found
    ]
