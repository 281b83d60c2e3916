"""What each configuration is for, in our own words; loaded when somebody asks."""

from __future__ import annotations


def documentation(kind: str, name: str) -> str | None:
    return None
