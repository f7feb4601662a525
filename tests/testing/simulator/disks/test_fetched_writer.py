# SPDX-License-Identifier: Apache-2.0
"""One snapshot is fetched at a time, and its writer is closed before the next one is begun."""

import pytest

from raftlog.log.retention import Retention
from raftlog.offsets import OffsetAndEpoch
from raftlog.testing.simulator.disks.simulated_log import SimulatedLog
from raftlog.testing.simulator.violation import ViolationError
from tests.testing.simulator.checks.quorum_disks import QuorumDisks

FIRST, SECOND = OffsetAndEpoch(5, 1), OffsetAndEpoch(9, 1)


@pytest.fixture
def log() -> SimulatedLog:
    """An empty log whose witness objects."""
    disks = QuorumDisks(1)
    return SimulatedLog(disks.witness, disks.ledgers[1], Retention(None, None))


def test_one_that_is_left_is_found(log: SimulatedLog) -> None:
    """The same one or another is begun before it is closed."""
    assert log.create_snapshot_unchecked(FIRST) is not None
    for snapshot_id in (FIRST, SECOND):
        with pytest.raises(ViolationError, match="partial-snapshots-go"):
            log.create_snapshot_unchecked(snapshot_id)


@pytest.mark.parametrize("way", ["closed", "closed twice", "ended"])
def test_the_next_one_is_begun_after_it(log: SimulatedLog, way: str) -> None:
    """It was removed, or its process has ended."""
    writer = log.create_snapshot_unchecked(FIRST)
    assert writer is not None
    assert writer.snapshot_id == FIRST
    for _ in range({"closed": 1, "closed twice": 2, "ended": 0}[way]):
        writer.close()
    if way == "ended":
        log.end_work()
    assert log.create_snapshot_unchecked(SECOND) is not None
