# SPDX-License-Identifier: Apache-2.0
"""What Kafka's own raft client makes of control records when it starts, for each release."""

from collections.abc import Iterable
from typing import NamedTuple

from tests.kafka import dump_tool
from tests.tools.loading.control_logs import ControlLog


class KafkaControls(NamedTuple):
    """What became of the records.

    Attributes:
        stopped: "-" for nowhere, "snapshot", or the base offset of the batch in the log.
        kraft_version: in force at the end; None if it stopped.
        reason: the exception; empty if it did not stop.
    """

    stopped: str
    kraft_version: int | None
    reason: str


def kafka_controls(release: str, logs: Iterable[ControlLog]) -> list[KafkaControls]:
    """Let the raft client of a release read the control records of logs and snapshots."""
    said = dump_tool.answers("ControlReplay", release, (line for log in logs for line in _lines(log)))
    return [_controls(*line.split("\t")) for line in said.splitlines()]


def _lines(log: ControlLog) -> Iterable[str]:
    if log.snapshot:
        yield f"snapshot {log.snapshot_id.offset} {log.snapshot_id.epoch} {log.snapshot_bytes.hex()}\n"
    for batch, data in log.log_bytes:
        yield f"batch {batch.base_offset} {batch.next_offset} {data.hex()}\n"
    yield "end\n"


def _controls(stopped: str, level: str, _voters: str, reason: str) -> KafkaControls:
    return KafkaControls(stopped, None if level == "-" else int(level), reason)
