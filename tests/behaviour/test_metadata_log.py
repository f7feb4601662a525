# SPDX-License-Identifier: Apache-2.0
"""The clauses of Kafka's KafkaMetadataLogTest, on every implementation of a log.

Clauses about files (startup, cleaning up, segments) are tested on the log in files.
"""

import functools
from collections.abc import Callable

import pytest

from raftlog.errors import (
    BatchTooLargeError,
    InvalidSnapshotIdError,
    NonContiguousAppendError,
    TruncationBelowHighWatermarkError,
)
from raftlog.file_system import join
from raftlog.log.replicated_log import Isolation, ReplicatedLog
from raftlog.log.retention import Retention
from raftlog.offsets import OffsetAndEpoch, ValidationKind
from raftlog.quorum.seam.identity import METADATA_TOPIC_ID
from raftlog.records.limits import MAX_BATCH_SIZE
from raftlog.snapshot.paths import partial_name, snapshot_name
from raftlog.storage.log.file_log import FileLog
from raftlog.storage.segments.log_config import LogConfig
from raftlog.testing.contracts.log_harness import KEEP_ALL, LogHarness
from raftlog.testing.contracts.made_batches import TIMESTAMP, raft_batch, snapshot_bytes
from raftlog.testing.file_system.memory_file_system import MemoryFileSystem
from raftlog.uuid_text import uuid_to_text
from tests.contracts.log_harnesses import HARNESSES
from tests.file_logs import DIRECTORY, fill, open_log, segment_path, write_log
from tests.raises import raised

OVER_BUDGET = Retention(max_bytes=1, max_age_ms=None)


@pytest.fixture(params=list(HARNESSES))
def make(request: pytest.FixtureRequest) -> Callable[[Retention], LogHarness]:
    """One implementation of a log."""
    return HARNESSES[str(request.param)]


@pytest.fixture
def log(make: Callable[[Retention], LogHarness]) -> ReplicatedLog:
    """An empty log that keeps everything."""
    return make(KEEP_ALL).log


def _append(log: ReplicatedLog, epoch: int, count: int = 1) -> None:
    """Append batches of one record."""
    for _ in range(count):
        log.append_as_leader(raft_batch(log.end_offset.offset, epoch), epoch)


def _commit(log: ReplicatedLog) -> None:
    log.flush()
    log.update_high_watermark(log.end_offset.offset)


def _snapshot(log: ReplicatedLog, offset: int, epoch: int) -> None:
    """Take a snapshot of the log's own records."""
    writer = log.create_snapshot(OffsetAndEpoch(offset, epoch))
    assert writer is not None
    with writer:
        writer.append(snapshot_bytes(OffsetAndEpoch(offset, epoch), last_contained_log_timestamp=TIMESTAMP))
        writer.freeze()


def _install(log: ReplicatedLog, offset: int, epoch: int) -> None:
    """Store a snapshot of the leader's."""
    writer = log.create_snapshot_unchecked(OffsetAndEpoch(offset, epoch))
    assert writer is not None
    with writer:
        writer.append(snapshot_bytes(OffsetAndEpoch(offset, epoch), last_contained_log_timestamp=TIMESTAMP))
        writer.freeze()


# Config and identity


@pytest.mark.parametrize("size", [-1, 0, 2**31])
def test_config(size: int) -> None:
    """The size of a segment is bounded on both sides.

    Kafka has a floor of 8 MiB, which only tests can lower; raftlog's segments may be as small as its users like.
    """
    assert raised(lambda: LogConfig(segment_size_bytes=size)) is ValueError
    assert LogConfig(segment_size_bytes=1).segment_size_bytes == 1
    assert LogConfig(segment_size_bytes=2**31 - 1).segment_size_bytes == 2**31 - 1


def test_topic_id() -> None:
    """The id of the metadata topic is fixed."""
    assert uuid_to_text(METADATA_TOPIC_ID) == "AAAAAAAAAAAAAAAAAAAAAQ"


# Appends


