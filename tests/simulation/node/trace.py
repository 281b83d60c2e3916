"""What happened in a simulation: a digest of all of it, and lines to read where they are wanted."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

DATA_SHOWN = 48


class Trace:
    """Every event goes into the digest, with its virtual time."""

    def __init__(self, *, show: Callable[[str], None] | None = None) -> None:
        self.count = 0
        self.time: Callable[[], float] = lambda: 0.0
        self._show = show
        self._digest = blake2b(digest_size=16)

    def add(self, kind: str, *what: object) -> None:
        time = self.time()
        self.count += 1
        self._digest.update(repr((time, kind, what)).encode())
        if self._show is not None:
            shown = [_shown(each) if isinstance(each, bytes) else str(each) for each in what]
            self._show(f"{time:12.6f} {kind:10} {' '.join(shown)}")

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()


def _shown(data: bytes) -> str:
    more = "..." if len(data) > DATA_SHOWN else ""
    return f"{len(data)} bytes {data[:DATA_SHOWN].hex()}{more}"
