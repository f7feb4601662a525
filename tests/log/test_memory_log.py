# SPDX-License-Identifier: Apache-2.0
"""Tests of the log in memory only; the rest is in the contract suite of all logs."""

from raftlog.log.memory_log import MemoryLog
from raftlog.log.replicated_log import Isolation
from raftlog.offsets import OffsetAndEpoch, SegmentPosition
from raftlog.testing.contracts.made_batches import raft_batch, snapshot_bytes


def filled() -> MemoryLog:
    """Return a log of ten flushed records, and three batches of two that are not."""
    log = MemoryLog()
    log.append_as_leader(raft_batch(0, 3, 10), 3)
    log.flush()
    for offset in (10, 12, 14):
        log.append_as_leader(raft_batch(offset, 4, 2), 4)
    return log


def test_a_crash_may_keep_some_batches() -> None:
    """As many batches that were not flushed survive as the caller says, oldest first, and their epochs with them."""
    for kept, end_offset, epoch in ((0, 10, 3), (1, 12, 4), (3, 16, 4), (9, 16, 4)):
        log = filled()
        log.crash(kept_batch_count=kept)
        assert (log.end_offset.offset, log.flushed_offset, log.last_fetched_epoch) == (end_offset, end_offset, epoch)


def test_positions_count_from_the_new_log_start() -> None:
    """The place of an offset is its batch's byte position in the one segment that there is."""
    log = filled()
    first, other = len(raft_batch(0, 3, 10)), len(raft_batch(10, 4, 2))
    assert log.end_offset.segment_position == SegmentPosition(0, first + 3 * other)
    fetched = log.read(13, Isolation.UNCOMMITTED)
    assert fetched.start_offset_metadata.segment_position == SegmentPosition(0, first + other)
    log.update_high_watermark(11)
    assert log.high_watermark.segment_position == SegmentPosition(0, first)
    log.truncate_to(12)
    assert log.end_offset.segment_position == SegmentPosition(0, first + other)
    snapshot_id = OffsetAndEpoch(40, 7)
    writer = log.create_snapshot_unchecked(snapshot_id)
    assert writer is not None
    writer.append(snapshot_bytes(snapshot_id))
    writer.freeze()
    assert log.truncate_to_latest_snapshot()
    assert log.end_offset.segment_position == SegmentPosition(40, 0)


def test_a_stale_snapshot_is_forgotten_at_the_next_start() -> None:
    """A snapshot of a later epoch that ends below the log start is deleted at startup."""
    log = filled()
    log.flush()
    log.update_high_watermark(16)
    for offset, epoch in ((16, 4), (10, 5)):
        snapshot_id = OffsetAndEpoch(offset, epoch)
        writer = log.create_snapshot_unchecked(snapshot_id)
        assert writer is not None
        with writer:
            writer.append(snapshot_bytes(snapshot_id))
            writer.freeze()
    assert log.delete_before_snapshot(OffsetAndEpoch(16, 4))
    assert list(log.snapshot_ids) == [OffsetAndEpoch(16, 4), OffsetAndEpoch(10, 5)]
    log.reopen()
    assert list(log.snapshot_ids) == [OffsetAndEpoch(16, 4)]
    assert log.read_snapshot(OffsetAndEpoch(10, 5)) is None


def test_closing_flushes() -> None:
    """The records at the close survive a later crash."""
    log = filled()
    assert log.flushed_offset == 10
    log.close()
    assert log.flushed_offset == 16
    log.crash()
    assert log.end_offset.offset == 16
