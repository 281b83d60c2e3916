"""A real Apache Kafka: one node, broker and controller, in a directory of its own.

    with Kafka(version="4.3.1", properties={"log.segment.bytes": "16384"}) as kafka:
        kafka.bootstrap, kafka.data_dir
        kafka.stop() or kafka.kill(), then kafka.start()
        kafka.tool("org.apache.kafka.tools.DumpLogSegments", "--files", ...)

A container where a Docker engine answers, else a JVM of this machine; OTTLA_KAFKA=docker or =jvm
decides otherwise. It serves when ApiVersions is answered and Metadata names a broker.
"""

import base64
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from compat_tests.container import ContainerProcess, docker_answers
from compat_tests.jars import KAFKA_VERSION, why_no_java
from compat_tests.jvm import JvmProcess

START_ATTEMPTS = 3
SERVES_TRIES = 600
SERVES_TRY_S = 0.1
CLUSTER_ID = base64.urlsafe_b64encode(b"ottla compares 1").rstrip(b"=").decode()
JVM_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LOG_LINES_SHOWN = 80


class BrokerProcess(Protocol):
    """What runs the broker: a JVM or a container."""

    def start(self) -> None: ...
    def ended_within(self, seconds: float) -> bool: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...
    def tool(self, name: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]: ...


def chosen_engine() -> str:
    return os.environ.get("OTTLA_KAFKA") or ("docker" if docker_answers() else "jvm")


def why_no_kafka() -> str | None:
    """The one reason for which tests that need a real Kafka are skipped, or None."""
    return None if chosen_engine() == "docker" else why_no_java()


class Kafka:
    """One broker. Its ports and directories stay the same from start to start."""

    def __init__(
        self,
        *,
        version: str = KAFKA_VERSION,
        properties: Mapping[str, str] | None = None,
        data_dir: Path | None = None,
        jvm_options: Sequence[str] = JVM_OPTIONS,
        features: Mapping[str, int] | None = None,
    ) -> None:
        """`features` are finalized when the directory is formatted, others as Kafka likes."""
        self.version = version
        self.directory = Path(tempfile.mkdtemp(prefix="ottla-kafka-"))
        self.data_dir = data_dir or self.directory / "data"
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.log_file = self.directory / "broker.log"
        self._properties = dict(properties or {})
        self._jvm_options = tuple(jvm_options)
        self._features = dict(features or {})
        self._config = self.directory / "server.properties"
        self._configure()

    def __enter__(self) -> Self:
        try:
            self._format()
            self._start_on_free_ports()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            sys.stderr.write(f"--- log of Apache Kafka {self.version}\n{self.log_tail()}\n")
        self.close()

    @property
    def pid(self) -> int:
        """Of the JVM: in a container it has none that means anything here."""
        if not isinstance(self._process, JvmProcess):
            raise RuntimeError("the broker is in a container")
        return self._process.pid

    def start(self) -> None:
        """Starts the broker again after `stop` or `kill`; returns when it serves."""
        self._process.start()
        for _ in range(SERVES_TRIES):
            if self._process.ended_within(SERVES_TRY_S):
                break
            if serves(self.port):
                return
        self._process.kill()
        raise RuntimeError(f"Apache Kafka {self.version} does not serve:\n{self.log_tail()}")

    def stop(self) -> None:
        """A controlled shutdown, as SIGTERM starts it."""
        self._process.stop()

    def kill(self) -> None:
        """The end without notice: SIGKILL."""
        self._process.kill()

    def close(self) -> None:
        """Ends the broker, if it runs, and removes its directory (a `data_dir` handed in stays)."""
        self._process.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def tool(self, name: str, *arguments: str) -> str:
        """What one of Kafka's command line classes prints; its failure is an error here."""
        done = self.run_tool(name, *arguments)
        if done.returncode != 0:
            raise RuntimeError(f"{name} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def run_tool(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The same with all that it says; the broker need not run."""
        return self._process.tool(name, arguments)

    def log_tail(self, lines: int = LOG_LINES_SHOWN) -> str:
        if not self.log_file.exists():
            return "(no log)"
        return "\n".join(self.log_file.read_text(errors="replace").splitlines()[-lines:])

    def _start_on_free_ports(self) -> None:
        """A port that was free a moment ago may be taken by now; then two others are tried."""
        for attempt in range(1, START_ATTEMPTS + 1):
            try:
                self.start()
                return
            except RuntimeError as error:
                if attempt == START_ATTEMPTS or "already in use" not in str(error):
                    raise
                self._configure()

    def _format(self) -> None:
        if not (self.data_dir / "meta.properties").exists():
            arguments = ["format", "-t", CLUSTER_ID, "-c", str(self._config), "--standalone"]
            for feature, level in self._features.items():
                arguments += ["--feature", f"{feature}={level}"]
            self.tool("kafka.tools.StorageTool", *arguments)

    def _configure(self) -> None:
        self.port, self._controller_port = free_ports(2)
        self.bootstrap = f"127.0.0.1:{self.port}"
        docker = chosen_engine() == "docker"
        lines = {**self._defaults("0.0.0.0" if docker else "127.0.0.1"), **self._properties}
        self._config.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        self._process = self._container() if docker else self._jvm()

    def _jvm(self) -> BrokerProcess:
        return JvmProcess(
            version=self.version,
            config=self._config,
            log=self.log_file,
            options=self._jvm_options,
        )

    def _container(self) -> BrokerProcess:
        return ContainerProcess(
            version=self.version,
            config=self._config,
            log=self.log_file,
            options=self._jvm_options,
            port=self.port,
            directories=[self.directory, self.data_dir],
        )

    def _defaults(self, listen_on: str) -> dict[str, str]:
        controller = f"127.0.0.1:{self._controller_port}"
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://{listen_on}:{self.port},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.bootstrap}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": controller,
            "log.dirs": str(self.data_dir),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on; all are held until the last is found, so that they differ."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def serves(port: int) -> bool:
    """Whether ApiVersions is answered and Metadata names a broker.

    The first alone is too early: a broker answers before the controller lets it take part.
    """
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            api_versions = _ask(connection, struct.pack(">hhih", 18, 0, 1, -1))
            # Metadata v1 with no topics; the answer begins with the count of brokers.
            metadata = _ask(connection, struct.pack(">hhihi", 3, 1, 2, -1, 0))
    except OSError:
        return False
    return api_versions[:2] == b"\0\0" and metadata[:4] > b"\0\0\0\0"


def _ask(connection: socket.socket, request: bytes) -> bytes:
    """One request; the answer without its correlation id."""
    connection.sendall(struct.pack(">i", len(request)) + request)
    with connection.makefile("rb") as answer:
        (length,) = struct.unpack(">i", answer.read(4).rjust(4, b"\0"))
        return answer.read(length)[4:]
