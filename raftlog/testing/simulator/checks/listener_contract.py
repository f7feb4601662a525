# SPDX-License-Identifier: Apache-2.0
"""What a listener is promised: each committed record once, in order, and leaders no earlier than they may act.

A listener on the leader itself is told of that when it has read past the start of the epoch, because its state then has
all that earlier leaders have committed (KAFKA-17333).
"""

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.testing.simulator.checks.committed_history import CommittedHistory
from raftlog.testing.simulator.checks.ledger import Ledger, StoredBatch
from raftlog.testing.simulator.violation import check


class ListenerContract:
    """What one listener was given and told, in one run of a process.

    Args:
        history: of what is committed.
        ledger: of the directory that the listener reads.

    Attributes:
        next_offset: of the record that it needs next, inclusive; None before its first delivery.
    """

    def __init__(self, history: CommittedHistory, ledger: Ledger) -> None:
        self.next_offset: int | None = None
        self._history = history
        self._ledger = ledger
        self._is_reading = False
        self._paused_until_ms = 0
        self._snapshot_restarts: int | None = None
        self._told_epoch = 0
        self._told_leader: int | None = None

    def paused(self, until_ms: int) -> None:
        """Note that the listener has taken nothing, and is given nothing before a time, in ms by the core's clock."""
        self._paused_until_ms = until_ms

    def given(self, core_ms: int) -> None:
        """Check that a delivery does not come before the end of a pause."""
        is_paused = core_ms < self._paused_until_ms
        check(not is_paused, "listeners-pause", "given at {}, paused until {}", core_ms, self._paused_until_ms)

    def snapshot_gone(self, snapshot_id: OffsetAndEpoch) -> None:
        """Check that a snapshot that cannot be read any more was replaced by a later one, with the whole log."""
        was_replaced = self._snapshot_restarts != self._ledger.restart_count
        check(was_replaced, "snapshots-stay-while-read", "{}: {} is gone", self._ledger.key, snapshot_id)

    def snapshot_delivered(self, snapshot_id: OffsetAndEpoch) -> None:
        """Check that a snapshot replaces only what the listener cannot read any more, and is committed."""
        self._begin(snapshot_id)
        self._snapshot_restarts = self._ledger.restart_count
        known, start = self.next_offset, self._ledger.start_offset
        is_needed = known is None or known < start <= snapshot_id.offset
        check(is_needed, "listener-in-order", "{} at {}, log start {}", snapshot_id, known, start)
        self._check_end(snapshot_id.offset)

    def batches_delivered(self, offset: int, end_offset: int) -> None:
        """Check that records are the next ones, and are known to be committed."""
        self._begin(offset)
        expected = max(self.next_offset or 0, 0)
        check(offset == expected < end_offset, "listener-in-order", "{} to {}, at {}", offset, end_offset, expected)
        start = self._ledger.start_offset
        check(offset >= start, "listener-in-order", "{} are not in the log, which starts at {}", offset, start)
        self._check_end(end_offset)

    def _begin(self, delivery: object) -> None:
        check(not self._is_reading, "listener-in-order", "{} before the last delivery is closed", delivery)
        self._is_reading = True

    def _check_end(self, end_offset: int) -> None:
        known, committed = self._ledger.high_watermark, self._history.end_offset
        is_known = end_offset <= min(known, committed)
        check(is_known, "listener-is-committed", "{}, high watermark {}, committed {}", end_offset, known, committed)

    def read(self, batch: RecordBatch) -> None:
        """Check that a batch is committed."""
        known = StoredBatch.of(batch)
        check(self._history.is_committed(known), "listener-is-committed", "{} is not committed", known)

    def closed(self, next_offset: int | None) -> None:
        """Note how far the listener has come; None if it has taken nothing."""
        self._is_reading = False
        if next_offset is not None:
            self.next_offset = next_offset

    def knows(self, epoch: int, leader_id: int) -> bool:
        """Whether the listener was told last that this replica leads this epoch."""
        return (self._told_epoch, self._told_leader) == (epoch, leader_id)

    def leader_told(self, epoch: int, leader_id: int | None) -> None:
        """Check that an epoch is news, is durable, and has this leader; and that the leader itself has read enough."""
        before = self._told_epoch, self._told_leader
        is_news = epoch > self._told_epoch or (epoch == self._told_epoch and self._told_leader is None)
        check(is_news, "leader-told-once", "epoch {}, leader {} after {}", epoch, leader_id, before)
        self._told_epoch, self._told_leader = epoch, leader_id
        stored = 0 if self._ledger.state is None else self._ledger.state.leader_epoch
        check(epoch <= stored, "stored-before-sent", "epoch {} is told, stored is {}", epoch, stored)
        if leader_id is None:
            return
        leader = self._history.leaders.get(epoch)
        is_leader = leader is not None and leader.key.id == leader_id
        check(is_leader, "leader-told-rightly", "epoch {}, leader {}", epoch, leader_id)
        if leader is self._ledger:
            start_epoch, start = self._ledger.epoch_start
            has_read = start_epoch == epoch and self.next_offset is not None and self.next_offset > start
            check(has_read, "leader-told-late", "epoch {} from {}, read to {}", epoch, start, self.next_offset)
