"""Chapters of the cluster: versions, features, log directories, elections, the quorum."""

from compat_tests.wire_story.teller import Teller, batch
from ottla.protocol.messages.cluster import DescribeClusterRequest, UnregisterBrokerRequest
from ottla.protocol.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from ottla.protocol.messages.replicas import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
    TopicPartitions,
)
from ottla.protocol.messages.versions import (
    ApiVersionsRequest,
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


def versions(teller: Teller) -> None:
    teller.ask_in(range(3), "versions", ApiVersionsRequest())
    named = ApiVersionsRequest(client_software_name="story", client_software_version="1.0")
    teller.ask_in(range(3, 5), "versions", named)
    teller.ask("versions for a client without a name", ApiVersionsRequest(), 3)
    odd = ApiVersionsRequest(client_software_name="-story", client_software_version="1.0")
    teller.ask("versions for an illegal name", odd, 4)
    teller.ask_raw("versions, v99", bytes.fromhex("0012 0063 00000007 ffff 00"))
    teller.ask_raw("versions, v-1", bytes.fromhex("0012 ffff 00000007 ffff"))


def frames(teller: Teller) -> None:
    """Frames that are no requests, each on a connection of its own."""
    metadata = bytes.fromhex("0003 0001 00000007 ffff 00000000")
    cases = {
        "an empty frame": b"",
        "a frame of three bytes": b"\0\x03\0",
        "an API that is none": bytes.fromhex("03e7 0000 00000007 ffff"),
        "an API of old, removed": bytes.fromhex("0004 0000 00000007 ffff 00000000"),
        "a negative key": bytes.fromhex("fff0 0000 00000007 ffff"),
        "a version that is too new": bytes.fromhex("0003 0063 00000007 ffff 00"),
        "a version that was removed": bytes.fromhex("0001 0000 00000007 ffff 00"),
        "Produce v2": bytes.fromhex("0000 0002 00000007 ffff 0001 00000064 00000000"),
        "an API of controllers": bytes.fromhex("0034 0000 00000007 ffff 00 00 01 00"),
        "a body that ends too early": metadata[:-2],
        "a count of 2^31-1": metadata[:-4] + b"\x7f\xff\xff\xff",
        "a client id that is longer than the frame": bytes.fromhex("0003 0001 00000007 7fff 00"),
    }
    for name, frame in cases.items():
        teller.ask_raw(f"frame: {name}", frame)
        teller.wire.close()
    for name, size in {"negative": b"\xff\xff\xff\xff", "too large": b"\x7f\xff\xff\xff"}.items():
        teller.ask_bytes(f"a frame whose size is {name}", size)
    teller.ask("the broker serves on after all that", ApiVersionsRequest(), 0)


def headers(teller: Teller) -> None:
    """Odd headers and odd ends, around requests that ask for nothing."""
    # DeleteRecords v0: key, version, correlation id; then client id, no topics, timeout.
    plain, nothing = bytes.fromhex("0015 0000 00000007"), bytes.fromhex("00000000 00000000")
    # DescribeProducers v0, with tags: the same, and after the client id the tags of the header.
    tagged = bytes.fromhex("003d 0000 00000007 ffff")
    cases = {
        "no client id": plain + bytes.fromhex("ffff") + nothing,
        "an empty client id": plain + bytes.fromhex("0000") + nothing,
        "a client id of length -2": plain + bytes.fromhex("fffe") + nothing,
        "a client id that is no text": plain + bytes.fromhex("0002 fffe") + nothing,
        "bytes behind the body": plain + bytes.fromhex("ffff") + nothing + b"junk",
        "an array of length -1": plain + bytes.fromhex("ffff ffffffff 00000000"),
        "an array of length -2": plain + bytes.fromhex("ffff fffffffe 00000000"),
        "a body that lacks a byte": plain + bytes.fromhex("ffff") + nothing[:-1],
        "no tags": tagged + bytes.fromhex("00 01 00"),
        "an unknown tag in the header": tagged + bytes.fromhex("01 64 02 aabb 01 00"),
        "a tag twice in the header": tagged + bytes.fromhex("02 64 01 aa 64 01 bb 01 00"),
        "descending tags in the header": tagged + bytes.fromhex("02 64 01 aa 05 00 01 00"),
        "tags that end too early": tagged + bytes.fromhex("02 64 01 aa"),
        "an unknown tag in the body": tagged + bytes.fromhex("00 01 01 64 01 aa"),
        "a tag longer than the frame": tagged + bytes.fromhex("00 01 01 64 7f aa"),
        "a null array where none may be": tagged + bytes.fromhex("00 00 00"),
        "an array longer than the frame": tagged + bytes.fromhex("00 7f 00"),
        "a varint of six bytes": tagged + bytes.fromhex("00 ffffffffff01 00"),
    }
    for name, frame in cases.items():
        teller.ask_raw(f"header: {name}", frame)
        teller.wire.close()


def describing(teller: Teller) -> None:
    asked = DescribeClusterRequest(include_cluster_authorized_operations=False)
    teller.ask_in(range(3), "describe the cluster", asked)
    operations = DescribeClusterRequest(include_cluster_authorized_operations=True)
    teller.ask("describe the cluster with operations", operations, 1)
    controllers = DescribeClusterRequest(
        include_cluster_authorized_operations=False, endpoint_type=2
    )
    teller.ask("describe the controllers from a broker", controllers, 1)
    odd = DescribeClusterRequest(include_cluster_authorized_operations=False, endpoint_type=9)
    teller.ask("describe endpoints of no type", odd, 1)
    fenced = DescribeClusterRequest(
        include_cluster_authorized_operations=False, include_fenced_brokers=True
    )
    teller.ask("describe the cluster with fenced brokers", fenced, 2)


def quorum(teller: Teller) -> None:
    def asked(topic: str, *partitions: int) -> DescribeQuorumRequest:
        listed = [DescribeQuorumRequestPartitionData(partition_index=each) for each in partitions]
        topics = [DescribeQuorumRequestTopicData(topic_name=topic, partitions=listed)]
        return DescribeQuorumRequest(topics=topics)

    teller.ask_in(range(3), "describe the quorum", asked("__cluster_metadata", 0))
    teller.ask("describe another topic's quorum", asked("no-such-topic", 0), 2)
    teller.ask("describe another partition's quorum", asked("__cluster_metadata", 1), 2)
    teller.ask("describe no quorum", DescribeQuorumRequest(topics=[]), 2)


def log_directories(teller: Teller) -> None:
    teller.topic("on-disk", partitions=2)
    teller.produced("on-disk", batch(b"a"))
    topics = [DescribableLogDirTopic(topic="on-disk", partitions=[0, 1])]
    for version in range(1, 6):
        case = f"describe log directories, v{version}"
        teller.ask(case, DescribeLogDirsRequest(topics=topics), version)
    unknown = [DescribableLogDirTopic(topic="no-such-topic", partitions=[0])]
    teller.ask("describe an unknown topic's directory", DescribeLogDirsRequest(topics=unknown), 4)
    partition = [DescribableLogDirTopic(topic="on-disk", partitions=[9])]
    teller.ask("describe no partition's directory", DescribeLogDirsRequest(topics=partition), 4)
    teller.ask("describe the directories of nothing", DescribeLogDirsRequest(topics=[]), 4)

    def moves(path: str, topic: str, partition: int) -> AlterReplicaLogDirsRequest:
        listed = [AlterReplicaLogDirTopic(name=topic, partitions=[partition])]
        return AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=listed)])

    teller.ask_in(range(1, 3), "move to no log directory", moves("/nowhere", "on-disk", 0))
    teller.ask("move to a relative path", moves("nowhere", "on-disk", 0), 2)
    here = teller.wire.ask(DescribeLogDirsRequest(topics=[]), 4).results[0].log_dir
    teller.ask("move to where it is", moves(here, "on-disk", 0), 2)
    teller.ask("move an unknown topic", moves(here, "no-such-topic", 0), 2)
    teller.ask("move an unknown partition", moves(here, "on-disk", 7), 2)
    teller.ask("move nothing", AlterReplicaLogDirsRequest(dirs=[]), 2)


