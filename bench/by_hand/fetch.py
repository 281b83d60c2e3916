"""Fetch version 18 by hand: requests, with and without sessions, and responses."""

from struct import Struct
from struct import error as StructError

from ottla.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ReplicaState,
    SnapshotId,
)
from ottla.protocol.wire import Buffer, ProtocolError, read_uvarint

from .rare import (
    INT64_MAX,
    ONE_BYTE,
    UNPACK_INTS,
    ZERO,
    long_size,
    new,
    read_ints,
    read_size,
    read_string,
    read_string_or_null,
    read_tag,
    read_tag_count,
    skip_tags,
    skip_value,
    string_size,
    tagged,
    write_ints,
    write_string,
    write_string_or_null,
)

_INT32 = Struct(">i")
_INT64 = Struct(">q")
_INT32_INT32 = Struct(">ii")
_INT32_INT64 = Struct(">iq")
_INT64_INT32 = Struct(">qi")
_UUID = Struct(">16s")
_ID_COUNT = Struct(">16sB")
_REQUEST_HEAD = Struct(">iiibiiB")
_REQUEST_PARTITION = Struct(">iiqiqiB")
_RESPONSE_HEAD = Struct(">ihiB")
# As far as the count of aborted transactions; and on, if there are none, to the size of records.
_PARTITION = Struct(">ihqqqB")
_PARTITION_SIZE = Struct(">ihqqqBiB")
_PARTITION_LONG_SIZE = Struct(">ihqqqBiBB")
_REPLICA_SIZE = Struct(">iB")
_ABORTED = Struct(">qqB")

_read_id_count = _ID_COUNT.unpack_from
_read_request_head = _REQUEST_HEAD.unpack_from
_read_request_partition = _REQUEST_PARTITION.unpack_from
_read_partition_size = _PARTITION_SIZE.unpack_from
_read_replica_size = _REPLICA_SIZE.unpack_from
_read_aborted = _ABORTED.unpack_from


# --- requests ------------------------------------------------------------------------------


def read_request_v18(data: bytes) -> FetchRequest:
    try:
        message = new(FetchRequest)
        message.cluster_id = None
        message.replica_id = -1
        message.replica_state = None
        (
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            message.session_id,
            message.session_epoch,
            count,
        ) = _read_request_head(data, 0)
        at = 22
        if not 0 < count < 128:
            count, at = read_size(data, 21)
        message.topics, at = _read_topics(data, at, count - 1)
        if data[at] == 1:
            message.forgotten_topics_data = []
            at += 1
        else:
            message.forgotten_topics_data, at = _read_forgotten(data, at)
        size = data[at]
        if 0 < size < 128:
            end = at + size
            message.rack_id = data[at + 1 : end].decode("utf-8", "replace")
        else:
            message.rack_id, end = read_string(data, at)
        if data[end]:
            _read_request_tags(data, end, message)
        return message
    except (IndexError, StructError):
        raise ProtocolError("FetchRequest is cut short") from None


def _read_topics(data: bytes, at: int, topic_count: int) -> tuple[list[FetchTopic], int]:
    topics = []
    for _ in range(topic_count):
        topic = new(FetchTopic)
        topic.topic = ""
        topic.topic_id, count = _read_id_count(data, at)
        at += 17
        if not 0 < count < 128:
            count, at = read_size(data, at - 1)
        topic.partitions = partitions = []
        for _ in range(count - 1):
            partition = new(FetchPartition)
            (
                partition.partition,
                partition.current_leader_epoch,
                partition.fetch_offset,
                partition.last_fetched_epoch,
                partition.log_start_offset,
                partition.partition_max_bytes,
                tags,
            ) = _read_request_partition(data, at)
            partition.replica_directory_id = ZERO
            partition.high_watermark = INT64_MAX
            at += 33
            if tags:
                at = _read_request_partition_tags(data, at - 1, partition)
            partitions.append(partition)
        at = skip_tags(data, at) if data[at] else at + 1
        topics.append(topic)
    return topics, at


def _read_request_partition_tags(data: bytes, at: int, partition: FetchPartition) -> int:
    count, at = read_tag_count(data, at)
    for _ in range(count):
        tag, size, at = read_tag(data, at)
        if tag == 0:
            (partition.replica_directory_id,) = _UUID.unpack_from(data, at)
            at += 16
        elif tag == 1:
            (partition.high_watermark,) = _INT64.unpack_from(data, at)
            at += 8
        else:
            at = skip_value(data, at, size)
    return at


