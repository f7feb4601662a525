# SPDX-License-Identifier: Apache-2.0
"""The witness finds what a disk must not be given."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.offsets import OffsetAndEpoch
from raftlog.records.batches.batch import RecordBatch
from raftlog.records.batches.control_batch import write_control_batch
from raftlog.records.files.quorum_state import QuorumStateData
from raftlog.records.messages.voters import voters_record
from raftlog.testing.simulator.checks.disk_witness import majorities_meet
from raftlog.testing.simulator.violation import ViolationError
from tests.quorum.single_replica import replica_key, voter_set_of
from tests.testing.simulator.checks.quorum_disks import QuorumDisks

KEYS = [replica_key(each) for each in range(1, 6)]


@given(st.sets(st.sampled_from(KEYS), min_size=1), st.sets(st.sampled_from(KEYS), min_size=1))
def test_majorities_meet_as_voter_sets_say(one: set[object], other: set[object]) -> None:
    """Trying all majorities gives what the formula of voter sets gives."""
    first, second = (frozenset(each for each in KEYS if each in some) for some in (one, other))
    assert majorities_meet(first, second) == voter_set_of(first).has_overlapping_majority(voter_set_of(second))


def committed_disks() -> QuorumDisks:
    """Return three disks with two batches, of which the first is committed; the leader knows it."""
    disks = QuorumDisks(3)
    disks.lead(1, 1)
    disks.append((1, 2), 1)
    disks.sync(1, 2)
    disks.append((1, 2), 1)
    return disks


def test_a_high_watermark_is_committed() -> None:
    """A high watermark at the end of what is committed is right, and one above is a violation."""
    disks = committed_disks()
    disks.witness.raised_high_watermark(disks.ledgers[1], 1)
    with pytest.raises(ViolationError, match="high-watermark-is-committed"):
        disks.witness.raised_high_watermark(disks.ledgers[1], 2)


@pytest.mark.parametrize(
    ("is_quarantined", "change", "is_right"),
    [
        (False, {}, True),
        (False, {"epoch": 3}, False),
        (True, {}, True),
        (True, {"epoch": 3}, True),
        (True, {"crc": 7}, False),
    ],
)
def test_records_that_snapshots_prove_are_committed(
    change: dict[str, int], *, is_quarantined: bool, is_right: bool
) -> None:
    """In quarantine the epoch in a header may have rotted, which no CRC covers, and nothing else may differ."""
    disks = committed_disks()
    ledger = disks.ledgers[1]
    ledger.batches[0] = ledger.batches[0]._replace(**change)
    ledger.quarantine_end = 9 if is_quarantined else 0
    end = ledger.batches[0].next_offset
    if is_right:
        disks.witness.proved(ledger, end)
        return
    with pytest.raises(ViolationError, match="high-watermark-is-committed"):
        disks.witness.proved(ledger, end)


def test_a_high_watermark_is_in_the_log() -> None:
    """A high watermark above the log end is a violation, even if it is committed elsewhere."""
    disks = committed_disks()
    with pytest.raises(ViolationError, match="high-watermark-in-log"):
        disks.witness.raised_high_watermark(disks.ledgers[3], 1)


def test_a_high_watermark_rises() -> None:
    """A lower high watermark in the same run is a violation; after a restart it is none."""
    disks = committed_disks()
    ledger = disks.ledgers[1]
    disks.witness.raised_high_watermark(ledger, 1)
    with pytest.raises(ViolationError, match="high-watermark-rises"):
        disks.witness.raised_high_watermark(ledger, 0)
    disks.witness.reopened(ledger, 2, 0)
    disks.witness.raised_high_watermark(ledger, 0)
    assert disks.witness.known_end == 1


def test_a_log_that_diverges_knows_no_high_watermark() -> None:
    """A high watermark over a batch that is not the committed one is a violation."""
    disks = committed_disks()
    disks.append((3,), 0)
    with pytest.raises(ViolationError, match="committed-prefix"):
        disks.witness.raised_high_watermark(disks.ledgers[3], 1)


def test_truncations() -> None:
    """Batches that are not committed may be truncated; committed ones, and those below a high watermark, may not."""
    disks = committed_disks()
    disks.enter(2, 1)
    disks.witness.asked_to_truncate(disks.ledgers[2])
    disks.witness.truncated(disks.ledgers[2], 1)
    with pytest.raises(ViolationError, match="committed-prefix"):
        disks.witness.truncated(disks.ledgers[2], 0)
    disks.witness.raised_high_watermark(disks.ledgers[1], 1)
    with pytest.raises(ViolationError, match="high-watermark-is-kept"):
        disks.witness.truncated(disks.ledgers[1], 0)


@pytest.mark.parametrize(("epoch", "is_lost"), [(1, False), (2, False), (3, True), (4, True)])
def test_a_replica_of_an_earlier_epoch_may_truncate_what_a_later_one_commits(epoch: int, *, is_lost: bool) -> None:
    """What counts is the epoch in which it asked for that, although the disk does it later: here in epoch 5.

    Replica 1 writes a batch of epoch 1 to replica 3 too, and commits it in epoch 3, together with replica 2.
    """
    disks = QuorumDisks(3)
    disks.lead(1, 1)
    disks.append((1, 3), 1)
    disks.sync(3)
    disks.lead(1, 3)
    disks.append((2,), 1)
    disks.append((1, 2), 3)
    disks.sync(1, 2)
    assert disks.witness.history.end_offset == 2
    disks.enter(3, epoch)
    disks.witness.asked_to_truncate(disks.ledgers[3])
    disks.enter(3, 5)
    if is_lost:
        with pytest.raises(ViolationError, match="committed-prefix"):
            disks.witness.truncated(disks.ledgers[3], 0)
    else:
        disks.witness.truncated(disks.ledgers[3], 0)


def test_a_crash_may_take_what_is_not_synced() -> None:
    """What is lost is forgotten, and the rest is durable when the log is open again."""
    disks = committed_disks()
    ledger = disks.ledgers[1]
    disks.witness.lost(ledger, 1)
    disks.witness.reopened(ledger, 1, 0)
    assert (ledger.end_offset, ledger.durable_end) == (1, 1)


def test_epochs_rise() -> None:
    """A disk is given no older epoch, unless the later one was not durable before a crash."""
    disks = QuorumDisks(1)
    ledger = disks.ledgers[1]
    disks.witness.stored(ledger, QuorumStateData(1, leader_epoch=1))
    disks.enter(1, 3)
    with pytest.raises(ViolationError, match="epochs-rise"):
        disks.enter(1, 2)
    disks.witness.reopened(ledger, 0, 0)
    disks.enter(1, 2)


def test_refusals_are_counted_until_records_are_taken() -> None:
    """Those of the present epoch are counted anew with each one that is led."""
    disks = QuorumDisks(1)
    ledger, found = disks.ledgers[1], []
    for happens in ("refused", "refused", "leads", "refused", "takes", "refused"):
        if happens == "refused":
            disks.witness.refused(ledger)
        elif happens == "leads":
            disks.lead(1, 1)
        else:
            disks.append((1,), 1)
        found.append((ledger.refusals, ledger.refused_in_epoch))
    assert found == [(1, 1), (2, 2), (2, 0), (3, 1), (0, 0), (1, 1)]


@pytest.mark.parametrize(("offset", "left"), [(2, 1), (3, 0)])
def test_a_restart_at_a_later_snapshot_is_as_good_as_records(offset: int, left: int) -> None:
    """The log goes further than before, so that it takes records again; one that has diverged goes no further."""
    disks = QuorumDisks(1)
    ledger = disks.ledgers[1]
    disks.append((1,), 1, 2)
    disks.witness.refused(ledger)
    ledger.snapshots = (OffsetAndEpoch(offset, 1),)
    disks.witness.restarted(ledger, offset)
    assert (ledger.refusals, ledger.refused_in_epoch) == (left, left)


def test_votes_do_not_change() -> None:
    """A vote is for one candidate in an epoch; to lead is to have voted for oneself."""
    disks = QuorumDisks(3)
    ledger, stored = disks.ledgers[1], disks.witness.stored
    stored(ledger, QuorumStateData(1, leader_epoch=1, voted_id=2))
    stored(ledger, QuorumStateData(1, leader_epoch=1, leader_id=2))
    stored(ledger, QuorumStateData(1, leader_epoch=2, voted_id=3))
    with pytest.raises(ViolationError, match="one-vote-per-epoch"):
        stored(ledger, QuorumStateData(1, leader_epoch=2, leader_id=1))


def name_voters(disks: QuorumDisks, ids: range, epoch: int = 1) -> None:
    """Let the leader, replica 1, write a voter set."""
    ledger = disks.ledgers[1]
    voters = voters_record(voter_set_of(map(replica_key, ids)))
    data = write_control_batch([voters], base_offset=ledger.end_offset, epoch=epoch, timestamp=0)
    disks.witness.appended(ledger, [RecordBatch(data)], is_leader=True)


def settled_disks() -> QuorumDisks:
    """Return three disks with a leader that has committed one batch of its epoch."""
    disks = QuorumDisks(3)
    disks.lead(1, 1)
    disks.append((1, 2), 1)
    disks.sync(1, 2)
    return disks


def test_a_leader_commits_before_it_changes_voters() -> None:
    """A leader that names other voters before a record of its own epoch is committed is a violation."""
    disks = settled_disks()
    disks.lead(1, 2)
    disks.append((1, 2), 2)
    disks.sync(1)
    with pytest.raises(ViolationError, match="commit-before-voters"):
        name_voters(disks, range(1, 3), epoch=2)


@pytest.mark.parametrize("epoch", [1, 2])
def test_other_voters_follow_the_first_commit(epoch: int) -> None:
    """As soon as that record is committed, voters may be changed; the same voters may be named before."""
    disks = settled_disks()
    if epoch == 2:
        disks.lead(1, 2)
        disks.append((1, 2), 2)
        disks.sync(1, 2)
    name_voters(disks, range(1, 3), epoch)
    assert disks.witness.voter_changes == 1


def test_the_same_voters_need_no_commit() -> None:
    """The first leader writes the voters of the bootstrap snapshot with the record that begins its epoch."""
    disks = QuorumDisks(3)
    disks.lead(1, 1)
    name_voters(disks, range(1, 4))
    assert disks.witness.voter_changes == 0


def test_a_voter_change_waits_for_the_one_before() -> None:
    """A leader that names the next voters before the last ones are committed is a violation."""
    disks = settled_disks()
    name_voters(disks, range(1, 3))
    with pytest.raises(ViolationError, match="one-uncommitted-voter-set"):
        name_voters(disks, range(1, 2))


def test_new_voters_commit_their_own_record() -> None:
    """A voter set is in force from its own record on: both of two voters have to sync it."""
    disks = settled_disks()
    name_voters(disks, range(1, 3))
    disks.sync(1)
    assert disks.committed_end == 1
    disks.witness.appended(disks.ledgers[2], [_batch_of(disks)], is_leader=False)
    disks.sync(2)
    assert disks.committed_end == 2
    name_voters(disks, range(1, 2))


def _batch_of(disks: QuorumDisks) -> RecordBatch:
    return disks.witness.history.content_of(disks.ledgers[1].batches[-1])


def test_majorities_of_successive_voter_sets_meet() -> None:
    """A set with majorities that are disjoint from those of the set before it is a violation."""
    disks = QuorumDisks(3)
    disks.lead(1, 1)
    with pytest.raises(ViolationError, match="voter-sets-overlap"):
        name_voters(disks, range(3, 6))


def rotten_disks() -> QuorumDisks:
    """Return three disks with two batches on the first one, which was synced, and has lost the second batch."""
    disks = QuorumDisks(3)
    disks.lead(2, 1)
    disks.append((1, 2), 1, 2)
    disks.sync(1)
    disks.witness.rotted(disks.ledgers[1], 1)
    return disks


def test_a_quarantine_ends_where_the_log_was_durable() -> None:
    """Not one batch before; a crash, and further losses, change nothing in that."""
    disks = rotten_disks()
    ledger = disks.ledgers[1]
    disks.witness.reopened(ledger, 1, 0)
    disks.witness.rotted(ledger, 0)
    disks.append((1,), 1)
    disks.sync(1)
    assert ledger.is_quarantined
    disks.append((1,), 1)
    assert ledger.is_quarantined
    disks.sync(1)
    assert not ledger.is_quarantined
    assert disks.witness.counts["quarantines"] == 2


def test_a_snapshot_ends_a_quarantine() -> None:
    """A log that restarts at the end of one, where it was durable or later, lacks nothing."""
    disks = rotten_disks()
    disks.sync(2, 1)
    disks.append((3,), 1, 2)
    disks.sync(3)
    assert disks.committed_end == 2
    ledger = disks.ledgers[1]
    ledger.snapshots = (OffsetAndEpoch(2, 1),)
    disks.witness.restarted(ledger, 2)
    assert not ledger.is_quarantined


def test_a_replica_in_quarantine_does_not_count() -> None:
    """What it syncs commits nothing until it is whole; what it had synced before has counted."""
    disks = QuorumDisks(3)
    disks.lead(2, 1)
    disks.append((1, 2), 1, 2)
    disks.sync(1)
    disks.enter(1, 2)
    disks.lead(2, 2)
    disks.witness.rotted(disks.ledgers[1], 0)
    for ledger in (disks.ledgers[1], disks.ledgers[2]):
        ledger.cut(0)
    disks.append((1, 2), 2, 1)
    disks.sync(1, 2)
    assert disks.committed_end == 0
    disks.append((1, 2), 2, 1)
    disks.sync(1)
    assert disks.committed_end == 1
    disks.sync(2)
    assert disks.committed_end == 2


def test_what_a_lost_log_had_synced_is_committed() -> None:
    """The leader may have been told; another disk has the records."""
    disks = rotten_disks()
    disks.sync(2)
    assert disks.committed_end == 2
    assert len(disks.committed) == 2


def test_a_replica_in_quarantine_does_not_lead() -> None:
    """An epoch that it begins is a violation."""
    disks = rotten_disks()
    with pytest.raises(ViolationError, match="quarantine"):
        disks.lead(1, 2)
