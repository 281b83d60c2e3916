"""Ottla, a Kafka-compatible broker. The folders beside this one are its subpackages."""
