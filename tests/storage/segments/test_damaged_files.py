# SPDX-License-Identifier: Apache-2.0
"""Damaged bytes are kept, durable before they are cut, under names of their own."""

import pytest

from raftlog.errors import OutOfSpaceError, QuarantinedLogError
from raftlog.log.replicated_log import Isolation
from raftlog.storage.segments.damaged_files import damaged_path
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.file_system.faults import Fault, Operation
from tests.file_logs import BATCH_SIZE, expected, flip, open_log, records_of, segment_path, write_log


def test_names_do_not_collide() -> None:
    """Damage at the same place, again, gets another name."""
    file_system = write_log(2)
    path = segment_path(0)
    assert damaged_path(file_system, path, 73) == f"{path}.damaged-73"
    file_system.open(f"{path}.damaged-73", create=True)
    file_system.open(f"{path}.damaged-73-1", create=True)
    assert damaged_path(file_system, path, 73) == f"{path}.damaged-73-2"


def test_bytes_are_set_aside_before_they_are_cut() -> None:
    """The tail is copied and synced, later segments are renamed, and only then is the segment cut."""
    file_system = write_log(8)
    flip(file_system, segment_path(3), BATCH_SIZE + 70)
    before = file_system.contents()
    log = open_log(file_system)
    start = file_system.step_count
    log.append_as_follower(raft_batch(4, 1), 1)
    steps = [(step.operation, step.path) for step in file_system.steps if step.number > start]
    copy = f"{segment_path(3)}.damaged-{BATCH_SIZE}"
    order = [
        steps.index((Operation.SYNC, f"{copy}.tmp")),
        steps.index((Operation.RENAME, f"{copy}.tmp")),
        steps.index((Operation.RENAME, segment_path(6))),
        steps.index((Operation.TRUNCATE, segment_path(3))),
    ]
    assert order == sorted(order)
    contents = file_system.contents()
    assert contents[copy] == before[segment_path(3)][BATCH_SIZE:]
    assert contents[f"{segment_path(6)}.damaged-0"] == before[segment_path(6)]
    assert segment_path(6, ".index") not in contents


def test_without_room_for_the_copy_nothing_changes() -> None:
    """The log stays as it was, in quarantine, and the repair works once there is room."""
    file_system = write_log(8)
    flip(file_system, segment_path(3), BATCH_SIZE + 70)
    log = open_log(file_system)
    before = file_system.contents()
    file_system.faults.append(Fault(Operation.WRITE, is_full=True, written_bytes=10))
    with pytest.raises(OutOfSpaceError):
        log.append_as_follower(raft_batch(4, 1), 1)
    assert file_system.contents() == before
    with pytest.raises(QuarantinedLogError):
        log.read(4, Isolation.UNCOMMITTED)
    for offset in range(4, 8):
        log.append_as_follower(raft_batch(offset, 1), 1)
    log.flush()
    assert log.quarantine is None
    assert records_of(log) == expected(0, 8)
