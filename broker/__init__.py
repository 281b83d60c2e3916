"""The shell: sockets, configuration, request handlers, start and stop.

Knows everything; decides nothing that a machine below could decide."""
