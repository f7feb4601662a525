# SPDX-License-Identifier: Apache-2.0
"""Retention deletes the oldest snapshot when the log takes too much space or the snapshot is too old."""

from hypothesis import given
from hypothesis import strategies as st

from raftlog.log.retention import Retention, StoredSnapshot, snapshot_to_start_at
from raftlog.offsets import OffsetAndEpoch

DAY_MS = 24 * 3600 * 1000


def stored(*sizes_and_times: tuple[int, int | None]) -> list[StoredSnapshot]:
    """Return snapshots of these sizes and timestamps, at offsets 10, 20, ..."""
    return [
        StoredSnapshot(OffsetAndEpoch(10 * index, 3), size, time)
        for index, (size, time) in enumerate(sizes_and_times, start=1)
    ]


def test_a_log_that_is_too_large_loses_its_oldest_snapshot() -> None:
    """The oldest snapshot goes while log and snapshots are larger than allowed; at the limit it stays."""
    snapshots = stored((40, None), (30, None), (20, None))
    retention = Retention(max_bytes=100, max_age_ms=None)
    assert snapshot_to_start_at(retention, snapshots, 11, 0) == OffsetAndEpoch(20, 3)
    assert snapshot_to_start_at(retention, snapshots, 10, 0) is None


def test_a_snapshot_that_is_too_old_is_deleted() -> None:
    """The oldest snapshot goes when what it holds is older than allowed; of unknown age it stays."""
    retention = Retention(max_bytes=None, max_age_ms=DAY_MS)
    now = 100 * DAY_MS
    assert snapshot_to_start_at(retention, stored((1, now - DAY_MS - 1), (1, now)), 0, now) == OffsetAndEpoch(20, 3)
    assert snapshot_to_start_at(retention, stored((1, now - DAY_MS), (1, 0)), 0, now) is None
    assert snapshot_to_start_at(retention, stored((1, None), (1, 0)), 0, now) is None


@given(st.lists(st.tuples(st.integers(0, 100), st.none() | st.integers(0, 100)), max_size=5), st.integers(0, 100))
def test_the_newest_snapshot_is_never_deleted(sizes_and_times: list[tuple[int, int | None]], now_ms: int) -> None:
    """However strict retention is, asked again and again it never gives up the newest snapshot."""
    snapshots = stored(*sizes_and_times)
    while (start_at := snapshot_to_start_at(Retention(0, 0), snapshots, 1, now_ms)) is not None:
        assert start_at == snapshots[1].snapshot_id
        del snapshots[0]
    assert len(snapshots) == min(1, len(sizes_and_times))


def test_without_limits_nothing_is_deleted() -> None:
    """Without limits nothing goes."""
    assert snapshot_to_start_at(Retention(None, None), stored((2**40, 0), (2**40, 0)), 2**40, 2**50) is None
