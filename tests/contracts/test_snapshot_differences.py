# SPDX-License-Identifier: Apache-2.0
"""Where snapshots of a log differ from KafkaRaftLog's, as the docstrings of ``ReplicatedLog`` state it."""

import pytest

from raftlog.errors import InvalidSnapshotIdError
from raftlog.offsets import OffsetAndEpoch
from raftlog.testing.contracts.log_harness import KEEP_ALL, LogHarness
from raftlog.testing.contracts.made_batches import raft_batch, snapshot_bytes
from tests.contracts.log_harnesses import HARNESSES


def log_of(name: str) -> LogHarness:
    """Make a log of ten committed records, in batches that end at 5, 8 and 10."""
    harness = HARNESSES[name](KEEP_ALL)
    for base_offset, epoch, count in ((0, 1, 5), (5, 2, 3), (8, 2, 2)):
        harness.log.append_as_leader(raft_batch(base_offset, epoch, count), epoch)
    harness.log.flush()
    harness.log.update_high_watermark(10)
    return harness


def freeze(harness: LogHarness, snapshot_id: OffsetAndEpoch) -> None:
    """Make a snapshot."""
    writer = harness.log.create_snapshot_unchecked(snapshot_id)
    assert writer is not None
    writer.append(snapshot_bytes(snapshot_id))
    writer.freeze()


@pytest.mark.parametrize("name", HARNESSES)
def test_an_id_before_the_latest_snapshot_is_refused(name: str) -> None:
    """Kafka accepts it. The latest id itself is not an error, as in Kafka, and a later one is accepted."""
    harness = log_of(name)
    freeze(harness, OffsetAndEpoch(8, 2))
    with pytest.raises(InvalidSnapshotIdError):
        harness.log.create_snapshot(OffsetAndEpoch(5, 1))
    assert harness.log.create_snapshot(OffsetAndEpoch(8, 2)) is None
    writer = harness.log.create_snapshot(OffsetAndEpoch(10, 2))
    assert writer is not None
    writer.close()


@pytest.mark.parametrize("name", HARNESSES)
def test_the_result_is_whether_the_log_start_moved(name: str) -> None:
    """It moves inside the only segment, where Kafka deletes nothing and returns False; a second call does nothing."""
    harness = log_of(name)
    snapshot_id = OffsetAndEpoch(5, 1)
    freeze(harness, snapshot_id)
    assert not harness.log.delete_before_snapshot(OffsetAndEpoch(8, 2))
    assert harness.log.delete_before_snapshot(snapshot_id)
    assert harness.log.start_offset == 5
    assert not harness.log.delete_before_snapshot(snapshot_id)
    assert harness.log.start_offset == 5


@pytest.mark.parametrize("name", HARNESSES)
def test_a_second_truncation_to_the_latest_snapshot_changes_nothing(name: str) -> None:
    """After a restart at a snapshot, the log ends there, in the snapshot's epoch."""
    harness = log_of(name)
    freeze(harness, OffsetAndEpoch(100, 9))
    assert harness.log.truncate_to_latest_snapshot()
    for _ in range(2):
        assert not harness.log.truncate_to_latest_snapshot()
        assert (harness.log.start_offset, harness.log.end_offset.offset) == (100, 100)
        assert harness.log.last_fetched_epoch == 9
