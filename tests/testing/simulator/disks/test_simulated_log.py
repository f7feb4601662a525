# SPDX-License-Identifier: Apache-2.0
"""The log of the simulator keeps the contract of a log, and tells its witness what it does."""

from typing import Any, cast

import pytest

from raftlog.disk_work import DiskWork
from raftlog.errors import QuarantinedLogError
from raftlog.log.replicated_log import ReplicatedLog
from raftlog.log.retention import Retention
from raftlog.offsets import OffsetAndEpoch
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.snapshot.writer import RecordsSnapshotWriter
from raftlog.testing.contracts.log_harness import LogHarness
from raftlog.testing.contracts.made_batches import raft_batch
from raftlog.testing.contracts.replicated_log import ReplicatedLogContract
from raftlog.testing.simulator.disks.simulated_log import SimulatedLog
from raftlog.voters.kraft_version import KRaftVersion
from tests.testing.simulator.checks.quorum_disks import QuorumDisks
from tests.testing.simulator.disks.recorder import Recorder


class SimulatedHarness:
    """A log of the simulator, whose witness has no objections."""

    def __init__(self, retention: Retention) -> None:
        self.recorder = Recorder()
        self.ledger = QuorumDisks(1).ledgers[1]
        self.simulated = SimulatedLog(cast("Any", self.recorder), self.ledger, retention)

    @property
    def log(self) -> ReplicatedLog:
        """The log."""
        return self.simulated

    def reopen(self) -> None:
        """Close the log, and open it again."""
        self.simulated.close()
        self.simulated.reopen()

    def crash(self) -> None:
        """Lose what is not durable, and open the log again."""
        self.simulated.crash()

    def rot(self, batch_count: int) -> None:
        """Lose batches that were durable. The recorder does not write that into the ledger."""
        self.ledger.quarantine_end = self.ledger.durable_end
        self.simulated.rot(batch_count)


class TestSimulatedLog(ReplicatedLogContract):
    """The log of the simulator."""

    def make_harness(self, retention: Retention) -> LogHarness:
        """Make an empty log."""
        return SimulatedHarness(retention)


def test_the_witness_is_told() -> None:
    """Appends, syncs, epochs, truncations, high watermarks, losses and openings, in the order in which they happen."""
    harness = SimulatedHarness(Retention())
    log = harness.simulated
    log.initialize_leader_epoch(1)
    log.append_as_leader(raft_batch(0, 1, 2), 1)
    flush = log.prepare_flush()
    assert log.unsynced_batch_count == 1
    flush.complete()
    log.append_as_follower(raft_batch(2, 1, 1), 1)
    log.truncate_to(2)
    log.update_high_watermark(1)
    log.append_as_follower(raft_batch(2, 1, 1), 1)
    log.crash()
    assert [name for name, _ in harness.recorder.told] == [
        "restarted",
        "entered_epoch",
        "appended",
        "synced",
        "appended",
        "truncated",
        "raised_high_watermark",
        "appended",
        "lost",
        "snapshots_kept",
        "reopened",
    ]
    assert [what for name, what in harness.recorder.told if name in ("synced", "truncated", "lost")] == [2, 2, 2]


def test_the_witness_is_told_of_snapshots() -> None:
    """When one is frozen, which ones are left, and where the log starts then; not of one that was not frozen."""
    harness = SimulatedHarness(Retention(max_bytes=0, max_age_ms=None))
    log = harness.simulated
    log.append_as_leader(raft_batch(0, 1, 2), 1)
    log.append_as_leader(raft_batch(2, 1, 2), 1)
    log.update_high_watermark(4)
    for end in (2, 4):
        freeze(log, OffsetAndEpoch(end, 1)).complete()
    harness.recorder.told.clear()
    assert log.clean(0)
    log.crash()
    freeze(log, OffsetAndEpoch(9, 2)).run()
    log.crash()
    freeze(log, OffsetAndEpoch(10, 2))
    log.crash()
    names = ("snapshot_taken", "snapshots_kept", "started_at", "restarted")
    told = [each for each in harness.recorder.told if each[0] in names]
    fourth, ninth = OffsetAndEpoch(4, 1), OffsetAndEpoch(9, 2)
    assert told == [
        ("snapshots_kept", (fourth,)),
        ("started_at", 4),
        ("snapshots_kept", (fourth,)),
        ("snapshot_taken", ninth),
        ("snapshots_kept", (fourth, ninth)),
        ("restarted", 9),
        ("snapshots_kept", (ninth,)),
        ("snapshots_kept", (ninth,)),
    ]


