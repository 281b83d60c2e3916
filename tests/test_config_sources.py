"""Where a configuration comes from, in which order, and what is said where it is wrong."""

import pytest

from ottla.broker.config_sources import ConfigError, Loaded, load
from ottla.storage.errors import StorageError


def loaded(content: str = "", *, name: str = "config.yaml", **arguments: object) -> Loaded:
    def read(path: str) -> bytes:
        assert path == name
        return content.encode()

    return load(file=name, read=read, **arguments)  # type: ignore[arg-type]


def test_nothing_at_all_is_a_node_on_this_machine() -> None:
    config, notices = load()
    assert [str(each) for each in config.listeners.opened] == ["PLAINTEXT://127.0.0.1:9092"]
    assert (config.log_dirs, config.node_id, notices) == (("./ottla-data",), 1, [])


def test_what_comes_later_counts() -> None:
    file = "num.partitions: 2\nlog.dirs: /file\nlog.retention.hours: 1\n"
    settings = ["num.partitions=3", "log.dirs=/set", "num.partitions=4"]
    config = loaded(file, settings=settings, data="/option", listen="[::1]:0").config
    assert config["num.partitions"] == 4
    assert config.log_dirs == ("/option",)
    assert config["log.retention.hours"] == 1
    assert [str(each) for each in config.listeners.opened] == ["PLAINTEXT://[::1]:0"]


def test_yaml_may_be_nested_and_typed() -> None:
    config = loaded(
        """
        log:
          retention: {ms: 60000}
          cleanup.policy: [compact, delete]
        auto.create.topics.enable: false
        log.cleaner.min.cleanable.ratio: 0.25
        broker.rack: "7"
        """
    ).config
    assert config["log.retention.ms"] == 60_000
    assert config["log.cleanup.policy"] == ("compact", "delete")
    assert config["auto.create.topics.enable"] is False
    assert config["log.cleaner.min.cleanable.ratio"] == 0.25
    assert config["broker.rack"] == "7"


def test_an_empty_file_says_nothing() -> None:
    assert loaded("").config.static == load().config.static