def _read_forgotten(data: bytes, at: int) -> tuple[list[ForgottenTopic], int]:
    topic_count, at = read_size(data, at)
    topics = []
    for _ in range(topic_count - 1):
        topic = new(ForgottenTopic)
        topic.topic = ""
        topic.topic_id, count = _read_id_count(data, at)
        if 0 < count < 34:
            topic.partitions = list(UNPACK_INTS[count - 1](data, at + 17))
            at += 13 + 4 * count
        else:
            topic.partitions, at = read_ints(data, at + 16)
        at = skip_tags(data, at) if data[at] else at + 1
        topics.append(topic)
    return topics, at


def _read_request_tags(data: bytes, at: int, message: FetchRequest) -> None:
    count, at = read_tag_count(data, at)
    for _ in range(count):
        tag, size, at = read_tag(data, at)
        if tag == 0:
            message.cluster_id, at = read_string_or_null(data, at)
        elif tag == 1:
            message.replica_state = state = new(ReplicaState)
            state.replica_id, state.replica_epoch = _INT32_INT64.unpack_from(data, at)
            at = skip_tags(data, at + 12)
        else:
            at = skip_value(data, at, size)


def write_request_v18(message: FetchRequest) -> bytearray:
    if message.replica_id != -1:
        raise ProtocolError("replica_id does not exist in version 18")
    count = len(message.topics) + 1
    out = bytearray(
        _REQUEST_HEAD.pack(
            message.max_wait_ms,
            message.min_bytes,
            message.max_bytes,
            message.isolation_level,
            message.session_id,
            message.session_epoch,
            count if count < 128 else 0,
        )
    )
    if count > 127:
        out[-1:] = long_size(count)
    for topic in message.topics:
        _write_topic(out, topic)
    if message.forgotten_topics_data:
        _write_forgotten(out, message.forgotten_topics_data)
    else:
        out.append(1)
    rack_id = message.rack_id.encode("utf-8", "replace")
    size = len(rack_id) + 1
    out += ONE_BYTE[size] if size < 128 else string_size(size)
    out += rack_id
    if message.cluster_id is None and message.replica_state is None:
        out.append(0)
    else:
        _write_request_tags(out, message)
    return out


def _write_topic(out: bytearray, topic: FetchTopic) -> None:
    count = len(topic.partitions) + 1
    if count < 128:
        out += _ID_COUNT.pack(topic.topic_id, count)
    else:
        out += topic.topic_id
        out += long_size(count)
    for partition in topic.partitions:
        out += _REQUEST_PARTITION.pack(
            partition.partition,
            partition.current_leader_epoch,
            partition.fetch_offset,
            partition.last_fetched_epoch,
            partition.log_start_offset,
            partition.partition_max_bytes,
            0,
        )
        if partition.high_watermark != INT64_MAX or partition.replica_directory_id != ZERO:
            fields: list[tuple[int, bytes | bytearray]] = []
            if partition.replica_directory_id != ZERO:
                fields.append((0, _UUID.pack(partition.replica_directory_id)))
            if partition.high_watermark != INT64_MAX:
                fields.append((1, _INT64.pack(partition.high_watermark)))
            out[-1:] = tagged(fields)
    out.append(0)


def _write_forgotten(out: bytearray, topics: list[ForgottenTopic]) -> None:
    out += long_size(len(topics) + 1)
    for topic in topics:
        out += _UUID.pack(topic.topic_id)
        write_ints(out, topic.partitions)
        out.append(0)


def _write_request_tags(out: bytearray, message: FetchRequest) -> None:
    fields: list[tuple[int, bytes | bytearray]] = []
    if message.cluster_id is not None:
        cluster_id = bytearray()
        write_string(cluster_id, message.cluster_id)
        fields.append((0, cluster_id))
    state = message.replica_state
    if state is not None and (state.replica_id != -1 or state.replica_epoch != -1):
        fields.append((1, _INT32_INT64.pack(state.replica_id, state.replica_epoch) + b"\0"))
    out += tagged(fields)


# --- responses -----------------------------------------------------------------------------


