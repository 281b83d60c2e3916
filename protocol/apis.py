"""Every API of Kafka 4.3.1 and where its messages are declared. A table, nothing else is loaded.

Frames, dispatch and ApiVersions need key, versions and header versions of an API long before, and
mostly without, its messages.
"""

from __future__ import annotations

from importlib import import_module

from ottla.protocol.schema import TYPE_CHECKING
from ottla.protocol.wire import ProtocolError

if TYPE_CHECKING:
    from typing import Any

BROKER = 1
CONTROLLER = 2
BOTH = BROKER | CONTROLLER


class Api:
    """One API: its key, its versions, and the first of them that has tagged fields."""

    __slots__ = ("first", "flexible", "key", "last", "listeners", "module", "name")

    def __init__(
        self,
        key: int,
        name: str,
        module: str,
        first: int,
        last: int,
        flexible: int | None,
        listeners: int,
    ) -> None:
        self.key = key
        self.name = name
        self.module = module
        self.first = first
        self.last = last
        self.flexible = flexible
        self.listeners = listeners

    def is_flexible(self, version: int) -> bool:
        return self.flexible is not None and version >= self.flexible

    def request_header_version(self, version: int) -> int:
        return 2 if self.is_flexible(version) else 1

    def response_header_version(self, version: int) -> int:
        # A client reads the answer to ApiVersions before it knows what the broker speaks.
        return 1 if self.is_flexible(version) and self.key != API_VERSIONS else 0

    def request(self) -> type[Any]:
        return message_class(self.name + "Request")

    def response(self) -> type[Any]:
        return message_class(self.name + "Response")


API_VERSIONS = 18

