"""A principal as one broker hands it to another inside an Envelope."""

from __future__ import annotations

from ottla.protocol.schema import Bool, String, message


@message(versions=(0, 0), flexible=0)
class DefaultPrincipalData:
    type: String
    name: String
    token_authenticated: Bool
