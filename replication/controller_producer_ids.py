"""Deciding which producer ids a broker may give out next.

Pure. A block is in the log before its first id is used, so that no id is ever given twice.
"""

from __future__ import annotations

from ottla.protocol.errors import ErrorCode, KafkaError
from ottla.protocol.messages.metadata_records import ProducerIdsRecord
from ottla.protocol.messages.transactions import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from ottla.replication.controller_state import ControllerState, Outcome
from ottla.replication.metadata_records import Versioned

PRODUCER_ID_BLOCK = 1_000
_INT64_MAX = 2**63 - 1


def allocate_producer_ids(
    state: ControllerState, request: AllocateProducerIdsRequest
) -> Outcome[AllocateProducerIdsResponse]:
    """A block of ids that no broker ever gets again."""
    state.checked_broker(request.broker_id, request.broker_epoch)
    first = max(state.image.producer_ids.next_producer_id, 0)
    if first > _INT64_MAX - PRODUCER_ID_BLOCK:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64"
            " type limit",
        )
    record = ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=first + PRODUCER_ID_BLOCK,
    )
    response = AllocateProducerIdsResponse(
        throttle_time_ms=0, error_code=0, producer_id_start=first, producer_id_len=PRODUCER_ID_BLOCK
    )
    return Outcome(response, [Versioned(record)])
