# SPDX-License-Identifier: Apache-2.0
"""What a listener may be given and told, and what not."""

from collections.abc import Callable

import pytest

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.testing.simulator.checks.ledger import Ledger
from raftlog.testing.simulator.checks.listener_contract import ListenerContract
from raftlog.testing.simulator.violation import ViolationError
from tests.quorum.messages import records_at
from tests.testing.simulator.checks.quorum_disks import QuorumDisks


def listening() -> tuple[QuorumDisks, Ledger, ListenerContract]:
    """Return the disks of three voters with four committed records of epoch 1, and a listener of the leader, 1."""
    disks = QuorumDisks(3)
    disks.lead(1, 1)
    disks.witness.stored(disks.ledgers[1], QuorumStateData(1, leader_epoch=1, leader_id=1))
    disks.append((1, 2), 1, count=5)
    for replica in (1, 2):
        disks.witness.synced(disks.ledgers[replica], 4)
    disks.witness.raised_high_watermark(disks.ledgers[1], 3)
    return disks, disks.ledgers[1], ListenerContract(disks.witness.history, disks.ledgers[1])


def test_records_one_after_the_other() -> None:
    """Up to the high watermark; what was not taken is given again."""
    disks, ledger, listener = listening()
    listener.batches_delivered(0, 3)
    listener.closed(2)
    listener.batches_delivered(2, 3)
    listener.closed(None)
    listener.batches_delivered(2, 3)
    listener.read(disks.witness.history.content_of(ledger.batches[2]))
    listener.closed(3)
    assert listener.next_offset == 3


@pytest.mark.parametrize(
    ("first", "end", "invariant"),
    [
        (1, 2, "listener-in-order"),
        (3, 3, "listener-in-order"),
        (2, 2, "listener-in-order"),
        (2, 4, "listener-is-committed"),
    ],
)
def test_other_records_are_a_violation(first: int, end: int, invariant: str) -> None:
    """Old ones, later ones, none, and those above the high watermark of the replica."""
    _, _, listener = listening()
    listener.batches_delivered(0, 2)
    listener.closed(2)
    with pytest.raises(ViolationError, match=invariant):
        listener.batches_delivered(first, end)


def test_a_delivery_waits_for_the_one_before() -> None:
    """One that begins before the last is closed is a violation."""
    _, _, listener = listening()
    listener.batches_delivered(0, 2)
    with pytest.raises(ViolationError, match="listener-in-order"):
        listener.batches_delivered(0, 2)


def test_a_batch_that_is_not_committed_is_a_violation() -> None:
    """Also if it is at an offset that is."""
    _, _, listener = listening()
    with pytest.raises(ViolationError, match="listener-is-committed"):
        listener.read(RecordBatch(records_at(1, 7, 1)))


@pytest.mark.parametrize(
    ("next_offset", "start", "end", "is_right"),
    [(None, 0, 3, True), (None, 2, 3, True), (1, 2, 3, True), (2, 2, 3, False), (1, 3, 2, False), (None, 0, 4, False)],
)
def test_snapshots(next_offset: int | None, start: int, end: int, is_right: bool) -> None:
    """For a new listener, and for one whose records are deleted; it has them, and only committed ones."""
    _, ledger, listener = listening()
    listener.closed(next_offset)
    ledger.start_offset = start
    expect(lambda: listener.snapshot_delivered(OffsetAndEpoch(end, 1)), None if is_right else "listener-")


def expect(call: Callable[[], None], invariant: str | None) -> None:
    """Call a function that violates an invariant, or does not."""
    if invariant is None:
        call()
    else:
        with pytest.raises(ViolationError, match=invariant):
            call()


@pytest.mark.parametrize(("read_to", "is_right"), [(None, False), (0, False), (1, True)])
def test_a_leader_is_told_of_itself_when_it_has_read_past_its_start(read_to: int | None, is_right: bool) -> None:
    """Its epoch begins at offset 0."""
    _, _, listener = listening()
    listener.closed(read_to)
    expect(lambda: listener.leader_told(1, 1), None if is_right else "leader-told-late")


def test_leaders_are_told_once_and_rightly() -> None:
    """First without a leader, then with it; not again, not of an earlier epoch, and of no other leader."""
    disks, _, listener = listening()
    listener.closed(3)
    listener.leader_told(1, None)
    listener.leader_told(1, 1)
    for epoch, leader in ((1, 1), (1, None), (0, None)):
        expect(lambda epoch=epoch, leader=leader: listener.leader_told(epoch, leader), "leader-told-once")  # type: ignore[misc]
    expect(lambda: listener.leader_told(2, None), "stored-before-sent")
    other = ListenerContract(disks.witness.history, disks.ledgers[1])
    expect(lambda: other.leader_told(1, 2), "leader-told-rightly")
