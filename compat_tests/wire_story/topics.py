"""Chapters of Metadata, DescribeTopicPartitions, CreateTopics, CreatePartitions, DeleteTopics."""

from compat_tests.wire_story.teller import KEPT_FOR_EVER, Teller
from ottla.protocol.messages.metadata import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsRequestCursor,
    MetadataRequest,
    MetadataRequestTopic,
    TopicRequest,
)
from ottla.protocol.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

NOT_A_TOPIC = bytes(15) + b"\x07"
LONGEST_NAME = "n" * 249


def metadata(teller: Teller) -> None:
    topic_id = teller.topic("described", partitions=2)

    def named(*names: str, creates: bool = False) -> MetadataRequest:
        topics = [MetadataRequestTopic(name=name) for name in names]
        return MetadataRequest(topics=topics, allow_auto_topic_creation=creates)

    def with_id(topic_id: bytes, name: str | None = None) -> MetadataRequest:
        topics = [MetadataRequestTopic(topic_id=topic_id, name=name)]
        return MetadataRequest(topics=topics, allow_auto_topic_creation=False)

    default = MetadataRequest(topics=[MetadataRequestTopic(name="described")])
    teller.ask_in(range(4), "metadata", default)
    teller.ask_in(range(4, 14), "metadata", named("described"))
    teller.ask_in(range(1, 4), "metadata of nothing", MetadataRequest(topics=[]))
    teller.ask("metadata of nothing, v9", named(), 9)
    unknown = named("no-such-topic", "described")
    teller.ask_in(range(4, 14, 3), "metadata of an unknown topic", unknown)
    teller.ask("metadata of an illegal name", named("a/b"), 9)
    teller.ask("metadata of an illegal name, to create", named("a/b", creates=True), 9)
    teller.ask("metadata of an empty name", named(""), 9)
    teller.ask("metadata of too long a name", named(LONGEST_NAME + "n", creates=True), 9)
    teller.ask("metadata of a topic named twice", named("described", "described"), 9)
    teller.ask("metadata by id, v12", with_id(topic_id), 12)
    teller.ask("metadata by id, v13", with_id(topic_id), 13)
    teller.ask("metadata by id, v10", with_id(topic_id, "described"), 10)
    teller.ask("metadata by an unknown id", with_id(NOT_A_TOPIC), 12)
    teller.ask("metadata by the id of zeros without a name", with_id(bytes(16)), 12)
    teller.ask("metadata by id and another name", with_id(topic_id, "no-such-topic"), 12)
    operations = MetadataRequest(
        topics=[MetadataRequestTopic(name="described")],
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )
    teller.ask("metadata with authorized operations", operations, 10)
    operations.include_cluster_authorized_operations = False
    teller.ask("metadata with a topic's authorized operations", operations, 13)


def auto_creation(teller: Teller) -> None:
    """A topic that comes because somebody asked for it."""

    def asks(name: str, *, creates: bool = True) -> MetadataRequest:
        topics = [MetadataRequestTopic(name=name)]
        return MetadataRequest(topics=topics, allow_auto_topic_creation=creates)

    teller.ask("metadata that must not create", asks("born-later", creates=False), 9)
    teller.ask("metadata that creates, at first", asks("born-later"), 9)
    born = teller.until(
        asks("born-later", creates=False), 12, lambda said: not said.topics[0].error_code
    )
    teller.comparable.met(born.topics[0].topic_id, "born-later")
    teller.until_served("born-later", 1)
    teller.ask("metadata that has created", asks("born-later"), 12)
    teller.ask("metadata that creates, v0", asks("born-by-v0"), 0)
    teller.ask("metadata that creates what collides", asks("born.later"), 9)
    consumer_offsets = asks("__transaction_state", creates=False)
    teller.ask("metadata of an internal topic that is not there", consumer_offsets, 9)


