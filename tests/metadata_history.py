"""Random histories of the metadata log that a controller could have written.

Every type of record comes up. A model of plain dicts knows what may come next; what the records
mean is the business of the code under test.
"""

from random import Random

from ottla.protocol.messages import metadata_records as messages
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_versions import NEWEST

FEATURES = ("transaction.version", "group.version", "share.version")
NAMES = ("a", "b", "c.d")


class History:
    """Makes one record after the other; `next()` always returns one that may come now."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.topics: dict[bytes, str] = {}
        self.partitions: list[tuple[bytes, int]] = []
        self.brokers: dict[int, int] = {}
        self.acls: list[bytes] = []
        self.offset = 0
        self.kinds = [
            getattr(self, name) for name in sorted(vars(History)) if name.startswith("make_")
        ]

    def next(self) -> Versioned:
        """The first record is the level of metadata.version, as in every real log."""
        self.offset += 1
        if self.offset == 1:
            return self._feature("metadata.version", NEWEST)
        while True:
            record: Versioned | None = self.dice.choice(self.kinds)()
            if record is not None:
                return record

    def records(self, count: int) -> list[Versioned]:
        return [self.next() for _ in range(count)]

    def _feature(self, name: str, level: int) -> Versioned:
        return Versioned(messages.FeatureLevelRecord(name=name, feature_level=level))

    def _brokers(self) -> list[int]:
        return self.dice.sample(range(1, 6), self.dice.randint(1, 3))

    def make_topic(self) -> Versioned | None:
        free = sorted(set(NAMES) - set(self.topics.values()))
        if not free:
            return None
        topic_id, name = self.dice.randbytes(16), self.dice.choice(free)
        self.topics[topic_id] = name
        return Versioned(messages.TopicRecord(name=name, topic_id=topic_id))

    def make_removal(self) -> Versioned | None:
        if not self.topics or self.dice.random() < 0.7:
            return None
        gone = self.dice.choice(list(self.topics))
        del self.topics[gone]
        self.partitions = [found for found in self.partitions if found[0] != gone]
        return Versioned(messages.RemoveTopicRecord(topic_id=gone))

    def make_partition(self) -> Versioned | None:
        if not self.topics:
            return None
        topic_id = self.dice.choice(list(self.topics))
        index = sum(1 for found in self.partitions if found[0] == topic_id)
        self.partitions.append((topic_id, index))
        replicas = self._brokers()
        record = messages.PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=replicas,
            isr=replicas[:1],
            removing_replicas=replicas[2:],
            adding_replicas=[],
            leader=replicas[0],
            leader_recovery_state=self.dice.choice((0, 1)),
            leader_epoch=0,
            partition_epoch=0,
            directories=[self.dice.randbytes(16) for _ in replicas],
            eligible_leader_replicas=self.dice.choice((None, replicas[1:] or None)),
            last_known_elr=self.dice.choice((None, replicas[1:] or None)),
        )
        return Versioned(record, 2)

    def make_change(self) -> Versioned | None:
        if not self.partitions:
            return None
        topic_id, index = self.dice.choice(self.partitions)
        record = messages.PartitionChangeRecord(partition_id=index, topic_id=topic_id)
        if self.dice.random() < 0.5:
            record.leader = self.dice.choice((-1, 1, 2))
        if self.dice.random() < 0.5:
            record.isr = self._brokers()
        if self.dice.random() < 0.3:
            record.replicas = self._brokers()
            record.directories = [self.dice.randbytes(16) for _ in record.replicas]
        if self.dice.random() < 0.3:
            record.adding_replicas = self._brokers()
            record.removing_replicas = self.dice.choice((None, []))
        if self.dice.random() < 0.3:
            record.eligible_leader_replicas = self._brokers()
            record.last_known_elr = self.dice.choice((None, [3]))
        record.leader_recovery_state = self.dice.choice((-1, -1, 0, 1))
        return Versioned(record, 2)

    def make_clear_elr(self) -> Versioned | None:
        name = self.dice.choice(["", *self.topics.values()])
        return Versioned(messages.ClearElrRecord(topic_name=name))

    def make_broker(self) -> Versioned:
        broker_id = self.dice.randint(1, 4)
        self.brokers[broker_id] = self.offset
        record = messages.RegisterBrokerRecord(
            broker_id=broker_id,
            incarnation_id=self.dice.randbytes(16),
            broker_epoch=self.offset,
            end_points=[
                messages.BrokerEndpoint(name="A", host="h", port=9092, security_protocol=0)
            ],
            features=[
                messages.BrokerFeature(
                    name=name, min_supported_version=0, max_supported_version=self.offset % 9
                )
                for name in FEATURES
            ],
            rack=self.dice.choice((None, "r1")),
            fenced=self.dice.random() < 0.5,
            log_dirs=[self.dice.randbytes(16)],
            cordoned_log_dirs=self.dice.choice((None, [self.dice.randbytes(16)])),
        )
        return Versioned(record, 4)

    def make_broker_change(self) -> Versioned | None:
        if not self.brokers:
            return None
        broker_id, epoch = self.dice.choice(list(self.brokers.items()))
        kind = self.dice.randrange(5)
        if kind == 0:
            return Versioned(messages.FenceBrokerRecord(id=broker_id, epoch=epoch))
        if kind == 1:
            return Versioned(messages.UnfenceBrokerRecord(id=broker_id, epoch=epoch))
        if kind == 2:
            del self.brokers[broker_id]
            gone = messages.UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=epoch)
            return Versioned(gone)
        record = messages.BrokerRegistrationChangeRecord(
            broker_id=broker_id,
            broker_epoch=epoch,
            fenced=self.dice.choice((-1, 0, 1)),
            in_controlled_shutdown=self.dice.choice((0, 0, 1)),
            log_dirs=self.dice.choice(([], [self.dice.randbytes(16)])),
            cordoned_log_dirs=self.dice.choice((None, [], [bytes(16)])),
        )
        return Versioned(record, 3)

    def make_controller(self) -> Versioned:
        record = messages.RegisterControllerRecord(
            controller_id=self.dice.randint(1, 3),
            incarnation_id=self.dice.randbytes(16),
            zk_migration_ready=False,
            end_points=[],
            features=[],
        )
        return Versioned(record)

    def make_config(self) -> Versioned | None:
        kind, name = self.dice.choice([(2, "a"), (4, ""), (4, "1"), (16, "metrics"), (32, "group")])
        if kind == 2 and name not in self.topics.values():
            return None
        record = messages.ConfigRecord(
            resource_type=kind,
            resource_name=name,
            name=self.dice.choice(("x", "y")),
            value=self.dice.choice((None, "1", "2", "")),
        )
        return Versioned(record)

    def make_feature(self) -> Versioned:
        return self._feature(self.dice.choice(FEATURES), self.dice.choice((0, 1, 2)))

    def make_quota(self) -> Versioned:
        kinds = self.dice.sample(("user", "client-id"), self.dice.randint(1, 2))
        entity = [
            messages.EntityData(entity_type=kind, entity_name=self.dice.choice((None, "u")))
            for kind in kinds
        ]
        record = messages.ClientQuotaRecord(
            entity=entity,
            key=self.dice.choice(("producer_byte_rate", "request_percentage")),
            value=float(self.dice.randint(1, 9)),
            remove=self.dice.random() < 0.4,
        )
        return Versioned(record)

    def make_producer_ids(self) -> Versioned:
        record = messages.ProducerIdsRecord(broker_id=1, next_producer_id=1000 * self.offset)
        return Versioned(record)

    def make_acl(self) -> Versioned:
        if self.acls and self.dice.random() < 0.4:
            return Versioned(messages.RemoveAccessControlEntryRecord(id=self.acls.pop()))
        self.acls.append(self.dice.randbytes(16))
        record = messages.AccessControlEntryRecord(
            id=self.acls[-1],
            resource_type=2,
            resource_name="a",
            pattern_type=3,
            principal="User:a",
            host="*",
            operation=3,
            permission_type=3,
        )
        return Versioned(record)

    def make_scram(self) -> Versioned:
        mechanism, name = self.dice.randint(1, 2), self.dice.choice(NAMES)
        if self.dice.random() < 0.4:
            gone = messages.RemoveUserScramCredentialRecord(name=name, mechanism=mechanism)
            return Versioned(gone)
        record = messages.UserScramCredentialRecord(
            name=name,
            mechanism=mechanism,
            salt=b"s",
            stored_key=b"k",
            server_key=b"v",
            iterations=self.dice.randint(4096, 8192),
        )
        return Versioned(record)

    def make_token(self) -> Versioned:
        token_id = self.dice.choice(NAMES)
        if self.dice.random() < 0.4:
            return Versioned(messages.RemoveDelegationTokenRecord(token_id=token_id))
        record = messages.DelegationTokenRecord(
            owner="User:a",
            requester="User:a",
            renewers=[],
            issue_timestamp=1,
            max_timestamp=2,
            expiration_timestamp=self.offset,
            token_id=token_id,
        )
        return Versioned(record)

    def make_nothing(self) -> Versioned:
        migration = messages.ZkMigrationStateRecord(zk_migration_state=2)
        return Versioned(self.dice.choice((messages.NoOpRecord(), migration)))