SERVER_PROPERTIES = """
# As it comes with Kafka.
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=2
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""


def test_kafkas_own_server_properties_are_taken() -> None:
    config, notices = loaded(SERVER_PROPERTIES, name="server.properties")
    assert notices == []
    assert config.log_dirs == ("/tmp/kraft-combined-logs",)
    assert config.advertised == {"PLAINTEXT": ("localhost", 9092)}
    assert config.static["log.retention.hours"] == "168"


def test_properties_without_listeners_get_ours_and_it_is_said() -> None:
    config, notices = loaded("num.partitions=2\n", name="server.properties")
    assert [str(each) for each in config.listeners.opened] == ["PLAINTEXT://127.0.0.1:9092"]
    assert notices == [
        "server.properties has no listeners: listening on PLAINTEXT://127.0.0.1:9092"
    ]


def test_an_unknown_name_in_properties_is_only_told() -> None:
    text = "listeners=PLAINTEXT://:0\nzookeeper.connect=a:2181\nssl.keystore.type=JKS\n"
    config, notices = loaded(text, name="server.properties")
    assert notices == ["server.properties: zookeeper.connect is not known, and has no effect"]
    assert config.static["zookeeper.connect"] == "a:2181"


def test_the_old_name_of_the_node_id_is_known() -> None:
    config = load(settings=["broker.id=7"]).config
    assert (config.node_id, config["broker.id"]) == (7, 7)


def test_a_name_of_one_listener_is_known() -> None:
    config = load(settings=["listener.name.plaintext.max.connections=5"]).config
    assert config.static["listener.name.plaintext.max.connections"] == "5"


def test_kafkas_internal_names_are_known() -> None:
    assert load(settings=["log.initial.task.delay.ms=5"]).config["log.initial.task.delay.ms"] == 5


def test_our_own_names_are_known() -> None:
    assert load(settings=["ottla.ack.after.fsync=true"]).config["ottla.ack.after.fsync"] is True


REFUSED = [  # one of the settings, what is said
    ("nothing.like.it.at.all", "--set nothing.like.it.at.all: needs NAME=VALUE"),
    ("=5", "--set =5: needs NAME=VALUE"),
    ("zzz=1", "--set: zzz: no such configuration"),
    (
        "log.retention.hour=1",
        "--set: log.retention.hour: no such configuration; did you mean log.retention.hours?",
    ),
    ("retention.ms=1", "--set: retention.ms: is a topic's; the broker's is log.retention.ms"),
    (
        "num.partitions=many",
        "--set: Invalid value many for configuration num.partitions: Not a number of type INT",
    ),
    (
        "num.partitions=0",
        "--set: Invalid value 0 for configuration num.partitions: Value must be at least 1",
    ),
    ("authorizer.class.name=a.B", "--set: authorizer.class.name=a.B is not supported yet"),
    (
        "remote.log.storage.system.enable=true",
        "--set: remote.log.storage.system.enable=true is not supported yet",
    ),
    (
        "create.topic.policy.class.name=a.B",
        "--set: Invalid value a.B for configuration create.topic.policy.class.name: "
        "Class a.B could not be found.",
    ),
    (
        "listeners=SSL://:9093",
        "listener SSL: the security protocol SSL is not supported yet, only PLAINTEXT is",
    ),
    (
        "security.inter.broker.protocol=SSL",
        "--set: security.inter.broker.protocol=SSL is not supported yet",
    ),
    (
        "process.roles=controller",
        "process.roles: only broker,controller is supported yet, not controller",
    ),
    (
        "controller.quorum.voters=2@localhost:9093",
        "the node id 1 must be included in the set of voters "
        "controller.quorum.voters=2@localhost:9093",
    ),
    (
        "controller.quorum.voters=1@a:9093,2@b:9093",
        "controller.quorum.voters: only one node is supported yet, not 2",
    ),
    (
        "controller.quorum.bootstrap.servers=a:9093,b:9093,c:9093",
        "controller.quorum.bootstrap.servers: only one node is supported yet, not 3",
    ),
    (
        "log.retention.ms=0",
        "log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
    ),
    ("log.dirs=", "Configuration 'log.dirs' must not be empty"),
    (
        "log.cleaner.dedupe.buffer.size=1000000",
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    ),
    (
        "queued.max.request.bytes=5",
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    ),
    (
        "max.connections.per.ip=0",
        "max.connections.per.ip can be set to zero only if "
        "max.connections.per.ip.overrides property is set.",
    ),
    (
        "max.connections.per.ip.overrides=x",
        "Error parsing configuration property 'max.connections.per.ip.overrides': x",
    ),
]


@pytest.mark.parametrize(("setting", "said"), REFUSED)
def test_what_is_wrong_is_said_in_one_line(setting: str, said: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        load(settings=[setting])
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_what_is_refused_may_be_set_to_its_default() -> None:
    load(settings=["remote.log.storage.system.enable=false", "authorizer.class.name="])


def test_a_password_is_not_repeated() -> None:
    text = "listeners=SSL://:1\nssl.keystore.password=hunter2\n"
    with pytest.raises(ConfigError) as refusal:
        loaded(text, name="server.properties")
    assert "hunter2" not in str(refusal.value)


WRONG_FILES = [  # name, content, what is said
    ("c.yaml", "a: [", "c.yaml: is no YAML: "),
    ("c.yaml", "- a\n", "c.yaml: needs NAME: VALUE lines"),
    ("c.yaml", "num.partitions:\n", "num.partitions needs a text, a number, true, false or a list"),
    ("c.yaml", "log.cleanup.policy: [[a]]\n", "log.cleanup.policy needs a text"),
    ("c.yaml", "num: {partitions: 1}\nnum.partitions: 2\n", "num.partitions is there twice"),
    ("c.yaml", "num.partition: 1\n", "did you mean num.partitions?"),
    ("c.properties", "a=\\u12\n", "c.properties"),
    ("c.properties", "node.id=1\nbroker.id=2\n", "must set `node.id` to the same value"),
    ("c.properties", "num.partitions=x\n", "c.properties: Invalid value x for configuration"),
]


@pytest.mark.parametrize(("name", "content", "said"), WRONG_FILES)
def test_a_wrong_file_is_said_in_one_line(name: str, content: str, said: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        loaded(content, name=name)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileNotFoundError(2, "No such file or directory"), "No such file or directory"),
        (StorageError("c.yaml", "is gone"), "is gone"),
    ],
)
def test_a_file_that_cannot_be_read_is_said(error: Exception, said: str) -> None:
    def read(path: str) -> bytes:
        raise error

    with pytest.raises(ConfigError, match=said):
        load(file="c.yaml", read=read)


@pytest.mark.parametrize("listen", ["9092", "localhost", "localhost:x", "localhost:"])
def test_an_option_without_a_port_is_refused(listen: str) -> None:
    with pytest.raises(ConfigError, match="needs HOST:PORT"):
        load(listen=listen)
