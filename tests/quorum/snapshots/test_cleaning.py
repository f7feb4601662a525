# SPDX-License-Identifier: Apache-2.0
"""Cleaning: when old snapshots are deleted, and when they are not."""

import pytest

from raftlog.invariants import instance_of
from raftlog.log.memory_log import MemoryLog
from raftlog.log.retention import Retention
from raftlog.offsets import OffsetAndEpoch
from raftlog.quorum.quorum_config import CLEANING_INTERVAL_MS, QuorumConfig
from raftlog.quorum.seam.effects import DeliverSnapshot
from raftlog.quorum.seam.snapshot_effects import CleanLog
from tests.quorum.leading.leaders import LOG_END, SlowDisk, leader_of
from tests.quorum.single_replica import replica_key

CONFIG = QuorumConfig()
KEEPS_NOTHING = Retention(max_bytes=0, max_age_ms=None)


def leader_with_snapshots(retention: Retention = KEEPS_NOTHING) -> SlowDisk:
    """Return the only voter, whose log has the bootstrap snapshot and three more."""
    core = leader_of((1,))
    instance_of(core.log, MemoryLog)._retention = retention
    for offset in (3, 5, LOG_END):
        core.take_snapshot(offset, b"x")
    return core


def test_all_but_the_newest_snapshot_go_in_one_cleaning() -> None:
    """A step deletes one; steps follow each other until the log has nothing more to delete."""
    core = leader_with_snapshots()
    core.sleep(CLEANING_INTERVAL_MS - core.now_ms - 1)
    assert core.log.start_offset == 0
    assert core.raft.deadline_ms is not None
    assert core.raft.deadline_ms <= CLEANING_INTERVAL_MS
    core.sleep(1)
    assert core.log.snapshot_ids == (OffsetAndEpoch(LOG_END, 3),)
    assert core.log.start_offset == LOG_END
    assert core.raft._replica.log.state == core.log.state


def test_a_cleaning_that_deletes_nothing_is_followed_by_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log is asked once a minute."""
    core, asked = leader_with_snapshots(Retention(None, None)), []
    log = instance_of(core.log, MemoryLog)
    right = log.prepare_clean

    def counting(now_ms: int) -> object:
        asked.append(now_ms)
        return right(now_ms)

    monkeypatch.setattr(log, "prepare_clean", counting)
    for _ in range(10):
        core.sleep(CLEANING_INTERVAL_MS // 2)
    assert asked == [each * CLEANING_INTERVAL_MS for each in (1, 2, 3, 4, 5)]


@pytest.mark.parametrize("interval_ms", [5000, CLEANING_INTERVAL_MS + 1])
def test_the_interval_can_be_chosen(interval_ms: int) -> None:
    """One millisecond before it is over, nothing is deleted; neither from the start, nor after a cleaning."""
    core = leader_of((1,), config=QuorumConfig(cleaning_interval_ms=interval_ms))
    instance_of(core.log, MemoryLog)._retention = KEEPS_NOTHING
    core.take_snapshot(LOG_END, b"x")
    for end in (1, 2):
        core.sleep(end * interval_ms - core.now_ms - 1)
        assert len(core.log.snapshot_ids) == 2
        core.sleep(1)
        assert len(core.log.snapshot_ids) == 1
        core.append(b"y")
        core.sleep(CONFIG.append_linger_ms)
        core.take_snapshot(core.log.end_offset.offset, b"y")


@pytest.mark.parametrize(("age_ms", "is_deleted"), [(-1, False), (0, False), (1, True)])
def test_the_time_of_day_says_what_is_old(age_ms: int, is_deleted: bool) -> None:
    """A snapshot's last record is too old one millisecond after the limit; the monotonic clock has no say in that."""
    core = leader_with_snapshots(Retention(None, max_age_ms=5_000_000))
    core.started_wall_ms = 5_000_000 + age_ms - CLEANING_INTERVAL_MS
    core.now_ms = CLEANING_INTERVAL_MS
    core.tick()
    assert (core.log.start_offset > 0) == is_deleted


def test_one_step_is_under_way_at_a_time() -> None:
    """The next one follows when the last one is reported."""
    core = leader_with_snapshots()
    core.slow = CleanLog
    core.sleep(CLEANING_INTERVAL_MS)
    core.sleep(CLEANING_INTERVAL_MS)
    assert [type(each) for each in core.held] == [CleanLog]
    core.slow = None
    core.let_go()
    assert core.log.snapshot_ids == (OffsetAndEpoch(LOG_END, 3),)


@pytest.mark.parametrize(("offset", "epoch", "start"), [(0, 0, 0), (3, 1, 3), (5, 2, 5), (LOG_END, 3, LOG_END)])
def test_what_a_replica_fetches_stays(offset: int, epoch: int, start: int) -> None:
    """Snapshots before the one that is read are deleted; it, and what follows it, is there until the pin ends."""
    core, pinned = leader_with_snapshots(), OffsetAndEpoch(offset, epoch)
    pins = core.raft._replica.snapshots.pins
    pins.hold(replica_key(2), pinned, 0, CLEANING_INTERVAL_MS + 1)
    core.sleep(CLEANING_INTERVAL_MS)
    assert (core.log.snapshot_ids[0], core.log.start_offset) == (pinned, start)
    core.sleep(CLEANING_INTERVAL_MS)
    assert core.log.snapshot_ids == (OffsetAndEpoch(LOG_END, 3),)


def test_what_a_listener_reads_stays() -> None:
    """A listener has opened the newest snapshot; two newer ones do not delete it until the listener closes it."""
    core = leader_with_snapshots()
    core.raft.register_listener()
    core.settle()
    reading = core.deliveries[-1]
    assert isinstance(reading, DeliverSnapshot)
    assert reading.snapshot_id == OffsetAndEpoch(LOG_END, 3)
    for value in (b"a", b"b"):
        core.append(value)
        core.sleep(CONFIG.append_linger_ms)
        core.take_snapshot(core.log.end_offset.offset, b"x")
    core.sleep(CLEANING_INTERVAL_MS)
    assert core.log.start_offset == LOG_END
    core.close(reading.number, LOG_END)
    core.sleep(CLEANING_INTERVAL_MS)
    assert core.log.start_offset == LOG_END + 2


def test_one_snapshot_is_nothing_to_clean() -> None:
    """A log with one snapshot keeps it, and asks for no tick."""
    core = leader_of((1,))
    instance_of(core.log, MemoryLog)._retention = KEEPS_NOTHING
    core.sleep(CLEANING_INTERVAL_MS)
    assert core.log.snapshot_ids == (OffsetAndEpoch(0, 0),)
    assert core.raft.deadline_ms is None or core.raft.deadline_ms > CLEANING_INTERVAL_MS