def test_unexpected_append_offset(log: ReplicatedLog) -> None:
    """A batch out of order is refused, from a leader and from a follower, and changes nothing."""
    _append(log, 1)
    for batch in (raft_batch(0, 1), raft_batch(2, 1)):
        assert raised(functools.partial(log.append_as_leader, batch, 1)) is NonContiguousAppendError
        assert raised(functools.partial(log.append_as_follower, batch, 1)) is NonContiguousAppendError
    assert log.end_offset.offset == 1


def test_max_batch_size(log: ReplicatedLog) -> None:
    """The largest batch is accepted; one byte more is refused."""
    overhead = len(raft_batch(0, 1, value=b"x" * (MAX_BATCH_SIZE - 1000))) - (MAX_BATCH_SIZE - 1000)
    largest = b"x" * (MAX_BATCH_SIZE - overhead)
    assert raised(lambda: log.append_as_leader(raft_batch(0, 1, value=largest + b"x"), 1)) is BatchTooLargeError
    exact = raft_batch(0, 1, value=largest)
    assert len(exact) == MAX_BATCH_SIZE
    log.append_as_leader(exact, 1)
    assert log.end_offset.offset == 1


# Creating snapshots


def test_create_snapshot(log: ReplicatedLog) -> None:
    """A frozen snapshot is listed, and read byte for byte."""
    _append(log, 1, 3)
    _commit(log)
    _snapshot(log, 3, 1)
    assert log.latest_snapshot_id == OffsetAndEpoch(3, 1)
    reader = log.read_snapshot(OffsetAndEpoch(3, 1))
    assert reader is not None
    with reader:
        written = snapshot_bytes(OffsetAndEpoch(3, 1), last_contained_log_timestamp=TIMESTAMP)
        assert bytes(reader.read_at(0, reader.size())) == written


def test_create_snapshot_from_end_offset(log: ReplicatedLog) -> None:
    """Any committed offset is a snapshot's end, if the epoch is that of the record before it."""
    _append(log, 1, 2)
    _append(log, 2, 2)
    _commit(log)
    for offset, epoch in ((1, 1), (2, 1), (3, 2), (4, 2)):
        _snapshot(log, offset, epoch)
    assert [each.offset for each in log.snapshot_ids] == [1, 2, 3, 4]


@pytest.mark.parametrize("offset", [3, 4, 5])
def test_create_snapshot_later_than_high_watermark(log: ReplicatedLog, offset: int) -> None:
    """Records that are not committed are in no snapshot."""
    _append(log, 1, 4)
    log.update_high_watermark(2)
    assert raised(lambda: log.create_snapshot(OffsetAndEpoch(offset, 1))) is InvalidSnapshotIdError


def _refuses(log: ReplicatedLog, offset: int, epoch: int) -> bool:
    return raised(lambda: log.create_snapshot(OffsetAndEpoch(offset, epoch))) is InvalidSnapshotIdError


def test_create_snapshot_much_later_epoch(log: ReplicatedLog) -> None:
    """An epoch above all of the log's is refused."""
    _append(log, 1, 2)
    _commit(log)
    assert _refuses(log, 2, 2)


def test_create_snapshot_diverging_epoch(log: ReplicatedLog) -> None:
    """An epoch that ends before the offset is refused."""
    _append(log, 1, 2)
    _append(log, 2, 2)
    _commit(log)
    assert _refuses(log, 4, 1)


def test_create_snapshot_older_epoch(log: ReplicatedLog) -> None:
    """The epoch of records further down is refused."""
    _append(log, 1, 2)
    _append(log, 3, 2)
    _commit(log)
    assert _refuses(log, 3, 1)


def test_create_snapshot_with_missing_epoch(log: ReplicatedLog) -> None:
    """An epoch that the log skips is refused."""
    _append(log, 1, 2)
    _append(log, 3, 2)
    _commit(log)
    assert _refuses(log, 2, 2)


def test_create_snapshot_before_log_start_offset(log: ReplicatedLog) -> None:
    """Below the log start there is nothing to take a snapshot of; that is no error."""
    _append(log, 1, 4)
    _commit(log)
    _snapshot(log, 3, 1)
    assert log.delete_before_snapshot(OffsetAndEpoch(3, 1))
    assert log.create_snapshot(OffsetAndEpoch(2, 1)) is None


