"""Clients in Go, Node.js and Rust: small programs of ours in `clients/`, built once in the cache.

Each tells a story of its own to a broker and prints what it sees.
"""

import hashlib
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from compat_tests.jars import cache_directory, filled_once, run

SOURCES = Path(__file__).parent / "clients"
TIMEOUT_S = 180


def built(language: str, build: Callable[[Path, Path], None]) -> Path:
    """The folder with what `build` makes of the sources, for each state of the sources once."""
    source = SOURCES / language
    digest = hashlib.sha256()
    for path in sorted(each for each in source.rglob("*") if each.is_file()):
        digest.update(str(path.relative_to(source)).encode() + b"\0" + path.read_bytes() + b"\0")
    target = cache_directory() / f"clients-{language}-{digest.hexdigest()[:16]}"
    return filled_once(target, lambda to: build(source, to))


def go() -> list[str]:
    def build(source: Path, to: Path) -> None:
        run("go", "build", "-C", str(source), "-o", str(to / "clients"), ".")

    return [str(built("go", build) / "clients")]


def node() -> list[str]:
    def build(source: Path, to: Path) -> None:
        shutil.copytree(source, to, dirs_exist_ok=True)
        run("npm", "install", "--prefix", str(to), "--silent", "--no-audit", "--no-package-lock")

    return ["node", str(built("node", build) / "main.js")]


def rust() -> list[str]:
    def build(source: Path, to: Path) -> None:
        # Beside the sources cargo would leave its lock file.
        shutil.copytree(source, to, dirs_exist_ok=True)
        run("cargo", "build", "--quiet", f"--manifest-path={to / 'Cargo.toml'}")

    return [str(built("rust", build) / "target" / "debug" / "ottla-clients")]


# The client: what its toolchain is called, and the command that tells its story.
CLIENTS: dict[str, tuple[str, Callable[[], list[str]]]] = {
    "franz-go": ("go", lambda: [*go(), "franz-go"]),
    "sarama": ("go", lambda: [*go(), "sarama"]),
    "kafkajs": ("npm", node),
    "rskafka": ("cargo", rust),
}


def why_not(client: str) -> str | None:
    tool = CLIENTS[client][0]
    return None if shutil.which(tool) else f"needs {tool}"


def tell(client: str, bootstrap: str, topic: str) -> str:
    """What the client's program prints."""
    command = [*CLIENTS[client][1](), bootstrap, topic]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S
    )
    return done.stdout + done.stderr
