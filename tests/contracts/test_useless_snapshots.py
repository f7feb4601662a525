# SPDX-License-Identifier: Apache-2.0
"""Snapshots that a log cannot use: they fail verification, or come after the log has passed them."""

import pytest

from raftlog.errors import DecodeError, IncompleteSnapshotError
from raftlog.offsets import OffsetAndEpoch, ValidOffsetAndEpoch
from raftlog.testing.contracts.log_harness import KEEP_ALL
from raftlog.testing.contracts.made_batches import raft_batch, snapshot_bytes
from tests.contracts.log_harnesses import HARNESSES

START_ID = OffsetAndEpoch(8, 2)


@pytest.mark.parametrize("name", HARNESSES)
@pytest.mark.parametrize(
    ("create", "snapshot_id"),
    [("create_snapshot", OffsetAndEpoch(5, 1)), ("create_snapshot_unchecked", OffsetAndEpoch(100, 9))],
)
def test_a_snapshot_is_verified(name: str, create: str, snapshot_id: OffsetAndEpoch) -> None:
    """A snapshot without its footer, or damaged, is not frozen and not listed, whether it was made or fetched."""
    log, data = HARNESSES[name](KEEP_ALL).log, snapshot_bytes(snapshot_id)
    log.append_as_leader(raft_batch(0, 1, 5) + raft_batch(5, 1, 3), 1)
    log.update_high_watermark(8)
    for bad, error in (
        (b"junk", DecodeError),
        (data[:-75], IncompleteSnapshotError),
        (data[:100] + b"?" + data[101:], DecodeError),
    ):
        writer = getattr(log, create)(snapshot_id)
        with writer:
            writer.append_at(0, bad)
            with pytest.raises(error):
                writer.freeze()
        assert (log.snapshot_ids, log.read_snapshot(snapshot_id)) == ((), None)
    assert not log.delete_before_snapshot(snapshot_id)
    assert not log.truncate_to_latest_snapshot()


@pytest.mark.parametrize("name", HARNESSES)
@pytest.mark.parametrize("late", [(5, 1), (5, 3), (9, 1)], ids=["below", "below, of a later epoch", "diverged"])
def test_a_snapshot_that_comes_late_is_deleted(name: str, late: tuple[int, int]) -> None:
    """Where the log starts at a later one by then, it is not listed, and followers fetch the later one, once."""
    harness, late_id = HARNESSES[name](KEEP_ALL), OffsetAndEpoch(*late)
    log = harness.log
    for base_offset, epoch, count in ((0, 1, 5), (5, 2, 3), (8, 2, 2)):
        log.append_as_leader(raft_batch(base_offset, epoch, count), epoch)
    log.flush()
    log.update_high_watermark(10)
    late_writer, writer = log.create_snapshot_unchecked(late_id), log.create_snapshot(START_ID)
    assert late_writer is not None
    assert writer is not None
    late_writer.append(snapshot_bytes(late_id))
    writer.append(snapshot_bytes(START_ID))
    writer.freeze()
    assert log.delete_before_snapshot(START_ID)
    late_writer.freeze()
    assert (log.snapshot_ids, log.read_snapshot(late_id)) == ((START_ID,), None)
    assert log.validate_offset_and_epoch(8, 2) == ValidOffsetAndEpoch.valid(START_ID)
    harness.crash()
    assert harness.log.snapshot_ids == (START_ID,)


@pytest.mark.parametrize("name", HARNESSES)
def test_one_that_is_not_below_the_log_start_is_listed(name: str) -> None:
    """An older snapshot that comes late is one all the same, as long as the log starts no higher."""
    log, older, newer = HARNESSES[name](KEEP_ALL).log, OffsetAndEpoch(5, 1), OffsetAndEpoch(8, 1)
    log.append_as_leader(raft_batch(0, 1, 5) + raft_batch(5, 1, 3), 1)
    log.flush()
    log.update_high_watermark(8)
    writers = [log.create_snapshot(each) for each in (older, newer)]
    for writer in reversed(writers):
        assert writer is not None
        writer.append(snapshot_bytes(writer.snapshot_id))
        writer.freeze()
    assert log.snapshot_ids == (older, newer)