def test_create_existing_snapshot(log: ReplicatedLog) -> None:
    """A snapshot that exists is not begun again; that is no error."""
    _append(log, 1, 3)
    _commit(log)
    _snapshot(log, 3, 1)
    assert log.create_snapshot(OffsetAndEpoch(3, 1)) is None


def test_snapshot_id_is_on_a_batch_boundary(log: ReplicatedLog) -> None:
    """A snapshot ends where a batch ends (KAFKA-14619)."""
    log.append_as_leader(raft_batch(0, 1, count=3), 1)
    _commit(log)
    assert _refuses(log, 2, 1)
    _snapshot(log, 3, 1)


# Reading and deleting


def test_read_missing_snapshot(log: ReplicatedLog) -> None:
    """A snapshot that does not exist is None."""
    assert log.read_snapshot(OffsetAndEpoch(10, 0)) is None


def test_delete_non_existent_snapshot(log: ReplicatedLog) -> None:
    """Deleting before a snapshot that does not exist changes nothing."""
    _append(log, 1, 3)
    _commit(log)
    assert not log.delete_before_snapshot(OffsetAndEpoch(2, 1))
    assert (log.start_offset, log.end_offset.offset, log.high_watermark.offset) == (0, 3, 3)


# High watermark


@pytest.mark.parametrize("form", ["file", "file-of-small-segments"])
def test_high_watermark_offset_metadata(form: str) -> None:
    """The high watermark knows its position in the file."""
    log = HARNESSES[form](KEEP_ALL).log
    _append(log, 1, 3)
    _commit(log)
    assert log.high_watermark == log.end_offset
    _append(log, 1)
    assert log.high_watermark.offset == 3
    assert log.high_watermark == log.read(3, Isolation.UNCOMMITTED).start_offset_metadata


@pytest.mark.parametrize("offset", [0, 2])
def test_truncate_below_high_watermark(log: ReplicatedLog, offset: int) -> None:
    """Committed records are not truncated."""
    _append(log, 1, 5)
    log.update_high_watermark(3)
    assert raised(lambda: log.truncate_to(offset)) is TruncationBelowHighWatermarkError
    assert (log.high_watermark.offset, log.end_offset.offset) == (3, 5)
    log.truncate_to(3)
    assert log.end_offset.offset == 3


# Full truncation


@pytest.mark.parametrize("snapshot_id", [OffsetAndEpoch(10, 1), OffsetAndEpoch(1, 2)])
def test_truncate_fully_to_latest_snapshot(log: ReplicatedLog, snapshot_id: OffsetAndEpoch) -> None:
    """A snapshot ahead of the log, by offset or by epoch, becomes all of it."""
    _append(log, 1, 3)
    _install(log, snapshot_id.offset, snapshot_id.epoch)
    assert log.truncate_to_latest_snapshot()
    assert log.start_offset == log.end_offset.offset == log.high_watermark.offset == snapshot_id.offset
    assert log.last_fetched_epoch == snapshot_id.epoch


def test_truncate_will_remove_older_snapshot(log: ReplicatedLog) -> None:
    """Older snapshots go with the records. Kafka renames them first, and deletes them after a delay."""
    _append(log, 1, 4)
    _commit(log)
    for offset in (1, 2, 3):
        _snapshot(log, offset, 1)
    _install(log, 10, 2)
    assert log.truncate_to_latest_snapshot()
    assert log.snapshot_ids == (OffsetAndEpoch(10, 2),)


@pytest.mark.parametrize("snapshot_id", [OffsetAndEpoch(5, 1), OffsetAndEpoch(2, 2)])
def test_doesnt_truncate_fully(log: ReplicatedLog, snapshot_id: OffsetAndEpoch) -> None:
    """A snapshot of an older epoch, or of fewer records in the same one, leaves the log as it is."""
    _append(log, 2, 3)
    _install(log, snapshot_id.offset, snapshot_id.epoch)
    assert not log.truncate_to_latest_snapshot()
    assert (log.start_offset, log.end_offset.offset) == (0, 3)


# Startup


