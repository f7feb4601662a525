# SPDX-License-Identifier: Apache-2.0
"""Runs a real quorum of three controllers, or of one, and a broker with work to do."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import attrs

from raftlog.records.files.property_files import read_meta_properties
from raftlog.storage.state.log_directory import random_directory_id
from raftlog.uuid_text import uuid_to_text
from tests.hang_limit import HANG_S
from tests.kafka.controller import NEWEST_RELEASE, held_port, install_server, looks
from tests.kafka.dump_tool import JVM_OPTIONS
from tests.kafka.java_programs import class_path
from tests.other_processes import started

CONTROLLERS: Final = (1, 2, 3)
BROKER: Final = 101
_LOAD: Final = Path(__file__).with_name("LiveLoad.java")
_GROWTH: Final = Path(__file__).with_name("GrowQuorum.java")
_SETTINGS: Final = {
    "metadata.log.max.record.bytes.between.snapshots": "20000",
    "metadata.log.max.snapshot.interval.ms": "3000",
    "internal.metadata.log.segment.bytes": "40000",
    "metadata.max.retention.bytes": "100000",
    "log.retention.check.interval.ms": "1000",
    "log.cleaner.backoff.ms": "500",
    "log.initial.task.delay.ms": "500",
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.segment.bytes": "1048576",
}
"""So that segments are rolled, deleted and compacted, and snapshots made, many times within two minutes."""


@attrs.frozen
class Load:
    """What gives a broker work."""

    _process: "subprocess.Popen[bytes]"
    _half: Path
    _whole: Path

    def rounds(self) -> Iterator[bool]:
        """Yield until all work is done, and twice at least: True once, when half of it is."""
        yield False
        was_half = False
        while not self._has_made(self._whole) or not was_half:
            is_half = not was_half and self._has_made(self._half)
            was_half |= is_half
            yield is_half

    def counts(self) -> list[int]:
        """How many records, transactions and topics there were; waits for that, and for one more topic that is used."""
        assert self._process.stdout is not None
        self.end()
        return list(map(int, self._process.stdout.readline().split()))

    def end(self) -> None:
        """Say that there need not be more work than is asked for."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _has_made(self, mark: Path) -> bool:
        return mark.exists() or self._process.poll() is not None


