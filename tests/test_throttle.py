"""A number of bytes a second, kept on average."""

import pytest

from ottla.storage.throttle import Throttle

STEPS = [  # bytes a second, then (bytes, milliseconds) and the delay for each
    (1000, [(100, 100, 0), (400, 301, 199), (100, 600, 0), (100, 801, 0)]),
    (1000, [(5_000, 10, 0), (0, 301, 4_699), (10, 5_100, 0)]),
    (1000, [(100, 5_000, 0), (1_000, 5_400, 600)]),
    (float("inf"), [(1 << 30, 1_000, 0), (1 << 40, 2_000, 0)]),
]


@pytest.mark.parametrize(("bytes_per_second", "steps"), STEPS)
def test_a_delay_brings_the_average_down(
    bytes_per_second: float, steps: list[tuple[int, int, int]]
) -> None:
    throttle = Throttle(bytes_per_second, monotonic_ms=0)
    delays = [throttle.delay_ms(moved, monotonic_ms=at_ms) for moved, at_ms, _ in steps]
    assert delays == [delay_ms for _, _, delay_ms in steps]


def test_over_a_long_time_the_rate_is_kept() -> None:
    throttle = Throttle(10_000, monotonic_ms=0)
    now_ms = moved = 0
    while moved < 1_000_000:
        moved += 700
        now_ms += 20
        now_ms += throttle.delay_ms(700, monotonic_ms=now_ms)
    assert 9_900 < moved * 1_000 / now_ms <= 10_100
