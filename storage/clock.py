"""What time it is, as callers hand it in: two clocks, which are never mixed.

No module of storage reads a clock. A wall clock that jumps an hour must not end a wait, so waits go
by the monotonic one; what records hold, or is compared with them, goes by the wall clock.
"""

from typing import NamedTuple


class Now(NamedTuple):
    monotonic_ms: int
    wall_ms: int