def electing(teller: Teller) -> None:
    teller.topic("elected", partitions=2)

    def elects(topic: str, *partitions: int, kind: int = 0) -> ElectLeadersRequest:
        listed = [TopicPartitions(topic=topic, partitions=list(partitions))]
        return ElectLeadersRequest(election_type=kind, topic_partitions=listed)

    teller.ask_in(range(3), "elect the preferred leader", elects("elected", 0, 1))
    teller.ask_in(range(1, 3), "elect an unclean leader", elects("elected", 0, kind=1))
    teller.ask("elect by a type that is none", elects("elected", 0, kind=7), 2)
    teller.ask("elect for an unknown topic", elects("no-such-topic", 0), 2)
    teller.ask("elect for an unknown partition", elects("elected", 9), 2)
    teller.ask("elect for an illegal name", elects("a/b", 0), 2)
    answer = teller.wire.ask(ElectLeadersRequest(topic_partitions=None), 2)
    results = answer.replica_election_results
    # Which other topics there are depends on the chapters that were told before.
    answer.replica_election_results = [each for each in results if each.topic == "elected"]
    teller.answers["elect for all"] = teller.comparable.answer(answer, 2)
    teller.ask("elect for none", ElectLeadersRequest(topic_partitions=[]), 2)


def reassigning(teller: Teller) -> None:
    teller.topic("reassigned", partitions=2)

    def moves(
        topic: str, partition: int, replicas: list[int] | None, *, may_change: bool = True
    ) -> AlterPartitionReassignmentsRequest:
        partitions = [ReassignablePartition(partition_index=partition, replicas=replicas)]
        return AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=topic, partitions=partitions)],
            allow_replication_factor_change=may_change,
        )

    teller.ask("reassign to where it is", moves("reassigned", 0, [1]), 0)
    teller.ask("reassign to where it is, v1", moves("reassigned", 0, [1], may_change=False), 1)
    teller.ask("reassign to no broker", moves("reassigned", 0, [9]), 1)
    teller.ask("reassign to nobody", moves("reassigned", 0, []), 1)
    teller.ask("reassign to one broker twice", moves("reassigned", 0, [1, 1]), 1)
    teller.ask("reassign to a negative broker", moves("reassigned", 0, [-1]), 1)
    teller.ask("cancel what is not under way", moves("reassigned", 0, None), 0)
    teller.ask("reassign an unknown topic", moves("no-such-topic", 0, [1]), 1)
    teller.ask("reassign an unknown partition", moves("reassigned", 9, [1]), 1)
    more = moves("reassigned", 0, [1, 9], may_change=False)
    teller.ask("reassign to more replicas than may be", more, 1)
    nothing = AlterPartitionReassignmentsRequest(topics=[])
    teller.ask("reassign nothing", nothing, 1)
    named = [ListPartitionReassignmentsTopics(name="reassigned", partition_indexes=[0, 1])]
    teller.ask("list reassignments", ListPartitionReassignmentsRequest(topics=named), 0)
    unknown = [ListPartitionReassignmentsTopics(name="no-such-topic", partition_indexes=[0])]
    teller.ask("list no topic's", ListPartitionReassignmentsRequest(topics=unknown), 0)
    teller.ask("list all reassignments", ListPartitionReassignmentsRequest(topics=None), 0)


