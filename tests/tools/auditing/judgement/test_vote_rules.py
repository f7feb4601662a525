# SPDX-License-Identifier: Apache-2.0
"""A quorum-state that contradicts the election of its epoch is found, whichever replica's log records the election."""

import pytest

from raftlog.tools.auditing.evidence import PartitionEvidence
from raftlog.tools.auditing.judgement.directory_rules import judge_directories
from tests.tools.auditing.made_quorum import MadeLog, leader_change, log_directory, voter, voters

NAMED = (1, 2, 3)


def node(
    node_id: int,
    *,
    granting: tuple[int, ...] | None,
    leader: int = -1,
    vote: int = -1,
    epoch: int = 2,
    copy: str = "",
) -> list[PartitionEvidence]:
    """A replica's log directory.

    Args:
        node_id: of the replica.
        copy: of which copy of its disk.
        granting: who voted for leader 2 in epoch 2, as the replica's log says; None if its log ends in epoch 1.
        leader: of its quorum-state; -1 for none.
        vote: of its quorum-state; -1 for none.
        epoch: of its quorum-state.
    """
    name = f"n{node_id}{copy}"
    log = MadeLog(node=name).bootstrap(voters(*NAMED))
    if granting is not None:
        log.write(leader_change(2, NAMED, granting), epoch=2)
    log.state(epoch, leader, vote)
    directory_id = voter(node_id).voter_key.directory_id
    return [log_directory(name, node_id, directory_id), log.evidence()]


def found(*evidence: PartitionEvidence) -> list[tuple[str, str]]:
    """Return rules and paths of findings about elections."""
    findings = judge_directories(evidence)
    return [(each.rule, each.path.split("/")[0]) for each in findings if each.rule.startswith("election-")]


LEADER = node(2, granting=(2, 3), leader=2, vote=2)


def test_a_vote_for_the_leader_and_no_vote_are_sound() -> None:
    """The candidate that lost keeps its vote for itself, and a voter that did not vote has none."""
    assert found(*LEADER, *node(3, granting=(2, 3), leader=2, vote=2)) == []
    assert found(*LEADER, *node(3, granting=None, vote=2)) == []
    assert found(*LEADER, *node(3, granting=None)) == []
    assert found(*LEADER, *node(1, granting=None, leader=2, vote=1)) == []


def test_a_double_vote_is_found_in_the_log_of_another_replica() -> None:
    """Replica 3 voted for 2, as the leader's log says, and for 1, as its own file says."""
    for granting in (None, (2, 3)):
        assert found(*LEADER, *node(3, granting=granting, vote=1)) == [("election-double-vote", "n3")]
        assert found(*LEADER, *node(3, granting=granting, leader=2, vote=1)) == [("election-double-vote", "n3")]


def test_a_double_vote_is_found_in_its_own_log() -> None:
    """The same if no other replica is there."""
    assert found(*node(3, granting=(2, 3), leader=2, vote=1)) == [("election-double-vote", "n3")]


def test_another_leader_is_found_once() -> None:
    """A log of another replica contradicts the file, or the replica's own log does: one finding in either case."""
    assert found(*LEADER, *node(3, granting=None, leader=1, vote=1)) == [("election-leader", "n3")]
    assert found(*LEADER, *node(3, granting=None, leader=1)) == [("election-leader", "n3")]


def test_a_vote_of_another_epoch_is_another_matter() -> None:
    """A later candidate may have the vote; an old file is reported as old."""
    assert found(*LEADER, *node(3, granting=(2, 3), vote=1, epoch=3)) == []
    assert ("election-double-vote", "n3") not in found(*LEADER, *node(3, granting=(2, 3), vote=1, epoch=1))


def test_a_vote_for_a_stranger_is_no_double_vote() -> None:
    """It is reported as a vote for a node that is not a voter, when the replica's log is judged."""
    assert found(*LEADER, *node(3, granting=(2, 3), leader=2, vote=9)) == []


def test_two_files_of_two_leaders_without_an_election() -> None:
    """Of an epoch that no log has, the files must agree; the one that differs from most is named, once each."""
    one, two = node(1, granting=None, leader=1, epoch=7), node(2, granting=None, leader=1, epoch=7)
    assert found(*one, *two) == []
    assert found(*one, *node(2, granting=None, epoch=7)) == []
    assert found(*one, *node(2, granting=None, leader=2, epoch=8)) == []
    assert found(*one, *node(2, granting=None, leader=2, epoch=7)) == [("election-two-leaders", "n2")]
    assert found(*node(1, granting=None, leader=2, epoch=7), *two, *node(3, granting=None, leader=1, epoch=7)) == [
        ("election-two-leaders", "n1")
    ]
    with_election = [*LEADER, *node(1, granting=None, leader=1), *node(3, granting=None, leader=3)]
    assert found(*with_election) == [("election-leader", "n1"), ("election-leader", "n3")]


COPIES = {
    "two votes": ((-1, 1), (-1, 2), True),
    "two votes beside one leader": ((2, 1), (2, 3), True),
    "it leads, and voted for another": ((3, -1), (-1, 2), True),
    "it led, and says so, and voted for another": ((3, 3), (-1, 2), True),
    "a vote that was dropped for a leader": ((2, -1), (-1, 1), False),
    "a leader after the vote": ((2, 2), (-1, 2), False),
    "nothing yet": ((-1, -1), (-1, 2), False),
    "the same": ((2, 1), (2, 1), False),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_of_one_disk_that_contradict_each_other(name: str) -> None:
    """Of an epoch that no log has: in any order, one of them is named, once; of another epoch, none is."""
    (leader, vote), (other_leader, other_vote), is_wrong = COPIES[name]
    one = node(3, granting=None, leader=leader, vote=vote, epoch=7)
    for epoch in (6, 7, 8):
        other = node(3, granting=None, leader=other_leader, vote=other_vote, epoch=epoch, copy="b")
        expected = ["election-double-vote"] if is_wrong and epoch == 7 else []
        assert [rule for rule, _ in found(*one, *other)] == expected
        assert [rule for rule, _ in found(*other, *one)] == expected


def test_copies_of_which_a_log_says_the_truth_are_one_fault() -> None:
    """An election in a log decides between two copies, and between two that name different leaders."""
    double = node(3, granting=None, vote=1, copy="b")
    assert found(*LEADER, *node(3, granting=None, vote=2), *double) == [("election-double-vote", "n3b")]
    one, other = (node(3, granting=None, leader=each, epoch=7, copy=str(each)) for each in (1, 2))
    assert [rule for rule, _ in found(*one, *other)] == ["election-two-leaders"]
