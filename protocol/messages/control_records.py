"""Control records of ordinary partitions: the key of each, and the transaction markers."""

from __future__ import annotations

from ottla.protocol.schema import Int16, Int32, message


@message(versions=(0, 0))
class ControlRecordTypeSchema:
    type: Int16


@message(versions=(0, 0))
class EndTxnMarker:
    coordinator_epoch: Int32