def features(teller: Teller) -> None:
    """UpdateFeatures, as far as it changes nothing; and what is no broker to unregister."""

    def updates(
        feature: str, level: int, *, kind: int = UPGRADE, validates: bool = False
    ) -> UpdateFeaturesRequest:
        update = FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=kind)
        return UpdateFeaturesRequest(feature_updates=[update], validate_only=validates)

    for version in (1, 2):
        unknown = updates("no.such.feature", 1)
        teller.ask(f"an unknown feature, v{version}", unknown, version)
        beyond = updates("metadata.version", 9999)
        teller.ask(f"a metadata.version that is none, v{version}", beyond, version)
    v0 = UpdateFeaturesRequest(
        feature_updates=[
            FeatureUpdateKey(feature="no.such.feature", max_version_level=1, upgrade_type=1)
        ]
    )
    teller.ask("an unknown feature, v0", v0, 0)
    teller.ask("metadata.version as it is", updates("metadata.version", 30, validates=True), 2)
    down = updates("metadata.version", 7, kind=SAFE_DOWNGRADE, validates=True)
    teller.ask("a metadata.version below", down, 2)
    none = updates("metadata.version", 0, kind=SAFE_DOWNGRADE, validates=True)
    teller.ask("no metadata.version at all", none, 2)
    odd = updates("metadata.version", 30, kind=9, validates=True)
    teller.ask("an upgrade of no type", odd, 2)
    upgrade = updates("metadata.version", 20, validates=True)
    teller.ask("an upgrade that is a downgrade", upgrade, 2)
    kraft = updates("kraft.version", 0, kind=SAFE_DOWNGRADE, validates=True)
    teller.ask("a kraft.version below", kraft, 2)
    negative = updates("group.version", -1, validates=True)
    teller.ask("a negative level", negative, 2)
    twice = updates("no.such.feature", 1)
    twice.feature_updates *= 2
    teller.ask("a feature named twice", twice, 2)
    teller.ask("no feature", UpdateFeaturesRequest(feature_updates=[]), 2)
    teller.ask("unregister an unknown broker", UnregisterBrokerRequest(broker_id=99), 0)
    teller.ask("unregister a negative broker", UnregisterBrokerRequest(broker_id=-1), 0)
