# SPDX-License-Identifier: Apache-2.0
"""What is committed follows from what disks have synced, and never changes."""

import itertools

import pytest

from raftlog.records.batches.batch import RecordBatch
from raftlog.testing.simulator.checks.ledger import StoredBatch
from raftlog.testing.simulator.violation import ViolationError
from tests.quorum.messages import records_at
from tests.testing.simulator.checks.quorum_disks import QuorumDisks


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_a_majority_commits(count: int) -> None:
    """A batch is committed with the sync that makes a majority, not before."""
    disks = QuorumDisks(count)
    disks.lead(1, 1)
    disks.append(range(1, count + 1), 1)
    for synced in range(1, count + 1):
        disks.sync(synced)
        assert disks.committed_end == (1 if synced > count // 2 else 0)


def test_what_is_not_synced_is_not_committed() -> None:
    """Batches that all logs have are not committed before they are synced."""
    disks = QuorumDisks(3)
    disks.lead(1, 1)
    disks.append((1, 2, 3), 1)
    assert disks.committed_end == 0


def test_an_older_epoch_is_committed_with_the_next_one() -> None:
    """Figure 8 of Raft: a majority has synced a batch of an older epoch, and another one may still replace it."""
    disks = QuorumDisks(3)
    disks.lead(1, 1)
    disks.append((1,), 1)
    disks.sync(1)
    for replica in (1, 2):
        disks.enter(replica, 3)
    disks.witness.entered_epoch(disks.ledgers[1], 3)
    disks.append((2,), 1)
    disks.sync(2)
    assert disks.committed_end == 0
    disks.append((1, 2), 3)
    disks.sync(1, 2)
    assert disks.committed_end == 2


def test_a_replica_in_a_later_epoch_does_not_count() -> None:
    """A sync that ends after the replica was given a later epoch promises nothing to the old leader."""
    disks = QuorumDisks(3)
    disks.lead(1, 1)
    disks.append((1, 2), 1)
    disks.sync(1)
    disks.enter(2, 2)
    disks.sync(2)
    assert disks.committed_end == 0


def test_a_replica_that_may_have_forgotten_a_vote_does_not_count() -> None:
    """It may have promised a later epoch; what it had synced before that was lost is counted."""
    disks = QuorumDisks(3)
    disks.lead(1, 1)
    disks.append((1, 2), 1)
    disks.sync(1)
    disks.enter(2, 2)
    disks.ledgers[2].is_vote_lost = True
    disks.witness.reopened(disks.ledgers[2], 1, 0)
    assert disks.committed_end == 0
    disks.append((3,), 1)
    disks.sync(3)
    assert disks.committed_end == 1


def test_two_leaders_of_an_epoch() -> None:
    """A second leader of an epoch is a violation; the same one may say so again."""
    disks = QuorumDisks(3)
    disks.lead(1, 1)
    disks.lead(1, 1)
    with pytest.raises(ViolationError, match="one-leader-per-epoch"):
        disks.lead(2, 1)


def test_a_leader_without_committed_records() -> None:
    """A leader that lacks what an earlier one has committed is a violation; a leader of an earlier epoch is none."""
    disks = QuorumDisks(3)
    disks.lead(1, 2)
    disks.append((1, 2), 2)
    disks.sync(1, 2)
    assert disks.committed_end == 1
    disks.lead(3, 1)
    with pytest.raises(ViolationError, match="leader-completeness"):
        disks.lead(3, 3)


def test_a_leader_without_what_later_leaders_have_committed() -> None:
    """A batch of an older epoch that a later leader commits may be missing in a log that was elected in between."""
    disks = QuorumDisks(3)
    disks.lead(1, 1)
    disks.append((1, 2), 1)
    disks.sync(1)
    disks.lead(1, 3)
    disks.append((1, 2), 3)
    disks.enter(2, 3)
    disks.sync(1, 2)
    assert disks.committed_end == 2
    disks.lead(3, 2)
    with pytest.raises(ViolationError, match="leader-completeness"):
        disks.lead(3, 4)


def test_what_is_committed_after_the_next_election() -> None:
    """A batch that is committed although a later leader, elected before, has another one is a violation."""
    disks = QuorumDisks(3)
    disks.lead(1, 1)
    disks.append((1, 2), 1)
    disks.lead(3, 2)
    disks.append((3,), 2)
    disks.sync(1)
    with pytest.raises(ViolationError, match="leader-completeness"):
        disks.sync(2)


def test_two_batches_of_one_epoch_and_offset() -> None:
    """Another batch with the same epoch and offset is a violation, also if the first one is lost."""
    disks = QuorumDisks(2)
    disks.append((1,), 1)
    batch = disks.ledgers[1].batches[0]
    history = disks.witness.history
    disks.witness.lost(disks.ledgers[1], 0)
    history.note_batch(batch, None, history.content_of(batch))
    with pytest.raises(ViolationError, match="one-batch-per-offset-and-epoch"):
        history.note_batch(batch._replace(crc=0), None, history.content_of(batch))


def test_logs_that_match_have_one_past() -> None:
    """A batch that follows different batches in two logs is a violation."""
    disks = QuorumDisks(2)
    disks.append((1,), 1)
    disks.append((2,), 2)
    disks.append((1,), 3)
    with pytest.raises(ViolationError, match="log-matching"):
        disks.append((2,), 3)


@pytest.mark.parametrize("order", list(itertools.permutations((1, 2, 3))))
def test_the_order_of_syncs_does_not_matter(order: tuple[int, ...]) -> None:
    """Two of three voters commit, whichever they are, in the order of the offsets."""
    disks = QuorumDisks(3)
    disks.lead(1, 1)
    disks.append((1, 2, 3), 1, count=3)
    disks.sync(*order)
    assert [each.base_offset for each in disks.committed] == [0, 1, 2]


def test_what_is_before_a_batch_that_was_first_seen_at_the_start_of_a_log() -> None:
    """The first log that has a batch before it says which one; another one in a later log is a violation."""
    history = QuorumDisks(1).witness.history
    batch, content = StoredBatch(10, 3, 11, 1), RecordBatch(records_at(10, 3, 1))
    before, another = StoredBatch(9, 2, 10, 7), StoredBatch(9, 1, 10, 8)
    for known in (None, before, None, before):
        history.note_batch(batch, known, content)
    with pytest.raises(ViolationError, match="log-matching"):
        history.note_batch(batch, another, content)
