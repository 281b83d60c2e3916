"""Deciding about brokers: registration, heartbeats, fencing, and their way out.

Pure. A broker is fenced from its registration until its heartbeat shows that it has read it, and
whenever its heartbeats stay away. Fencing and unfencing move leaders, so each start of a broker
raises the epochs of the partitions that it leads.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from enum import Enum, auto

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.cluster import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)
from ottla.protocol.messages.metadata_records import (
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from ottla.replication import controller_partitions
from ottla.replication.controller_state import ControllerState, Outcome, Session
from ottla.replication.metadata_brokers import BrokerImage
from ottla.replication.metadata_records import Versioned
from ottla.replication.metadata_topics import RESERVED_DIRECTORIES
from ottla.replication.metadata_versions import (
    CORDONED_DIRECTORIES,
    DIRECTORIES,
    KRAFT_VERSION,
    METADATA_VERSION,
    register_broker_version,
)
from ottla.storage.clock import Now

FENCE, UNFENCE = 1, -1


# ---- registration


def register_broker(
    state: ControllerState, request: BrokerRegistrationRequest, now: Now, *, next_offset: int
) -> Outcome[BrokerRegistrationResponse]:
    """The epoch of a new incarnation is `next_offset`, where its records begin."""
    if request.cluster_id != state.cluster_id:
        raise KafkaError(
            ErrorCode.INCONSISTENT_CLUSTER_ID,
            f"Expected cluster ID {state.cluster_id}, but got cluster ID {request.cluster_id}",
        )
    existing = state.image.brokers.get(request.broker_id)
    is_new = existing is None or existing.incarnation_id != request.incarnation_id
    if existing is not None and is_new and _is_alive(state, existing, now):
        raise KafkaError(
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
            "Another broker is registered with that broker id. If the broker was recently restarted"
            " this should self-resolve once the heartbeat manager expires the broker's session.",
        )
    if request.is_migrating_zk_broker:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            "Controller does not support registering ZK brokers.",
        )
    _check_directories(state, request)
    _check_features(state, request)
    record = _registration(state, request)
    records: list[Versioned] = []
    if existing is None or is_new:
        record.broker_epoch = next_offset
        is_clean = existing is not None and existing.epoch == request.previous_broker_epoch
        records = _after_shutdown(state, request.broker_id, is_clean=is_clean)
    else:
        record.broker_epoch = existing.epoch
        record.fenced = existing.fenced
        record.in_controlled_shutdown = existing.in_controlled_shutdown
    records.append(Versioned(record, register_broker_version(state.level)))
    response = BrokerRegistrationResponse(
        throttle_time_ms=0, error_code=0, broker_epoch=record.broker_epoch
    )
    # The registration comes last: if the log ends before it, the broker asks again.
    return Outcome(response, records, is_atomic=False)


def _is_alive(state: ControllerState, broker: BrokerImage, now: Now) -> bool:
    # Who runs this controller holds the lock of its directory: no other process is this broker.
    if broker.id == state.node_id:
        return False
    session = state.sessions.get(broker.id)
    if session is None or session.epoch != broker.epoch:
        return False
    return now.monotonic_ms < session.last_contact_ms + state.settings.broker_session_timeout_ms


def _check_directories(state: ControllerState, request: BrokerRegistrationRequest) -> None:
    if state.level < DIRECTORIES:
        return
    if not request.log_dirs:
        raise _invalid("No directories specified in request")
    if any(int.from_bytes(found, "big") < RESERVED_DIRECTORIES for found in request.log_dirs):
        raise _invalid("Reserved directory ID in request")
    if len(set(request.log_dirs)) != len(request.log_dirs):
        raise _invalid("Duplicate directory ID in request")
    for broker in state.image.brokers.values():
        if broker.id == request.broker_id:
            continue
        for directory in broker.directories:
            if directory in request.log_dirs:
                text = urlsafe_b64encode(directory).rstrip(b"=").decode()
                raise _invalid(f"Broker {broker.id} is already registered with directory {text}")


def _check_features(state: ControllerState, request: BrokerRegistrationRequest) -> None:
    """A broker must know all that is finalized."""
    if all(feature.name != METADATA_VERSION for feature in request.features):
        raise _invalid(f"Request features do not contain '{METADATA_VERSION}'")
    finalized = state.image.features.finalized | {KRAFT_VERSION: state.kraft_version}
    ranges = {
        feature.name: (feature.min_supported_version, feature.max_supported_version)
        for feature in request.features
    }
    for name in {**ranges, **finalized}:
        first, last = ranges.get(name, (0, 0))
        level = finalized.get(name, 0)
        if not first <= level <= last:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"Unable to register because the broker does not support finalized version {level}"
                f" of {name}. The broker wants a version between {first} and {last}, inclusive.",
            )


def _invalid(reason: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REGISTRATION, reason)


def _registration(
    state: ControllerState, request: BrokerRegistrationRequest
) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        broker_epoch=-1,
        end_points=[
            BrokerEndpoint(
                name=found.name,
                host=found.host,
                port=found.port,
                security_protocol=found.security_protocol,
            )
            for found in request.listeners
        ],
        features=[
            BrokerFeature(
                name=found.name,
                min_supported_version=found.min_supported_version,
                max_supported_version=found.max_supported_version,
            )
            for found in request.features
        ],
        rack=request.rack,
        log_dirs=list(request.log_dirs) if state.level >= DIRECTORIES else [],
    )


def _after_shutdown(state: ControllerState, broker_id: int, *, is_clean: bool) -> list[Versioned]:
    """What a new incarnation means for what the old one led, and had in sync."""
    in_sync = controller_partitions.in_sync(state, broker_id)
    if not state.has_elr or is_clean:
        return controller_partitions.changes(state, in_sync, leaving=broker_id)
    eligible = controller_partitions.eligible(state, broker_id)
    return [
        *controller_partitions.changes(state, in_sync, broken=broker_id),
        *controller_partitions.changes(state, eligible, broken=broker_id),
    ]


# ---- heartbeats


class BrokerState(Enum):
    FENCED = auto()
    UNFENCED = auto()
    CONTROLLED_SHUTDOWN = auto()
    SHUTDOWN_NOW = auto()


def broker_heartbeat(
    state: ControllerState, request: BrokerHeartbeatRequest, now: Now
) -> Outcome[BrokerHeartbeatResponse]:
    broker = state.checked_broker(request.broker_id, request.broker_epoch)
    session = touch(state, broker, now)
    current = _state(broker, session)
    following = _next_state(state, broker, session, current, request)
    records = _transition(state, broker, current, following)
    session.metadata_offset = request.current_metadata_offset
    if following is BrokerState.CONTROLLED_SHUTDOWN and session.shutdown_offset < 0:
        session.shutdown_offset = state.image.offset
        session.is_entering_shutdown = True
    if following is BrokerState.FENCED:
        session.shutdown_offset = -1
    if following is BrokerState.SHUTDOWN_NOW:
        # It takes its leave: its next incarnation need not wait until its session ends.
        del state.sessions[broker.id]
    if state.level >= DIRECTORIES:
        records += directories_offline(state, broker, request.offline_log_dirs)
    if state.level >= CORDONED_DIRECTORIES:
        records += _directories_cordoned(broker, request.cordoned_log_dirs)
    response = BrokerHeartbeatResponse(
        throttle_time_ms=0,
        error_code=0,
        is_caught_up=request.current_metadata_offset >= state.registered_at[broker.id],
        is_fenced=following in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW),
        should_shut_down=following is BrokerState.SHUTDOWN_NOW,
    )
    return Outcome(response, records, is_atomic=False)


def touch(state: ControllerState, broker: BrokerImage, now: Now) -> Session:
    """A sign of life. Sessions are no part of the log: nothing is decided by forgetting them."""
    session = state.sessions.get(broker.id)
    if session is None or session.epoch != broker.epoch:
        session = state.sessions[broker.id] = Session(broker.epoch, now.monotonic_ms)
    session.last_contact_ms = now.monotonic_ms
    return session


def _state(broker: BrokerImage, session: Session) -> BrokerState:
    if session.shutdown_offset >= 0:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.FENCED if broker.fenced else BrokerState.UNFENCED


def _next_state(
    state: ControllerState,
    broker: BrokerImage,
    session: Session,
    current: BrokerState,
    request: BrokerHeartbeatRequest,
) -> BrokerState:
    if current is BrokerState.FENCED:
        if request.want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        is_caught_up = request.current_metadata_offset >= state.registered_at[broker.id]
        if request.want_fence or not is_caught_up:
            return BrokerState.FENCED
        return BrokerState.UNFENCED
    if current is BrokerState.UNFENCED and request.want_fence:
        return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
    if current is BrokerState.UNFENCED and not request.want_shut_down:
        return BrokerState.UNFENCED
    if controller_partitions.leads_any(state, broker.id):
        return BrokerState.CONTROLLED_SHUTDOWN
    if session.shutdown_offset > _lowest_active_offset(state):
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.SHUTDOWN_NOW


def _lowest_active_offset(state: ControllerState) -> float:
    """What every broker that goes on has read."""
    return min(
        (
            session.metadata_offset
            for broker_id, session in state.sessions.items()
            if session.shutdown_offset < 0 and not state.image.brokers[broker_id].fenced
        ),
        default=float("inf"),
    )


def _transition(
    state: ControllerState, broker: BrokerImage, current: BrokerState, following: BrokerState
) -> list[Versioned]:
    if current is following:
        return []
    if following is BrokerState.UNFENCED:
        return unfence(state, broker)
    if following is BrokerState.CONTROLLED_SHUTDOWN:
        return _enter_shutdown(state, broker)
    return fence(state, broker)


# ---- what happens to a broker


def fence(state: ControllerState, broker: BrokerImage) -> list[Versioned]:
    """It leaves every ISR and every leadership first."""
    in_sync = controller_partitions.in_sync(state, broker.id)
    records = controller_partitions.changes(state, in_sync, leaving=broker.id)
    return [*records, _change(broker, 0, fenced=FENCE)]


def unfence(state: ControllerState, broker: BrokerImage) -> list[Versioned]:
    """It leads what has no leader, if it was in sync."""
    leaderless = controller_partitions.leaderless(state)
    return [
        _change(broker, 0, fenced=UNFENCE),
        *controller_partitions.changes(state, leaderless, coming=broker.id),
    ]


def _enter_shutdown(state: ControllerState, broker: BrokerImage) -> list[Versioned]:
    in_sync = controller_partitions.in_sync(state, broker.id)
    records = controller_partitions.changes(state, in_sync, leaving=broker.id)
    if broker.in_controlled_shutdown:
        return records
    return [_change(broker, 1, in_controlled_shutdown=1), *records]


def directories_offline(
    state: ControllerState, broker: BrokerImage, offline: list[bytes]
) -> list[Versioned]:
    """Directories that a broker has lost, of those that it had."""
    lost = [directory for directory in broker.directories if directory in offline]
    if not lost:
        return []
    records: list[Versioned] = []
    for directory in lost:
        found = controller_partitions.in_directory(state, broker.id, directory)
        records += controller_partitions.changes(state, found, leaving=broker.id)
    left = [directory for directory in broker.directories if directory not in lost]
    return [*records, _change(broker, 2, log_dirs=left)]


def _directories_cordoned(broker: BrokerImage, cordoned: list[bytes] | None) -> list[Versioned]:
    known = broker.cordoned_directories
    if cordoned is None or (known is not None and set(known) == set(cordoned)):
        return []
    return [_change(broker, 3, cordoned_log_dirs=cordoned)]


def _change(broker: BrokerImage, version: int, **fields: object) -> Versioned:
    record = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    for name, value in fields.items():
        setattr(record, name, value)
    return Versioned(record, version)


def unregister_broker(
    state: ControllerState, request: UnregisterBrokerRequest
) -> Outcome[UnregisterBrokerResponse]:
    broker = state.image.brokers.get(request.broker_id)
    if broker is None:
        raise KafkaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"Broker ID {request.broker_id} is not currently registered",
        )
    in_sync = controller_partitions.in_sync(state, broker.id)
    eligible = controller_partitions.eligible(state, broker.id)
    gone = UnregisterBrokerRecord(broker_id=broker.id, broker_epoch=broker.epoch)
    records = [
        *controller_partitions.changes(state, in_sync, leaving=broker.id),
        *controller_partitions.changes(state, eligible, leaving=broker.id),
        Versioned(gone),
    ]
    response = UnregisterBrokerResponse(throttle_time_ms=0, error_code=0, error_message=None)
    return Outcome(response, records, is_atomic=False)


# ---- sessions


def session_deadline(state: ControllerState) -> int | None:
    """When, by the monotonic clock, the next broker must be fenced unless it is heard from."""
    return min(
        (
            session.last_contact_ms + state.settings.broker_session_timeout_ms
            for _, session in _watched(state)
        ),
        default=None,
    )


def fence_one_expired(state: ControllerState, now: Now) -> list[Versioned]:
    """One at a time: the next must see where its leaders went."""
    timeout_ms = state.settings.broker_session_timeout_ms
    for broker, session in _watched(state):
        if session.last_contact_ms + timeout_ms <= now.monotonic_ms:
            return fence(state, broker)
    return []


def _watched(state: ControllerState) -> list[tuple[BrokerImage, Session]]:
    """The unfenced brokers but this node's own: while it decides this, it is alive."""
    return [
        (broker, state.sessions[broker.id])
        for broker in state.image.brokers.values()
        if not broker.fenced and broker.id != state.node_id and broker.id in state.sessions
    ]