# fmt: off
# key, name, module under ottla.protocol.messages, first and last version, first flexible version,
# listeners that serve it
_ROWS = (
    (0, "Produce", "produce", 3, 13, 9, BROKER),
    (1, "Fetch", "fetch", 4, 18, 12, BOTH),
    (2, "ListOffsets", "offsets", 1, 11, 6, BROKER),
    (3, "Metadata", "metadata", 0, 13, 9, BROKER),
    (8, "OffsetCommit", "offsets", 2, 10, 8, BROKER),
    (9, "OffsetFetch", "offsets", 1, 10, 6, BROKER),
    (10, "FindCoordinator", "groups", 0, 6, 3, BROKER),
    (11, "JoinGroup", "groups", 0, 9, 6, BROKER),
    (12, "Heartbeat", "groups", 0, 4, 4, BROKER),
    (13, "LeaveGroup", "groups", 0, 5, 4, BROKER),
    (14, "SyncGroup", "groups", 0, 5, 4, BROKER),
    (15, "DescribeGroups", "groups", 0, 6, 5, BROKER),
    (16, "ListGroups", "groups", 0, 5, 3, BROKER),
    (17, "SaslHandshake", "sasl", 0, 1, None, BOTH),
    (18, "ApiVersions", "versions", 0, 4, 3, BOTH),
    (19, "CreateTopics", "topics", 2, 7, 5, BOTH),
    (20, "DeleteTopics", "topics", 1, 6, 4, BOTH),
    (21, "DeleteRecords", "topics", 0, 2, 2, BROKER),
    (22, "InitProducerId", "transactions", 0, 6, 2, BROKER),
    (23, "OffsetForLeaderEpoch", "offsets", 2, 4, 4, BROKER),
    (24, "AddPartitionsToTxn", "transactions", 0, 5, 3, BROKER),
    (25, "AddOffsetsToTxn", "transactions", 0, 4, 3, BROKER),
    (26, "EndTxn", "transactions", 0, 5, 3, BROKER),
    (27, "WriteTxnMarkers", "transactions", 1, 2, 1, BROKER),
    (28, "TxnOffsetCommit", "transactions", 0, 5, 3, BROKER),
    (29, "DescribeAcls", "acls", 1, 3, 2, BOTH),
    (30, "CreateAcls", "acls", 1, 3, 2, BOTH),
    (31, "DeleteAcls", "acls", 1, 3, 2, BOTH),
    (32, "DescribeConfigs", "configs", 1, 4, 4, BOTH),
    (33, "AlterConfigs", "configs", 0, 2, 2, BOTH),
    (34, "AlterReplicaLogDirs", "replicas", 1, 2, 2, BROKER),
    (35, "DescribeLogDirs", "replicas", 1, 5, 2, BROKER),
    (36, "SaslAuthenticate", "sasl", 0, 2, 2, BOTH),
    (37, "CreatePartitions", "topics", 0, 3, 2, BOTH),
    (38, "CreateDelegationToken", "tokens", 1, 3, 2, BOTH),
    (39, "RenewDelegationToken", "tokens", 1, 2, 2, BOTH),
    (40, "ExpireDelegationToken", "tokens", 1, 2, 2, BOTH),
    (41, "DescribeDelegationToken", "tokens", 1, 3, 2, BOTH),
    (42, "DeleteGroups", "groups", 0, 2, 2, BROKER),
    (43, "ElectLeaders", "replicas", 0, 2, 2, BOTH),
    (44, "IncrementalAlterConfigs", "configs", 0, 1, 1, BOTH),
    (45, "AlterPartitionReassignments", "replicas", 0, 1, 0, BOTH),
    (46, "ListPartitionReassignments", "replicas", 0, 0, 0, BOTH),
    (47, "OffsetDelete", "offsets", 0, 0, None, BROKER),
    (48, "DescribeClientQuotas", "quotas", 0, 1, 1, BROKER),
    (49, "AlterClientQuotas", "quotas", 0, 1, 1, BOTH),
    (50, "DescribeUserScramCredentials", "sasl", 0, 0, 0, BOTH),
    (51, "AlterUserScramCredentials", "sasl", 0, 0, 0, BOTH),
    (52, "Vote", "quorum", 0, 2, 0, CONTROLLER),
    (53, "BeginQuorumEpoch", "quorum", 0, 1, 1, CONTROLLER),
    (54, "EndQuorumEpoch", "quorum", 0, 1, 1, CONTROLLER),
    (55, "DescribeQuorum", "quorum", 0, 2, 0, BOTH),
    (56, "AlterPartition", "replicas", 2, 3, 0, CONTROLLER),
    (57, "UpdateFeatures", "versions", 0, 2, 0, BOTH),
    (58, "Envelope", "cluster", 0, 0, 0, CONTROLLER),
    (59, "FetchSnapshot", "quorum", 0, 1, 0, CONTROLLER),
    (60, "DescribeCluster", "cluster", 0, 2, 0, BOTH),
    (61, "DescribeProducers", "transactions", 0, 0, 0, BROKER),
    (62, "BrokerRegistration", "cluster", 0, 4, 0, CONTROLLER),
    (63, "BrokerHeartbeat", "cluster", 0, 2, 0, CONTROLLER),
    (64, "UnregisterBroker", "cluster", 0, 0, 0, BOTH),
    (65, "DescribeTransactions", "transactions", 0, 0, 0, BROKER),
    (66, "ListTransactions", "transactions", 0, 2, 0, BROKER),
    (67, "AllocateProducerIds", "transactions", 0, 0, 0, CONTROLLER),
    (68, "ConsumerGroupHeartbeat", "consumer_groups", 0, 1, 0, BROKER),
    (69, "ConsumerGroupDescribe", "consumer_groups", 0, 1, 0, BROKER),
    (70, "ControllerRegistration", "cluster", 0, 0, 0, CONTROLLER),
    (71, "GetTelemetrySubscriptions", "telemetry", 0, 0, 0, BROKER),
    (72, "PushTelemetry", "telemetry", 0, 0, 0, BROKER),
    (73, "AssignReplicasToDirs", "replicas", 0, 0, 0, CONTROLLER),
    (74, "ListConfigResources", "configs", 0, 1, 0, BROKER),
    (75, "DescribeTopicPartitions", "metadata", 0, 0, 0, BROKER),
    (76, "ShareGroupHeartbeat", "shares", 1, 1, 0, BROKER),
    (77, "ShareGroupDescribe", "shares", 1, 1, 0, BROKER),
    (78, "ShareFetch", "shares", 1, 2, 0, BROKER),
    (79, "ShareAcknowledge", "shares", 1, 2, 0, BROKER),
    (80, "AddRaftVoter", "quorum", 0, 1, 0, BOTH),
    (81, "RemoveRaftVoter", "quorum", 0, 0, 0, BOTH),
    (82, "UpdateRaftVoter", "quorum", 0, 0, 0, CONTROLLER),
    (83, "InitializeShareGroupState", "share_state", 0, 0, 0, BROKER),
    (84, "ReadShareGroupState", "share_state", 0, 0, 0, BROKER),
    (85, "WriteShareGroupState", "share_state", 0, 1, 0, BROKER),
    (86, "DeleteShareGroupState", "share_state", 0, 0, 0, BROKER),
    (87, "ReadShareGroupStateSummary", "share_state", 0, 1, 0, BROKER),
    (88, "StreamsGroupHeartbeat", "streams_groups", 0, 0, 0, BROKER),
    (89, "StreamsGroupDescribe", "streams_groups", 0, 0, 0, BROKER),
    (90, "DescribeShareGroupOffsets", "shares", 0, 1, 0, BROKER),
    (91, "AlterShareGroupOffsets", "shares", 0, 0, 0, BROKER),
    (92, "DeleteShareGroupOffsets", "shares", 0, 0, 0, BROKER),
)
# fmt: on

APIS: dict[int, Api] = {row[0]: Api(*row) for row in _ROWS}

