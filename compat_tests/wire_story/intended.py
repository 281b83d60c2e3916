"""Where Ottla answers otherwise than Apache Kafka on purpose: the case, and the reason.

A case that is listed here must differ; once it does not, its line must go.
"""

INTENDED: dict[str, str] = {}
