"""A broker as a container of `apache/kafka`, by testcontainers, whose reaper outlives the test run.

The broker's directories and its port have the same names inside the container and outside, and it
runs as our own user: files are read and removed as if a JVM of this machine had written them.
A container lives from start to stop; what it leaves is in the directories.
"""

# mypy: disable-error-code="import-untyped,import-not-found"

import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

IMAGE = "apache/kafka"
SCRIPTS = "/opt/kafka/bin"
STOP_TIMEOUT_S = 60


@cache
def docker_answers() -> bool:
    """Whether a Docker engine can be reached, and testcontainers is there to speak to it."""
    try:
        import docker
        import testcontainers.core  # noqa: F401
    except ImportError:
        return False
    try:
        docker.from_env(timeout=5).close()
    except docker.errors.DockerException:
        return False
    return True


class ContainerProcess:
    """Starts, stops and kills one broker; `directories` are what it reads and writes."""

    def __init__(
        self,
        *,
        version: str,
        config: Path,
        log: Path,
        options: Sequence[str],
        port: int,
        directories: Sequence[Path],
    ) -> None:
        self.version = version
        self._config = config
        self._log = log
        self._port = port
        self._directories = directories
        self._environment = {
            "KAFKA_HEAP_OPTS": " ".join(options),
            "KAFKA_JVM_PERFORMANCE_OPTS": " ",
            "KAFKA_GC_LOG_OPTS": " ",
            "LOG_DIR": "/tmp",
        }
        self._broker: DockerContainer | None = None

    def start(self) -> None:
        self._broker = self._container("kafka-server-start.sh", [str(self._config)])
        # Only this machine reaches it: a test broker asks nobody for a password.
        ports = cast(dict[str, object], self._broker.ports)
        ports[str(self._port)] = ("127.0.0.1", self._port)
        self._broker.start()

    def ended_within(self, seconds: float) -> bool:
        """Waits for the end of the broker, at most so long; True where it has ended."""
        if self._broker is None:
            return True
        from requests.exceptions import ConnectionError as NotYet
        from requests.exceptions import ReadTimeout

        try:
            self._broker.get_wrapped_container().wait(timeout=seconds)
        except (ReadTimeout, NotYet):  # which of the two depends on the engine's socket
            return False
        return True

    def stop(self) -> None:
        """Asks for a controlled shutdown; the engine kills a broker that will not end."""
        if self._broker is not None:
            self._broker.get_wrapped_container().stop(timeout=STOP_TIMEOUT_S)
        self._forget()

    def kill(self) -> None:
        if self._broker is not None and not self.ended_within(0.1):
            self._broker.get_wrapped_container().kill()
        self._forget()

    def tool(self, name: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """Runs in a container of its own, which shares the network of the broker, if one runs."""
        shared = self._broker and {"network_mode": f"container:{self._broker.get_container_id()}"}
        container = self._container("kafka-run-class.sh", [name, *arguments], **(shared or {}))
        try:
            container.start()
            code = container.wait()
            out, err = container.get_logs()
        finally:
            container.stop()
        return subprocess.CompletedProcess([name, *arguments], code, out.decode(), err.decode())

    def _container(self, script: str, command: list[str], **options: str) -> "DockerContainer":
        from testcontainers.core.container import DockerContainer

        container = DockerContainer(f"{IMAGE}:{self.version}", env=dict(self._environment))
        container.with_command(command)
        # The image's own entry point would write a configuration of its own making.
        entry = [f"{SCRIPTS}/{script}"]
        container.with_kwargs(entrypoint=entry, user=f"{os.getuid()}:{os.getgid()}", **options)
        for directory in self._directories:
            container.with_volume_mapping(directory, str(directory), "rw")
        return container

    def _forget(self) -> None:
        if self._broker is None:
            return
        out, err = self._broker.get_logs()
        with self._log.open("ab") as log:
            log.write(out + err)
        self._broker.stop()
        self._broker = None
