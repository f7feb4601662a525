# SPDX-License-Identifier: Apache-2.0
"""The contract of a replicated log, as tests to run on your own implementation."""

from collections.abc import Callable

from raftlog.errors import (
    BatchTooLargeError,
    CorruptBatchError,
    DecodeError,
    FencedEpochError,
    InvalidRecordError,
    InvalidSnapshotIdError,
    LogError,
    MissingExtraError,
    NonContiguousAppendError,
    OffsetOutOfRangeError,
    SnapshotFrozenError,
    TruncatedBatchError,
    TruncationBelowHighWatermarkError,
)
from raftlog.log.replicated_log import Isolation, LogAppendInfo, ReplicatedLog
from raftlog.log.retention import Retention
from raftlog.offsets import EpochEntry, OffsetAndEpoch, ValidOffsetAndEpoch
from raftlog.records.batches.batch import read_batch
from raftlog.testing.contracts.log_harness import KEEP_ALL, LogHarness
from raftlog.testing.contracts.made_batches import TIMESTAMP, raft_batch, snapshot_bytes, unreadable_control_batch

COMMITTED, UNCOMMITTED = Isolation.COMMITTED, Isolation.UNCOMMITTED

try:
    import pytest
except ImportError as error:
    raise MissingExtraError("testing", "raftlog.testing.contracts.replicated_log") from error


def fill(log: ReplicatedLog, epoch: int, batch_count: int, records_each: int = 2) -> None:
    """Append batches at the log end."""
    for _ in range(batch_count):
        log.append_as_leader(raft_batch(log.end_offset.offset, epoch, records_each), epoch)


def write_snapshot(log: ReplicatedLog, offset: int, epoch: int, timestamp: int = TIMESTAMP) -> OffsetAndEpoch:
    """Make a snapshot of the log's own records, and freeze it."""
    snapshot_id = OffsetAndEpoch(offset, epoch)
    writer = log.create_snapshot(snapshot_id)
    assert writer is not None
    with writer:
        writer.append(snapshot_bytes(snapshot_id, last_contained_log_timestamp=timestamp))
        writer.freeze()
    return snapshot_id


def install_snapshot(log: ReplicatedLog, offset: int, epoch: int) -> OffsetAndEpoch:
    """Install a snapshot from a leader, in chunks."""
    snapshot_id = OffsetAndEpoch(offset, epoch)
    data = snapshot_bytes(snapshot_id)
    writer = log.create_snapshot_unchecked(snapshot_id)
    assert writer is not None
    with writer:
        writer.append(data[:100])
        writer.append(data[100:])
        writer.freeze()
    return snapshot_id


def contents(log: ReplicatedLog) -> bytes:
    """Return all bytes of a log, read batch by batch."""
    found, offset = b"", log.start_offset
    while offset < log.end_offset.offset:
        batch, _ = read_batch(log.read(offset, UNCOMMITTED).records)
        found += batch.buffer
        offset = batch.next_offset
    return found


def state(log: ReplicatedLog) -> tuple[object, ...]:
    """Return the observable state of a log."""
    pointers = (log.start_offset, log.end_offset, log.high_watermark, log.flushed_offset, log.last_fetched_epoch)
    return (*pointers, log.snapshot_ids, contents(log), [log.end_offset_for_epoch(epoch) for epoch in range(8)])


CORRUPT = raft_batch(50, 5, 1)[:-1] + b"?"