def freeze(log: SimulatedLog, snapshot_id: OffsetAndEpoch) -> DiskWork[int]:
    """Return the work that freezes a snapshot without records."""
    raw = log.create_snapshot_unchecked(snapshot_id)
    assert raw is not None
    level = KRaftVersion.KRAFT_VERSION_0
    return RecordsSnapshotWriter(raw, 0, last_contained_log_timestamp=0, kraft_version=level).prepare_freeze(0)


def rotten_log(lost: int = 2) -> SimulatedHarness:
    """Return a log of four batches, of one record each, that has lost the last ones."""
    harness = SimulatedHarness(Retention(max_bytes=0, max_age_ms=None))
    log = harness.simulated
    for offset in range(4):
        log.append_as_leader(raft_batch(offset, 1), 1)
    log.update_high_watermark(4)
    log.flush()
    harness.ledger.durable_end = 4
    harness.rot(lost)
    return harness


@pytest.mark.parametrize("lost", [1, 4])
def test_a_log_that_rots_is_in_quarantine(lost: int) -> None:
    """It names what was lost, is no leader's, and is whole when it is flushed up to where it was durable."""
    harness = rotten_log(lost)
    log = harness.simulated
    for offset in range(4 - lost, 4):
        found = log.quarantine
        assert found is not None
        assert (found.first_bad_offset, found.durable_end_offset, log.end_offset.offset) == (offset, 4, offset)
        with pytest.raises(QuarantinedLogError):
            log.append_as_leader(raft_batch(offset, 1), 1)
        log.append_as_follower(raft_batch(offset, 1), 1)
        assert log.quarantine is not None
        log.prepare_flush().complete()
    assert log.quarantine is None
    log.append_as_leader(raft_batch(4, 1), 1)


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_what_survives_a_crash_ends_a_quarantine(kept: int) -> None:
    """What is there when the log is opened is durable, so it is whole again if that is all that it had lost."""
    disks = QuorumDisks(1)
    ledger = disks.ledgers[1]
    log = SimulatedLog(disks.witness, ledger, Retention(max_bytes=None, max_age_ms=None))
    ledger.requested_epoch = 1
    ledger.state = QuorumStateData(1, leader_id=1, leader_epoch=1)
    log.initialize_leader_epoch(1)
    for offset in range(4):
        log.append_as_leader(raft_batch(offset, 1), 1)
    log.flush()
    ledger.quarantine_end = 4
    log.rot(2)
    for offset in (2, 3):
        log.append_as_follower(raft_batch(offset, 1), 1)
    log.crash(kept)
    assert log.end_offset.offset == 2 + kept
    assert (log.quarantine is None) is (ledger.quarantine_end == 0) is (kept == 2)


def test_a_snapshot_ends_the_quarantine_of_a_log() -> None:
    """If it ends where the log was durable; until then nothing is deleted."""
    harness = rotten_log()
    log = harness.simulated
    freeze(log, OffsetAndEpoch(1, 1)).complete()
    assert not log.delete_before_snapshot(OffsetAndEpoch(1, 1))
    for end in (3, 4):
        assert log.quarantine is not None
        freeze(log, OffsetAndEpoch(end, 1)).complete()
        assert log.truncate_to_latest_snapshot()
    assert log.quarantine is None


def test_a_crash_keeps_a_quarantine() -> None:
    """Unless the disk has synced all by then, and the process was not told."""
    harness = rotten_log(1)
    log = harness.simulated
    log.append_as_follower(raft_batch(3, 1), 1)
    log.crash()
    assert log.quarantine is not None
    log.append_as_follower(raft_batch(3, 1), 1)
    log.prepare_flush().run()
    harness.ledger.quarantine_end = 0
    assert log.quarantine is not None
    log.crash()
    assert log.quarantine is None