# Records and other data, by the module that declares them.
DATA: dict[str, tuple[str, ...]] = {
    "headers": (
        "RequestHeader",
        "ResponseHeader",
    ),
    "consumer_protocol": (
        "ConsumerProtocolSubscription",
        "ConsumerProtocolAssignment",
    ),
    "raft_records": (
        "LeaderChangeMessage",
        "SnapshotHeaderRecord",
        "SnapshotFooterRecord",
        "KRaftVersionRecord",
        "VotersRecord",
        "QuorumStateData",
    ),
    "control_records": (
        "ControlRecordTypeSchema",
        "EndTxnMarker",
    ),
    "principal": ("DefaultPrincipalData",),
    "metadata_records": (
        "RegisterBrokerRecord",
        "UnregisterBrokerRecord",
        "TopicRecord",
        "PartitionRecord",
        "ConfigRecord",
        "PartitionChangeRecord",
        "FenceBrokerRecord",
        "UnfenceBrokerRecord",
        "RemoveTopicRecord",
        "DelegationTokenRecord",
        "UserScramCredentialRecord",
        "FeatureLevelRecord",
        "ClientQuotaRecord",
        "ProducerIdsRecord",
        "BrokerRegistrationChangeRecord",
        "AccessControlEntryRecord",
        "RemoveAccessControlEntryRecord",
        "NoOpRecord",
        "ZkMigrationStateRecord",
        "RemoveUserScramCredentialRecord",
        "BeginTransactionRecord",
        "EndTransactionRecord",
        "AbortTransactionRecord",
        "RemoveDelegationTokenRecord",
        "RegisterControllerRecord",
        "ClearElrRecord",
    ),
    "group_records": (
        "LegacyOffsetCommitKey",
        "LegacyOffsetCommitValue",
        "OffsetCommitKey",
        "OffsetCommitValue",
        "GroupMetadataKey",
        "GroupMetadataValue",
    ),
    "consumer_group_records": (
        "ConsumerGroupMetadataKey",
        "ConsumerGroupMetadataValue",
        "ConsumerGroupPartitionMetadataKey",
        "ConsumerGroupPartitionMetadataValue",
        "ConsumerGroupMemberMetadataKey",
        "ConsumerGroupMemberMetadataValue",
        "ConsumerGroupTargetAssignmentMetadataKey",
        "ConsumerGroupTargetAssignmentMetadataValue",
        "ConsumerGroupTargetAssignmentMemberKey",
        "ConsumerGroupTargetAssignmentMemberValue",
        "ConsumerGroupCurrentMemberAssignmentKey",
        "ConsumerGroupCurrentMemberAssignmentValue",
        "ConsumerGroupRegularExpressionKey",
        "ConsumerGroupRegularExpressionValue",
    ),
    "share_group_records": (
        "ShareGroupMemberMetadataKey",
        "ShareGroupMemberMetadataValue",
        "ShareGroupMetadataKey",
        "ShareGroupMetadataValue",
        "ShareGroupTargetAssignmentMetadataKey",
        "ShareGroupTargetAssignmentMetadataValue",
        "ShareGroupTargetAssignmentMemberKey",
        "ShareGroupTargetAssignmentMemberValue",
        "ShareGroupCurrentMemberAssignmentKey",
        "ShareGroupCurrentMemberAssignmentValue",
        "ShareGroupStatePartitionMetadataKey",
        "ShareGroupStatePartitionMetadataValue",
    ),
    "streams_group_records": (
        "StreamsGroupMetadataKey",
        "StreamsGroupMetadataValue",
        "StreamsGroupMemberMetadataKey",
        "StreamsGroupMemberMetadataValue",
        "StreamsGroupTargetAssignmentMetadataKey",
        "StreamsGroupTargetAssignmentMetadataValue",
        "StreamsGroupTargetAssignmentMemberKey",
        "StreamsGroupTargetAssignmentMemberValue",
        "StreamsGroupCurrentMemberAssignmentKey",
        "StreamsGroupCurrentMemberAssignmentValue",
        "StreamsGroupTopologyKey",
        "StreamsGroupTopologyValue",
    ),
    "transaction_records": (
        "TransactionLogKey",
        "TransactionLogValue",
    ),
    "share_records": (
        "ShareSnapshotKey",
        "ShareSnapshotValue",
        "ShareUpdateKey",
        "ShareUpdateValue",
    ),
    "storage_records": (
        "ProducerSnapshot",
        "RemoteLogSegmentMetadataRecord",
        "RemoteLogSegmentMetadataSnapshotRecord",
        "RemoteLogSegmentMetadataUpdateRecord",
        "RemotePartitionDeleteMetadataRecord",
    ),
}


def module_of(name: str) -> str:
    """The module that declares a message, by Kafka's name for it."""
    for suffix in ("Request", "Response"):
        for api in APIS.values():
            if name == api.name + suffix:
                return api.module
    for module, names in DATA.items():
        if name in names:
            return module
    raise ProtocolError(f"no message of Kafka is called {name}")


def message_class(name: str) -> type[Any]:
    """The class of a message; loads its family."""
    module = import_module(f"ottla.protocol.messages.{module_of(name)}")
    found: type[Any] = getattr(module, name)
    return found


def message_names() -> list[str]:
    """All messages, requests and responses first."""
    names = [api.name + suffix for api in APIS.values() for suffix in ("Request", "Response")]
    return names + [name for group in DATA.values() for name in group]
