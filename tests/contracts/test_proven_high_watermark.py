# SPDX-License-Identifier: Apache-2.0
"""A snapshot proves what is committed: to every log, at once and after every start, and no truncation goes below it."""

from collections.abc import Callable

import pytest

from raftlog.errors import TruncationBelowHighWatermarkError
from raftlog.log.replicated_log import Isolation, ReplicatedLog
from raftlog.offsets import OffsetAndEpoch
from raftlog.testing.contracts.log_harness import KEEP_ALL, LogHarness
from raftlog.testing.contracts.made_batches import raft_batch, snapshot_bytes
from tests.contracts.log_harnesses import HARNESSES

Restart = Callable[[LogHarness], None]
RESTARTS: dict[str, Restart] = {
    "reopened": lambda harness: harness.reopen(),
    "crashed": lambda harness: harness.crash(),
    "left alone": lambda harness: None,
}


@pytest.fixture(params=HARNESSES)
def harness(request: pytest.FixtureRequest) -> LogHarness:
    """A flushed log of single records, epoch 1 up to offset 5, then epoch 3 up to 9, without a known high watermark."""
    made: LogHarness = HARNESSES[request.param](KEEP_ALL)
    for offset in range(9):
        epoch = 1 if offset < 5 else 3
        made.log.append_as_leader(raft_batch(offset, epoch), epoch)
    made.log.flush()
    return made


def freeze(log: ReplicatedLog, snapshot_id: OffsetAndEpoch, *, is_own: bool) -> OffsetAndEpoch:
    """Make a snapshot of a log's own records, or install one."""
    writer = (log.create_snapshot if is_own else log.create_snapshot_unchecked)(snapshot_id)
    assert writer is not None
    with writer:
        writer.append(snapshot_bytes(snapshot_id))
        writer.freeze()
    return snapshot_id


def refused_offsets(log: ReplicatedLog) -> list[int]:
    """Try to truncate to each offset from -1 to after the log end, and return the offsets that are refused."""
    refused = []
    for offset in range(log.end_offset.offset + 1, -2, -1):
        before = log.end_offset.offset
        for truncate in (log.truncate_to, lambda offset: log.truncate_to_end_offset(OffsetAndEpoch(offset, 0))):
            try:
                truncate(offset)
            except TruncationBelowHighWatermarkError:
                refused.append(offset)
                assert log.end_offset.offset == before
    assert refused == sorted(refused, reverse=True)
    return sorted(set(refused))


@pytest.mark.parametrize("restart", RESTARTS)
@pytest.mark.parametrize("end_offset", [1, 5, 6, 9])
def test_a_snapshot_of_its_own_stays_committed(harness: LogHarness, end_offset: int, restart: str) -> None:
    """After any restart nothing below the newest snapshot's end is truncated; at its end, and above, all is."""
    harness.log.update_high_watermark(end_offset)
    freeze(harness.log, OffsetAndEpoch(end_offset, 1 if end_offset <= 5 else 3), is_own=True)
    RESTARTS[restart](harness)
    log = harness.log
    assert log.high_watermark.offset == end_offset
    assert len(log.read(end_offset - 1, Isolation.COMMITTED).records) > 0
    assert refused_offsets(log) == list(range(-1, end_offset))
    assert (log.end_offset.offset, log.high_watermark.offset) == (end_offset, end_offset)


@pytest.mark.parametrize("restart", RESTARTS)
@pytest.mark.parametrize(
    ("snapshot_id", "proven"),
    [((5, 1), 5), ((4, 1), 4), ((6, 3), 6), ((9, 3), 9), ((6, 1), 5), ((12, 1), 5), ((5, 2), 0), ((5, 0), 0)],
)
def test_a_fetched_snapshot_of_this_log_proves_it_committed(
    harness: LogHarness, snapshot_id: tuple[int, int], proven: int, restart: str
) -> None:
    """A snapshot proves that the records of its epoch before its end, and all before them, are committed; no others."""
    freeze(harness.log, OffsetAndEpoch(*snapshot_id), is_own=False)
    RESTARTS[restart](harness)
    assert harness.log.high_watermark.offset == proven
    assert refused_offsets(harness.log) == list(range(-1, proven))


def test_a_snapshot_beyond_the_log_proves_all_of_its_epoch(harness: LogHarness) -> None:
    """The log's records of that epoch are committed, and the log restarts at the snapshot, now or at a startup."""
    log = harness.log
    snapshot_id = freeze(log, OffsetAndEpoch(11, 3), is_own=False)
    assert log.high_watermark.offset == 9
    log.append_as_follower(raft_batch(9, 3), 3)
    with pytest.raises(TruncationBelowHighWatermarkError):
        log.truncate_to(9)
    assert log.truncate_to_latest_snapshot()
    assert (log.start_offset, log.high_watermark.offset, log.snapshot_ids) == (11, 11, (snapshot_id,))


@pytest.mark.parametrize("restart", RESTARTS)
def test_records_that_diverge_from_a_fetched_snapshot_are_dropped(harness: LogHarness, restart: str) -> None:
    """A log that diverges before the end of a snapshot of a later epoch restarts at it, however long it is."""
    snapshot_id = freeze(harness.log, OffsetAndEpoch(4, 7), is_own=False)
    assert harness.log.high_watermark.offset == 0
    if restart == "left alone":
        assert harness.log.truncate_to_latest_snapshot()
    RESTARTS[restart](harness)
    log = harness.log
    assert (log.start_offset, log.end_offset.offset, log.high_watermark.offset) == (4, 4, 4)
    assert log.snapshot_ids == (snapshot_id,)


def test_a_later_epoch_does_not_take_what_a_snapshot_proves(harness: LogHarness) -> None:
    """If one of two snapshots proves records that the other lacks, the log does not restart at the shorter one."""
    harness.log.update_high_watermark(5)
    freeze(harness.log, OffsetAndEpoch(5, 1), is_own=True)
    freeze(harness.log, OffsetAndEpoch(4, 7), is_own=False)
    with pytest.raises(TruncationBelowHighWatermarkError):
        harness.log.truncate_to_latest_snapshot()
    with pytest.raises(TruncationBelowHighWatermarkError):
        harness.crash()


@pytest.mark.parametrize("restart", RESTARTS)
def test_the_bootstrap_snapshot_proves_nothing(harness: LogHarness, restart: str) -> None:
    """It ends at offset 0."""
    freeze(harness.log, OffsetAndEpoch(0, 0), is_own=False)
    RESTARTS[restart](harness)
    assert (harness.log.high_watermark.offset, refused_offsets(harness.log)) == (0, [-1])


def test_an_epoch_without_records_proves_nothing(harness: LogHarness) -> None:
    """A leader that has entered an epoch, and not written in it, has nothing of a snapshot of that epoch."""
    harness.log.initialize_leader_epoch(7)
    freeze(harness.log, OffsetAndEpoch(12, 7), is_own=False)
    assert harness.log.high_watermark.offset == 0
    harness.log.truncate_to(8)
    assert harness.log.end_offset.offset == 8