class ReplicatedLogContract:
    """The tests that every ``ReplicatedLog`` must pass.

    Subclass it in a test module, and define how to make a log::

        class TestMyLog(ReplicatedLogContract):
            def make_harness(self, retention: Retention) -> LogHarness:
                return MyHarness(retention)

    pytest then collects all of its tests for your log.
    """

    def make_harness(self, retention: Retention) -> LogHarness:
        """Make an empty log with a retention."""
        raise NotImplementedError

    @pytest.fixture
    def make(self) -> Callable[[Retention], LogHarness]:
        """Make an empty log of the implementation, with a retention."""
        return self.make_harness

    @pytest.fixture
    def harness(self, make: Callable[[Retention], LogHarness]) -> LogHarness:
        """An empty log."""
        return make(KEEP_ALL)

    @pytest.fixture
    def kafkas(self, harness: LogHarness) -> LogHarness:
        """A log for which Kafka's answers are known: batches of two, epoch 3 up to offset 48, then 5 up to 50."""
        fill(harness.log, 3, 24)
        fill(harness.log, 5, 1)
        harness.log.flush()
        return harness

    def test_an_empty_log(self, harness: LogHarness) -> None:
        """A new log starts and ends at 0, and knows no epoch and no snapshot."""
        log = harness.log
        assert (log.start_offset, log.end_offset.offset, log.high_watermark.offset, log.flushed_offset) == (0, 0, 0, 0)
        assert (log.last_fetched_epoch, log.snapshot_ids, log.quarantine) == (0, (), None)
        assert (log.latest_snapshot_id, log.earliest_snapshot_id) == (None, None)
        assert bytes(log.read(0, UNCOMMITTED).records) == b""
        assert not log.truncate_to_latest_snapshot()
        assert not log.clean(TIMESTAMP)

    def test_appended_batches_are_read(self, harness: LogHarness) -> None:
        """Batches come back byte for byte, in order, from any offset in them on."""
        log = harness.log
        batches = [raft_batch(0, 3, 4), raft_batch(4, 3, 1), raft_batch(5, 3, 5)]
        assert log.append_as_leader(batches[0], 3) == LogAppendInfo(0, 3)
        assert log.append_as_leader(batches[1] + batches[2], 3) == LogAppendInfo(4, 9)
        assert log.end_offset.offset == 10
        assert log.last_fetched_epoch == 3
        for offset in range(10):
            first = 0 if offset < 4 else 1 if offset < 5 else 2
            fetched = log.read(offset, UNCOMMITTED)
            assert bytes(fetched.records) in [b"".join(batches[first:end]) for end in (first + 1, first + 2, 3)]
            assert fetched.start_offset_metadata.offset == [0, 4, 5][first]

    def test_appended_bytes_are_the_logs_own(self, harness: LogHarness) -> None:
        """What the caller does to its buffer afterwards does not change the log."""
        buffer = bytearray(raft_batch(0, 3))
        harness.log.append_as_leader(memoryview(buffer), 3)
        buffer[:] = bytes(len(buffer))
        assert contents(harness.log) == raft_batch(0, 3)

    @pytest.mark.parametrize(
        ("data", "epoch", "error"),
        [
            (raft_batch(51, 5), 5, NonContiguousAppendError),
            (raft_batch(49, 5), 5, NonContiguousAppendError),
            (raft_batch(50, 5) + raft_batch(52, 5), 5, NonContiguousAppendError),
            (raft_batch(50, 5), 6, InvalidRecordError),
            (raft_batch(50, 4), 4, InvalidRecordError),
            (b"", 5, InvalidRecordError),
            (raft_batch(50, 5) + CORRUPT[:70], 5, TruncatedBatchError),
            (CORRUPT, 5, CorruptBatchError),
            (raft_batch(50, 5, 1, bytes(8 * 1024 * 1024)), 5, BatchTooLargeError),
            (unreadable_control_batch(50, 5), 5, InvalidRecordError),
        ],
        ids=["gap", "overlap", "gap-inside", "epoch", "old-epoch", "empty", "cut", "crc", "size", "control"],
    )
    def test_a_refused_append_changes_nothing(
        self, kafkas: LogHarness, data: bytes, epoch: int, error: type[DecodeError | LogError]
    ) -> None:
        """An append that a leader must not make is refused, whole, and the log is as it was."""
        before = state(kafkas.log)
        with pytest.raises(error):
            kafkas.log.append_as_leader(data, epoch)
        assert state(kafkas.log) == before

    def test_a_follower_takes_what_it_can_use(self, kafkas: LogHarness) -> None:
        """A follower drops a cut-off batch and epochs above its leader's, and refuses gaps and damage."""
        log = kafkas.log
        assert log.append_as_follower(raft_batch(50, 7), 6) is None
        assert log.append_as_follower(raft_batch(50, 5)[:-1], 6) is None
        assert log.append_as_follower(raft_batch(50, 5) + raft_batch(51, 6) + raft_batch(52, 7), 6) == LogAppendInfo(
            50, 51
        )
        assert log.last_fetched_epoch == 6
        for data, error in [
            (raft_batch(53, 6), NonContiguousAppendError),
            (raft_batch(52, 5), InvalidRecordError),
            (raft_batch(52, 6)[:-1] + b"?", CorruptBatchError),
            (raft_batch(52, 6) + raft_batch(53, 6)[:-1] + b"?", CorruptBatchError),
        ]:
            before = state(log)
            with pytest.raises(error):
                log.append_as_follower(data, 6)
            assert state(log) == before

    def test_an_epoch_without_records_gives_way_in_an_empty_log(self, harness: LogHarness) -> None:
        """A leader serves offset 0 whatever the epoch of its follower is, which may have led without a record."""
        harness.log.initialize_leader_epoch(3)
        assert harness.log.append_as_follower(raft_batch(0, 1), 4) == LogAppendInfo(0, 0)
        assert harness.log.state.epochs.entries == (EpochEntry(1, 0),)
        harness.log.flush()
        harness.crash()
        assert (harness.log.end_offset.offset, harness.log.last_fetched_epoch) == (1, 1)
        harness.log.initialize_leader_epoch(5)
        with pytest.raises(InvalidRecordError):
            harness.log.append_as_follower(raft_batch(1, 4), 6)

    def test_reads_are_limited(self, kafkas: LogHarness) -> None:
        """A read returns its first batch whole, and otherwise no more bytes than were asked for, of one segment."""
        log, size = kafkas.log, len(raft_batch(0, 3, 2))
        whole = b"".join(raft_batch(offset, 3, 2) for offset in range(10, 48, 2)) + raft_batch(48, 5, 2)
        for max_size_bytes in (-1, 0, 1, size, size + 1, 3 * size + 7, 2**40):
            found = bytes(log.read(11, UNCOMMITTED, max_size_bytes).records)
            assert len(found) == max(size, min(max_size_bytes, len(whole))) or len(found) % size == 0
            assert size <= len(found) <= max(size, max_size_bytes)
            assert whole.startswith(found)

    def test_reads_are_isolated(self, kafkas: LogHarness) -> None:
        """Committed reads end at the high watermark, uncommitted ones at the log end; others are out of range."""
        log = kafkas.log
        log.update_high_watermark(12)
        assert bytes(log.read(10, COMMITTED).records) == raft_batch(10, 3, 2)
        for offset in (12, 13, 50):
            fetched = log.read(offset, COMMITTED)
            assert (bytes(fetched.records), fetched.start_offset_metadata) == (b"", log.high_watermark)
        assert log.read(50, UNCOMMITTED).start_offset_metadata == log.end_offset
        assert len(log.read(12, UNCOMMITTED).records) > 0
        for offset in (-1, 51):
            with pytest.raises(OffsetOutOfRangeError):
                log.read(offset, UNCOMMITTED)

    def test_the_high_watermark(self, kafkas: LogHarness) -> None:
        """It moves up, at most to the log end, and never down; its place is that of the batch that follows it."""
        log = kafkas.log
        for given, held in ((10, 10), (4, 10), (60, 50), (-1, 50)):
            log.update_high_watermark(given)
            assert log.high_watermark.offset == held
        assert log.high_watermark == log.end_offset

    def test_epochs_end_where_kafka_says(self, kafkas: LogHarness) -> None:
        """The end of each epoch, and the verdict on fetch positions, are Kafka's own for the same log."""
        log = kafkas.log
        ends = [log.end_offset_for_epoch(epoch) for epoch in (2, 3, 4, 5, 6)]
        assert ends == [OffsetAndEpoch(*each) for each in ((0, 2), (48, 3), (48, 3), (50, 5), (50, 5))]
        assert log.validate_offset_and_epoch(48, 3) == ValidOffsetAndEpoch.valid(OffsetAndEpoch(48, 3))
        assert log.validate_offset_and_epoch(50, 3) == ValidOffsetAndEpoch.diverging(OffsetAndEpoch(48, 3))

    def test_every_offset_has_an_epoch(self, kafkas: LogHarness) -> None:
        """The epoch of each record in the log is known; other offsets are out of range, even if a snapshot has them."""
        log = kafkas.log
        assert [log.epoch_at_offset(offset) for offset in range(50)] == [3] * 48 + [5] * 2
        log.update_high_watermark(20)
        assert log.delete_before_snapshot(write_snapshot(log, 20, 3))
        assert log.epoch_at_offset(20) == 3
        for offset in (-1, 19, 50):
            with pytest.raises(OffsetOutOfRangeError):
                log.epoch_at_offset(offset)

    def test_a_leader_enters_its_epoch(self, kafkas: LogHarness) -> None:
        """The epoch is known before it has a record, is dropped by a truncation to the log end, and never falls."""
        log = kafkas.log
        log.initialize_leader_epoch(7)
        assert log.last_fetched_epoch == 7
        assert log.end_offset_for_epoch(5) == OffsetAndEpoch(50, 5)
        assert log.end_offset_for_epoch(7) == OffsetAndEpoch(50, 7)
        with pytest.raises(FencedEpochError):
            log.initialize_leader_epoch(6)
        log.truncate_to(50)
        assert log.last_fetched_epoch == 5
        log.initialize_leader_epoch(7)
        kafkas.crash()
        assert kafkas.log.last_fetched_epoch == 5

    def test_truncation_takes_whole_batches(self, kafkas: LogHarness) -> None:
        """The batch that holds the offset is dropped, with all after it; then the log continues from there."""
        log = kafkas.log
        log.truncate_to(31)
        assert (log.end_offset.offset, log.last_fetched_epoch, log.flushed_offset) == (30, 3, 30)
        log.truncate_to(100)
        assert log.end_offset.offset == 30
        log.append_as_follower(raft_batch(30, 4, 3), 4)
        assert contents(log)[-2 * len(raft_batch(28, 3, 2)) :].endswith(raft_batch(30, 4, 3))
        assert log.end_offset_for_epoch(3) == OffsetAndEpoch(30, 3)
        log.truncate_to(0)
        assert (log.end_offset.offset, log.last_fetched_epoch, contents(log)) == (0, 0, b"")

    def test_committed_records_are_not_truncated(self, kafkas: LogHarness) -> None:
        """A truncation that would drop a record below the high watermark is refused."""
        log = kafkas.log
        log.update_high_watermark(40)
        before = state(log)
        for offset in (-1, 0, 39):
            with pytest.raises(TruncationBelowHighWatermarkError):
                log.truncate_to(offset)
        with pytest.raises(TruncationBelowHighWatermarkError):
            log.truncate_to_end_offset(OffsetAndEpoch(39, 3))
        assert state(log) == before
        log.truncate_to(40)
        assert log.end_offset.offset == 40
        log.update_high_watermark(39)
        fill(log, 3, 1)
        log.update_high_watermark(41)
        with pytest.raises(TruncationBelowHighWatermarkError):
            log.truncate_to(41)

    def test_divergence_ends_with_the_common_epoch(self, kafkas: LogHarness) -> None:
        """The log is cut at the leader's end of the common epoch, or at its own end of the epoch below that."""
        log = kafkas.log
        assert log.truncate_to_end_offset(OffsetAndEpoch(60, 5)) == 50
        assert log.truncate_to_end_offset(OffsetAndEpoch(60, 4)) == 48
        assert log.truncate_to_end_offset(OffsetAndEpoch(31, 3)) == 30
        assert (log.end_offset.offset, log.last_fetched_epoch) == (30, 3)

    def test_a_crash_takes_what_is_not_flushed(self, kafkas: LogHarness) -> None:
        """Flushed batches survive a crash; others may be lost, as whole batches, and can be appended again."""
        fill(kafkas.log, 6, 3)
        flushed_offset = kafkas.log.flushed_offset
        assert flushed_offset >= 50
        whole = contents(kafkas.log)
        kafkas.crash()
        log = kafkas.log
        assert flushed_offset <= log.end_offset.offset <= 56
        assert whole.startswith(contents(log))
        assert (log.high_watermark.offset, log.flushed_offset) == (log.start_offset, log.end_offset.offset)
        fill(log, 6, 1)
        log.flush()
        assert log.flushed_offset == log.end_offset.offset

    def test_a_closed_log_opens_as_it_was(self, kafkas: LogHarness) -> None:
        """Closing flushes; the reopened log is the same, except the high watermark, which follows from snapshots."""
        fill(kafkas.log, 6, 3)
        kafkas.log.update_high_watermark(50)
        snapshot_id = write_snapshot(kafkas.log, 30, 3)
        whole = contents(kafkas.log)
        kafkas.reopen()
        log = kafkas.log
        assert contents(log) == whole
        assert (log.high_watermark.offset, log.flushed_offset) == (30, 56)
        assert log.snapshot_ids == (snapshot_id,)
        assert log.end_offset_for_epoch(5) == OffsetAndEpoch(50, 5)
        log.close()
        log.close()

    def test_what_was_truncated_does_not_come_back(self, kafkas: LogHarness) -> None:
        """A truncation is durable when it returns, and so are the batches flushed in place of the dropped ones."""
        kafkas.log.truncate_to(30)
        kafkas.crash()
        assert (kafkas.log.end_offset.offset, kafkas.log.last_fetched_epoch) == (30, 3)
        kafkas.log.append_as_follower(raft_batch(30, 9), 9)
        kafkas.log.flush()
        kafkas.crash()
        assert contents(kafkas.log).endswith(raft_batch(28, 3, 2) + raft_batch(30, 9))

    def test_a_snapshot_is_listed_when_it_is_frozen(self, kafkas: LogHarness) -> None:
        """Only freezing makes a snapshot: then it is listed, can be read, and cannot be made again."""
        log, snapshot_id = kafkas.log, OffsetAndEpoch(20, 3)
        log.update_high_watermark(30)
        abandoned = log.create_snapshot(snapshot_id)
        assert abandoned is not None
        abandoned.close()
        writer = log.create_snapshot(snapshot_id)
        assert writer is not None
        data = snapshot_bytes(snapshot_id)
        writer.append(data)
        assert (log.snapshot_ids, log.read_snapshot(snapshot_id)) == ((), None)
        writer.freeze()
        assert log.snapshot_ids == (snapshot_id,)
        with pytest.raises(SnapshotFrozenError):
            writer.freeze()
        with pytest.raises(SnapshotFrozenError):
            writer.append(b"more")
        writer.close()
        assert log.create_snapshot(snapshot_id) is None
        assert log.create_snapshot_unchecked(snapshot_id) is None
        reader = log.read_snapshot(snapshot_id)
        assert reader is not None
        with reader:
            assert (reader.snapshot_id, bytes(reader.read_at(0, reader.size()))) == (snapshot_id, data)
        latest = write_snapshot(log, 30, 3)
        assert (log.earliest_snapshot_id, log.latest_snapshot_id) == (snapshot_id, latest)

    @pytest.mark.parametrize("snapshot_id", [(32, 3), (21, 3), (20, 5), (20, 2), (10, 3), (20, -1)])
    def test_a_wrong_snapshot_id_is_refused(self, kafkas: LogHarness, snapshot_id: tuple[int, int]) -> None:
        """No snapshot is made above the high watermark, inside a batch, of another epoch, or below the latest one."""
        kafkas.log.update_high_watermark(30)
        write_snapshot(kafkas.log, 14, 3)
        before = state(kafkas.log)
        with pytest.raises(InvalidSnapshotIdError):
            kafkas.log.create_snapshot(OffsetAndEpoch(*snapshot_id))
        assert state(kafkas.log) == before

    def test_a_log_restarts_at_a_snapshot_ahead(self, kafkas: LogHarness) -> None:
        """A snapshot from the leader replaces the whole log, which continues after it."""
        log = kafkas.log
        log.update_high_watermark(40)
        write_snapshot(log, 20, 3)
        snapshot_id = install_snapshot(log, 100, 9)
        assert log.end_offset.offset == 50
        assert log.truncate_to_latest_snapshot()
        assert (log.start_offset, log.end_offset.offset, log.high_watermark.offset) == (100, 100, 100)
        assert (log.flushed_offset, log.last_fetched_epoch, log.snapshot_ids) == (100, 9, (snapshot_id,))
        assert not log.truncate_to_latest_snapshot()
        log.append_as_follower(raft_batch(100, 9, 2), 9)
        assert log.validate_offset_and_epoch(10, 3) == ValidOffsetAndEpoch.snapshot(snapshot_id)
        kafkas.reopen()
        assert contents(kafkas.log) == raft_batch(100, 9, 2)
        assert (kafkas.log.start_offset, kafkas.log.snapshot_ids) == (100, (snapshot_id,))

    def test_a_crash_before_the_log_restarts(self, kafkas: LogHarness) -> None:
        """A frozen snapshot that is ahead replaces the log on the next open after a crash."""
        snapshot_id = install_snapshot(kafkas.log, 100, 9)
        unfrozen = kafkas.log.create_snapshot_unchecked(OffsetAndEpoch(200, 9))
        assert unfrozen is not None
        unfrozen.append(b"half of it")
        kafkas.crash()
        log = kafkas.log
        assert (log.start_offset, log.end_offset.offset, log.last_fetched_epoch) == (100, 100, 9)
        assert log.snapshot_ids == (snapshot_id,)

    def test_a_snapshot_takes_the_place_of_records(self, kafkas: LogHarness) -> None:
        """The log starts at the snapshot, older snapshots are deleted, and queries return what Kafka's do."""
        log = kafkas.log
        log.update_high_watermark(30)
        write_snapshot(log, 10, 3)
        snapshot_id = write_snapshot(log, 24, 3)
        assert log.delete_before_snapshot(snapshot_id)
        assert (log.start_offset, log.snapshot_ids) == (24, (snapshot_id,))
        assert log.read_snapshot(OffsetAndEpoch(10, 3)) is None
        with pytest.raises(OffsetOutOfRangeError):
            log.read(23, UNCOMMITTED)
        assert bytes(log.read(24, COMMITTED).records).startswith(raft_batch(24, 3, 2))
        assert log.end_offset_for_epoch(2) == snapshot_id
        assert log.validate_offset_and_epoch(24, 2) == ValidOffsetAndEpoch.snapshot(snapshot_id)
        assert log.validate_offset_and_epoch(24, 3) == ValidOffsetAndEpoch.valid(snapshot_id)
        assert log.create_snapshot(OffsetAndEpoch(22, 3)) is None
        assert not log.delete_before_snapshot(snapshot_id)
        assert not log.delete_before_snapshot(OffsetAndEpoch(26, 3))

    def test_what_a_snapshot_stands_for_is_durable(self, kafkas: LogHarness) -> None:
        """A log that starts at a snapshot of records that were never flushed loses nothing in a crash."""
        fill(kafkas.log, 6, 2)
        kafkas.log.update_high_watermark(54)
        assert kafkas.log.delete_before_snapshot(write_snapshot(kafkas.log, 54, 6))
        assert kafkas.log.flushed_offset == 54
        kafkas.crash()
        assert (kafkas.log.start_offset, kafkas.log.end_offset.offset, kafkas.log.last_fetched_epoch) == (54, 54, 6)

    def test_only_committed_snapshots_take_the_place(self, kafkas: LogHarness) -> None:
        """A snapshot above the high watermark, of another history than the log's, does not move the log start."""
        snapshot_id = install_snapshot(kafkas.log, 40, 9)
        assert not kafkas.log.delete_before_snapshot(snapshot_id)
        assert (kafkas.log.start_offset, len(kafkas.log.snapshot_ids)) == (0, 1)

    def test_a_snapshot_of_the_whole_log(self, kafkas: LogHarness) -> None:
        """A snapshot may replace all records; the log keeps its offsets and epoch, even after a crash."""
        kafkas.log.update_high_watermark(50)
        snapshot_id = write_snapshot(kafkas.log, 50, 5)
        assert kafkas.log.delete_before_snapshot(snapshot_id)
        for _ in range(2):
            log = kafkas.log
            assert (log.start_offset, log.end_offset.offset, log.last_fetched_epoch) == (50, 50, 5)
            assert log.validate_offset_and_epoch(50, 5) == ValidOffsetAndEpoch.valid(snapshot_id)
            assert log.end_offset_for_epoch(9) == snapshot_id
            kafkas.crash()
        fill(kafkas.log, 6, 1)
        assert contents(kafkas.log) == raft_batch(50, 6, 2)

    @pytest.mark.parametrize(
        ("retention", "starts_at"),
        [
            (KEEP_ALL, 0),
            (Retention(max_bytes=0, max_age_ms=None), 30),
            (Retention(max_bytes=None, max_age_ms=1000), 20),
            (Retention(max_bytes=2**40, max_age_ms=2**40), 0),
        ],
        ids=["none", "size", "age", "wide"],
    )
    def test_retention(self, make: Callable[[Retention], LogHarness], retention: Retention, starts_at: int) -> None:
        """Snapshots that are too large or too old are deleted one by one, except the newest; others remain."""
        log = make(retention).log
        fill(log, 3, 20)
        log.update_high_watermark(30)
        for offset, age_ms in ((10, 5000), (20, 500), (30, 0)):
            write_snapshot(log, offset, 3, TIMESTAMP - age_ms)
        assert log.clean(TIMESTAMP) == (starts_at > 0)
        assert log.start_offset == starts_at
        assert [each.offset for each in log.snapshot_ids] == [each for each in (10, 20, 30) if each >= starts_at]
        assert not log.clean(TIMESTAMP)
