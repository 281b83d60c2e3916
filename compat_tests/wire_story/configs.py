"""Chapters of DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and ListConfigResources."""

from collections.abc import Callable

from compat_tests.wire_story.teller import Teller
from ottla.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsRequestAlterableConfig,
    AlterConfigsRequestAlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
    ListConfigResourcesRequest,
)

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
# Configs of a broker that say the same wherever it runs.
BROKER_KEYS = [
    *("log.retention.ms", "log.retention.hours", "message.max.bytes", "num.partitions"),
    *("log.cleaner.threads", "min.insync.replicas", "log.segment.bytes", "compression.type"),
    *("auto.create.topics.enable", "background.threads", "unclean.leader.election.enable"),
    *("log.cleanup.policy", "node.id", "no.such.config", "socket.request.max.bytes"),
]
# What a broker is started with, or where: these differ.
STARTED_WITH = (
    *("advertised.listeners", "listeners", "log.dirs", "controller.quorum.bootstrap.servers"),
    *("group.initial.rebalance.delay.ms", "offsets.topic.replication.factor"),
    *("share.coordinator.state.topic.min.isr", "transaction.state.log.min.isr"),
    "share.coordinator.state.topic.replication.factor",
    "transaction.state.log.replication.factor",
)


def describe(
    kind: int, name: str, *keys: str, synonyms: bool = False, documented: bool = False
) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    return DescribeConfigsRequest(
        resources=[resource], include_synonyms=synonyms, include_documentation=documented
    )


def incremental(
    kind: int, name: str, *changes: tuple[str, int, str | None], validates: bool = False
) -> IncrementalAlterConfigsRequest:
    configs = [
        IncrementalAlterConfigsRequestAlterableConfig(
            name=key, config_operation=operation, value=value
        )
        for key, operation, value in changes
    ]
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=validates)


def legacy(
    kind: int, name: str, configs: dict[str, str | None], *, validates: bool = False
) -> AlterConfigsRequest:
    listed = [AlterConfigsRequestAlterableConfig(name=key, value=at) for key, at in configs.items()]
    resource = AlterConfigsRequestAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=listed
    )
    return AlterConfigsRequest(resources=[resource], validate_only=validates)


def shows(key: str, value: str) -> Callable[[DescribeConfigsResponse], bool]:
    """Whether an answer has this value for a key: a change takes a moment to be seen."""
    return lambda said: any(
        each.name == key and each.value == value for each in said.results[0].configs
    )


def describing(teller: Teller) -> None:
    teller.topic("configured-topic", configs={"segment.bytes": "2097152"})
    teller.ask_in(range(1, 5), "describe a topic", describe(TOPIC, "configured-topic"))
    synonyms = describe(TOPIC, "configured-topic", synonyms=True)
    teller.ask_in(range(1, 3), "describe a topic with synonyms", synonyms)
    synonyms.include_documentation = True
    teller.ask_in(range(3, 5), "describe a topic with synonyms", synonyms)
    some = describe(TOPIC, "configured-topic", "segment.bytes", "no.such", "retention.ms")
    teller.ask("describe some configs of a topic", some, 4)
    teller.ask("describe an unknown topic's configs", describe(TOPIC, "no-such-topic"), 4)
    teller.ask("describe an illegal name's configs", describe(TOPIC, "a/b"), 4)
    teller.ask("describe an empty topic's configs", describe(TOPIC, ""), 4)
    broker = describe(BROKER, "1", *BROKER_KEYS, synonyms=True)
    teller.ask_in(range(1, 5), "describe a broker", broker)
    everything = describe(BROKER, "1", synonyms=True, documented=True)
    answer = teller.wire.ask(everything, 4)
    said = answer.results[0]
    said.configs = [each for each in said.configs if each.name not in STARTED_WITH]
    teller.answers["describe all of a broker"] = teller.comparable.answer(answer, 4)
    teller.ask("describe the default broker", describe(BROKER, "", synonyms=True), 4)
    teller.ask("describe another broker", describe(BROKER, "9"), 4)
    teller.ask("describe a broker of no number", describe(BROKER, "one"), 4)
    teller.ask("describe the loggers of another broker", describe(LOGGER, "9"), 4)
    teller.ask("describe the loggers of the default broker", describe(LOGGER, ""), 4)
    teller.ask("describe a group's configs", describe(GROUP, "some-group"), 4)
    teller.ask("describe an empty group's configs", describe(GROUP, ""), 4)
    teller.ask("describe a subscription", describe(CLIENT_METRICS, "sub"), 4)
    teller.ask("describe an empty subscription", describe(CLIENT_METRICS, ""), 4)
    teller.ask("describe a resource of no type", describe(77, "x"), 4)
    teller.ask("describe a resource of type 0", describe(0, "x"), 4)
    twice = describe(TOPIC, "configured-topic", "segment.bytes")
    twice.resources *= 2
    teller.ask("describe a resource named twice", twice, 4)
    teller.ask("describe no resource", DescribeConfigsRequest(resources=[]), 4)


