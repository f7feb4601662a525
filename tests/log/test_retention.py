# SPDX-License-Identifier: Apache-2.0
"""Retention deletes the oldest snapshot when the log takes too much space or the snapshot is too old."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from raftlog.log.retention import Retention, StoredSnapshot, snapshot_to_start_at
from raftlog.offsets import OffsetAndEpoch
from tests.offset_notation import offset_and_epoch

DAY_MS = 24 * 3600 * 1000


def stored(*, sizes: Sequence[int] | None = None, timestamps: Sequence[int | None] = ()) -> list[StoredSnapshot]:
    """Return snapshots of these sizes, or of a byte each, and of these timestamps, if any; at offsets 10, 20, ..."""
    sizes = [1] * len(timestamps) if sizes is None else sizes
    timestamps = timestamps or [None] * len(sizes)
    return [
        StoredSnapshot(OffsetAndEpoch(10 * index, 3), size, timestamp)
        for index, (size, timestamp) in enumerate(zip(sizes, timestamps, strict=True), start=1)
    ]


def start_by_retention(
    retention: Retention, snapshots: Sequence[StoredSnapshot], *, log_size_bytes: int = 0, now_ms: int = 0
) -> OffsetAndEpoch | None:
    """Return where the log is to start now."""
    return snapshot_to_start_at(retention, snapshots, log_size_bytes, now_ms)


def test_a_log_that_is_too_large_loses_its_oldest_snapshot() -> None:
    """The oldest snapshot goes while log and snapshots are larger than allowed; at the limit it stays."""
    snapshots = stored(sizes=[40, 30, 20])
    retention = Retention(max_bytes=100, max_age_ms=None)
    assert start_by_retention(retention, snapshots, log_size_bytes=11) == offset_and_epoch("20@3")
    assert start_by_retention(retention, snapshots, log_size_bytes=10) is None


def test_a_snapshot_that_is_too_old_is_deleted() -> None:
    """The oldest snapshot goes when what it holds is older than allowed; of unknown age it stays."""
    retention = Retention(max_bytes=None, max_age_ms=DAY_MS)
    now = 100 * DAY_MS
    too_old, old, of_unknown_age = now - DAY_MS - 1, now - DAY_MS, None
    assert start_by_retention(retention, stored(timestamps=[too_old, now]), now_ms=now) == offset_and_epoch("20@3")
    assert start_by_retention(retention, stored(timestamps=[old, too_old]), now_ms=now) is None
    assert start_by_retention(retention, stored(timestamps=[of_unknown_age, too_old]), now_ms=now) is None


@given(st.lists(st.tuples(st.integers(0, 100), st.none() | st.integers(0, 100)), max_size=5), st.integers(0, 100))
def test_the_newest_snapshot_is_never_deleted(sizes_and_times: list[tuple[int, int | None]], now_ms: int) -> None:
    """However strict retention is, asked again and again it never gives up the newest snapshot."""
    sizes, timestamps = [size for size, _ in sizes_and_times], [time for _, time in sizes_and_times]
    snapshots = stored(sizes=sizes, timestamps=timestamps)
    while (start_at := start_by_retention(Retention(0, 0), snapshots, log_size_bytes=1, now_ms=now_ms)) is not None:
        assert start_at == snapshots[1].snapshot_id
        del snapshots[0]
    assert len(snapshots) == min(1, len(sizes_and_times))


def test_without_limits_nothing_is_deleted() -> None:
    """Without limits nothing goes."""
    snapshots = stored(sizes=[2**40, 2**40], timestamps=[0, 0])
    assert start_by_retention(Retention(None, None), snapshots, log_size_bytes=2**40, now_ms=2**50) is None
