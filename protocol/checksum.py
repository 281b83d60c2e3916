"""CRC32C, from the native extension alone.

Knows no batch. The package `crc32c` imports argparse and importlib.metadata, which costs a start-up
tens of milliseconds; its extension module alone loads in half of one, so that is what is loaded.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder

from ottla.protocol.wire import Buffer


def _load() -> Callable[[Buffer], int]:
    package = PathFinder.find_spec("crc32c")
    places = package.submodule_search_locations if package else None
    extension = PathFinder.find_spec("crc32c._crc32c", places) if places else None
    if extension is None or extension.loader is None:
        # Installed in a way that the path finder does not know (a zip, a frozen application).
        from crc32c import crc32c

        return crc32c
    module = extension.loader.create_module(extension)
    if module is None:
        raise ImportError("crc32c's extension module cannot be loaded", name="crc32c")
    extension.loader.exec_module(module)
    native: Callable[[Buffer], int] = module.crc32c
    return native


crc32c = _load()