def read_response_v18(data: Buffer) -> FetchResponse:
    try:
        view = memoryview(data)
        message = new(FetchResponse)
        message.node_endpoints = []
        (
            message.throttle_time_ms,
            message.error_code,
            message.session_id,
            topic_count,
        ) = _RESPONSE_HEAD.unpack_from(data, 0)
        at = 11
        if not 0 < topic_count < 128:
            topic_count, at = read_size(data, 10)
        message.responses = topics = []
        for _ in range(topic_count - 1):
            topic = new(FetchableTopicResponse)
            topic.topic = ""
            topic.topic_id, count = _read_id_count(data, at)
            at += 17
            if not 0 < count < 128:
                count, at = read_size(data, at - 1)
            topic.partitions, at = _read_partitions(data, view, at, count - 1)
            at = skip_tags(data, at) if data[at] else at + 1
            topics.append(topic)
        if data[at]:
            _read_response_tags(data, at, message)
        return message
    except (IndexError, StructError):
        raise ProtocolError("FetchResponse is cut short") from None


def _read_partitions(
    data: Buffer, view: memoryview, at: int, count: int
) -> tuple[list[PartitionData], int]:
    partitions = []
    for _ in range(count):
        partition = new(PartitionData)
        partition.diverging_epoch = partition.current_leader = partition.snapshot_id = None
        # The last two are right if no transaction was aborted; otherwise they are read again.
        (
            partition.partition_index,
            partition.error_code,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.log_start_offset,
            aborted_count,
            partition.preferred_read_replica,
            size,
        ) = _read_partition_size(data, at)
        at += 36
        if aborted_count == 0:
            partition.aborted_transactions = None
        elif aborted_count == 1:
            partition.aborted_transactions = []
        else:
            partition.aborted_transactions, at = _read_aborted_transactions(data, at - 6)
            partition.preferred_read_replica, size = _read_replica_size(data, at)
            at += 5
        if size > 127:
            second = data[at]
            if second < 128:
                size += (second << 7) - 128
                at += 1
            else:
                size, at = read_uvarint(data, at - 1)
        if size:
            end = at + size - 1
            partition.records = view[at:end]
            at = end
        else:
            partition.records = None
        at = _read_partition_tags(data, at, partition) if data[at] else at + 1
        partitions.append(partition)
    return partitions, at


def _read_aborted_transactions(data: Buffer, at: int) -> tuple[list[AbortedTransaction], int]:
    count, at = read_size(data, at)
    aborted = []
    for _ in range(count - 1):
        transaction = new(AbortedTransaction)
        transaction.producer_id, transaction.first_offset, tags = _read_aborted(data, at)
        at = skip_tags(data, at + 16) if tags else at + 17
        aborted.append(transaction)
    return aborted, at


def _read_partition_tags(data: Buffer, at: int, partition: PartitionData) -> int:
    count, at = read_tag_count(data, at)
    for _ in range(count):
        tag, size, at = read_tag(data, at)
        if tag == 0:
            partition.diverging_epoch = diverging = new(EpochEndOffset)
            diverging.epoch, diverging.end_offset = _INT32_INT64.unpack_from(data, at)
            at = skip_tags(data, at + 12)
        elif tag == 1:
            partition.current_leader = leader = new(LeaderIdAndEpoch)
            leader.leader_id, leader.leader_epoch = _INT32_INT32.unpack_from(data, at)
            at = skip_tags(data, at + 8)
        elif tag == 2:
            partition.snapshot_id = snapshot = new(SnapshotId)
            snapshot.end_offset, snapshot.epoch = _INT64_INT32.unpack_from(data, at)
            at = skip_tags(data, at + 12)
        else:
            at = skip_value(data, at, size)
    return at


def _read_response_tags(data: Buffer, at: int, message: FetchResponse) -> None:
    count, at = read_tag_count(data, at)
    for _ in range(count):
        tag, size, at = read_tag(data, at)
        if tag == 0:
            message.node_endpoints, at = _read_endpoints(data, at)
        else:
            at = skip_value(data, at, size)