@attrs.define
class LiveQuorum:
    """A quorum of controllers and a broker, whose log directories are below one directory.

    Attributes:
        path: the directory of the log directories, which has nothing else.
        work: a directory for everything else.
        controllers: ids of the first voters.
        release: of Kafka.
    """

    path: Path
    work: Path
    controllers: tuple[int, ...] = attrs.field(default=CONTROLLERS, kw_only=True)
    release: str = attrs.field(default=NEWEST_RELEASE, kw_only=True)
    _ports: dict[int, int] = attrs.field(init=False)
    _directory_ids: dict[int, str] = attrs.field(init=False)
    _nodes: dict[int, "subprocess.Popen[bytes]"] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._ports = {node: held_port() for node in (*self.controllers, BROKER)}
        self._directory_ids = {node: uuid_to_text(random_directory_id()) for node in self.controllers}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Format and start all nodes; kill them when the block ends."""
        self.path.mkdir()
        self.work.mkdir()
        cluster_id = uuid_to_text(random_directory_id())
        for node in (*self.controllers, BROKER):
            self._format(node, cluster_id)
        try:
            for node in (*self.controllers, BROKER):
                self.start(node)
            yield
        finally:
            for node in list(self._nodes):
                self.kill(node)

    def start(self, node: int) -> None:
        """Start a node."""
        with (self.work / f"node{node}.out").open("ab") as out:
            self._nodes[node] = subprocess.Popen(
                self._java("kafka.Kafka", str(self._properties(node))), stdout=out, stderr=subprocess.STDOUT
            )

    def stop(self, node: int) -> None:
        """Stop a node as an operator does, and wait until it has ended."""
        process = self._nodes.pop(node)
        process.terminate()
        process.wait(HANG_S)

    def kill(self, node: int) -> None:
        """Kill a node, which has no time to do anything about it."""
        process = self._nodes.pop(node)
        process.send_signal(signal.SIGKILL)
        process.wait(HANG_S)

    def check_running(self) -> None:
        """Check that all nodes that were started are running.

        Raises:
            AssertionError: one has ended; what it printed is in the message.
        """
        for node, process in self._nodes.items():
            printed = self.work / f"node{node}.out"
            assert process.poll() is None, f"node {node} has ended:\n{printed.read_text(errors='replace')[-4000:]}"

    def wait_until(self, node: int, holds: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds that a node sees to.

        Raises:
            AssertionError: it did not, before one calls it a hang, or a node has ended.
        """
        for _ in looks(self._nodes[node]):
            if holds():
                return
        self.check_running()
        raise AssertionError(f"no {what} in {HANG_S} s")

    @contextmanager
    def loaded(self, transactions: int) -> Iterator["Load"]:
        """Give the broker work: about twenty transactions a second, and other records beside them.

        Raises:
            AssertionError: the broker did not do its work.
        """
        errors, marks = self.work / "load.err", (self.work / "half", self.work / "whole")
        address = f"localhost:{self._ports[BROKER]}"
        command = [
            "java",
            *JVM_OPTIONS,
            "-cp",
            self._class_path(_LOAD),
            "LiveLoad",
            address,
            str(transactions),
            *map(str, marks),
        ]
        pipe = subprocess.PIPE
        with errors.open("wb") as err, started(command, stdin=pipe, stdout=pipe, stderr=err) as process:
            assert process.stdout is not None
            ready = process.stdout.readline()
            self.check_running()
            assert ready == b"ready\n", errors.read_text(errors="replace")[-4000:]
            load = Load(process, *marks)
            yield load
            load.end()
            process.wait(HANG_S)
            assert process.returncode == 0, errors.read_text(errors="replace")[-4000:]

    def grown(self, leader: int, topic: str, added: Iterable[int]) -> list[str]:
        """Use the cluster, and add observers to its voters; return what ``GrowQuorum.java`` prints.

        Args:
            leader: of the voters.
            topic: that is there.
            added: observers, which are running.
        """
        arguments = [f"localhost:{self._ports[BROKER]}", f"localhost:{self._ports[leader]}", topic]
        for node in added:
            meta = read_meta_properties((self.path / f"n{node}/meta.properties").read_bytes())
            assert meta.directory_id is not None
            arguments += [str(node), uuid_to_text(meta.directory_id), str(self._ports[node])]
        command = ["java", *JVM_OPTIONS, "-cp", self._class_path(_GROWTH), "GrowQuorum", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
        self.check_running()
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout.splitlines()

    def voter(self, node: int) -> str:
        """Return a controller as ``--initial-controllers`` has it."""
        return f"{node}@localhost:{self._ports[node]}:{self._directory_ids[node]}"

    def format_observer(self, node: int, cluster_id: str) -> None:
        """Format a controller's directory, which is not there, as one that joins later."""
        command = ["format", "-t", cluster_id, "-c", str(self._properties(node)), "--no-initial-controllers"]
        self._run_storage_tool(command)

    def _format(self, node: int, cluster_id: str) -> None:
        command = ["format", "-t", cluster_id, "-c", str(self._properties(node))]
        if node in self.controllers:
            command += ["--initial-controllers", ",".join(map(self.voter, self.controllers))]
        else:
            command += ["--no-initial-controllers"]
        self._run_storage_tool(command)

    def _run_storage_tool(self, arguments: Iterable[str]) -> None:
        command = self._java("kafka.tools.StorageTool", *arguments)
        subprocess.run(command, check=True, capture_output=True, timeout=HANG_S)

    def _properties(self, node: int) -> Path:
        is_broker = node == BROKER
        servers = ",".join(f"localhost:{self._ports[each]}" for each in self.controllers)
        settings = _SETTINGS | {
            "process.roles": "broker" if is_broker else "controller",
            "node.id": str(node),
            "controller.listener.names": "CONTROLLER",
            "listeners": f"{'PLAINTEXT' if is_broker else 'CONTROLLER'}://localhost:{self._ports[node]}",
            "controller.quorum.bootstrap.servers": servers,
            "log.dirs": str(self.path / f"n{node}"),
        }
        path = self.work / f"node{node}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return path

    def _java(self, main_class: str, *arguments: str) -> list[str]:
        return ["java", *JVM_OPTIONS, "-cp", f"{install_server(self.release)}{os.sep}*", main_class, *arguments]

    def _class_path(self, program: Path) -> str:
        return class_path(install_server(self.release), program)
