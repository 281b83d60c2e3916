"""Groups and their offsets: pure machines, which decide records and replies.

Knows the protocol only: no log, no socket, no replication."""
