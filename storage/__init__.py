"""One partition's bytes on disk, in Kafka's formats.

Knows no peers, no groups and no requests. Every byte goes through the door in `files.py`.
"""
