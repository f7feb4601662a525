# SPDX-License-Identifier: Apache-2.0
"""The answers of a log while work for the disk is in progress are consistent, whichever method is asked."""

from collections.abc import Callable
from typing import Any

import pytest

from raftlog.disk_work import DiskWork
from raftlog.errors import RaftLogError, WorkUnderWayError
from raftlog.log.replicated_log import ReplicatedLog
from raftlog.offsets import OffsetAndEpoch
from raftlog.testing.contracts.log_harness import KEEP_ALL, LogHarness
from raftlog.testing.contracts.made_batches import raft_batch
from tests.contracts.log_harnesses import HARNESSES

COMMITTED = 2
END = 9
EPOCHS = range(6)
OFFSETS = range(-1, END + 3)


@pytest.fixture(params=HARNESSES)
def make(request: pytest.FixtureRequest) -> Callable[[], LogHarness]:
    """Makes logs of epoch 1 up to offset 4, 3 up to 6, 4 up to 8; 0 to 6 are flushed, 0 and 1 committed."""

    def made() -> LogHarness:
        harness: LogHarness = HARNESSES[request.param](KEEP_ALL)
        for offset in range(END):
            epoch = 1 if offset < 5 else 3 if offset < 7 else 4
            harness.log.append_as_leader(raft_batch(offset, epoch), epoch)
            if offset == 6:
                harness.log.flush()
        harness.log.update_high_watermark(COMMITTED)
        return harness

    return made


def answer(call: Callable[..., Any], *arguments: Any) -> object:
    """Return what a call returns, or the class of the error."""
    try:
        return call(*arguments)
    except WorkUnderWayError:
        raise
    except RaftLogError as error:
        return type(error)


def answers(log: ReplicatedLog) -> list[object]:
    """Return all that a log says of itself without a read."""
    return [
        log.start_offset,
        log.end_offset.offset,
        log.high_watermark.offset,
        log.last_fetched_epoch,
        *(answer(log.end_offset_for_epoch, epoch) for epoch in EPOCHS),
        *(answer(log.epoch_at_offset, offset) for offset in OFFSETS),
        *(answer(log.validate_offset_and_epoch, offset, epoch) for offset in OFFSETS for epoch in EPOCHS),
    ]


def may_begin_snapshots(log: ReplicatedLog) -> list[object]:
    """Return at which ids a log lets a snapshot begin; none is made."""

    def begin(snapshot_id: OffsetAndEpoch) -> object:
        writer = log.create_snapshot(snapshot_id)
        if writer is not None:
            writer.close()
        return writer is not None

    ids = [OffsetAndEpoch(offset, epoch) for offset in range(END + 2) for epoch in EPOCHS]
    return [answer(begin, snapshot_id) for snapshot_id in ids]


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("offset", range(COMMITTED, END + 1))
def test_a_log_answers_as_it_will_be_after_a_truncation(
    make: Callable[[], LogHarness], offset: int, runs: bool
) -> None:
    """From the moment it is prepared on, of all that is not read from the disk; snapshots begin at the cut, too."""
    twin = make()
    twin.log.truncate_to(offset)
    harness = make()
    flushed_offset = harness.log.flushed_offset
    work = harness.log.prepare_truncate_to(offset)
    if runs:
        work.run()
    assert answers(harness.log) == answers(twin.log)
    assert harness.log.flushed_offset == min(
        flushed_offset, offset
    )  # The sync of a truncation counts once it is finished.
    assert may_begin_snapshots(harness.log) == may_begin_snapshots(twin.log)
    work.complete() if not runs else work.finish()
    assert answers(harness.log) == answers(twin.log)


def test_a_truncation_that_is_cancelled_has_cut_nothing(make: Callable[[], LogHarness]) -> None:
    """The log answers as before."""
    harness = make()
    before = answers(harness.log), may_begin_snapshots(harness.log)
    work = harness.log.prepare_truncate_to(3)
    assert work.cancel(WorkUnderWayError("taken back"))
    assert (answers(harness.log), may_begin_snapshots(harness.log)) == before


WORKS: dict[str, Callable[[ReplicatedLog], DiskWork[Any]]] = {
    "flush": lambda log: log.prepare_flush(),
    "enter an epoch": lambda log: log.prepare_leader_epoch(7),
}


@pytest.mark.parametrize("name", WORKS)
def test_a_log_answers_as_it_is_until_other_work_counts(make: Callable[[], LogHarness], name: str) -> None:
    """A flush or an epoch that is under way shows nowhere."""
    harness = make()
    before = answers(harness.log), may_begin_snapshots(harness.log), harness.log.flushed_offset
    work = WORKS[name](harness.log)
    assert (answers(harness.log), may_begin_snapshots(harness.log), harness.log.flushed_offset) == before
    work.run()
    assert (answers(harness.log), may_begin_snapshots(harness.log), harness.log.flushed_offset) == before
    work.finish()
    assert (answers(harness.log), harness.log.flushed_offset) != (before[0], before[2])


def test_an_epoch_begins_after_the_flush_that_is_under_way(make: Callable[[], LogHarness]) -> None:
    """An append in the latest epoch goes on, one in a new epoch is refused, by a leader and by a follower."""
    harness = make()
    log = harness.log
    flush = log.prepare_flush()
    log.append_as_leader(raft_batch(END, 4), 4)
    before = answers(log)
    for append in (log.append_as_leader, log.append_as_follower):
        with pytest.raises(WorkUnderWayError):
            append(raft_batch(END + 1, 5), 5)
    assert answers(log) == before
    assert flush.complete().value == END
    log.append_as_follower(raft_batch(END + 1, 5), 5)
    assert log.last_fetched_epoch == 5