def test_startup_with_invalid_snapshot_state() -> None:
    """A log that starts above 0 without a snapshot of what is missing is not started as if it were whole.

    Kafka refuses to start. raftlog opens it in quarantine, so that what is left can be read (DECISIONS.md, 15).
    """
    file_system = _started_at_a_snapshot()
    path = join(DIRECTORY, snapshot_name(OffsetAndEpoch(3, 1)))
    file_system.remove(path)
    with_damage = open_log(file_system)
    assert with_damage.quarantine is not None


def test_snapshot_deletion_with_invalid_snapshot_state() -> None:
    """A snapshot that is marked as deleted covers nothing."""
    file_system = _started_at_a_snapshot()
    path = join(DIRECTORY, snapshot_name(OffsetAndEpoch(3, 1)))
    file_system.rename(path, path + ".deleted")
    assert open_log(file_system).quarantine is not None


def _started_at_a_snapshot() -> MemoryFileSystem:
    """Return a file system with a log whose first segment is gone, and whose snapshot takes its place."""
    file_system = MemoryFileSystem()
    log = open_log(file_system)
    fill(log, 7)
    _commit(log)
    _snapshot(log, 3, 1)
    assert log.delete_before_snapshot(OffsetAndEpoch(3, 1))
    log.close()
    assert not file_system.exists(segment_path(0))
    return file_system


def test_cleanup_partial_snapshots() -> None:
    """Snapshots that were not frozen are removed at startup."""
    file_system = write_log()
    path = join(DIRECTORY, partial_name(OffsetAndEpoch(5, 1), "1234"))
    file_system.open(path, create=True).close()
    assert open_log(file_system).snapshot_ids == ()
    assert not file_system.exists(path)


def test_cleanup_older_snapshots() -> None:
    """Snapshots below the log start are removed at startup."""
    file_system = _started_at_a_snapshot()
    old = join(DIRECTORY, snapshot_name(OffsetAndEpoch(2, 1)))
    file = file_system.open(old, create=True)
    file.write_at(0, snapshot_bytes(OffsetAndEpoch(2, 1)))
    file.sync()
    file.close()
    assert open_log(file_system).snapshot_ids == (OffsetAndEpoch(3, 1),)
    assert not file_system.exists(old)


def test_create_replicated_log_truncates_fully() -> None:
    """A crash between the freeze of a fetched snapshot and the truncation is completed at startup."""
    file_system = write_log(4)
    log = open_log(file_system)
    _install(log, 10, 2)
    reopened = open_log(file_system.settled())
    assert reopened.start_offset == reopened.end_offset.offset == 10
    assert reopened.last_fetched_epoch == 2


# Positions of a Fetch


def _validated(log: ReplicatedLog, offset: int, epoch: int) -> tuple[ValidationKind, tuple[int, int]]:
    found = log.validate_offset_and_epoch(offset, epoch)
    return found.kind, (found.offset_and_epoch.offset, found.offset_and_epoch.epoch)


@pytest.fixture
def two_epochs(log: ReplicatedLog) -> ReplicatedLog:
    """Offsets 0 to 2 in epoch 1, and 3 to 5 in epoch 3."""
    _append(log, 1, 3)
    _append(log, 3, 3)
    _commit(log)
    return log


@pytest.fixture
def after_snapshot(two_epochs: ReplicatedLog) -> ReplicatedLog:
    """The same, from offset 3 on: a snapshot has the records below."""
    _snapshot(two_epochs, 3, 1)
    assert two_epochs.delete_before_snapshot(OffsetAndEpoch(3, 1))
    return two_epochs


def test_validate_epoch_greater_than_last_known_epoch(two_epochs: ReplicatedLog) -> None:
    """A later epoch diverges at the end of the last one."""
    assert _validated(two_epochs, 6, 4) == (ValidationKind.DIVERGING, (6, 3))


def test_validate_epoch_less_than_oldest_snapshot_epoch(after_snapshot: ReplicatedLog) -> None:
    """An epoch from before the oldest snapshot needs the snapshot."""
    assert _validated(after_snapshot, 4, 0) == (ValidationKind.SNAPSHOT, (3, 1))


