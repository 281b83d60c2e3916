"""Every message of Kafka 4.3.1, one module for each family.

A module is loaded when one of its messages is first asked for (see ottla.protocol.apis).
"""
