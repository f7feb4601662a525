# SPDX-License-Identifier: Apache-2.0
"""The decisions of a log at their limits: at each limit, before and after it, with the expected reason."""

import pytest

from raftlog.errors import InvalidSnapshotIdError
from raftlog.log.decisions import (
    check_new_snapshot_id,
    end_offset_for_epoch,
    is_superseded,
)
from raftlog.log.state import LogState
from raftlog.offsets import OffsetAndEpoch
from tests.log.test_decisions import KAFKA, log_state
from tests.offset_notation import offset_and_epoch


def _with_snapshot(latest: str) -> LogState:
    """Return a log of epoch 3 to offset 40 and 5 from there to 50, with one snapshot."""
    return log_state(start=0, end=50, epoch_starts={3: 0, 5: 40}, snapshots=[latest])


def _always(_offset: int) -> bool:
    return True


def _never(_offset: int) -> bool:
    return False


@pytest.mark.parametrize("epoch_of_snapshot", [2, 3, 4])
def test_a_snapshot_answers_for_its_epoch_alone(epoch_of_snapshot: int) -> None:
    """If an epoch ends at the earliest snapshot, its own end is the answer to a request with a later epoch."""
    log = log_state(start=0, end=50, epoch_starts={3: 0, 5: 24}, snapshots=[f"24@{epoch_of_snapshot}"])
    assert end_offset_for_epoch(log, 4) == offset_and_epoch("24@3")


def test_the_latest_of_two_snapshots_at_the_start() -> None:
    """A log without records has the epoch of the latest snapshot that ends at its start, in whatever order."""
    assert log_state(start=24, end=24, snapshots=["24@2", "24@3"]).last_fetched_epoch == 3
    assert log_state(start=24, end=24, snapshots=["24@3", "24@2", "23@7", "25@8"]).last_fetched_epoch == 3


@pytest.mark.parametrize(
    ("snapshot_id", "reason"),
    [
        ("29@3", "older than the latest snapshot"),
        ("30@2", "older than the latest snapshot"),
        ("31@2", "older than the latest snapshot"),
        ("29@5", "older than the latest snapshot"),
        ("30@5", "the record before it has epoch 3"),
        ("31@5", "the record before it has epoch 3"),
        ("51@5", "above the high watermark"),
    ],
)
def test_the_reason_of_a_refusal(snapshot_id: str, reason: str) -> None:
    """An id is older than the latest by its epoch or by its offset, but not if both are equal or greater."""
    with pytest.raises(InvalidSnapshotIdError, match=reason):
        check_new_snapshot_id(_with_snapshot("30@3"), offset_and_epoch(snapshot_id), _always)


@pytest.mark.parametrize("snapshot_id", ["31@3", "40@3", "41@5", "50@5"])
def test_a_snapshot_after_the_latest_is_made(snapshot_id: str) -> None:
    """An id above the latest, up to the high watermark, is made."""
    assert check_new_snapshot_id(_with_snapshot("30@3"), offset_and_epoch(snapshot_id), _always)


def test_no_batch_need_end_where_the_log_starts() -> None:
    """There is no batch before the log start, but one offset above it there is."""
    assert check_new_snapshot_id(KAFKA, offset_and_epoch("0@0"), _never)
    with pytest.raises(InvalidSnapshotIdError, match="no batch ends there"):
        check_new_snapshot_id(KAFKA, offset_and_epoch("1@3"), _never)


@pytest.mark.parametrize(
    ("snapshot_id", "superseded"),
    [
        ("23@3", True),
        ("24@2", True),
        ("24@3", False),
        ("24@4", False),
        ("25@2", True),
        ("25@3", False),
        ("25@4", False),
    ],
)
def test_what_a_log_at_a_snapshot_supersedes(snapshot_id: str, superseded: bool) -> None:
    """A log that starts at a snapshot supersedes what is earlier than that, but not the same id again."""
    log = log_state(start=24, end=50, epoch_starts={3: 24}, snapshots=["24@3"])
    assert is_superseded(log, offset_and_epoch(snapshot_id)) == superseded


@pytest.mark.parametrize(("offset", "superseded"), [(0, True), (23, True), (24, False), (25, False)])
def test_what_a_log_without_a_snapshot_supersedes(offset: int, superseded: bool) -> None:
    """A log without a snapshot at its start supersedes snapshots that end below it, whatever their epoch."""
    log = log_state(start=24, end=50, epoch_starts={3: 24}, snapshots=["40@3"])
    assert {is_superseded(log, OffsetAndEpoch(offset, epoch)) for epoch in (0, 3, 9)} == {superseded}
