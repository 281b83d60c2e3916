"""Agreement between brokers: the metadata log, its controller, the replicas of partitions.

Knows no client requests and no groups."""