def altering(teller: Teller) -> None:
    """IncrementalAlterConfigs of topics."""
    teller.topic("altered")
    changed = ["segment.bytes", "cleanup.policy", "retention.ms", "max.message.bytes"]

    def seen(case: str) -> None:
        asked = describe(TOPIC, "altered", *changed, synonyms=True)
        teller.ask(f"{case}, as it is described", asked, 4)

    def alters(case: str, *changes: tuple[str, int, str | None], version: int = 1) -> None:
        teller.ask(case, incremental(TOPIC, "altered", *changes), version)

    def until(value: str) -> None:
        asked = describe(TOPIC, "altered", "cleanup.policy")
        teller.until(asked, 4, shows("cleanup.policy", value))

    alters("set a config, v0", ("segment.bytes", SET, "3145728"), version=0)
    alters("append to a list", ("cleanup.policy", APPEND, "compact"))
    until("delete,compact")
    seen("a list that was appended to")
    alters("append what is there", ("cleanup.policy", APPEND, "compact"))
    alters("subtract from a list", ("cleanup.policy", SUBTRACT, "delete"))
    until("compact")
    alters("subtract what is not there", ("cleanup.policy", SUBTRACT, "delete"))
    alters("delete a config", ("cleanup.policy", DELETE, None))
    until("delete")
    seen("a list that was deleted")
    alters("delete a config that is not set", ("flush.ms", DELETE, None))
    alters("delete an unknown config", ("no.such", DELETE, None))
    alters("set an unknown config", ("no.such", SET, "1"))
    alters("set a number to a word", ("segment.bytes", SET, "many"))
    alters("set a number below its least", ("segment.bytes", SET, "1"))
    alters("set a config to null", ("segment.bytes", SET, None))
    alters("set a policy that is none", ("cleanup.policy", SET, "shred"))
    alters("append to what is no list", ("segment.bytes", APPEND, "1"))
    alters("subtract from what is no list", ("segment.bytes", SUBTRACT, "1"))
    alters("an operation that is none", ("segment.bytes", 9, "1"))
    alters("a key twice", ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    alters("one good and one bad", ("max.message.bytes", SET, "77"), ("segment.bytes", SET, "x"))
    alters("no change at all")
    validated = incremental(TOPIC, "altered", ("max.message.bytes", SET, "78"), validates=True)
    teller.ask("validate a change", validated, 1)
    invalid = incremental(TOPIC, "altered", ("max.message.bytes", SET, "-8"), validates=True)
    teller.ask("validate a bad change", invalid, 1)
    seen("all that was refused")
    change = ("segment.bytes", SET, "3145728")
    teller.ask("alter an unknown topic", incremental(TOPIC, "no-such-topic", change), 1)
    teller.ask("alter an illegal name", incremental(TOPIC, "a/b", change), 1)
    teller.ask("alter an empty name", incremental(TOPIC, "", change), 1)
    teller.ask("alter a resource of no type", incremental(77, "x", change), 1)
    twice = incremental(TOPIC, "altered", change)
    twice.resources *= 2
    teller.ask("alter a resource named twice", twice, 1)
    nothing = IncrementalAlterConfigsRequest(resources=[], validate_only=False)
    teller.ask("alter nothing", nothing, 1)


def replacing(teller: Teller) -> None:
    """AlterConfigs, which replaces all configs of a resource."""
    teller.topic("replaced", configs={"segment.bytes": "2097152"})
    first = legacy(TOPIC, "replaced", {"max.message.bytes": "5000"})
    teller.ask_in(range(3), "replace the configs", first)
    asked = describe(TOPIC, "replaced", "segment.bytes", "max.message.bytes", "retention.ms")
    teller.until(asked, 4, shows("max.message.bytes", "5000"))
    teller.ask("configs that were replaced", asked, 4)
    teller.ask("replace by an unknown config", legacy(TOPIC, "replaced", {"no.such": "1"}), 2)
    teller.ask("replace by null", legacy(TOPIC, "replaced", {"segment.bytes": None}), 2)
    teller.ask("replace of an unknown topic", legacy(TOPIC, "no-such-topic", {}), 2)
    validated = legacy(TOPIC, "replaced", {"max.message.bytes": "x"}, validates=True)
    teller.ask("validate a bad replacement", validated, 2)
    nothing = AlterConfigsRequest(resources=[], validate_only=False)
    teller.ask("replace nothing", nothing, 2)


def brokers(teller: Teller) -> None:
    """Dynamic configs of brokers, groups and subscriptions, and ListConfigResources."""

    def alters(case: str, kind: int, name: str, *changes: tuple[str, int, str | None]) -> None:
        teller.ask(case, incremental(kind, name, *changes), 1)

    keys = ("message.max.bytes", "log.cleaner.threads", "log.retention.ms")
    alters("set a broker's config", BROKER, "1", ("message.max.bytes", SET, "2000012"))
    alters("set every broker's config", BROKER, "", ("message.max.bytes", SET, "3000012"))
    here = describe(BROKER, "1", *keys, synonyms=True)
    teller.until(here, 4, shows("message.max.bytes", "2000012"))
    default = describe(BROKER, "", *keys, synonyms=True)
    teller.until(default, 4, shows("message.max.bytes", "3000012"))
    teller.ask("a broker's dynamic configs", here, 4)
    teller.ask("every broker's dynamic configs", default, 4)
    teller.topic("under-brokers")
    topic = describe(TOPIC, "under-brokers", "max.message.bytes", synonyms=True)
    teller.ask("a topic under dynamic configs", topic, 4)
    alters("delete a broker's config", BROKER, "1", ("message.max.bytes", DELETE, None))
    alters("delete every broker's config", BROKER, "", ("message.max.bytes", DELETE, None))
    teller.until(here, 4, shows("message.max.bytes", "1048588"))
    alters("set what is read only", BROKER, "1", ("log.dirs", SET, "/nowhere"))
    alters("set a broker's number to a word", BROKER, "1", ("message.max.bytes", SET, "x"))
    alters("set another broker's config", BROKER, "9", ("message.max.bytes", SET, "2000012"))
    alters("set a broker's config by no number", BROKER, "one", ("message.max.bytes", SET, "1"))
    alters("set an unknown broker config", BROKER, "1", ("no.such.config", SET, "1"))
    alters("delete an unknown broker config", BROKER, "1", ("no.such.config", DELETE, None))
    alters("set a group's config", GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))
    alters("set a group's unknown config", GROUP, "g", ("no.such", SET, "50000"))
    alters("set an empty group's config", GROUP, "", ("consumer.session.timeout.ms", SET, "50000"))
    alters("set a group's config too low", GROUP, "g", ("consumer.session.timeout.ms", SET, "1"))
    alters("set a subscription", CLIENT_METRICS, "s", ("interval.ms", SET, "1000"))
    alters("set a subscription too low", CLIENT_METRICS, "s", ("interval.ms", SET, "1"))
    alters("set a subscription's unknown config", CLIENT_METRICS, "s", ("no.such", SET, "1"))
    alters("set an empty subscription", CLIENT_METRICS, "", ("interval.ms", SET, "1000"))
    group = describe(GROUP, "g", synonyms=True)
    teller.until(group, 4, shows("consumer.session.timeout.ms", "50000"))
    teller.ask("a group's configs", group, 4)
    subscription = describe(CLIENT_METRICS, "s", synonyms=True)
    teller.until(subscription, 4, shows("interval.ms", "1000"))
    teller.ask("a subscription's configs", subscription, 4)
    _list(teller)


def _list(teller: Teller) -> None:
    teller.ask("list the subscriptions, v0", ListConfigResourcesRequest(), 0)
    for name, kind in {
        "brokers": BROKER,
        "loggers": LOGGER,
        "subscriptions": CLIENT_METRICS,
        "groups": GROUP,
    }.items():
        teller.ask(f"list the {name}", ListConfigResourcesRequest(resource_types=[kind]), 1)
    teller.ask("list resources of no type", ListConfigResourcesRequest(resource_types=[77]), 1)
    both = ListConfigResourcesRequest(resource_types=[GROUP, CLIENT_METRICS])
    teller.ask("list the groups and subscriptions", both, 1)
