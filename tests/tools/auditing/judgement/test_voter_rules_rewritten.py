# SPDX-License-Identifier: Apache-2.0
"""Judging voter sets that a tool has put in place of others: found from the log alone, and not taken for a leader's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raftlog.records.messages.control import VotersRecord
from raftlog.records.messages.voters import voter_set, voters_record
from raftlog.records.rules import Severity
from raftlog.tools.auditing.history.voter_changes import VoterDifference
from raftlog.tools.auditing.judgement.voter_rules import judge_voters
from raftlog.voters.voter_set import VoterSet
from tests.tools.auditing.judgement.test_voter_rules import found, three
from tests.tools.auditing.made_quorum import MadeLog, histories, voter, voters

REWRITES = {
    "two of three are given up": (voters(1, 2, 3), voters(1)),
    "a disk of three is another": (voters(1, 2, 3), VoterSet.of([voter(1), voter(2), voter(3, directory=5)])),
    "the only voter has another disk": (voters(1), VoterSet.of([voter(1, directory=5)])),
    "all are others": (voters(1, 2, 3), voters(4, 5, 6)),
    "one of four is replaced": (voters(1, 2, 3, 4), voters(1, 2, 3, 9)),
    "two are added": (voters(1), voters(1, 2, 3)),
    "one leaves and one moves": (voters(1, 2), VoterSet.of([voter(1, port=7)])),
}


@pytest.mark.parametrize("name", REWRITES)
@pytest.mark.parametrize("has_later_epoch", [False, True])
def test_a_set_that_no_leader_writes_at_the_end_of_an_epoch(name: str, *, has_later_epoch: bool) -> None:
    """A batch of its own, after which its epoch has nothing, is a rewrite by hand, once, whatever follows."""
    before, after = REWRITES[name]
    log = MadeLog().bootstrap(before).data(7)
    offset = log.change(after)
    if has_later_epoch:
        log.lead(min(after.voter_ids), after.voter_ids)
        log.data(2)
        log.snapshot(log.end_offset, epoch=log.epoch, named=after)
    (finding,) = judge_voters(log.evidence())

    assert (finding.rule, finding.offset, finding.epoch) == ("voters-rewritten", offset, 1)
    assert finding.severity is Severity.SUSPICIOUS
    for key in before.voter_keys - after.voter_keys:
        assert str(key) in finding.reason.rpartition(": the disks of")[2]
    assert ("must never start again" in finding.reason) == bool(before.voter_keys - after.voter_keys)


def test_a_set_is_rewritten_also_after_a_snapshot_alone() -> None:
    """A set after a snapshot, at the start of the log that is left, is compared with the snapshot's."""
    log = MadeLog(start_offset=20, epoch=4).snapshot(20, epoch=4, named=voters(1, 2, 3))
    offset = log.change(voters(1))

    assert found(log.evidence()) == [("voters-rewritten", offset)]


def test_a_set_that_is_rewritten_twice_is_one_finding() -> None:
    """A second rewrite, before a leader was elected, does not turn the first one into a leader's mistake."""
    log = three()
    offset = log.change(voters(1))
    log.change(voters(4, 5, 6))
    log.lead(4, (4, 5, 6))

    assert found(log.evidence()) == [("voters-rewritten", offset)]


@pytest.mark.parametrize("after", [voters(1, 2), voters(1, 2, 3, 4)], ids=["removed", "added"])
def test_a_single_change_at_the_end_of_an_epoch_is_a_leaders(after: VoterSet) -> None:
    """What a leader may have written just before it stopped is not called a rewrite: nothing tells them apart."""
    log = three()
    log.change(after)
    log.lead(1, after.voter_ids)

    assert found(log.evidence()) == []


def test_a_set_in_a_batch_with_others_is_not_rewritten() -> None:
    """Two sets in the last batch of an epoch, or one with the leader's own record, are no tool's of ours."""
    log = three()
    offset = log.write(voters_record(voters(1)), voters_record(voters(2)))
    assert found(log.evidence())[0] == ("voters-accepted", offset)
    log = three()
    offset = log.lead(1, (1, 2, 3), voters_record(voters(1)))
    assert found(log.evidence()) == [("voters-accepted", offset)]


@given(histories(), st.sets(st.integers(1, 9), min_size=1, max_size=5))
def test_a_rewrite_after_any_history_is_one_finding(log: MadeLog, ids: set[int]) -> None:
    """After whatever a sound quorum has written, a set of other voters by two changes or more is a rewrite."""
    before = VoterSet()
    for seen in log.controls:
        value = seen.read().value
        before = voter_set(value) if isinstance(value, VotersRecord) else before
    after = VoterSet.of(map(voter, ids))
    log.data()
    offset = log.change(after)
    has_others = before.voter_keys != after.voter_keys
    is_rewritten = has_others and len(VoterDifference.between(before, after)) > 1

    assert (found(log.evidence()) == [("voters-rewritten", offset)]) == is_rewritten
    log.data()
    assert ("voters-rewritten", offset) not in found(log.evidence())
