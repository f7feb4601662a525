# SPDX-License-Identifier: Apache-2.0
"""Runs two real clusters of a broker each, and a real MirrorMaker between them, whose flows differ in settings."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import attrs

from tests.hang_limit import HANG_S
from tests.kafka.controller import NEWEST_RELEASE, held_port, install_jars, looks
from tests.kafka.dump_tool import JVM_OPTIONS
from tests.kafka.java_programs import class_path

SOURCE: Final = "source"
TARGET: Final = "target"
_HERE: Final = Path(__file__).resolve().parent
_CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qg"
_BROKER: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",
    "group.min.session.timeout.ms": "500",
}
_MIRROR_MAKER: Final = {
    "replication.factor": "1",
    "checkpoints.topic.replication.factor": "1",
    "heartbeats.topic.replication.factor": "1",
    "offset-syncs.topic.replication.factor": "1",
    "offset.storage.replication.factor": "1",
    "offset.storage.partitions": "1",
    "status.storage.replication.factor": "1",
    "status.storage.partitions": "1",
    "config.storage.replication.factor": "1",
    "emit.heartbeats.enabled": "false",
    "offset.lag.max": "10",
    "refresh.topics.interval.seconds": "3600",
    "refresh.groups.interval.seconds": "1",
    "emit.checkpoints.interval.seconds": "1",
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "1",
    "tasks.max": "1",
}
_WORKER: Final = {
    "offset.flush.interval.ms": "3600000",
    "session.timeout.ms": "2000",
    "heartbeat.interval.ms": "500",
    "scheduled.rebalance.max.delay.ms": "0",
}
"""Connect stores no offset but at a clean stop, and a worker that is killed is soon given up."""


@attrs.define
class MirroredClusters:
    """Two clusters and a MirrorMaker.

    Attributes:
        path: a directory for all of it.
        flows: the settings of each flow, by the alias that it gives the source; see ``target_alias``.
    """

    path: Path
    flows: Mapping[str, Mapping[str, str]]
    _ports: dict[str, tuple[int, int]] = attrs.field(init=False)
    _processes: dict[str, "subprocess.Popen[bytes]"] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._ports = {cluster: (held_port(), held_port()) for cluster in (SOURCE, TARGET)}

    def directory(self, cluster: str) -> Path:
        """Return the log directory of a cluster."""
        return self.path / cluster

    @contextmanager
    def running(self) -> Iterator[None]:
        """Format and start both brokers; kill all processes when the block ends."""
        with ExitStack() as formatting:
            for cluster in (SOURCE, TARGET):
                command = ["format", "-t", _CLUSTER_ID, "-c", str(self._broker_properties(cluster)), "--standalone"]
                quiet = subprocess.DEVNULL
                java = self._java("kafka.tools.StorageTool", *command)
                formatting.enter_context(subprocess.Popen(java, stdout=quiet, stderr=quiet))
        try:
            for cluster in (SOURCE, TARGET):
                self._start(cluster, "kafka.Kafka", str(self._broker_properties(cluster)))
            yield
        finally:
            for name in list(self._processes):
                self.end(name, signal.SIGKILL)

    def load(self, records: int, committed: int) -> None:
        """Write records to the source, and let a group commit (MirrorLoad.java)."""
        program = _HERE / "MirrorLoad.java"
        command = ["java", *JVM_OPTIONS, "-cp", class_path(_jars(), program), "MirrorLoad"]
        arguments = [f"localhost:{self._ports[SOURCE][0]}", str(records), str(committed)]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=HANG_S, check=False)
        assert done.returncode == 0, done.stderr[-4000:] + self._printed(SOURCE)

    def start_mirror_maker(self) -> None:
        """Start MirrorMaker with all flows."""
        settings = dict(_MIRROR_MAKER)
        settings["clusters"] = ",".join(name for alias in self.flows for name in (alias, target_alias(alias)))
        for alias, flow in self.flows.items():
            target = target_alias(alias)
            settings[f"{alias}.bootstrap.servers"] = f"localhost:{self._ports[SOURCE][0]}"
            settings[f"{target}.bootstrap.servers"] = f"localhost:{self._ports[TARGET][0]}"
            settings |= {f"{target}.{name}": value for name, value in _WORKER.items()}
            own = {"enabled": "true", "topics": "orders|tx.orders|internal-looking"} | dict(flow)
            settings |= {f"{alias}->{target}.{name}": value for name, value in own.items()}
        path = self.path / "mirror-maker.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self._start("mirror-maker", "org.apache.kafka.connect.mirror.MirrorMaker", str(path))

    def end(self, name: str, number: signal.Signals) -> None:
        """Send a process a signal, and wait until it has ended."""
        process = self._processes.pop(name)
        process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(HANG_S)
            return
        process.kill()
        process.wait()
        raise AssertionError(f"{name} did not end:\n{self._printed(name)}")

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds that MirrorMaker sees to.

        Raises:
            AssertionError: it did not, before one calls it a hang, or MirrorMaker has ended.
        """
        for _ in looks(self._processes["mirror-maker"]):
            if holds():
                return
        raise AssertionError(f"no {what}:\n{self._printed('mirror-maker')}")

    def _start(self, name: str, main_class: str, *arguments: str) -> None:
        with (self.path / f"{name}.out").open("ab") as out:
            command = self._java(main_class, *arguments)
            self._processes[name] = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)

    def _printed(self, name: str) -> str:
        return (self.path / f"{name}.out").read_text(errors="replace")[-6000:]

    def _broker_properties(self, cluster: str) -> Path:
        port, controller_port = self._ports[cluster]
        settings = _BROKER | {
            "listeners": f"PLAINTEXT://localhost:{port},CONTROLLER://localhost:{controller_port}",
            "controller.quorum.bootstrap.servers": f"localhost:{controller_port}",
            "log.dirs": str(self.directory(cluster)),
        }
        path = self.path / f"{cluster}.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        return path

    @staticmethod
    def _java(main_class: str, *arguments: str) -> list[str]:
        return ["java", *JVM_OPTIONS, "-cp", f"{_jars()}{os.sep}*", main_class, *arguments]


def target_alias(source_alias: str) -> str:
    """Return the alias of the target in a flow: topics of offset syncs on the source are named after it alone."""
    return f"to{source_alias}"


def _jars() -> Path:
    return install_jars(_HERE / "mirror_maker" / "pom.xml", NEWEST_RELEASE)
