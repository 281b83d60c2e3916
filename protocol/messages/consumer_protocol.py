"""What consumers say to each other through a classic group: subscription and assignment."""

from __future__ import annotations

from ottla.protocol.schema import Bytes, Int32, String, message, part, since


@message(versions=(0, 3))
class ConsumerProtocolSubscription:
    topics: list[String]
    user_data: Bytes | None = None
    owned_partitions: list[ConsumerProtocolSubscriptionTopicPartition] = since(
        1, ignorable=True, default=[]
    )
    generation_id: Int32 = since(2, ignorable=True, default=-1)
    rack_id: String | None = since(3, ignorable=True, default=None)


@part
class ConsumerProtocolSubscriptionTopicPartition:
    topic: String
    partitions: list[Int32]


@message(versions=(0, 3))
class ConsumerProtocolAssignment:
    assigned_partitions: list[ConsumerProtocolAssignmentTopicPartition]
    user_data: Bytes | None = None


@part
class ConsumerProtocolAssignmentTopicPartition:
    topic: String
    partitions: list[Int32]