def topic_partitions(teller: Teller) -> None:
    """DescribeTopicPartitions with its cursor."""
    for name in ("pages-a", "pages-b", "pages-c"):
        teller.topic(name, partitions=3)

    def asked(*names: str, limit: int = 2000, cursor: tuple[str, int] | None = None) -> object:
        at = cursor and DescribeTopicPartitionsRequestCursor(
            topic_name=cursor[0], partition_index=cursor[1]
        )
        topics = [TopicRequest(name=name) for name in names]
        return DescribeTopicPartitionsRequest(
            topics=topics, response_partition_limit=limit, cursor=at or None
        )

    teller.ask("describe partitions", asked("pages-b", "pages-a"), 0)
    teller.ask("describe four partitions", asked("pages-c", "pages-a", "pages-b", limit=4), 0)
    rest = asked("pages-c", "pages-a", "pages-b", limit=4, cursor=("pages-b", 1))
    teller.ask("describe the next four", rest, 0)
    gone = asked("pages-a", "pages-c", cursor=("pages-b", 1))
    teller.ask("describe from a cursor whose topic was not asked for", gone, 0)
    teller.ask("describe from a cursor beyond", asked("pages-a", cursor=("zzz", 0)), 0)
    teller.ask("describe an unknown topic's partitions", asked("no-such-topic", "pages-a"), 0)
    teller.ask("describe an illegal name's partitions", asked("a/b"), 0)
    teller.ask("describe with a limit of 0", asked("pages-a", limit=0), 0)
    negative = asked("pages-a", cursor=("pages-a", -1))
    teller.ask("describe from a negative partition", negative, 0)
    teller.ask("describe a topic named twice", asked("pages-a", "pages-a"), 0)


def new_topic(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    *,
    assigned: dict[int, list[int]] | None = None,
    **configs: str | None,
) -> CreatableTopic:
    listed = {**KEPT_FOR_EVER, **{key.replace("_", "."): at for key, at in configs.items()}}
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replicas,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers)
            for index, brokers in (assigned or {}).items()
        ],
        configs=[CreatableTopicConfig(name=key, value=at) for key, at in listed.items()],
    )


def _created(
    teller: Teller,
    case: str,
    *topics: CreatableTopic,
    version: int = 7,
    validates: bool = False,
) -> None:
    """The new ids are not known before: they are compared by their being there."""
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=30_000, validate_only=validates)
    answer = teller.wire.ask(request, version)
    for each in answer.topics:
        if any(each.topic_id):  # zeros where it was not created
            teller.comparable.met(each.topic_id, each.name)
    teller.answers[case] = teller.comparable.answer(answer, version)


def creating(teller: Teller) -> None:
    """CreateTopics, as it should be asked."""
    for version in range(2, 8):
        topic = new_topic(f"new-{version}")
        _created(teller, f"create a topic, v{version}", topic, version=version)
    _created(teller, "create with defaults", new_topic("defaults", -1, -1))
    configured = new_topic("configured", 2, segment_bytes="2097152")
    _created(teller, "create with configs", configured)
    assigned = new_topic("assigned", -1, -1, assigned={0: [1], 1: [1]})
    _created(teller, "create with an assignment", assigned)
    _created(teller, "create two topics", new_topic("two-a"), new_topic("under.score", 3))
    colliding = (new_topic("x.y"), new_topic("x_y"))
    _created(teller, "create names that collide with each other", *colliding)
    _created(teller, "create a name of 249", new_topic(LONGEST_NAME))
    _created(teller, "create in v4 without defaults", new_topic("four", -1, -1), version=4)
    validated = new_topic("only-validated", 3)
    _created(teller, "validate a topic", validated, validates=True)
    _created(teller, "validate a topic, v5", validated, version=5, validates=True)


def creating_in_vain(teller: Teller) -> None:
    """CreateTopics, and what it refuses."""
    teller.topic("there")
    teller.topic("under.lined")
    refused = {
        "exists": [new_topic("there")],
        "collides with one that is there": [new_topic("under.lined"), new_topic("under_lined")],
        "an empty name": [new_topic("")],
        "an illegal name": [new_topic("a/b")],
        "a dot": [new_topic(".")],
        "too long a name": [new_topic(LONGEST_NAME + "n")],
        "no partitions": [new_topic("none", 0)],
        "-2 partitions": [new_topic("none", -2)],
        "too many partitions": [new_topic("many", 10_001)],
        "too many replicas": [new_topic("replicas", 1, 2)],
        "no replicas": [new_topic("replicas", 1, 0)],
        "-2 replicas": [new_topic("replicas", 1, -2)],
        "an unknown config": [new_topic("odd", nonsense="1")],
        "a config that is no number": [new_topic("odd", segment_bytes="many")],
        "a config below its least value": [new_topic("odd", segment_bytes="1")],
        "a config of null": [new_topic("odd", segment_bytes=None)],
        "a policy that is none": [new_topic("odd", cleanup_policy="shred")],
        "the same name twice": [new_topic("twice"), new_topic("twice"), new_topic("once")],
        "an assignment beside a count": [new_topic("odd", 1, 1, assigned={0: [1]})],
        "an assignment to no broker": [new_topic("odd", -1, -1, assigned={0: [9]})],
        "an assignment with gaps": [new_topic("odd", -1, -1, assigned={0: [1], 2: [1]})],
        "an assignment to one broker twice": [new_topic("odd", -1, -1, assigned={0: [1, 1]})],
        "an assignment to nobody": [new_topic("odd", -1, -1, assigned={0: []})],
        "the metadata topic": [new_topic("__cluster_metadata")],
        "nothing": [],
    }
    for name, topics in refused.items():
        _created(teller, f"create: {name}", *topics)
    _created(teller, "create: an illegal name, v2", new_topic("a/b"), version=2)
    _created(teller, "create: exists, v4", new_topic("there"), version=4)
    _created(teller, "validate: no partitions", new_topic("bad", 0), validates=True)