def test_validate_offset_less_than_oldest_snapshot_offset(after_snapshot: ReplicatedLog) -> None:
    """An offset below the log start needs the snapshot."""
    assert _validated(after_snapshot, 2, 1) == (ValidationKind.SNAPSHOT, (3, 1))


def test_validate_offset_equal_to_oldest_snapshot_offset(after_snapshot: ReplicatedLog) -> None:
    """The position right after the snapshot is valid."""
    assert _validated(after_snapshot, 3, 1) == (ValidationKind.VALID, (3, 1))


def test_validate_unknown_epoch_less_than_last_known_greater_than_oldest_snapshot(
    after_snapshot: ReplicatedLog,
) -> None:
    """An epoch that the log skips diverges at the end of the next lower one."""
    assert _validated(after_snapshot, 4, 2) == (ValidationKind.DIVERGING, (3, 1))


def test_validate_epoch_less_than_first_epoch_in_log(log: ReplicatedLog) -> None:
    """An epoch below the first one of a log that starts at a snapshot needs the snapshot."""
    _install(log, 10, 5)
    assert log.truncate_to_latest_snapshot()
    _append(log, 6, 2)
    assert _validated(log, 11, 4) == (ValidationKind.SNAPSHOT, (10, 5))


def test_validate_offset_great_than_end_offset(two_epochs: ReplicatedLog) -> None:
    """An offset above the log end diverges at the end."""
    assert _validated(two_epochs, 7, 3) == (ValidationKind.DIVERGING, (6, 3))


def test_validate_offset_less_than_leo(two_epochs: ReplicatedLog) -> None:
    """An offset above the end of its epoch diverges there, though the log is longer."""
    assert _validated(two_epochs, 4, 1) == (ValidationKind.DIVERGING, (3, 1))


def test_validate_valid_epoch_and_offset(two_epochs: ReplicatedLog) -> None:
    """A position within its epoch is valid."""
    assert _validated(two_epochs, 5, 3) == (ValidationKind.VALID, (5, 3))


# Retention


def test_advance_log_start_offset_after_cleaning(make: Callable[[Retention], LogHarness]) -> None:
    """Cleaning moves the log start only if there are committed snapshots to move it to."""
    log = make(OVER_BUDGET).log
    _append(log, 1, 6)
    assert not log.clean(TIMESTAMP)
    _commit(log)
    assert not log.clean(TIMESTAMP)
    _snapshot(log, 2, 1)
    assert not log.clean(TIMESTAMP)
    _snapshot(log, 4, 1)
    assert log.clean(TIMESTAMP)
    assert log.start_offset == 4


def test_delete_snapshots(make: Callable[[Retention], LogHarness]) -> None:
    """Of several snapshots one survives, and the log starts at it."""
    log = make(OVER_BUDGET).log
    _append(log, 1, 6)
    _commit(log)
    for offset in (1, 2, 4, 6):
        _snapshot(log, offset, 1)
    assert log.clean(TIMESTAMP)
    assert log.snapshot_ids == (OffsetAndEpoch(6, 1),)
    assert log.start_offset == 6


def test_soft_retention_limit(make: Callable[[Retention], LogHarness]) -> None:
    """The last snapshot stays, even if it alone is above the limit."""
    log = make(OVER_BUDGET).log
    _append(log, 1, 2)
    _commit(log)
    _snapshot(log, 2, 1)
    assert not log.clean(TIMESTAMP)
    assert log.snapshot_ids == (OffsetAndEpoch(2, 1),)


def test_segments_less_than_latest_snapshot() -> None:
    """Nothing after the latest snapshot is deleted, however small the limits are (KAFKA-14238)."""
    file_system = MemoryFileSystem()
    config = LogConfig(segment_size_bytes=len(raft_batch(0, 1)), retention_bytes=1, retention_ms=0)
    log = FileLog.open(file_system, DIRECTORY, config)
    fill(log, 8)
    _commit(log)
    _snapshot(log, 2, 1)
    _snapshot(log, 4, 1)
    assert log.clean(TIMESTAMP * 2)
    assert log.start_offset == 4
    assert log.end_offset.offset == 8
    records = [record.offset for record in log.records(isolation=Isolation.UNCOMMITTED)]
    assert records == [4, 5, 6, 7]
