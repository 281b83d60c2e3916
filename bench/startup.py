"""Ottla's first request beside `import asyncio`: fresh interpreters, in turns.

Each interpreter reports what its own lines took; its own start is not part of it.
"""

import subprocess
import sys
from functools import partial

from bench.measure import in_turns
from bench.samples import produce_request
from bench.tables import Cell, Goal, Table
from ottla.protocol.schema import encode

ROUNDS = 21
TO_ASYNCIO = Goal(1.0, strictly=True)

FIRST_PRODUCE = """
from ottla.protocol.schema import decode
from ottla.protocol.messages.produce import ProduceRequest
decode(ProduceRequest, 13, bytes.fromhex("{data}"))
"""
ASYNCIO = """
import asyncio
"""


def run() -> list[Table]:
    first_produce = FIRST_PRODUCE.format(data=bytes(encode(produce_request(), 13)).hex())
    turns = {
        "ottla": partial(_seconds, first_produce),
        "asyncio": partial(_seconds, ASYNCIO),
    }
    for warm_up in turns.values():
        warm_up()
    times = in_turns(turns, rounds=ROUNDS)
    table = Table(
        "startup", ["", "ottla ms", "import asyncio ms", f"ottla / asyncio ({TO_ASYNCIO})"]
    )
    table.add(
        "import, read the first Produce request",
        Cell(times.median("ottla") * 1e3),
        Cell(times.median("asyncio") * 1e3),
        Cell(times.ratio("ottla", "asyncio"), TO_ASYNCIO),
    )
    return [table]


def _seconds(lines: str) -> float:
    program = (
        "from time import perf_counter\n"
        f"started = perf_counter()\n{lines}\n"
        "print(perf_counter() - started)"
    )
    command = [sys.executable, "-c", program]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
