"""A whole node with stock clients in one process: virtual time, a network and a disk in memory."""
