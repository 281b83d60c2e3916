"""Threads that wait for a disk in place of the event loop.

Knows no file. A job is a function on a descriptor or a path that shares no state with anybody; what
comes of it is handed back on the event loop that gave it out.
"""

from __future__ import annotations

from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    import concurrent.futures
    from asyncio import Future
    from collections.abc import Callable

    Job = concurrent.futures.Future[bytes]


class Threads:
    """A pool that starts its first thread with its first job."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._executor: concurrent.futures.ThreadPoolExecutor | None = None

    def run(
        self, ended: Callable[[Job], None], call: Callable[..., bytes], *arguments: object
    ) -> Job:
        """Runs `call` in a thread, then `ended` on the event loop that runs now."""
        from asyncio import get_running_loop

        loop = get_running_loop()

        def hand_back(job: Job) -> None:
            # A loop that is closed has nobody left who waits.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(ended, job)

        job = self.submit(call, *arguments)
        job.add_done_callback(hand_back)
        return job

    async def wait(self, call: Callable[..., bytes], *arguments: object) -> bytes:
        from asyncio import get_running_loop

        done: Future[Job] = get_running_loop().create_future()
        self.run(lambda job: None if done.done() else done.set_result(job), call, *arguments)
        return (await done).result()

    def submit(self, call: Callable[..., bytes], *arguments: object) -> Job:
        if self._executor is None:
            from concurrent.futures import ThreadPoolExecutor

            self._executor = ThreadPoolExecutor(self._count, "disk")
        return self._executor.submit(call, *arguments)

    @property
    def started(self) -> bool:
        return self._executor is not None

    def stop(self) -> None:
        """Waits for the jobs that are under way."""
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None