def growing(teller: Teller) -> None:
    """CreatePartitions."""
    teller.topic("growing", partitions=2)

    def grows(
        name: str, count: int, *assigned: list[int], validates: bool = False
    ) -> CreatePartitionsRequest:
        assignments = [CreatePartitionsAssignment(broker_ids=each) for each in assigned]
        topic = CreatePartitionsTopic(name=name, count=count, assignments=assignments or None)
        return CreatePartitionsRequest(topics=[topic], timeout_ms=30_000, validate_only=validates)

    teller.ask("validate one partition more", grows("growing", 3, validates=True), 3)
    for version in range(4):
        teller.ask(f"one partition more, v{version}", grows("growing", 3 + version), version)
    teller.until_served("growing", 6)
    teller.ask("an assigned partition more", grows("growing", 7, [1]), 3)
    teller.ask("as many partitions as before", grows("growing", 7), 3)
    teller.ask("fewer partitions", grows("growing", 2), 3)
    teller.ask("partitions of an unknown topic", grows("no-such-topic", 2), 3)
    teller.ask("0 partitions", grows("growing", 0), 3)
    teller.ask("more partitions than are assigned", grows("growing", 9, [1]), 3)
    teller.ask("fewer partitions than are assigned", grows("growing", 8, [1], [1]), 3)
    teller.ask("a partition assigned to no broker", grows("growing", 8, [9]), 3)
    teller.ask("a partition assigned to two", grows("growing", 8, [1, 9]), 3)
    twice = grows("growing", 8)
    twice.topics.append(twice.topics[0])
    teller.ask("partitions of a topic named twice", twice, 3)
    nothing = CreatePartitionsRequest(topics=[], timeout_ms=1000, validate_only=False)
    teller.ask("partitions of nothing", nothing, 3)


def deleting(teller: Teller) -> None:
    """DeleteTopics by name and by id, and what is left of a topic that comes again."""
    ids = {name: teller.topic(name) for name in ("gone-1", "gone-4", "gone-5", "gone-6", "by-id")}

    def by_name(*names: str) -> DeleteTopicsRequest:
        return DeleteTopicsRequest(topic_names=list(names), timeout_ms=30_000)

    def by_state(*states: DeleteTopicState) -> DeleteTopicsRequest:
        return DeleteTopicsRequest(topics=list(states), timeout_ms=30_000)

    for version in (1, 4, 5):
        teller.ask(f"delete a topic, v{version}", by_name(f"gone-{version}"), version)
    named = by_state(DeleteTopicState(name="gone-6", topic_id=bytes(16)))
    teller.ask("delete a topic, v6", named, 6)
    with_id = by_state(DeleteTopicState(name=None, topic_id=ids["by-id"]))
    teller.ask("delete a topic by id", with_id, 6)
    teller.ask("delete a topic by id again", with_id, 6)
    teller.ask("delete a topic again", by_name("gone-1"), 5)
    teller.ask("delete an unknown topic, v1", by_name("no-such-topic"), 1)
    teller.ask("delete an illegal name", by_name("a/b"), 5)
    teller.topic("stays")
    teller.ask("delete a topic named twice", by_name("stays", "stays"), 5)
    both = by_state(DeleteTopicState(name="stays", topic_id=NOT_A_TOPIC))
    teller.ask("delete by name and id", both, 6)
    neither = by_state(DeleteTopicState(name=None, topic_id=bytes(16)))
    teller.ask("delete by neither", neither, 6)
    unknown = by_state(DeleteTopicState(name=None, topic_id=NOT_A_TOPIC))
    teller.ask("delete an unknown id", unknown, 6)
    teller.ask("delete nothing", by_state(), 6)
