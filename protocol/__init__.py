"""Kafka's protocol as bytes: messages, frames, record batches, errors.

Knows no socket, file, cluster or clock.
"""
