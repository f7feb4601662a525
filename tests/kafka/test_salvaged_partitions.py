# SPDX-License-Identifier: Apache-2.0
"""A real broker loads a partition that `raftlog salvage` has made, truncates nothing of it, and leads it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from raftlog.records.files.checkpoint_files import read_leader_epoch_checkpoint
from tests.hang_limit import HANG_S
from tests.kafka import dump_tool
from tests.kafka.controller import held_port, install_server, looks
from tests.kafka.dump_tool import JVM_OPTIONS
from tests.other_processes import started
from tests.tools.console import run
from tests.tools.salvage.partitions.test_partition_salvage import NODE, TRUTH, TXN, batches, brokers, spoil

pytestmark = dump_tool.marks("a real Kafka")


def properties(directory: Path) -> Path:
    """The configuration of a node that is controller and broker, on free ports."""
    path = directory.parent / "node.properties"
    controller, broker = held_port(), held_port()
    path.write_text(
        "process.roles=controller,broker\nnode.id=1\ncontroller.listener.names=CONTROLLER\n"
        f"listeners=CONTROLLER://127.0.0.1:{controller},PLAINTEXT://127.0.0.1:{broker}\n"
        f"controller.quorum.bootstrap.servers=127.0.0.1:{controller}\nlog.dirs={directory}\n"
    )
    return path


def epochs(partition: Path) -> list[int]:
    """The leader epochs in the checkpoint of a partition."""
    return [entry.epoch for entry in read_leader_epoch_checkpoint((partition / "leader-epoch-checkpoint").read_bytes())]


@pytest.mark.parametrize("steps_over", [False, True])
def test_a_broker_goes_on_with_a_salvaged_partition(steps_over: bool, tmp_path: Path) -> None:
    """It was mended from a second copy; with a hole that was stepped over, or cut where no copy had a batch."""
    node = Path(shutil.copytree(NODE, tmp_path / "node"))
    (other,) = brokers(tmp_path, 2)
    for directory, numbers in ((node, (1, 5)), (other, (2, 5))):
        for number in numbers:
            spoil(directory, TRUTH[number].base_offset)
    options = ("--step-over",) if steps_over else ()
    given = (node, other, "--partition", TXN, "--metadata", node, "--plan", tmp_path / "plan")
    assert run("salvage", *given, *options).exit_code == 0
    assert run("salvage", "--apply", tmp_path / "plan", "--out", tmp_path / "new").exit_code == 0
    shutil.rmtree(node / TXN)
    shutil.move(tmp_path / "new" / TXN, node / TXN)
    (node / ".kafka_cleanshutdown").unlink(missing_ok=True)
    expected = [batch for number, batch in enumerate(TRUTH) if number < 5 or (number > 5 and steps_over)]
    assert batches(node / TXN) == expected

    printed = tmp_path / "node.out"
    command = ["java", *JVM_OPTIONS, "-cp", f"{install_server()}{os.sep}*", "kafka.Kafka", str(properties(node))]
    with printed.open("wb") as out, started(command, stdout=out, stderr=subprocess.STDOUT) as process:
        for _ in looks(process):
            if len(epochs(node / TXN)) > 1 and list((node / TXN).glob("*.timeindex")):
                break
        process.terminate()
        process.wait(HANG_S)
    said = printed.read_text(errors="replace")
    assert epochs(node / TXN) == [0, 2], said
    assert batches(node / TXN) == expected, said
    segments = sorted(path.name[:20] for path in (node / TXN).glob("*.log"))
    assert segments == sorted(path.name[:20] for path in (node / TXN).glob("*.index"))
