# SPDX-License-Identifier: Apache-2.0
"""A controller of Kafka is followed from before it has a log, while it runs, stops and runs again."""

import json
import signal
from pathlib import Path
from typing import Any

from tests.kafka import dump_tool
from tests.kafka.controller import Controller
from tests.tools.console import dump_jsonl, start
from tests.tools.log_console import CLUSTER

pytestmark = dump_tool.marks("a real Kafka")


def test_a_running_controller_is_followed(tmp_path: Path) -> None:
    """What is printed while a controller runs, stops and runs again is what dump-log prints in the end."""
    controller = Controller(tmp_path / "n1")
    controller.directory.mkdir()
    with start("follow", "--format", "jsonl", "--interval", "0.05", str(controller.directory)) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "waiting"
        controller.format(CLUSTER, "--standalone")
        with controller.running():
            batches = controller.wait_until_leader(0)
        with controller.running():
            controller.wait_until_leader(batches[-1].partition_leader_epoch)
        last_offset = controller.batches()[-1].last_offset
        lines: list[dict[str, Any]] = []
        while not lines or lines[-1].get("offset") != last_offset:
            lines.append(json.loads(process.stdout.readline()))
        process.send_signal(signal.SIGINT)
        rest, messages = process.communicate()
    dumped = dump_jsonl(*sorted(controller.log_directory.glob("*.log")))
    assert lines == [line for line in dumped.objects if line["kind"] != "coverage"]
    assert (process.returncode, rest, messages) == (0, b"", b"")
    assert dumped.exit_code == 0
