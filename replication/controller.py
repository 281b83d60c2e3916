"""The controller: decides everything that the metadata log says.

Pure: knows neither the log nor other nodes. Each API is a method that returns an Outcome, an answer
and the records on which it rests; only `replay` applies records, those just written and those read
at a start alike. What is decided by subject stands in the modules beside this one, which are loaded
when they are first asked: most starts need but one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ottla.protocol.messages import metadata_records
from ottla.replication import controller_brokers
from ottla.replication.config_rules import ConfigRules
from ottla.replication.controller_state import ControllerSettings, ControllerState, Outcome
from ottla.replication.metadata import Delta, Image
from ottla.replication.metadata_records import Versioned
from ottla.replication.topic_names import may_collide, unified
from ottla.storage.clock import Now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ottla.protocol.messages import cluster, configs, replicas, topics
    from ottla.protocol.messages.transactions import (
        AllocateProducerIdsRequest,
        AllocateProducerIdsResponse,
    )
    from ottla.protocol.messages.versions import UpdateFeaturesRequest, UpdateFeaturesResponse

__all__ = ["Controller", "ControllerSettings", "Outcome"]


class Controller:
    def __init__(
        self,
        *,
        node_id: int,
        cluster_id: str,
        random: Random,
        rules: ConfigRules,
        settings: ControllerSettings | None = None,
        image: Image | None = None,
    ) -> None:
        """`image` is what the log says so far, committed or not."""
        image = Image() if image is None else image
        self._state = ControllerState(
            node_id=node_id,
            cluster_id=cluster_id,
            random=random,
            rules=rules,
            settings=settings or ControllerSettings(),
            image=image,
        )
        for name in image.topics.by_name:
            self._remember(name)
        # Where exactly they registered is forgotten; whoever has read all of this knows of it.
        self._state.registered_at = dict.fromkeys(image.brokers, image.offset)
        self._next_balance_ms: int | None = None

    @property
    def image(self) -> Image:
        """What was replayed, committed or not."""
        return self._state.image

    @property
    def rules(self) -> ConfigRules:
        return self._state.rules

    @rules.setter
    def rules(self, rules: ConfigRules) -> None:
        """The node's properties have changed."""
        self._state.rules = rules

    def set_kraft_version(self, level: int) -> None:
        """The one feature that is no record of this log."""
        self._state.kraft_version = level

    # ---- the log

    def replay(self, records: Sequence[Versioned], *, offset: int, epoch: int) -> None:
        """Apply records, the last of which stands at `offset` and was written in `epoch`."""
        state = self._state
        delta = Delta(state.image)
        at = offset - len(records)
        for record in records:
            at += 1
            delta.replay(record)
            message = record.message
            if isinstance(message, metadata_records.RegisterBrokerRecord):
                state.registered_at[message.broker_id] = at
        state.image = delta.apply(offset=offset, epoch=epoch)
        for topic in delta.deleted_topics.values():
            self._forget(topic.name)
        for name in delta.created_topics.values():
            self._remember(name)
        for broker_id in delta.changed_brokers:
            self._revise_session(broker_id, offset)

    def _remember(self, name: str) -> None:
        if may_collide(name):
            self._state.colliding.setdefault(unified(name), {})[name] = None

    def _forget(self, name: str) -> None:
        names = self._state.colliding.get(unified(name), {})
        names.pop(name, None)
        if not names:
            self._state.colliding.pop(unified(name), None)

    def _revise_session(self, broker_id: int, offset: int) -> None:
        state = self._state
        broker, session = state.image.brokers.get(broker_id), state.sessions.get(broker_id)
        if session is None:
            return
        if broker is None or broker.epoch != session.epoch:
            del state.sessions[broker_id]
        elif session.is_entering_shutdown:
            session.is_entering_shutdown = False
            session.shutdown_offset = offset

    def bootstrap(self, now: Now, bootstrap: Sequence[Versioned] | None = None) -> Outcome[None]:
        """Begin to decide. The records of a new cluster, if there is none; else hardly ever any."""
        for broker in self.image.brokers.values():
            if not broker.fenced:
                controller_brokers.touch(self._state, broker, now)
        from ottla.replication import controller_bootstrap

        records = controller_bootstrap.activation_records(self._state, bootstrap)
        return Outcome(None, records)

    # ---- time

    def deadline(self) -> int | None:
        """When, by the monotonic clock, `expire` has something to do. None: not by itself."""
        moments = [controller_brokers.session_deadline(self._state), self._next_balance_ms]
        return min((moment for moment in moments if moment is not None), default=None)

    def expire(self, now: Now) -> Outcome[None]:
        """What time alone decides. Called again after its records were replayed."""
        records = controller_brokers.fence_one_expired(self._state, now)
        if not records and self._is_balance_due(now):
            from ottla.replication import controller_elections

            records = controller_elections.balanced(self._state)
        return Outcome(None, records, is_atomic=False)

    def _is_balance_due(self, now: Now) -> bool:
        """Alone there is nobody to balance with."""
        if len(self.image.brokers) < 2:
            self._next_balance_ms = None
            return False
        interval_ms = self._state.settings.leader_imbalance_check_interval_seconds * 1_000
        due = self._next_balance_ms is not None and self._next_balance_ms <= now.monotonic_ms
        if due or self._next_balance_ms is None:
            self._next_balance_ms = now.monotonic_ms + interval_ms
        return due

    def forgive(self, late_ms: int) -> None:
        """This process stood still: no broker is to be fenced for a silence that was ours."""
        for session in self._state.sessions.values():
            session.last_contact_ms += late_ms

    # ---- topics

    def create_topics(
        self, request: topics.CreateTopicsRequest, now: Now
    ) -> Outcome[topics.CreateTopicsResponse]:
        from ottla.replication import controller_topics

        return controller_topics.create_topics(self._state, request)

    def delete_topics(
        self, request: topics.DeleteTopicsRequest, now: Now
    ) -> Outcome[topics.DeleteTopicsResponse]:
        from ottla.replication import controller_deletions

        return controller_deletions.delete_topics(self._state, request)

    def create_partitions(
        self, request: topics.CreatePartitionsRequest, now: Now
    ) -> Outcome[topics.CreatePartitionsResponse]:
        from ottla.replication import controller_topics

        return controller_topics.create_partitions(self._state, request)

    # ---- configs

    def incremental_alter_configs(
        self, request: configs.IncrementalAlterConfigsRequest, now: Now
    ) -> Outcome[configs.IncrementalAlterConfigsResponse]:
        from ottla.replication import controller_configs

        return controller_configs.incremental_alter_configs(self._state, request)

    def alter_configs(
        self, request: configs.AlterConfigsRequest, now: Now
    ) -> Outcome[configs.AlterConfigsResponse]:
        from ottla.replication import controller_configs

        return controller_configs.alter_configs(self._state, request)

    # ---- replicas

    def elect_leaders(
        self, request: replicas.ElectLeadersRequest, now: Now
    ) -> Outcome[replicas.ElectLeadersResponse]:
        from ottla.replication import controller_elections

        return controller_elections.elect_leaders(self._state, request)

    def alter_partition_reassignments(
        self, request: replicas.AlterPartitionReassignmentsRequest, now: Now
    ) -> Outcome[replicas.AlterPartitionReassignmentsResponse]:
        from ottla.replication import controller_reassignments

        return controller_reassignments.alter_partition_reassignments(self._state, request)

    def list_partition_reassignments(
        self, request: replicas.ListPartitionReassignmentsRequest, now: Now
    ) -> Outcome[replicas.ListPartitionReassignmentsResponse]:
        from ottla.replication import controller_reassignments

        return controller_reassignments.list_partition_reassignments(self._state, request)

    def alter_partition(
        self, request: replicas.AlterPartitionRequest, now: Now
    ) -> Outcome[replicas.AlterPartitionResponse]:
        from ottla.replication import controller_replicas

        return controller_replicas.alter_partition(self._state, request)

    def assign_replicas_to_dirs(
        self, request: replicas.AssignReplicasToDirsRequest, now: Now
    ) -> Outcome[replicas.AssignReplicasToDirsResponse]:
        from ottla.replication import controller_replicas

        return controller_replicas.assign_replicas_to_dirs(self._state, request)

    # ---- brokers and features

    def register_broker(
        self, request: cluster.BrokerRegistrationRequest, now: Now, *, next_offset: int
    ) -> Outcome[cluster.BrokerRegistrationResponse]:
        return controller_brokers.register_broker(
            self._state, request, now, next_offset=next_offset
        )

    def broker_heartbeat(
        self, request: cluster.BrokerHeartbeatRequest, now: Now
    ) -> Outcome[cluster.BrokerHeartbeatResponse]:
        return controller_brokers.broker_heartbeat(self._state, request, now)

    def unregister_broker(
        self, request: cluster.UnregisterBrokerRequest, now: Now
    ) -> Outcome[cluster.UnregisterBrokerResponse]:
        return controller_brokers.unregister_broker(self._state, request)

    def update_features(
        self, request: UpdateFeaturesRequest, now: Now
    ) -> Outcome[UpdateFeaturesResponse]:
        from ottla.replication import controller_features

        return controller_features.update_features(self._state, request)

    def allocate_producer_ids(
        self, request: AllocateProducerIdsRequest, now: Now
    ) -> Outcome[AllocateProducerIdsResponse]:
        from ottla.replication import controller_producer_ids

        return controller_producer_ids.allocate_producer_ids(self._state, request)