def _read_endpoints(data: Buffer, at: int) -> tuple[list[NodeEndpoint], int]:
    count, at = read_size(data, at)
    endpoints = []
    for _ in range(count - 1):
        endpoint = new(NodeEndpoint)
        (endpoint.node_id,) = _INT32.unpack_from(data, at)
        endpoint.host, at = read_string(data, at + 4)
        (endpoint.port,) = _INT32.unpack_from(data, at)
        endpoint.rack, at = read_string_or_null(data, at + 4)
        at = skip_tags(data, at)
        endpoints.append(endpoint)
    return endpoints, at


def write_response_v18(message: FetchResponse) -> bytes:
    count = len(message.responses) + 1
    head = _RESPONSE_HEAD.pack(
        message.throttle_time_ms,
        message.error_code,
        message.session_id,
        count if count < 128 else 0,
    )
    pieces: list[Buffer] = [head if count < 128 else head[:-1] + long_size(count)]
    for topic in message.responses:
        count = len(topic.partitions) + 1
        if count < 128:
            pieces.append(_ID_COUNT.pack(topic.topic_id, count))
        else:
            pieces += (_UUID.pack(topic.topic_id), long_size(count))
        _write_partitions(pieces, topic.partitions)
        pieces.append(b"\0")
    if message.node_endpoints:
        pieces.append(tagged([(0, _endpoints(message.node_endpoints))]))
    else:
        pieces.append(b"\0")
    return b"".join(pieces)


def _write_partitions(pieces: list[Buffer], partitions: list[PartitionData]) -> None:
    for partition in partitions:
        records = partition.records
        aborted = partition.aborted_transactions
        size = 0 if records is None else len(records) + 1
        if aborted or size > 16383:
            head = _head(partition, size)
        elif size < 128:
            head = _PARTITION_SIZE.pack(
                partition.partition_index,
                partition.error_code,
                partition.high_watermark,
                partition.last_stable_offset,
                partition.log_start_offset,
                0 if aborted is None else 1,
                partition.preferred_read_replica,
                size,
            )
        else:
            head = _PARTITION_LONG_SIZE.pack(
                partition.partition_index,
                partition.error_code,
                partition.high_watermark,
                partition.last_stable_offset,
                partition.log_start_offset,
                0 if aborted is None else 1,
                partition.preferred_read_replica,
                size & 127 | 128,
                size >> 7,
            )
        if (
            partition.diverging_epoch is None
            and partition.current_leader is None
            and partition.snapshot_id is None
        ):
            tags: Buffer = b"\0"
        else:
            tags = _partition_tags(partition)
        pieces += (head, tags) if records is None else (head, records, tags)


def _head(partition: PartitionData, size: int) -> bytes:
    """All that stands before the records, however many transactions were aborted."""
    aborted = partition.aborted_transactions
    head = _PARTITION.pack(
        partition.partition_index,
        partition.error_code,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log_start_offset,
        0,
    )
    pieces = [head[:-1], long_size(0 if aborted is None else len(aborted) + 1)]
    for each in aborted or ():
        pieces.append(_ABORTED.pack(each.producer_id, each.first_offset, 0))
    pieces += (_INT32.pack(partition.preferred_read_replica), long_size(size))
    return b"".join(pieces)


def _partition_tags(partition: PartitionData) -> bytearray:
    fields: list[tuple[int, bytes | bytearray]] = []
    diverging = partition.diverging_epoch
    if diverging is not None and (diverging.epoch != -1 or diverging.end_offset != -1):
        fields.append((0, _INT32_INT64.pack(diverging.epoch, diverging.end_offset) + b"\0"))
    leader = partition.current_leader
    if leader is not None and (leader.leader_id != -1 or leader.leader_epoch != -1):
        fields.append((1, _INT32_INT32.pack(leader.leader_id, leader.leader_epoch) + b"\0"))
    snapshot = partition.snapshot_id
    if snapshot is not None and (snapshot.end_offset != -1 or snapshot.epoch != -1):
        fields.append((2, _INT64_INT32.pack(snapshot.end_offset, snapshot.epoch) + b"\0"))
    return tagged(fields)


def _endpoints(endpoints: list[NodeEndpoint]) -> bytearray:
    out = bytearray(long_size(len(endpoints) + 1))
    for endpoint in endpoints:
        out += _INT32.pack(endpoint.node_id)
        write_string(out, endpoint.host)
        out += _INT32.pack(endpoint.port)
        write_string_or_null(out, endpoint.rack)
        out.append(0)
    return out
