# SPDX-License-Identifier: Apache-2.0
"""Going through a log, of either implementation: from each offset, and while the log changes."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.errors import DivergedLogError, OffsetOutOfRangeError, StorageError
from raftlog.log.replicated_log import Isolation, ReplicatedLog
from raftlog.log.retention import Retention
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.messages.control import LeaderChangeMessage
from raftlog.testing.contracts.log_harness import KEEP_ALL, LogHarness
from raftlog.testing.contracts.made_batches import raft_batch, snapshot_bytes
from tests.contracts.log_harnesses import HARNESSES, FileHarness
from tests.strategies import TIMESTAMP

COMMITTED, UNCOMMITTED = Isolation.COMMITTED, Isolation.UNCOMMITTED


@pytest.fixture(params=HARNESSES)
def log(request: pytest.FixtureRequest) -> ReplicatedLog:
    """An empty log of the implementation."""
    make: Callable[[Retention], LogHarness] = HARNESSES[request.param]
    return make(KEEP_ALL).log


def fill(log: ReplicatedLog, epoch: int, batch_count: int, records_each: int = 3) -> None:
    """Append batches at the log end."""
    for _ in range(batch_count):
        log.append_as_leader(raft_batch(log.end_offset.offset, epoch, records_each), epoch)


def fill_with_leader_changes(log: ReplicatedLog) -> None:
    """Append a control batch, three data records, and both again: offsets 0, 1 to 3, 4, 5 to 7."""
    for epoch in (1, 2):
        change = write_control_batch(
            [LeaderChangeMessage(1, (), ())], base_offset=log.end_offset.offset, epoch=epoch, timestamp=TIMESTAMP
        )
        log.append_as_leader(change, epoch)
        fill(log, epoch, 1)


def install_snapshot(log: ReplicatedLog, offset: int, epoch: int) -> None:
    """Fetch a snapshot from a leader, and restart the log at it."""
    snapshot_id = OffsetAndEpoch(offset, epoch)
    writer = log.create_snapshot_unchecked(snapshot_id)
    assert writer is not None
    with writer:
        writer.append(snapshot_bytes(snapshot_id))
        writer.freeze()
    assert log.truncate_to_latest_snapshot()


@pytest.mark.parametrize("isolation", list(Isolation))
@pytest.mark.parametrize("high_watermark", [0, 1, 4, 8])
@pytest.mark.parametrize("from_offset", [None, *range(9)])
def test_records_begin_and_end_as_requested(
    log: ReplicatedLog, isolation: Isolation, high_watermark: int, from_offset: int | None
) -> None:
    """From each offset, up to the high watermark or the log end, with control records where they are asked for."""
    fill_with_leader_changes(log)
    log.update_high_watermark(high_watermark)
    end = high_watermark if isolation is COMMITTED else 8
    wanted = range(from_offset or 0, end)
    everything = list(log.records(from_offset, isolation, data_only=False))
    assert [each.offset for each in everything] == list(wanted)
    assert [each.is_control for each in everything] == [each in {0, 4} for each in wanted]
    assert [each.offset for each in log.records(from_offset, isolation)] == [e for e in wanted if e not in {0, 4}]
    batches = list(log.batches(from_offset, isolation))
    assert [each.base_offset for each in batches] == [
        base for base, last in ((0, 0), (1, 3), (4, 4), (5, 7)) if base < end and last >= (from_offset or 0)
    ]


def test_committed_records_are_the_default(log: ReplicatedLog) -> None:
    """Without an isolation nothing is given that may go again."""
    fill(log, 1, 2)
    assert list(log.records()) == []
    log.update_high_watermark(3)
    assert [each.offset for each in log.records()] == [0, 1, 2]
    assert [each.base_offset for each in log.batches()] == [0]


@pytest.mark.parametrize("offset", [-1, 7])
def test_an_offset_outside_of_the_log_is_refused(log: ReplicatedLog, offset: int) -> None:
    """Below the log start and above its end there is nothing to begin at; at the end there is just nothing."""
    fill(log, 1, 2)
    assert list(log.batches(6, UNCOMMITTED)) == []
    for records in (log.records(offset), log.batches(offset, UNCOMMITTED)):
        with pytest.raises(OffsetOutOfRangeError):
            next(records)


@given(st.lists(st.integers(1, 4), max_size=12), st.integers(200, 900), st.data())
def test_segments_do_not_show(counts: list[int], segment_size_bytes: int, data: st.DataObject) -> None:
    """However a log in files is divided, each record from any offset on comes once, in order."""
    log = FileHarness(segment_size_bytes=segment_size_bytes).log
    for epoch, count in enumerate(counts):
        fill(log, 1 + epoch // 3, 1, count)
    first = data.draw(st.integers(0, sum(counts)))
    assert [each.offset for each in log.records(first, UNCOMMITTED)] == list(range(first, sum(counts)))


def test_records_appended_meanwhile_are_not_returned(log: ReplicatedLog) -> None:
    """A loop that appends ends all the same; the next one finds the rest."""
    fill(log, 1, 2)
    for batch in log.batches(0, UNCOMMITTED):
        fill(log, 1, 1, batch.record_count)
    assert log.end_offset.offset == 12
    log.update_high_watermark(6)
    for _ in log.batches():
        log.update_high_watermark(12)
    assert [each.base_offset for each in log.batches(6)] == [6, 9]


def test_a_truncation_before_returned_records_ends_the_iteration(log: ReplicatedLog) -> None:
    """Truncated records are not returned; the records that replaced them are, up to the former end."""
    fill(log, 1, 4)
    batches = log.batches(0, UNCOMMITTED)
    assert next(batches).base_offset == 0
    log.truncate_to(6)
    assert next(batches).base_offset == 3
    assert next(batches, None) is None

    fill(log, 1, 2)
    batches = log.batches(0, UNCOMMITTED)
    assert [next(batches).base_offset for _ in range(2)] == [0, 3]
    log.truncate_to(6)
    fill(log, 2, 3)
    assert [(each.base_offset, each.partition_leader_epoch) for each in batches] == [(6, 2), (9, 2)]


@pytest.mark.parametrize(("kept", "is_refused"), [(3, True), (6, False), (9, False)])
@pytest.mark.parametrize("later", [0, 1, 4])
def test_a_truncation_of_what_was_given_is_an_error(
    log: ReplicatedLog, kept: int, is_refused: bool, later: int
) -> None:
    """Records of a later epoch are not returned as if they followed truncated ones."""
    fill(log, 1, 4)
    batches = log.batches(0, UNCOMMITTED)
    assert [next(batches).base_offset for _ in range(2)] == [0, 3]
    log.truncate_to(kept)
    fill(log, 2, later)
    if is_refused:
        with pytest.raises(DivergedLogError, match="up to offset 6 of epoch 1"):
            next(batches)
        with pytest.raises(StopIteration):
            next(batches)
    else:
        end = min(12, kept + 3 * later)
        assert [each.base_offset for each in batches] == list(range(6, end, 3))


@pytest.mark.parametrize("start", [3, 6, 9])
def test_a_log_start_that_moves_past_the_next_batch_is_an_error(log: ReplicatedLog, start: int) -> None:
    """A snapshot may replace records that were returned; if it replaces the next ones, the reader gets an error."""
    fill(log, 1, 4)
    log.update_high_watermark(12)
    batches = log.batches()
    assert [next(batches).base_offset for _ in range(2)] == [0, 3]
    snapshot_id = OffsetAndEpoch(start, 1)
    writer = log.create_snapshot(snapshot_id)
    assert writer is not None
    with writer:
        writer.append(snapshot_bytes(snapshot_id))
        writer.freeze()
    assert log.delete_before_snapshot(snapshot_id)
    if start <= 6:
        assert [each.base_offset for each in batches] == [6, 9]
    else:
        with pytest.raises(OffsetOutOfRangeError):
            next(batches)


def test_a_snapshot_of_another_history_is_not_continued(log: ReplicatedLog) -> None:
    """After a restart at a leader's snapshot, the returned records must be those that the snapshot covers."""
    for epoch in (1, 2):
        fill(log, 1, 2)
        batches = log.batches(0, UNCOMMITTED)
        assert next(batches).base_offset == 0
        log.truncate_to(3)
        if epoch == 2:
            install_snapshot(log, 3, epoch)
        log.append_as_follower(raft_batch(3, epoch, 3), epoch)
        if epoch == 2:
            with pytest.raises(DivergedLogError):
                next(batches)
        else:
            assert next(batches).base_offset == 3
            log.truncate_to(0)


def test_a_log_that_cannot_be_read_is_an_error() -> None:
    """A log in files that was closed meanwhile raises what a read of it does."""
    closed = FileHarness(segment_size_bytes=200).log
    fill(closed, 1, 4)
    batches = closed.batches(0, UNCOMMITTED)
    next(batches)
    closed.close()
    with pytest.raises(StorageError):
        list(batches)
