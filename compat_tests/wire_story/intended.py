"""Where Ottla answers otherwise than Apache Kafka on purpose: the case, and the reason.

A case that is listed here must differ; once it does not, its line must go.
"""

INTENDED: dict[str, str] = {
    "versions, v4": "features whose code is not there yet are not offered",
    "produce records that are garbage": "INVALID_RECORD, where Kafka fails with an internal error",
    "metadata by the id of zeros without a name": (
        "the topic is refused, where Kafka fails with an internal error and names no broker"
    ),
}
