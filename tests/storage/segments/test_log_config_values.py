# SPDX-License-Identifier: Apache-2.0
"""The effect of a log's settings at a limit, before it and after it."""

import pytest

from raftlog.storage.recovery.recovery_point import load_durable_point
from raftlog.storage.segments.log_config import LogConfig
from raftlog.testing.file_system.faults import Operation
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from tests.file_logs import BATCH_SIZE, DIRECTORY, fill, open_log


@pytest.mark.parametrize(
    ("interval_bytes", "flushes"),
    [
        (0, [1, 2, 3, 4]),
        (1, [1, 2, 3, 4]),
        (BATCH_SIZE, [1, 2, 3, 4]),
        (BATCH_SIZE + 1, [2, 4]),
        (2 * BATCH_SIZE, [2, 4]),
        (2 * BATCH_SIZE + 1, [3]),
        (4 * BATCH_SIZE, [4]),
        (4 * BATCH_SIZE + 1, []),
    ],
)
def test_the_durable_point_is_written_down_after_so_many_bytes(interval_bytes: int, flushes: list[int]) -> None:
    """Once the bytes that were synced since the last time are as many as the interval, and not before."""
    file_system = MemoryFileSystem()
    log = open_log(file_system, LogConfig(recovery_point_interval_bytes=interval_bytes))
    fill(log, 1)
    log.flush()
    written = []
    log.close()
    log = open_log(file_system, LogConfig(recovery_point_interval_bytes=interval_bytes))
    for count in range(1, 5):
        fill(log, 1)
        start = file_system.step_count
        log.flush()
        steps = [step for step in file_system.steps if step.number > start and step.operation is Operation.RENAME]
        if steps:
            written.append(count)
            point = load_durable_point(file_system, DIRECTORY).recovery_point
            assert point is not None
            assert point.durable_end_offset == log.end_offset.offset
    assert written == flushes
