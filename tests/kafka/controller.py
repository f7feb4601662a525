# SPDX-License-Identifier: Apache-2.0
"""Runs a real Kafka controller, alone in its quorum, on a metadata directory.

Maven fetches a whole server (server/pom.xml); the controller listens on a free port of the loopback device.
"""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.iterator import BufferSource, split
from raftlog.records.messages.control import LeaderChangeMessage, read_control_record
from tests.hang_limit import HANG_S
from tests.kafka.dump_tool import JVM_OPTIONS
from tests.kafka.java_programs import fetched

POM = Path(__file__).resolve().parent / "server" / "pom.xml"
NEWEST_RELEASE = "4.3.1"
METADATA_DIRECTORY = "__cluster_metadata-0"
POLL_S = 0.05
"""Kafka does not say when it has written to its log, so that is looked at, so often."""


def install_server(release: str = NEWEST_RELEASE) -> Path:
    """Fetches a server's jars, unless they are there; returns their folder.

    Raises:
        subprocess.CalledProcessError: Maven could not resolve them; its output is in the exception.
    """
    return install_jars(POM, release)


def install_jars(pom: Path, release: str) -> Path:
    """Fetches the jars that a pom.xml lists, for a release of Kafka, unless they are there; returns their folder.

    Raises:
        subprocess.CalledProcessError: Maven could not resolve them; its output is in the exception.
    """
    return fetched(pom, pom.parent / "target" / release, f"-Dkafka.version={release}")


_held: list[socket.socket] = []
"""Keeps the ports of this process's controllers; see `held_port`."""


def held_port() -> int:
    """Returns a free port of the loopback device that only a controller of this process gets, until the process ends.

    A controller binds its port some seconds after it was chosen, and again when it is restarted. A port that nobody
    holds may then belong to any connection of another test, which makes the controller end with 1. Linux gives a port
    that is bound and reusable to nobody who does not ask for it by number, and a server may still listen on it.
    """
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("localhost", 0))
    _held.append(holder)
    port: int = holder.getsockname()[1]
    return port


def looks(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Yield every so often, until a process has ended, or one calls it a hang."""
    deadline = time.monotonic() + HANG_S
    while time.monotonic() < deadline:
        yield
        with suppress(subprocess.TimeoutExpired):
            process.wait(POLL_S)
            return


@attrs.define
class Controller:
    """A controller of a log directory, and what a test asks of it.

    Attributes:
        directory: the log directory, with `meta.properties` and the metadata partition in it.
        node_id: as the directory says.
        port: of its CONTROLLER listener.
        release: of Kafka.
        static_voters: the value of `controller.quorum.voters`, for a quorum of kraft.version 0.
    """

    directory: Path
    node_id: int = 1
    port: int = attrs.field(factory=held_port)
    release: str = attrs.field(default=NEWEST_RELEASE, kw_only=True)
    static_voters: str = attrs.field(default="", kw_only=True)
    _process: subprocess.Popen[bytes] | None = attrs.field(default=None, init=False)

    @property
    def log_directory(self) -> Path:
        """The metadata partition's directory."""
        return self.directory / METADATA_DIRECTORY

    def format(self, cluster_id: str, *arguments: str) -> None:
        """Lets kafka-storage format the directory."""
        command = ["format", "-t", cluster_id, "-c", str(self._properties()), *arguments]
        subprocess.run(self._java("kafka.tools.StorageTool", *command), check=True, capture_output=True, timeout=HANG_S)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Runs the controller until the block ends, then stops it as an operator would: started, and with SIGTERM.

        A controller leads, alone, before it listens. A signal in between may end its start with an error.

        Raises:
            AssertionError: it did not stop cleanly; what it printed is in the message.
        """
        printed = self.directory / "controller.out"
        with printed.open("wb") as out:
            command = self._java("kafka.Kafka", str(self._properties()))
            self._process = process = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        try:
            yield
            for _ in looks(process):
                if self._listens():
                    break
        finally:
            process.terminate()
            try:
                status = process.wait(HANG_S)
            finally:
                process.kill()
        assert status in (0, 143), f"the controller ended with {status}:\n{printed.read_text(errors='replace')}"

    def wait_for(self, condition: Callable[[list[RecordBatch]], bool], what: str) -> list[RecordBatch]:
        """Waits until the batches of the log fulfil a condition, and returns them.

        Raises:
            AssertionError: they did not, before one calls it a hang, or the controller has ended.
        """
        assert self._process is not None, "the controller is not running"
        for _ in looks(self._process):
            batches = self.batches()
            if condition(batches):
                return batches
        printed = (self.directory / "controller.out").read_text(errors="replace")
        raise AssertionError(f"no {what}; the controller ended, or took more than {HANG_S} s, and said:\n{printed}")

    def wait_until_leader(self, above_epoch: int) -> list[RecordBatch]:
        """Waits until the node has written as leader of an epoch above one, and something after that."""

        def leads(batches: list[RecordBatch]) -> bool:
            leaders = {batch.partition_leader_epoch for batch in batches if self.node_id in leaders_in(batch)}
            newest = max(leaders, default=-1)
            return newest > above_epoch and any(
                batch.partition_leader_epoch == newest and not batch.is_control for batch in batches
            )

        return self.wait_for(leads, f"leadership of node {self.node_id} above epoch {above_epoch}")

    def batches(self) -> list[RecordBatch]:
        """The sound batches of the log as it is on disk now."""
        segments = sorted(self.log_directory.glob("*.log"))
        return [
            piece
            for segment in segments
            for piece in split(BufferSource(segment.read_bytes()))
            if isinstance(piece, RecordBatch) and piece.crc_holds
        ]

    def _listens(self) -> bool:
        with suppress(ConnectionRefusedError), socket.create_connection(("localhost", self.port), HANG_S):
            return True
        return False

    def _properties(self) -> Path:
        path = self.directory / "controller.properties"
        found_by = f"bootstrap.servers=localhost:{self.port}"
        if self.static_voters:
            found_by = f"voters={self.static_voters}"
        path.write_text(
            "process.roles=controller\n"
            f"node.id={self.node_id}\n"
            "controller.listener.names=CONTROLLER\n"
            f"listeners=CONTROLLER://localhost:{self.port}\n"
            f"controller.quorum.{found_by}\n"
            f"log.dirs={self.directory}\n"
        )
        return path

    def _java(self, main_class: str, *arguments: str) -> list[str]:
        return ["java", *JVM_OPTIONS, "-cp", f"{install_server(self.release)}{os.sep}*", main_class, *arguments]


def leaders_in(batch: RecordBatch) -> list[int]:
    """The leaders that a batch's LeaderChange records name."""
    if not batch.is_control:
        return []
    values = (read_control_record(record.key, record.value).value for record in batch.records())
    return [value.leader_id for value in values if isinstance(value, LeaderChangeMessage)]
