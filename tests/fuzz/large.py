"""What is large: requests that must pass, the densest shapes of every message, hostile frames.

Each function prints what it measures, and yields what is not as it should be.
"""

from collections.abc import Iterator
from random import Random
from time import process_time

from ottla.protocol.apis import APIS
from ottla.protocol.frames import read_request
from ottla.protocol.schema import decode
from ottla.protocol.wire import ProtocolError
from tests.dense_wire import array_paths, blown_up, random_style
from tests.hostile_messages import Hostile, hostile_messages
from tests.large_requests import MUST_PASS
from tests.memory_law import Cost, cost_of
from tests.random_messages import PAIRS, schema_named

HOSTILE_SECONDS_MAX = 0.050
# Below the size from which messages are read in another way, and above.
SHAPE_SIZES = (15_000, 60_000, 100_000)
SHAPES = 3000
APIS_BY_NAME = {api.name: api for api in APIS.values()}


def costs_of_what_must_pass() -> Iterator[str]:
    print("Large requests that must pass:")
    for what, name, version, make, count in MUST_PASS:
        cost = cost_of(schema_named(name).cls, version, memoryview(make(version, count)))
        told = f"{name} v{version}, {count} {what}: {cost}"
        print(f"  {told}", flush=True)
        if cost.refusal or not cost.within_law:
            yield told


def costs_of_shapes(seed: int) -> Iterator[str]:
    """Arrays of any message, their elements as dense as it gets."""
    dice = Random(f"shapes {seed}")
    dearest: list[tuple[float, str]] = []
    for _ in range(SHAPES):
        told, cost = shape(dice)
        dearest.append(((cost.peak_bytes - (1 << 20)) / cost.size, told))
        if not cost.within_law:
            yield told
    dearest.sort(reverse=True)
    print(f"Memory of {SHAPES} dense shapes; the dearest for its size, without the free 1 MiB:")
    for per_byte, told in dearest[:5]:
        print(f"  {per_byte:5.2f} {told}", flush=True)


def shape(dice: Random) -> tuple[str, Cost]:
    while True:
        name, version = dice.choice(PAIRS)
        schema = schema_named(name)
        paths = list(array_paths(schema, version))
        if paths:
            break
    path, style, size = dice.choice(paths), random_style(dice), dice.choice(SHAPE_SIZES)
    one, two = (len(blown_up(schema, version, path, count, style)) for count in (1, 2))
    data = blown_up(schema, version, path, size // (two - one), style)
    cost = cost_of(schema.cls, version, memoryview(data))
    steps = ".".join(field.name for field in path)
    return f"{name} v{version} {steps} {style}: {cost}", cost


def times_of_what_is_hostile() -> Iterator[str]:
    print("Hostile frames of 20 MB:")
    for hostile in hostile_messages():
        seconds, error = refusal(hostile)
        told = f"{seconds * 1e3:6.1f} ms {hostile.name} v{hostile.version}, {hostile.what}"
        print(f"  {told}: {error[:100]}", flush=True)
        if seconds > HOSTILE_SECONDS_MAX or not error:
            yield told


def refusal(hostile: Hostile) -> tuple[float, str]:
    """The least time of some attempts, and why the frame is refused.

    Time of the processor: what others do on it meanwhile is not the frame's.
    """
    api = APIS_BY_NAME[hostile.name.removesuffix("Request")]
    header = api.key.to_bytes(2, "big") + hostile.version.to_bytes(2, "big") + b"\0\0\0\7\xff\xff"
    tags = b"\0" if api.is_flexible(hostile.version) else b""
    frame = memoryview(header + tags + hostile.data)
    least, error = float("inf"), ""
    for _ in range(7):
        start = process_time()
        try:
            request = read_request(frame)
            decode(request.api.request(), request.version, request.body)
        except ProtocolError as refused:
            error = str(refused)
        least = min(least, process_time() - start)
    return least, error
