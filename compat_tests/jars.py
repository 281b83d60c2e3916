"""Apache Kafka's jars and our own Java programs, kept outside the repository.

Maven downloads the jars of one version once; `javac` compiles `java/*.java` once for each state of
the sources. Both land in the cache by a rename, under a lock, so that runs which start together
neither see half a directory nor download twice. OTTLA_CACHE moves the cache.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

KAFKA_VERSION = "4.3.1"
JAVA_SOURCES = Path(__file__).parent / "java"


def cache_directory() -> Path:
    named = os.environ.get("OTTLA_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "ottla"


def why_no_java() -> str | None:
    """The one reason for which tests that need Kafka's jars are skipped, or None."""
    missing = [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]
    if not missing:
        return None
    return f"needs Java 17 or later and Maven; not found: {', '.join(missing)}"


def kafka_jars(version: str = KAFKA_VERSION) -> Path:
    """The directory with Kafka's jars of one version, filled on first use."""
    return filled_once(cache_directory() / f"kafka-{version}", lambda to: _copy_jars(version, to))


def class_path(version: str = KAFKA_VERSION) -> str:
    return str(kafka_jars(version) / "*")


def compiled_java() -> str:
    """The class path of our Java programs, with Kafka's jars behind them."""
    sources = sorted(JAVA_SOURCES.glob("*.java"))
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    target = cache_directory() / f"java-{KAFKA_VERSION}-{digest.hexdigest()[:16]}"
    jars = class_path()  # before the lock is taken: it is the same lock
    filled_once(target, lambda to: _compile(sources, jars, to))
    return f"{target}{os.pathsep}{jars}"


def filled_once(target: Path, fill: Callable[[Path], None]) -> Path:
    """The directory `target`, made by `fill` unless it is there: whole, or not at all."""
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _lock(target.parent / ".lock"):
        if target.is_dir():
            return target
        work = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            fill(work)
            work.rename(target)
        except BaseException:
            shutil.rmtree(work, ignore_errors=True)
            raise
    return target


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    """One lock for the whole cache: Maven's local repository does not bear two writers either."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _copy_jars(version: str, to: Path) -> None:
    run(
        "mvn",
        "--batch-mode",
        "--quiet",
        f"--file={JAVA_SOURCES / 'pom.xml'}",
        f"-Dkafka.version={version}",
        f"-DoutputDirectory={to}",
        "-DincludeScope=runtime",
        "dependency:copy-dependencies",
    )


def _compile(sources: list[Path], jars: str, to: Path) -> None:
    options = [
        "-Xlint:all,-classfile,-processing,-path",
        "-Werror",
        "-proc:none",
        "--release",
        "17",
    ]
    run("javac", *options, "-cp", jars, "-d", str(to), *map(str, sources))


def run(*command: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        said = f"{done.stdout}\n{done.stderr}".strip()
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {said}")
