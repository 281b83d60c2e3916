"""The simulated loop: time that jumps, an order that does not depend on addresses, and deaths."""

import asyncio
from contextlib import suppress

import pytest

from tests.simulation.node.loop import STARTS_AT_S, Stuck
from tests.simulation.node.rig import Rig


def test_an_hour_passes_at_once() -> None:
    rig = Rig()

    async def wait() -> float:
        await asyncio.sleep(3600)
        return rig.loop.time()

    assert rig.run(wait()) == pytest.approx(STARTS_AT_S + 3600, abs=0.01)


def test_timers_go_off_in_the_order_of_their_times() -> None:
    rig, seen = Rig(), list[int]()

    async def wait() -> None:
        for delay in (3, 1, 2):
            rig.loop.call_later(delay, seen.append, delay)
        await asyncio.sleep(4)

    rig.run(wait())
    assert seen == [1, 2, 3]


def test_waiting_for_nothing_is_found() -> None:
    rig = Rig()

    async def wait() -> None:
        await rig.loop.create_future()

    with pytest.raises(Stuck, match="nothing is ready"):
        rig.run(wait())


def test_a_set_of_futures_and_tasks_is_in_the_order_of_their_making() -> None:
    rig = Rig()

    async def wait() -> list[bool]:
        made = [rig.loop.create_future() for _ in range(50)]
        tasks = [rig.loop.create_task(asyncio.sleep(9)) for _ in range(50)]
        return [list(set(each)) == each for each in (made, tasks)]

    assert rig.run(wait()) == [True, True]


def test_a_task_and_what_it_starts_belong_to_its_process() -> None:
    rig, seen = Rig(), list[str]()

    async def child() -> None:
        await asyncio.sleep(5)
        seen.append("the child of a dead process")

    async def parent() -> None:
        rig.loop.create_task(child())
        rig.loop.call_later(5, seen.append, "a timer of a dead process")
        rig.loop.call_soon(seen.append, "started")
        try:
            await asyncio.sleep(5)
        finally:
            rig.loop.call_soon(seen.append, "a cleaning up after death")

    async def run() -> None:
        rig.server.start(parent())
        await asyncio.sleep(1)
        rig.server.kill()
        await asyncio.sleep(10)

    rig.run(run())
    assert seen == ["started"]


def test_an_exception_reaches_the_handler_of_its_own_process() -> None:
    rig, seen = Rig(), list[str]()

    def fail() -> None:
        raise OSError("of the server")

    async def serve() -> None:
        rig.loop.set_exception_handler(lambda loop, context: seen.append(str(context["exception"])))
        rig.loop.call_later(1, fail)
        await asyncio.sleep(9)

    async def run() -> None:
        rig.server.start(serve())
        await asyncio.sleep(2)
        with suppress(OSError):
            fail()
        rig.loop.call_soon(fail)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        rig.loop.uncaught.pop()

    rig.run(run())
    assert seen == ["of the server"]


def test_what_would_go_to_a_thread_is_done_at_once() -> None:
    rig = Rig()

    async def wait() -> int:
        return int(await rig.loop.run_in_executor(None, max, 3, 7))

    assert rig.run(wait()) == 7
